//! Tests of whole reports.

use toll_document::{Document, Markup, Style};

use super::sample::{self, HOSTILE};
use super::terminal::NotRun;
use super::{compare, comparison, document, html, junit, plots, terminal};
use crate::claim::Run;
use crate::claim::between::Side;
use crate::claim::model::{
    Better, DisturbanceSummary, Estimate, Metric, Outcome, Relation, Replicates, RunComparison,
    RunRatio, Sessions,
};
use crate::claim::work::Difference;
use crate::reason::Reason;

fn style(width: usize) -> Style {
    Style::new(false, width, true)
}

/// A text at a width, without colour.
fn plain(text: &Document, width: usize) -> String {
    text.show(style(width))
}

fn not_run(experiment: &str, why: &str) -> NotRun {
    NotRun {
        experiment: experiment.into(),
        why: why.into(),
        claims: 0,
    }
}

/// Everything that the terminal shows of some runs.
fn everything(runs: &[Run]) -> Document {
    let not_run = [not_run(HOSTILE, HOSTILE)];
    let pairs = [comparisons()];
    let sides: Vec<Side> = runs.iter().map(Side::from).collect();
    let of_each = runs.iter().flat_map(|run| {
        [
            terminal::summary(run),
            terminal::result(run, false),
            terminal::brief(run),
        ]
    });
    let of_all = [
        compare::compare(&sides, &work(), &differences(), &pairs),
        compare::over_baseline("main", &pairs[0], &work(), &differences()),
        terminal::overview(runs, &not_run),
    ];
    of_each.chain(of_all).collect()
}

fn samples() -> Vec<Run> {
    vec![
        sample::copying(),
        sample::small(),
        sample::hostile(),
        sample::empty(),
    ]
}

/// The columns of a text's widest line.
fn widest(text: &str) -> usize {
    let lines = text.lines();
    lines.map(toll_document::columns).max().unwrap_or(0)
}

#[test]
fn everything_on_a_terminal_fits_its_width() {
    let runs = samples();
    for width in [20, 40, 47, 60, 80, 94, 120, 200] {
        for unicode in [true, false] {
            let style = Style::new(false, width, unicode);
            let text = everything(&runs).show(style);
            assert!(widest(&text) <= width, "at {width}:\n{text}");
            assert!(unicode || text.is_ascii(), "{text}");
        }
    }
}

#[test]
fn color_changes_nothing_but_color() {
    let runs = [sample::copying(), sample::small()];
    for width in [40, 80, 120] {
        let plain = everything(&runs).show(style(width));
        let style = Style::new(true, width, true);
        let colored = everything(&runs).show(style);
        assert!(!plain.contains('\u{1b}'));
        // A plot in colour ends with a code on a line of its own.
        let lines = |text: &str| {
            let text = plots::small::without_color(text);
            let lines = text.lines().filter(|line| !line.is_empty());
            lines.map(str::to_owned).collect::<Vec<String>>()
        };
        assert_eq!(lines(&colored), lines(&plain));
    }
}

/// Whether a terminal may obey a character.
fn is_dangerous(character: char) -> bool {
    (character.is_control() && character != '\n') || character == '\u{202e}'
}

#[test]
fn no_control_character_of_a_run_reaches_a_terminal_or_markup() {
    let run = sample::hostile();
    let runs = [run.clone(), run.clone()];
    let mut text = everything(&runs).show(style(80));
    for markup in [Markup::Markdown, Markup::AsciiDoc, Markup::Org] {
        text.push_str(&document::document(&run).markup(markup));
    }
    assert_eq!(text.chars().find(|one| is_dangerous(*one)), None);
    assert!(text.contains("alert(1)"), "the text itself stays");
    // In colour the only codes are the program's own.
    let text = everything(&runs).show(Style::new(true, 80, true));
    assert!(!text.contains("\u{1b}[31mred"), "{text}");
    for part in text.split('\u{1b}').skip(1) {
        let rest = part.trim_start_matches(|one: char| "[;".contains(one) || one.is_ascii_digit());
        assert!(rest.starts_with('m') && part.starts_with('['), "{part:?}");
        assert_eq!(rest.chars().find(|one| is_dangerous(*one)), None);
    }
}

#[test]
fn a_junit_report_looks_right() {
    insta::assert_snapshot!(junit::junit(&sample::copying()).unwrap());
}

#[test]
fn hostile_text_stays_text_in_a_junit_report() {
    let text = junit::junit(&sample::hostile()).unwrap();
    assert!(!text.contains("<script"), "{text}");
    assert_eq!(text.chars().find(|one| is_dangerous(*one)), None);
    assert!(!text.contains('\u{fffe}'), "{text}");
    // Every tag is one of the report's own.
    for tag in text.split('<').skip(1) {
        let tag = tag.trim_start_matches('/');
        let name = tag.split([' ', '>', '/']).next();
        let known = "?xml testsuites testsuite properties property testcase failure skipped \
                     system-out";
        assert!(known.split(' ').any(|known| name == Some(known)), "{tag}");
    }
    assert!(junit::junit(&sample::empty()).is_err());
}

#[test]
fn hostile_markdown_adds_no_cell_and_no_tag() {
    let sample = sample::hostile();
    let text = document::document(&sample).markup(Markup::Markdown);
    // Inside backquotes GitHub shows a tag as text.
    let outside_code = text.replace("\\`", "");
    let mut outside_code = outside_code.split('`').step_by(2);
    assert!(
        !outside_code.any(|part| part.replace("<br>", "").contains('<')),
        "{text}"
    );
    let is_row = |line: &&str| line.starts_with('|');
    let lines: Vec<&str> = text.lines().collect();
    let tables = lines
        .split(|line| !is_row(line))
        .filter(|table| !table.is_empty());
    let cells = |line: &&str| line.replace("\\|", "").matches('|').count();
    for table in tables {
        // The rule below the titles has no text of others.
        let columns = cells(&table[1]);
        assert!(
            table.iter().all(|line| cells(line) == columns),
            "{table:#?}"
        );
    }
}

#[test]
fn the_page_refers_to_nothing_outside() {
    let sample = sample::copying();
    let small = sample::small();
    let page = html::page(&[sample, small]).unwrap();
    for reference in [
        "http", "src=", "url(", "@import", "<script", "<link", "<img",
    ] {
        assert!(!page.contains(reference), "{reference}");
    }
    assert_eq!(
        page.matches("<svg").count(),
        page.matches("role=\"img\"").count()
    );
}

#[test]
fn hostile_text_stays_text_on_the_page() {
    let sample = sample::hostile();
    let page = html::page(&[sample]).unwrap();
    assert!(!page.contains("<script"));
    assert!(!page.contains(HOSTILE));
    assert!(page.contains("&lt;script&gt;alert(1)"));
    assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}') && !page.contains('\u{9b}'));
}

#[test]
fn a_page_holds_every_run_once_and_empty_ones_too() {
    let runs = samples();
    let page = html::page(&runs).unwrap();
    assert_eq!(page.matches("<article").count(), 4);
    assert_eq!(page.matches("<nav").count(), 1);
    let none = html::page(&[]).unwrap();
    assert!(none.contains("No runs"));
}

#[test]
fn verdicts_come_before_everything_else_on_the_page() {
    let sample = sample::copying();
    let page = html::page(&[sample]).unwrap();
    let order = [
        "class=\"score\"",
        "cat.foreign-fs",
        "What to do here",
        "<svg",
        "Published beside measured",
        "All numbers",
        "Noise",
        "The machine",
        "How to read this page",
    ];
    let places: Vec<_> = order
        .iter()
        .map(|part| page.find(part).expect(part))
        .collect();
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn a_claim_on_time_unfolds_into_what_went_with_it() {
    let sample = sample::copying();
    let page = html::page(&[sample]).unwrap();
    assert_eq!(page.matches("<details class=\"with\">").count(), 2);
    for shown in [
        "metrics: instructions 0.330, system time 0.516, minor faults 3.00, 2 more",
        "<li>major faults <span class=\"muted\">64 over 0</span></li>",
        "the same within 1 %: dtlb-read-misses, peak memory",
        "metrics: nothing else that was measured differs",
    ] {
        assert!(page.contains(shown), "{shown}");
    }
}

#[test]
fn rows_of_which_none_was_measured_share_their_reason() {
    let sample = sample::copying();
    let page = html::page(&[sample]).unwrap();
    let reason = "not measured: cannot open perf counter l1d-read-misses: no such event";
    assert_eq!(page.matches(reason).count(), 1);
    // One row of another group has a reason of its own.
    assert_eq!(page.matches("not measured: no 9p mount").count(), 1);
}

#[test]
fn a_published_value_is_shown_in_the_measured_unit_where_that_is_another() {
    let mut sample = sample::copying();
    let detail = "<span class=\"detail\">775\u{a0}ms</span>";
    let page = html::page(std::slice::from_ref(&sample)).unwrap();
    assert!(!page.contains(detail), "milliseconds are what is measured");
    sample.analysis.tables[0].groups[0].published_unit = "ticks".into();
    let page = html::page(&[sample]).unwrap();
    assert!(page.contains(&format!("775\u{a0}ticks{detail}")));
}

#[test]
fn each_plot_is_written_as_a_file() {
    let sample = sample::small();
    let files = plots::files(&sample);
    let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
    insta::assert_snapshot!(names.join("\n"));
}

/// Two runs, one with hostile labels, compared by time and memory.
fn comparisons() -> Vec<RunComparison> {
    let ratio = |label: &str, low: f64, high: f64, relation| RunRatio {
        label: label.into(),
        counts: [24, 20],
        ratio: Some(Estimate {
            value: low.midpoint(high),
            low,
            high,
            confidence: 0.9875,
        }),
        relation,
        reason: None,
    };
    let time = RunComparison {
        new_runs: vec![8],
        old_runs: vec![7],
        metric: "duration_ns".into(),
        described: Metric {
            unit: "ns".into(),
            better: Better::Lower,
        },
        is_judged: true,
        replicates: Replicates::Trials,
        margin: 0.034,
        sessions: Sessions {
            runs: 1,
            shift: None,
        },
        ratios: vec![
            ratio("method=page sink=null", 1.12, 1.18, Relation::Worse),
            ratio("method=swept sink=null", 0.99, 1.02, Relation::Undecided),
            RunRatio {
                ratio: None,
                reason: Some("skipped in the old run: no such call".into()),
                ..ratio("method=io-uring sink=null", 1.0, 1.0, Relation::Undecided)
            },
        ],
        only_new: vec![HOSTILE.into()],
        only_old: vec![
            "method=byte sink=null".into(),
            "method=mmap sink=null".into(),
        ],
    };
    let mut memory = time.clone();
    (memory.metric, memory.is_judged) = ("max_rss_bytes".into(), false);
    memory.described.unit = "bytes".into();
    memory.ratios[0].relation = Relation::Same;
    memory.ratios[1] = RunRatio {
        reason: Some("a value of 0 has no ratio".into()),
        ratio: None,
        ..memory.ratios[1].clone()
    };
    vec![time, memory]
}

#[test]
fn one_treatment_over_its_baseline_looks_right() {
    let mut only = comparisons();
    only.truncate(1);
    only[0].ratios.truncate(1);
    (only[0].only_new, only[0].only_old) = Default::default();
    let text = compare::over_baseline("main", &only, &[], &[]);
    insta::assert_snapshot!("baseline_of_one_80", plain(&text, 80));
}

fn difference(what: &str, old: &str, new: &str) -> Difference {
    Difference {
        what: what.into(),
        values: vec![old.into(), new.into()],
    }
}

fn work() -> Vec<Difference> {
    vec![
        difference("command gzip", "gzip -1 <log", "gzip -6 <log"),
        difference("output", "null", HOSTILE),
    ]
}

fn differences() -> Vec<Difference> {
    vec![
        difference("kernel", "6.1.0-25-cloud-amd64", "6.12.1"),
        difference("host", "bench-01", HOSTILE),
    ]
}

#[test]
fn the_verdict_table_looks_right_at_every_width() {
    let sample = sample::copying();
    for width in [40, 80, 120, 200] {
        let table = plain(&terminal::verdicts::of_run(&sample, false), width);
        insta::assert_snapshot!(format!("verdicts_{width}"), table);
    }
    let style = Style::new(true, 80, true);
    let colored = terminal::verdicts::of_run(&sample, false).show(style);
    insta::assert_snapshot!("verdicts_color", colored);
}

#[test]
fn several_runs_a_side_look_right() {
    let several = |ids: [i64; 3]| {
        ids.map(|id| {
            let mut run = sample::small();
            run.stored.run.id = id;
            run
        })
    };
    let (old, new) = (several([3, 4, 5]), several([6, 8, 10]));
    let mut compared = comparisons();
    for one in &mut compared {
        (one.old_runs, one.new_runs) = (vec![3, 4, 5], vec![6, 8, 10]);
        one.replicates = Replicates::Sessions;
        one.margin = 0.01;
    }
    let sides = [&old, &new].map(|runs| Side::new(runs).unwrap());
    let pairs = [compared];
    let text = compare::compare(&sides, &[], &differences()[..1], &pairs);
    insta::assert_snapshot!(plain(&text, 80));
}

#[test]
fn the_small_plots_look_right() {
    let mut sample = sample::copying();
    let plot = |run: &Run| plain(&plots::small::of_run(&run.analysis), 80);
    insta::assert_snapshot!("curve", plot(&sample));
    sample.analysis.figures.clear();
    insta::assert_snapshot!("claims", plot(&sample));
    assert_eq!(plot(&sample::empty()), "");
}

#[test]
fn one_of_several_runs_is_told_in_a_sentence() {
    let mut runs = [sample::prices(), sample::small(), sample::small()];
    for verdict in &mut runs[2].analysis.verdicts {
        verdict.published = None;
    }
    for width in [40, 80] {
        let text = runs.iter().map(terminal::brief).collect();
        insta::assert_snapshot!(format!("brief_{width}"), plain(&text, width));
    }
}

#[test]
fn several_runs_are_summed_up() {
    let mut small = sample::small();
    let no_time = NotRun {
        claims: 15,
        ..not_run(
            "reclaim",
            "its budget of 300 s is too short: 9 blocks, the fewest for a verdict, take 486 s; toll run \
             --resume 12 --time-budget 11min",
        )
    };
    let not_run = [not_run("primes", "no kernel is built"), no_time];
    for verdict in &mut small.analysis.verdicts {
        (verdict.outcome, verdict.measured) = (Outcome::NotTestable, None);
        let what = "size=1 GiB".into();
        let reason = Reason::LeftOut { what };
        verdict.reason = reason.to_string();
        verdict.cause = Some(reason);
    }
    let runs = [sample::copying(), small];
    let text = terminal::overview(&runs, &not_run);
    insta::assert_snapshot!(plain(&text, 80));
}

#[test]
fn a_comparison_of_commands_looks_right_everywhere() {
    let run = sample::commands();
    let text = terminal::result(&run, false);
    insta::assert_snapshot!("commands_80", plain(&text, 80));
    let text = terminal::result(&run, true);
    insta::assert_snapshot!("commands_quiet_120", plain(&text, 120));
    let page = html::page(&[run]).unwrap();
    let order = ["class=\"sentence\"", "class=\"compared stack\"", "This run"];
    let places: Vec<_> = order
        .iter()
        .map(|part| page.find(part).expect(part))
        .collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(!page.contains("no claims"), "{page}");
}

#[test]
fn where_time_does_not_tell_commands_apart_cpu_time_may() {
    let mut run = sample::commands();
    let by_time = &mut run.analysis.comparisons[0];
    by_time.relation = Relation::Undecided;
    (by_time.ratio.value, by_time.ratio.low, by_time.ratio.high) = (1.05, 0.6, 1.9);
    let mut by_cpu_time = by_time.clone();
    by_cpu_time.metric = "cpu_ns".into();
    by_cpu_time.is_judged = false;
    by_cpu_time.relation = Relation::Worse;
    by_cpu_time.exceeds_margin = Some(true);
    (by_cpu_time.ratio.value, by_cpu_time.ratio.low) = (1.1, 1.09);
    by_cpu_time.ratio.high = 1.11;
    run.analysis.comparisons.push(by_cpu_time);
    let sentence = |run: &Run| comparison::table(run).sentence.expect("a comparison");
    let found = sentence(&run);
    assert!(found.contains("cannot tell"), "{found}");
    assert!(
        found.contains(" times the CPU time of grep -c x ("),
        "{found}"
    );
    // CPU time is left out if it is undecided, too, or if time decides.
    run.analysis.comparisons[1].relation = Relation::Undecided;
    assert!(!sentence(&run).contains("CPU time"));
    run.analysis.comparisons[1].relation = Relation::Worse;
    run.analysis.comparisons[0].relation = Relation::Better;
    assert!(!sentence(&run).contains("CPU time"));
}

#[test]
fn what_kept_commands_from_their_cpus_is_told_where_time_decides_nothing() {
    let mut run = sample::commands();
    let primary = run.analysis.primary_metric.clone();
    run.analysis.metrics.get_mut(&primary).unwrap().unit = "ns".into();
    let estimates = &run.analysis.treatments[run.analysis.comparisons[0].reference].estimates;
    let duration_ns = estimates[&primary].median.value;
    let met = |name: &str, median: f64, trials_affected: usize| DisturbanceSummary {
        name: name.into(),
        text: "x".into(),
        trials_recorded: 30,
        trials_affected,
        median,
        maximum: median,
    };
    run.analysis.disturbances = vec![
        met("psi_cpu_some_ns", 0.8 * duration_ns, 30),
        met("steal_ns", 0.0, 5),
    ];
    let sentence = |run: &Run| comparison::table(run).sentence.expect("a comparison");
    assert!(!sentence(&run).contains("Meanwhile"));
    run.analysis.comparisons[0].relation = Relation::Undecided;
    let found = sentence(&run).replace('\u{a0}', " ");
    assert!(
        found.ends_with(
            " Meanwhile tasks waited for a CPU for 80 % of the time, and the hypervisor took time \
             from 5 of 30 trials."
        ),
        "{found}"
    );
    run.analysis.disturbances = vec![met("psi_cpu_some_ns", 0.05 * duration_ns, 30)];
    assert!(!sentence(&run).contains("Meanwhile"));
}

#[test]
fn a_difference_that_may_be_within_the_margin_is_told_as_one_that_may() {
    let mut run = sample::commands();
    let sentence = |run: &Run| comparison::table(run).sentence.expect("a comparison");
    let open = "whether that is over 1\u{a0}%";
    assert!(!sentence(&run).contains(open));
    let compared = &mut run.analysis.comparisons[0];
    compared.exceeds_margin = None;
    (
        compared.ratio.value,
        compared.ratio.low,
        compared.ratio.high,
    ) = (0.978, 0.963, 0.992);
    let found = sentence(&run);
    assert!(found.contains("2.2\u{a0}% less"), "{found}");
    assert!(found.contains(open), "{found}");
    run.analysis.comparisons[0].relation = Relation::Same;
    run.analysis.comparisons[0].exceeds_margin = Some(false);
    assert!(!sentence(&run).contains(open));
}

/// A snapshot of a screen: with colour at 80 columns, and wide without colour.
fn check_screen(name: &str, screen: &Document) {
    let styles = [Style::new(true, 80, true), style(120)];
    let [colored, wide] = styles.map(|style| screen.show(style));
    insta::assert_snapshot!(format!("screen_{name}"), format!("{colored}\n{wide}"));
}

#[test]
fn screens_keep_every_byte() {
    let run = sample::copying();
    check_screen("summary", &terminal::summary(&run));
    check_screen("result", &terminal::result(&run, false));
    check_screen("legend", &terminal::legend());
    let over = sample::over_runs(&run);
    check_screen("over_runs", &terminal::over_runs(&run, &over));
    check_screen("beside_a_run", &terminal::beside_a_run(&run, &over));
    let explanation = sample::explanation();
    check_screen("why", &terminal::explanation(&explanation));
    let list = sample::list_of_differences();
    check_screen("differences", &terminal::result(&list, true));
    let not_run = [not_run("primes", "no kernel is built")];
    check_screen(
        "overview",
        &terminal::overview(std::slice::from_ref(&run), &not_run),
    );
}

#[test]
fn screens_of_prices_keep_every_byte() {
    let run = sample::prices();
    check_screen("prices", &terminal::prices(&run, &|_| true));
    let mut comparison = comparisons().swap_remove(0);
    for (ratio, price) in comparison.ratios.iter_mut().zip(&run.analysis.prices) {
        ratio.label.clone_from(&price.name);
    }
    check_screen(
        "prices_compared",
        &terminal::prices_compared(&run, &run, &differences(), &comparison),
    );
}

#[test]
fn screens_of_two_runs_keep_every_byte() {
    let runs = [sample::copying(), sample::small()];
    let (sides, pairs) = (runs.each_ref().map(Side::from), [comparisons()]);
    check_screen(
        "compare",
        &compare::compare(&sides, &work(), &differences(), &pairs),
    );
    check_screen(
        "baseline",
        &compare::over_baseline("main", &pairs[0], &work(), &differences()),
    );
}

#[test]
fn documents_keep_every_byte() {
    let runs = [
        sample::copying(),
        sample::commands(),
        sample::list_of_differences(),
    ];
    for (name, markup) in [
        ("markdown", Markup::Markdown),
        ("asciidoc", Markup::AsciiDoc),
        ("org", Markup::Org),
    ] {
        let documents = runs
            .each_ref()
            .map(|run| document::document(run).markup(markup));
        insta::assert_snapshot!(format!("document_{name}"), documents.join("\n"));
    }
}
