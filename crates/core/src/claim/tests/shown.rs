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

/// Durations of which one side takes longer by a share, with noise of three thousandths.
fn longer_by(share: f64) -> impl Fn(&str, f64, u32) -> Option<f64> {
    move |durability, buffer, block| {
        let noise = 1.0 + 0.003 * (f64::from(block * 7 % 11) / 5.0 - 1.0);
        let side = match durability {
            "fsync" => (1.0 + share) * noise,
            _ => 1.0,
        };
        cost("none", buffer, block).map(|duration| duration * side)
    }
}

#[test]
fn an_interval_beyond_1_is_an_answer_and_whether_it_is_beyond_the_margin_another() {
    let toml = "[reference]\ndurability = 'none'\nbuffer = '4KiB'\n";
    for (share, expected) in [
        (0.0, (Relation::Same, Some(false))),
        // A real difference, but as small as one of two builds may be.
        (0.005, (Relation::Same, Some(false))),
        (0.01, (Relation::Worse, None)),
        (-0.01, (Relation::Better, None)),
        (0.02, (Relation::Worse, Some(true))),
    ] {
        let analysis = analyse(&run(toml, 15, longer_by(share)));
        let is_fsync = |one: &&model::Comparison| {
            analysis.treatments[one.treatment].label == "durability=fsync buffer=4KiB"
        };
        let found = analysis.comparisons.iter().find(is_fsync).unwrap();
        assert_eq!(
            (found.relation, found.exceeds_margin),
            expected,
            "{found:?}"
        );
    }
}

#[test]
fn pairs_are_compared_under_one_error_and_taken_together() {
    let toml = "[reference]\ndurability = 'none'\n";
    let stored = run(toml, 20, cost);
    let analysis = analyse(&stored);
    let compared = &analysis.comparisons;
    let buffers: std::collections::BTreeSet<&str> =
        compared.iter().map(|one| one.common.as_str()).collect();
    for one in compared {
        let levels = [one.treatment, one.reference].map(|index| &stored.treatments[index].levels);
        assert_eq!(levels[0]["buffer"], levels[1]["buffer"]);
        assert!(one.ratio.confidence >= comparison::confidence(compared.len()));
    }
    let of = |new: &str| analysis.overall.iter().find(|one| one.new == new).unwrap();
    let sync = of("durability=o-sync");
    let counts = (sync.worse, sync.same, sync.compared);
    assert_eq!(counts, (buffers.len(), 0, buffers.len()));
    // The geometric mean of its parts.
    let worse = compared
        .iter()
        .filter(|one| one.relation == Relation::Worse);
    let ratios: Vec<f64> = worse.map(|one| one.ratio.value).collect();
    let mean = ratios
        .iter()
        .product::<f64>()
        .powf(1.0 / ratios.len() as f64);
    assert!(
        (sync.ratio.value / mean - 1.0).abs() < 0.01,
        "{sync:?}, {mean}"
    );
    let fsync = of("durability=fsync");
    assert_eq!((fsync.same, fsync.worse), (buffers.len(), 0));
    assert!(fsync.ratio.low < 1.0 && fsync.ratio.high > 1.0, "{fsync:?}");
    assert_eq!(fsync.base, "durability=none");
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
    assert!(
        find("without {durability}")
            .text
            .starts_with("use durability=fsync")
    );
    assert!(
        find("buffer with o-sync")
            .text
            .contains("the largest tried")
    );
    assert_eq!(find("cost").evidence.len(), 3);
    assert!(find("without {durability}").decided);
    // Three blocks decide no claim, so they give no advice.
    let few = analyse(&run(toml, 3, cost)).advice;
    assert!(few.iter().all(|one| !one.decided), "{few:?}");
}

#[test]
fn what_costs_least_per_call_is_told_where_all_others_cost_more() {
    let toml = "
[[advice]]
topic = 'cost'
kind = 'cost'
factor = 'durability'
over = 'buffer'
";
    let three_prices = |durability: &str, buffer: f64, block: u32| {
        let side = if durability == "fsync" {
            "o-sync"
        } else {
            "none"
        };
        let more = if durability == "none" { 0.5 } else { 1.0 };
        cost(side, buffer, block).map(|duration| duration * more)
    };
    let decided = |blocks, cost: fn(&str, f64, u32) -> Option<f64>| {
        let advice = analyse(&run(toml, blocks, cost)).advice.remove(0);
        (advice.decided, advice.text)
    };
    let (is_decided, text) = decided(20, three_prices);
    assert!(is_decided && text.starts_with("none costs least"), "{text}");
    assert!(!decided(3, three_prices).0);
    // Here `fsync` costs as much as `none`.
    assert!(!decided(20, cost).0);
}

#[test]
fn a_size_is_advised_only_if_more_is_shown_to_gain_little() {
    let toml = "
[[advice]]
topic = 'buffer'
kind = 'saturation'
factor = 'buffer'
at = { durability = 'none' }
";
    // The middle size is slightly the best, and the times of the largest vary widely.
    let scattered = |spread: f64| {
        move |_: &str, buffer: f64, block: u32| {
            let noise = 1.0 + spread * (f64::from(block * 7 % 11) / 5.0 - 1.0);
            Some(match buffer {
                4096.0 => 2e6,
                16384.0 => 1e6,
                _ => 1.01e6 * noise,
            })
        }
    };
    let advice = |spread| analyse(&run(toml, 20, scattered(spread))).advice.remove(0);
    let known = advice(0.001);
    assert!(
        known.decided && known.text.contains("use 16KiB: a larger one gains less"),
        "{known:?}"
    );
    let open = advice(0.5);
    assert!(
        !open.decided && open.text.contains("do not decide"),
        "{open:?}"
    );
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
    let table = &analyse(&run(toml, 10, cost)).tables[0].groups[0];
    assert_eq!(table.rows[1].published_ratio, Some(4.0));
    assert_eq!(table.rows[1].published_converted, Some(8e6));
    let ratio = table.rows[1].measured_ratio.unwrap();
    assert!((ratio.value - 7.38).abs() < 0.1, "{ratio:?}");
    assert!(table.rows[2].missing.is_some());
}

#[test]
fn a_table_has_the_mean_that_it_asks_for() {
    let toml = "
[[table]]
title = 'x'
unit = 'ms'
mean = 'without-extremes'
at = { buffer = '4KiB' }
rows = [
    { label = 'plain', published = 2.0, deviation = 0.1, at = { durability = 'none' } },
]
";
    let slowed = |durability: &str, buffer, block| {
        let slow = if block == 7 { 100.0 } else { 1.0 };
        Some(cost(durability, buffer, block)? * slow)
    };
    let row = |toml: &str| analyse(&run(toml, 10, slowed)).tables[0].groups[0].rows[0].clone();
    let mean = row(toml).measured_mean.unwrap();
    assert_eq!((mean.kept, mean.dropped), (9, Some(1)));
    let median = row(toml).measured.unwrap().value;
    assert!(
        (mean.mean / median - 1.0).abs() < 0.1,
        "{mean:?}, median {median}"
    );
    assert!(mean.standard_deviation.unwrap() < median * 0.1);
    assert!(mean.high < median * 1.5, "{mean:?}");

    let mean = row(&toml.replace("without-extremes", "all"))
        .measured_mean
        .unwrap();
    assert_eq!((mean.kept, mean.dropped), (10, None));
    assert!(
        mean.high > median * 50.0 && mean.mean > median * 5.0,
        "{mean:?}"
    );
    let none = toml.replace("mean = 'without-extremes'", "");
    assert_eq!(row(&none).measured_mean, None);
}

#[test]
fn a_table_of_several_quantities_has_a_group_for_each() {
    let toml = "
[[table]]
title = 'x'
relative_to = 'plain'
at = { buffer = '4KiB' }
conditions = [
    { label = 'plain', at = { durability = 'none' } },
    { label = 'sync', at = { durability = 'o-sync' } },
]
quantities = [
    { label = 'time', metric = 'duration_ns', unit = 'ms', scale = 1e6, published = [2.0, 8.0], deviation = [0.1, nan] },
    { label = 'pace', metric = 'bytes_written', per = 'duration_ns', published = [4.0, nan], text = ['', 'not legible'] },
    { label = 'rate', metric = 'duration_ns', per = 'counter.branches', published = [1, 2] },
]
";
    let table = &analyse(&run(toml, 10, cost)).tables[0];
    let [time, pace, rate] = &table.groups[..] else {
        panic!("{table:?}");
    };
    assert_eq!(time.rows[0].printed.deviation, Some(0.1));
    assert_eq!(time.rows[1].printed.deviation, None);
    assert_eq!(time.rows[1].published_ratio, Some(4.0));
    assert_eq!(pace.metric, "bytes_written / duration_ns");
    let missing = rate.rows[0].missing.as_deref();
    assert_eq!(missing, Some("no trial recorded counter.branches"));
    assert_eq!(pace.rows[1].printed.published, None);
    assert_eq!(pace.rows[1].printed.text.as_deref(), Some("not legible"));
    let duration = time.rows[0].measured.unwrap().value;
    let quotient = pace.rows[0].measured.unwrap().value;
    assert!(
        (quotient * duration / f64::from(1 << 20) - 1.0).abs() < 0.05,
        "{quotient}"
    );
    let (slower, paced) = (
        time.rows[1].measured_ratio.unwrap(),
        pace.rows[1].measured_ratio.unwrap(),
    );
    assert!(
        (slower.value * paced.value - 1.0).abs() < 1e-9,
        "{slower:?}, {paced:?}"
    );
}

#[test]
fn bars_are_ratios_to_the_one_that_is_named() {
    let toml = "
[[figure]]
title = 'x'
kind = 'bar'
scale = 1e6
relative_to = 'plain'
at = { buffer = '4KiB' }
groups = [
    { label = 'plain', at = { durability = 'none' }, published = 2 },
    { label = 'sync', at = { durability = 'o-sync' }, published = 8 },
    { label = 'absent', at = { durability = 'none', buffer = '8KiB' } },
]
";
    let bars = |toml: &str| match &analyse(&run(toml, 10, cost)).figures[..] {
        [model::Figure::Bar(chart)] => chart.bars.clone(),
        other => panic!("{other:?}"),
    };
    let relative = bars(toml);
    assert_eq!(relative[1].published, Some(4.0));
    assert!((relative[1].length.unwrap().value - 7.38).abs() < 0.1);
    assert!(relative[1].median.unwrap().value > 1e6);
    assert_eq!((relative[2].length, relative[2].published), (None, None));
    let plain = bars(&toml.replace("relative_to = 'plain'", ""));
    assert_eq!(plain[1].length, plain[1].median);
    assert_eq!(plain[1].published, Some(8e6));
}

#[test]
fn a_named_line_has_its_published_points_behind_it() {
    let toml = "
[[figure]]
title = 'x'
kind = 'curve'
factor = 'buffer'
lines = [
    { label = 'plain', at = { durability = 'none' }, published = [['4KiB', 5e6], ['16KiB', 2e6]] },
    { label = 'sync', at = { durability = 'o-sync' } },
    { label = 'published alone', at = { durability = 'absent' }, published = [['4KiB', 7e6]] },
]
";
    let toml = toml.replace("'absent'", "'fsync'");
    let only_two = |durability: &str, buffer, block| match durability {
        "fsync" => None,
        other => cost(other, buffer, block),
    };
    let figures = analyse(&run(&toml, 10, only_two)).figures;
    let [model::Figure::Curve(curve)] = &figures[..] else {
        panic!("{figures:?}");
    };
    let series = curve
        .series
        .iter()
        .map(|one| (one.label.as_str(), one.published));
    let expected = [
        ("plain", false),
        ("plain", true),
        ("sync", false),
        ("published alone", true),
    ];
    assert_eq!(series.collect::<Vec<_>>(), expected);
    assert_eq!(curve.series[1].points[0].x, 4096.0);
    assert_eq!(curve.series[1].points[0].y.value, 5e6);
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
    { label = 'plain', at = { durability = 'none' }, published = [0.5, 1.0, 2.0, 4.0, 5.0] },
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
        panic!("expected one box plot");
    };
    let published = plot.groups[0].published.unwrap();
    assert_eq!(
        [published.low, published.median, published.high],
        [5e5, 2e6, 5e6]
    );
    let measured = plot.groups[0].measured.as_ref().unwrap();
    assert_eq!(measured.numbers.median, 4.5);
    assert_eq!(
        [measured.numbers.lower, measured.numbers.upper],
        [2.25, 6.75]
    );
    assert_eq!([measured.numbers.low, measured.numbers.high], [0.0, 8.0]);
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
    let actual: Vec<&String> = warnings.iter().filter(|w| w.contains("skipped")).collect();
    assert_eq!(
        actual,
        [
            "counter branches was skipped: cannot open perf counter: busy",
            "counters cycles, instructions were skipped: cannot open perf counter: no",
        ]
    );
}
