//! What rows cost.

use super::*;

const ROWS: &str = "
format = 1
name = 't'
[workload]
kind = 'crossing'
[[rows]]
group = 'calls'
per = 'call'
list = [{ name = 'empty', operation = 'empty-syscall' }, { name = 'switch', times = 0.5 }]
[[rows]]
kind = 'chase'
list = [{ name = 'hidden', size = '16KiB' }]
[[rows]]
group = 'memory'
kind = 'chase'
list = [
    { name = 'near', size = '16KiB' },
    { name = 'far', size = '1GiB' },
    { name = 'span', vary = ['size'] },
    { name = 'span, huge', vary = ['size'], huge_pages = 'madvise' },
]
[[factor]]
name = 'size'
levels = ['1MiB', '4MiB', '16MiB']
[[derived]]
id = 'reach'
text = 'reach'
group = 'memory'
kind = 'crossing'
metric = 'latency_ns'
factor = 'size'
of = { row = 'span' }
to = { row = 'span, huge' }
value = -0.5
";

fn stored() -> StoredRun {
    let experiment = spec::parse(ROWS, "test", "quick").unwrap();
    let plan = Plan::new(&experiment, 1).unwrap();
    let mut trials = Vec::new();
    for block in 0..8 {
        for treatment in &plan.treatments {
            let row = experiment.row(&treatment.levels).unwrap();
            let value = match row.name.as_str() {
                "far" => None,
                "span" if treatment.levels["size"].text == "16MiB" => Some(400.0),
                _ => Some(100.0 + f64::from(block)),
            };
            let mut trial = trial(block, treatment.index, value, 1.0);
            trial.message = value.is_none().then(|| "no memory".to_owned());
            if let Some(value) = value {
                trial.samples.insert(row.metric.clone(), vec![value]);
            }
            trials.push(trial);
        }
    }
    let mut run = record();
    run.machine.caches_bytes = BTreeMap::from([
        ("L1d".to_owned(), 48 << 10),
        ("L1i".to_owned(), 16 << 10),
        ("L2".to_owned(), 2 << 20),
    ]);
    StoredRun {
        run,
        experiment,
        treatments: plan.treatments,
        trials,
        boots: Vec::new(),
        profiles: Vec::new(),
    }
}

#[test]
fn prices_are_grouped_scaled_and_told_why_they_are_missing() {
    let analysis = analyse(&stored());
    let price = |name: &str| {
        let mut prices = analysis.prices.iter();
        prices
            .find(|price| price.name == name)
            .unwrap_or_else(|| panic!("no {name}"))
    };
    let value = |name: &str| price(name).value.and_then(|value| value.value);
    assert_eq!(
        (value("empty"), value("switch")),
        (Some(103.5), Some(51.75))
    );
    assert_eq!(
        (price("empty").unit.as_str(), price("empty").per.as_str()),
        ("ns", "call")
    );
    let interval = price("empty").value.unwrap();
    assert_eq!((interval.low, interval.high), (Some(100.0), Some(107.0)));
    assert_eq!(
        (value("far"), price("far").note.as_deref()),
        (None, Some("no memory"))
    );
    assert_eq!(price("near").note.as_deref(), Some("in L1d"));
    assert_eq!(price("hidden").group, None);
    let groups: Vec<Option<&str>> = analysis.prices.iter().map(|p| p.group.as_deref()).collect();
    let mut in_order = groups.clone();
    in_order.dedup();
    assert_eq!(in_order, [Some("calls"), None, Some("memory")]);
    let last = analysis.prices.last().unwrap();
    assert_eq!((last.name.as_str(), last.unit.as_str()), ("reach", "bytes"));
    let reach = last.value.unwrap().value.unwrap();
    assert!((4194304.0..16777216.0).contains(&reach), "{reach}");
}

#[test]
fn only_experiments_of_rows_have_prices() {
    let stored = run("", 3, |_, _, _| Some(5.0));
    assert!(analyse(&stored).prices.is_empty());
}
