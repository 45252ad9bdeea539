//! Results of a self-test.

use toll_document::{Column, Document, Paint, Row, heading, paragraph, paragraphs, table};

use crate::claim::model::{Rate, SelftestArm, SelftestReport};
use crate::format;
use crate::run::Machine;
use crate::words;

/// Shows the results of a self-test on a machine.
pub fn of_report(report: &SelftestReport, machine: &Machine) -> Document {
    let line = |text: String, paint| paragraph(text, 0, paint);
    let mut head = heading("Self-test: comparisons whose answer is known");
    head += line(words::machine_line(machine), Paint::Dim);
    if report.made < report.planned {
        let phrase = format!(
            "interrupted: {} of {} comparisons were made",
            report.made, report.planned
        );
        head += line(phrase, Paint::Yellow);
    }
    let sentences = paragraphs(sentences(report), 0, Paint::Plain);
    let problems = report.problems.iter();
    let problems = problems.map(|problem| format!("✘ problem: {problem}"));
    let verdict = if !report.problems.is_empty() {
        paragraphs(problems, 0, Paint::Red)
    } else if report.made == report.planned {
        line("✔ as expected".into(), Paint::Green)
    } else {
        line("no problem so far".into(), Paint::Plain)
    };
    Document::sections([head, arms(report), sentences, verdict])
}

fn arms(report: &SelftestReport) -> Document {
    let titles = [
        Column::words("second work"),
        Column::numbers("compared"),
        Column::numbers("called different"),
        Column::numbers("seen"),
        Column::numbers("wrong"),
        Column::numbers("ratio"),
        Column::numbers("blocks"),
    ];
    table(titles, report.arms.iter().map(row))
}

fn row(arm: &SelftestArm) -> Row {
    let or_nothing = |text: Option<String>| text.unwrap_or_else(|| format::NOTHING.to_owned());
    let ratio = arm.ratio.zip(arm.half_width);
    Row::new([
        match arm.delay {
            0.0 => "identical".to_owned(),
            delay => format!("{} longer", format::percent(delay)),
        },
        arm.wrong.of.to_string(),
        arm.called_different.count.to_string(),
        arm.seen.count.to_string(),
        arm.wrong.count.to_string(),
        or_nothing(ratio.map(|(ratio, half)| format!("{ratio:.4} ±{}", format::percent(half)))),
        or_nothing(arm.blocks.map(|blocks| format!("{blocks:.0}"))),
    ])
}

fn sentences(report: &SelftestReport) -> Vec<String> {
    let share = |rate: &Rate| {
        format!(
            "{} of {}, with 95 % confidence {} to {}",
            rate.count,
            rate.of,
            format::percent(rate.low),
            format::percent(rate.high)
        )
    };
    let mut sentences = Vec::new();
    for arm in report.arms.iter().filter(|arm| arm.wrong.of > 0) {
        sentences.push(match arm.delay {
            0.0 => format!("false alarms: {}", share(&arm.called_different)),
            delay => format!(
                "work longer by {} is called different: {}; its interval excludes 1: {}",
                format::percent(delay),
                share(&arm.called_different),
                share(&arm.seen)
            ),
        });
    }
    if let Some(floor) = report.noise_floor {
        sentences.push(format!(
            "noise floor: {}; half of all comparisons here cannot detect a smaller difference",
            format::percent(floor)
        ));
    }
    sentences.push(format!(
        "took {} for {} trials; seed {}",
        format::duration_ns(report.wall_s * 1e9),
        format::count(report.trials as f64),
        report.seed
    ));
    sentences
}

#[cfg(test)]
mod tests {
    use toll_document::Style;

    use super::*;

    fn rate(count: usize, of: usize) -> Rate {
        Rate {
            count,
            of,
            low: 0.0,
            high: 0.168,
        }
    }

    fn report() -> SelftestReport {
        let arm = |delay: f64, count: usize| SelftestArm {
            delay,
            called_different: rate(count, 20),
            wrong: rate(0, 20),
            seen: rate(count + 1, 20),
            missed: rate(1, 20),
            ratio: Some(1.0 + delay),
            half_width: Some(0.004),
            blocks: Some(10.0),
        };
        SelftestReport {
            seed: 7,
            planned: 40,
            made: 40,
            trials: 1200,
            wall_s: 42.0,
            noise_floor: Some(0.01),
            arms: vec![arm(0.0, 0), arm(0.05, 19)],
            problems: Vec::new(),
        }
    }

    fn text(report: &SelftestReport, width: usize) -> String {
        let style = Style::new(false, width, true);
        of_report(report, &Machine::default()).show(style)
    }

    #[test]
    fn rates_noise_and_time_are_told_on_every_width() {
        for width in [40, 80, 120] {
            let text = text(&report(), width);
            assert!(
                text.lines().all(|line| line.chars().count() <= width),
                "{text}"
            );
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            for phrase in [
                "false alarms: 0 of 20, with 95 % confidence 0 % to 17 %",
                "work longer by 5 % is called different: 19 of 20",
                "1.0500 ±0.4 %",
                "noise floor: 1 %",
                "took 42.0 s for 1,200 trials; seed 7",
                "as expected",
            ] {
                assert!(words.contains(phrase), "{phrase} in {text}");
            }
        }
    }

    #[test]
    fn the_screen_keeps_every_byte() {
        let colored = Style::new(true, 80, true);
        let shown = of_report(&report(), &Machine::default()).show(colored);
        insta::assert_snapshot!(format!("{shown}\n{}", text(&report(), 120)));
    }

    #[test]
    fn what_is_off_is_told_and_what_was_not_finished_is_no_success() {
        let mut broken = report();
        broken.problems = vec!["identical work was called different".into()];
        assert!(text(&broken, 80).contains("✘ problem: identical work"));
        let mut cut = report();
        cut.made = 3;
        let text = text(&cut, 80);
        assert!(
            text.contains("3 of 40") && !text.contains("as expected"),
            "{text}"
        );
    }
}
