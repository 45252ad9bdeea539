//! Comparisons, advice and tables.

use super::*;

#[test]
fn treatments_are_compared_with_the_reference() {
    let toml = "[reference]\ndurability = 'none'\nbuffer = '4KiB'\n";
    let analysis = analyse(&run(toml, 15, cost));
    let relation = |label: &str| {
        let of_label = |c: &&model::Comparison| analysis.treatments[c.treatment].label == label;
        analysis.comparisons.iter().find(of_label).unwrap().relation
    };
    assert_eq!(relation("durability=o-sync buffer=4KiB"), Relation::Worse);
    assert_eq!(relation("durability=none buffer=256KiB"), Relation::Better);
    assert_eq!(relation("durability=fsync buffer=4KiB"), Relation::Same);
    let few = analyse(&run(toml, 3, cost));
    assert!(
        few.comparisons
            .iter()
            .all(|c| c.relation == Relation::Undecided)
    );
}

#[test]
fn advice_names_the_best_and_what_cannot_be_told_from_it() {
    let toml = "
[[advice]]
topic = 'durability'
kind = 'best'
factor = 'durability'
at = { buffer = '4KiB' }
[[advice]]
topic = 'without {durability}'
kind = 'best'
factor = 'durability'
at = { buffer = '4KiB' }
except = ['none']
[[advice]]
topic = 'buffer with {durability}'
kind = 'saturation'
factor = 'buffer'
each = ['durability']
[[advice]]
topic = 'cost'
kind = 'cost'
factor = 'durability'
over = 'buffer'
";
    let advice = analyse(&run(toml, 20, cost)).advice;
    let find = |topic: &str| advice.iter().find(|advice| advice.topic == topic).unwrap();
    let best = find("durability");
    assert!(
        !best.decided && best.text.contains("none") && best.text.contains("fsync"),
        "{best:?}"
    );
    assert!(find("without {durability}").text.starts_with("use fsync"));
    assert!(
        find("buffer with o-sync")
            .text
            .contains("the largest tried")
    );
    assert_eq!(find("cost").evidence.len(), 3);
}

#[test]
fn a_published_table_has_measured_values_and_ratios_beside_it() {
    let toml = "
[[table]]
title = 'x'
unit = 'ms'
scale = 1e6
relative_to = 'plain'
at = { buffer = '4KiB' }
rows = [
    { label = 'plain', published = 2.0, at = { durability = 'none' } },
    { label = 'sync', published = 8.0, at = { durability = 'o-sync' } },
    { label = 'other', text = 'not finished' },
]
";
    let table = &analyse(&run(toml, 10, cost)).tables[0];
    assert_eq!(table.rows[1].published_ratio, Some(4.0));
    assert_eq!(table.rows[1].published_converted, Some(8e6));
    let ratio = table.rows[1].measured_ratio.unwrap();
    assert!((ratio.value - 7.38).abs() < 0.1, "{ratio:?}");
    assert!(table.rows[2].missing.is_some());
}

#[test]
fn a_published_deviation_brings_the_mean_without_extremes() {
    let toml = "
[[table]]
title = 'x'
unit = 'ms'
at = { buffer = '4KiB' }
rows = [
    { label = 'plain', published = 2.0, deviation = 0.1, at = { durability = 'none' } },
    { label = 'sync', published = 8.0, at = { durability = 'o-sync' } },
]
";
    let stored = run(toml, 10, |durability, buffer, block| {
        let slow = if block == 7 { 100.0 } else { 1.0 };
        Some(cost(durability, buffer, block)? * slow)
    });
    let rows = &analyse(&stored).tables[0].rows;
    let mean = rows[0].measured_mean.unwrap();
    assert_eq!((mean.kept, mean.dropped), (9, 1));
    let median = rows[0].measured.unwrap().value;
    assert!(
        (mean.mean / median - 1.0).abs() < 0.1,
        "{mean:?}, median {median}"
    );
    assert!(mean.standard_deviation.unwrap() < median * 0.1);
    assert_eq!(rows[1].measured_mean, None);
}

#[test]
fn a_box_plot_has_quartiles_whiskers_and_what_lies_beyond() {
    let toml = "
[[figure]]
title = 'x'
kind = 'box'
scale = 1e6
at = { buffer = '4KiB' }
groups = [
    { label = 'plain', at = { durability = 'none' }, published = [2.0, 1.0, 4.0] },
    { label = 'absent', at = { durability = 'none', buffer = '8KiB' } },
]
";
    let stored = run(toml, 10, |_, _, block| {
        Some(match block {
            9 => 1e9,
            block => f64::from(block),
        })
    });
    let [model::Figure::Box(plot)] = &analyse(&stored).figures[..] else {
        panic!("there is one figure, of boxes");
    };
    let published = plot.groups[0].published.unwrap();
    assert_eq!(
        [published.lower, published.median, published.upper],
        [1e6, 2e6, 4e6]
    );
    let measured = plot.groups[0].measured.as_ref().unwrap();
    assert_eq!(measured.quartiles.median, 4.5);
    assert_eq!(
        [measured.quartiles.lower, measured.quartiles.upper],
        [2.25, 6.75]
    );
    assert_eq!([measured.low, measured.high], [0.0, 8.0]);
    assert_eq!(
        (measured.outliers.as_slice(), measured.trials),
        (&[1e9][..], 10)
    );
    assert_eq!(plot.groups[1].measured, None);
}

#[test]
fn counters_that_are_missing_for_one_reason_are_told_in_one_warning() {
    let mut stored = run("", 10, cost);
    for trial in &mut stored.trials {
        for (name, reason) in [
            ("cycles", "no"),
            ("instructions", "no"),
            ("branches", "busy"),
        ] {
            let reason = format!("cannot open perf counter {name}: {reason}");
            trial.counters_missing.insert(name.into(), reason);
        }
    }
    let warnings = analyse(&stored).warnings;
    let told: Vec<&String> = warnings.iter().filter(|w| w.contains("skipped")).collect();
    assert_eq!(
        told,
        [
            "counter branches was skipped: cannot open perf counter: busy",
            "counters cycles, instructions were skipped: cannot open perf counter: no",
        ]
    );
}
