//! Claims on derived quantities; quotients and steps.

use super::*;

const QUOTIENT: &str = "[[derived]]\nid = 'q'\ntext = 'x'\nkind = 'quotient'\n\
    metric = 'METRIC'\nper = 'bytes_written'\nfactor = 'buffer'\nlevel = '4KiB'\n\
    at = { durability = 'none' }\n";

fn quotient_of(metric: &str, rest: &str) -> String {
    let claim = format!("[[claim]]\nid = 'c'\ntext = 'x'\nderived = 'q'\n{rest}\n");
    QUOTIENT.replace("METRIC", metric) + &claim
}

#[test]
fn a_quotient_is_one_metric_over_another_of_the_same_trials() {
    // 256 calls for 2^20 bytes, exactly.
    let toml = quotient_of("calls", "direction = 'equal'\nthreshold = 0.000244140625");
    let verdict = only(&toml, 10, cost);
    assert_eq!(verdict.outcome, Outcome::Supported, "{}", verdict.reason);
    assert_eq!(verdict.measured.unwrap().value, 1.0 / 4096.0);
    assert_eq!(verdict.blocks, 10);
}

#[test]
fn a_quotient_of_nothing_is_below_any_bound() {
    let toml = quotient_of("calls", "direction = 'less'\nthreshold = 0.01");
    let mut stored = run(&toml, 10, cost);
    for trial in &mut stored.trials {
        trial.samples.insert("calls".into(), vec![0.0]);
    }
    let verdict = &analyse(&stored).verdicts[0];
    assert_eq!(verdict.outcome, Outcome::Supported, "{}", verdict.reason);
    assert_eq!(verdict.measured.unwrap().value, 0.0);
    let open = questions(&stored.experiment, &stored.treatments, &stored.trials, &[]);
    assert_eq!(open[0].half_width, 0.0, "nothing is left open");
}

#[test]
fn a_time_that_a_coarse_clock_reads_as_nothing_is_saved_whole() {
    let of_to = "factor = 'buffer'\nof = { durability = 'none' }\nto = { durability = 'o-sync' }\n";
    let toml = format!(
        "[[derived]]\nid = 'acc'\ntext = 'x'\nkind = 'acceleration'\nlevel = '4KiB'\n{of_to}\
         [[derived]]\nid = 'zero'\ntext = 'x'\nkind = 'crossing'\n{of_to}\
         [[claim]]\nid = 'c'\ntext = 'x'\nderived = 'acc'\ndirection = 'greater'\nthreshold = 0.9\n\
         [[figure]]\ntitle = 'x'\nkind = 'curve'\nfactor = 'buffer'\n\
         acceleration_of = {{ durability = 'none' }}\nacceleration_to = {{ durability = 'o-sync' }}\n"
    );
    // Times of a clock with ticks of 10 ms.
    let ticks = |durability: &str, buffer: f64, _| match durability {
        "o-sync" if buffer < 65_536.0 => Some(6e7),
        _ => Some(0.0),
    };
    let analysis = analyse(&run(&toml, 10, ticks));
    let verdict = &analysis.verdicts[0];
    assert_eq!(verdict.outcome, Outcome::Supported, "{}", verdict.reason);
    let value = |place: usize| analysis.derived[place].estimate.unwrap().value.unwrap();
    assert!((value(0) - 1.0).abs() < 1e-6);
    assert_eq!(value(1), 65_536.0, "where both read 0");
    let [model::Figure::Curve(curve)] = analysis.figures.as_slice() else {
        panic!("{:?}", analysis.figures);
    };
    assert_eq!(curve.series[0].points.len(), 4);
}

#[test]
fn a_counter_that_is_missing_makes_a_claim_untestable_with_its_reason() {
    let toml = quotient_of("counter.cycles", "direction = 'less'\nthreshold = 1")
        + &claim(
            "r",
            "o-sync",
            "none",
            "metric = 'counter.cycles'\ndirection = 'less'",
        );
    let table = "[[table]]\ntitle = 'x'\nunit = ''\nmetric = 'counter.cycles'\n\
                 rows = [{ label = 'r', at = { durability = 'none', buffer = '4KiB' } }]\n";
    let mut stored = run(&(toml + table), 10, cost);
    for trial in &mut stored.trials {
        let reason = "cannot open perf counter cycles: no such file or directory";
        trial.counters_missing = BTreeMap::from([("cycles".into(), reason.into())]);
    }
    let analysis = analyse(&stored);
    let missing = analysis.tables[0].groups[0].rows[0].missing.as_deref();
    assert!(
        missing.unwrap().contains("perf counter cycles"),
        "{missing:?}"
    );
    for verdict in analysis.verdicts {
        assert_eq!(verdict.outcome, Outcome::NotTestable);
        assert!(
            verdict.reason.contains("perf counter cycles"),
            "{}",
            verdict.reason
        );
    }
}

const STEPS: &str = "
format = 1
name = 't'
metric = 'latency_ns'
[workload]
kind = 'chase'
[[factor]]
name = 'size'
levels = { from = '4KiB', to = '4MiB', times = 2 }
[[derived]]
id = 'first'
text = 'x'
kind = 'step'
factor = 'size'
step = 1
[[derived]]
id = 'third'
text = 'x'
kind = 'step'
factor = 'size'
step = 3
[[claim]]
id = 'c'
text = 'x'
derived = 'first'
between = ['32KiB', '64KiB']
";

/// Twelve blocks of a staircase: 2 ns up to 32 KiB, 6 ns up to 512 KiB, then 60 ns.
fn staircase() -> StoredRun {
    let experiment = spec::parse(STEPS, "test", "quick").unwrap();
    let plan = Plan::new(&experiment, 1).unwrap();
    let mut trials = Vec::new();
    for block in 0..12 {
        for treatment in &plan.treatments {
            let size = treatment.levels["size"].number.unwrap();
            let latency = match size / 1024.0 {
                ..=32.0 => 2.0,
                ..=512.0 => 6.0,
                _ => 60.0,
            };
            let value = latency * noise("", size, block);
            let mut trial = trial(block, treatment.index, Some(1.0), size);
            trial.samples = BTreeMap::from([("latency_ns".into(), vec![value])]);
            trials.push(trial);
        }
    }
    StoredRun {
        run: record(),
        experiment,
        treatments: plan.treatments,
        trials,
        boots: Vec::new(),
        profiles: Vec::new(),
    }
}

#[test]
fn a_step_lies_between_the_levels_that_it_parts() {
    let analysis = analyse(&staircase());
    let first = &analysis.derived[0];
    let between = f64::from(1 << 15) * 2.0_f64.sqrt();
    let value = first.estimate.unwrap().value.unwrap();
    assert!((value - between).abs() < 1e-6, "{first:?}");
    assert_eq!(first.unit, "bytes");
    assert_eq!(first.details["steps"], 2.0);
    // All blocks agree on the place, but nothing between these two sizes was tried.
    let at = first.estimate.unwrap();
    let ends = [at.low, at.high].map(Option::unwrap);
    assert_eq!(ends, [32_768.0, 65_536.0]);
    assert_eq!(analysis.verdicts[0].outcome, Outcome::Supported);
}

#[test]
fn a_staircase_has_its_plateaus_and_the_cache_that_ends_near_a_step() {
    let mut stored = staircase();
    stored.run.machine.caches_bytes =
        BTreeMap::from([("L1d".into(), 49_152), ("L2".into(), 4 << 20)]);
    let analysis = analyse(&stored);
    let [stairs] = analysis.staircases.as_slice() else {
        panic!("{:?}", analysis.staircases);
    };
    let plateaus: Vec<(f64, f64, f64)> = stairs
        .plateaus
        .iter()
        .map(|plateau| {
            (
                plateau.from / 1024.0,
                plateau.to / 1024.0,
                plateau.value.value.round(),
            )
        })
        .collect();
    let expected = [(4.0, 32.0, 2.0), (64.0, 512.0, 6.0), (1024.0, 4096.0, 60.0)];
    assert_eq!(plateaus, expected);
    let value = stairs.plateaus[0].value;
    assert!(value.low <= value.value && value.value <= value.high && value.low < value.high);
    // The third step is requested but does not exist.
    let [step] = stairs.steps.as_slice() else {
        panic!("{:?}", stairs.steps);
    };
    assert!((step.rise - 3.0).abs() < 0.05, "{step:?}");
    let cache = step.nearest_cache.as_ref().unwrap();
    assert_eq!(cache.name, "L1d");
    assert!((cache.share - 2.0_f64.sqrt() * 32.0 / 48.0).abs() < 1e-9);

    stored.run.machine.caches_bytes.remove("L1d");
    let step = &analyse(&stored).staircases[0].steps[0];
    assert_eq!(step.nearest_cache, None, "4 MiB is not near 46 KiB");
}

#[test]
fn a_step_is_marked_on_the_line_that_it_was_found_on() {
    let figure = "[[figure]]\ntitle = 'x'\nkind = 'curve'\nfactor = 'size'\nmarks = ['first']\n";
    let mut stored = staircase();
    stored.experiment = spec::parse(&(STEPS.to_owned() + figure), "test", "quick").unwrap();
    let analysis = analyse(&stored);
    let [model::Figure::Curve(curve)] = analysis.figures.as_slice() else {
        panic!("{:?}", analysis.figures);
    };
    assert_eq!(curve.marks[0].series, Some(0));
    assert_eq!(curve.series[0].plateaus, analysis.staircases[0].plateaus);
}

#[test]
fn a_step_that_is_not_there_is_told() {
    let analysis = analyse(&staircase());
    assert!(analysis.derived[1].estimate.is_none());
    let note = analysis.derived[1].note.as_deref().unwrap();
    assert!(note.contains("the curve has 2 steps"), "{note}");
}

#[test]
fn one_block_decides_nothing_however_clear() {
    let mut stored = staircase();
    stored.trials.retain(|trial| trial.block < 1);
    let verdicts = analyse(&stored).verdicts;
    assert!(!verdicts.is_empty());
    for verdict in verdicts {
        assert_ne!(verdict.outcome, Outcome::Supported, "{}", verdict.reason);
        assert_ne!(verdict.outcome, Outcome::Refuted, "{}", verdict.reason);
    }
}

#[test]
fn a_claim_on_several_ratios_takes_more_blocks() {
    let needed = |kind: &str| {
        let toml = STEPS.replace("kind = 'step'\nfactor = 'size'\nstep = 1", kind);
        let experiment = spec::parse(&toml, "test", "quick").unwrap();
        blocks_needed(&experiment, &Plan::new(&experiment, 1).unwrap().treatments)
    };
    let [step, knee, spread] = [
        "kind = 'step'\nfactor = 'size'\nstep = 1",
        "kind = 'knee'\nfactor = 'size'",
        "kind = 'spread'\nfactor = 'size'",
    ]
    .map(|kind| needed(kind).unwrap());
    let alone = needed("kind = 'quotient'\nfactor = 'size'\nlevel = '8KiB'\nper = 'duration_ns'");
    let alone = alone.unwrap();
    // They have 4, 10 and 110 intervals: one block more for each doubling. The quotient
    // alone is decided before the first look, and each later look has a small part of the
    // error.
    assert_eq!([step, knee, spread].map(|one| one - alone), [3, 5, 8]);
}

#[test]
fn claims_on_derived_quantities_are_judged_by_their_interval() {
    let claim = |id: &str, rest: &str| {
        format!("[[claim]]\nid = 'c-{id}'\ntext = 'x'\nderived = '{id}'\n{rest}\n")
    };
    let toml = [
        DERIVED.to_owned(),
        claim("knee", "between = ['32KiB', '128KiB']"),
        claim("zero", "direction = 'less'\nthreshold = '256KiB'"),
        claim("share", "direction = 'less'\nthreshold = 0.5"),
    ]
    .concat();
    let stored = run(&toml, 20, cost);
    let verdicts = analyse(&stored).verdicts;
    let expected = [Outcome::Supported, Outcome::Refuted, Outcome::Refuted];
    assert!(verdicts.iter().map(|one| one.outcome).eq(expected));
    let shown = questions(&stored.experiment, &stored.treatments, &stored.trials, &[]);
    let shown: Vec<_> = shown.iter().filter_map(|width| width.outcome).collect();
    assert_eq!(shown, expected, "while it runs");
    // 0.5 lies far below, and 256 KiB not as far.
    let past = |id: &str| {
        verdicts
            .iter()
            .find(|one| one.id == id)?
            .factor_past_bound()
    };
    assert!(
        past("c-knee").is_some_and(|factor| factor < 1.0),
        "{:?}",
        past("c-knee")
    );
    assert!(
        past("c-share").is_some_and(|factor| factor > 1.0),
        "{:?}",
        past("c-share")
    );
}

#[test]
fn a_claim_over_machines_is_measured_and_judged_by_no_run() {
    let other = claim("d", "o-sync", "none", "direction = 'greater'");
    let alone = only(&other, 10, cost);
    let over_machines = quotient_of("duration_ns", "differ_by = 'file system'\nthreshold = 2");
    let over_machines = over_machines.replace("per = 'bytes_written'", "per = 'calls'");
    let stored = run(&(over_machines + &other), 10, cost);
    let [verdict, beside] = &analyse(&stored).verdicts[..] else {
        panic!("there are two claims");
    };
    assert_eq!(verdict.outcome, Outcome::NotTestable);
    assert_eq!(
        verdict.reason,
        "one machine cannot show whether machines differ by file system; toll fleet report judges \
         the claim"
    );
    // 10 µs a call, and 1 ns for each of its 4096 bytes.
    let measured = verdict.measured.expect("it has a value");
    assert!(
        (measured.value / 14_096.0 - 1.0).abs() < 0.01,
        "{measured:?}"
    );
    assert!(measured.low < measured.value && measured.value < measured.high);
    assert!(measured.confidence >= 0.95);
    assert_eq!((verdict.unit.as_str(), verdict.blocks), ("ns", 10));
    assert_eq!(*beside, alone, "it does not affect other claims");
    let open = questions(&stored.experiment, &stored.treatments, &stored.trials, &[]);
    assert_eq!(open.len(), 1);
}
