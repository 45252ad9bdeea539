use super::*;
use crate::machine::Machine;
use crate::versus::tool::answer_of;

fn one(tool: Tool, difference_percent: u32, p: f64, wall_s: f64) -> Comparison {
    let ratio = 1.0 + f64::from(difference_percent) / 100.0;
    Comparison {
        tool,
        condition: Condition::Quiet,
        difference_percent,
        answer: answer_of(p, ratio),
        p: (tool == Tool::Hyperfine).then_some(p),
        ratio,
        wall_s,
    }
}

#[test]
fn answers_are_counted_with_the_interval_of_what_is_right() {
    // Of 20 identical pairs hyperfine calls three different.
    let ps = (0..20).map(|i| if i < 3 { 0.001 } else { 0.4 });
    let hyperfine = ps.map(|p| one(Tool::Hyperfine, 0, p, 6.0));
    let toll = (0..20).map(|i| one(Tool::Toll, 2, if i < 19 { 0.0 } else { 1.0 }, 1.0));
    let document = Document {
        version: super::super::VERSION,
        date: "2026-01-01 00:00:00 UTC".into(),
        command_line: "bench-hyperfine".into(),
        seed: 1,
        machine: Machine::inspect(),
        versions: vec!["toll 0".into(), "hyperfine 0".into()],
        work: (2000, 1e7),
        comparisons: hyperfine.chain(toll).collect(),
        cut: true,
    };
    let text = render(&document);
    for row in [
        "| quiet | 0 % | hyperfine | 0 | 3 | 20 | 85 % [62, 97] | 6.00 s |",
        "| quiet | 2 % | toll | 19 | 0 | 20 | 95 % [75, 100] | 1.00 s |",
        "The time ended before all was measured",
    ] {
        assert!(text.contains(row), "{text}");
    }
    assert!(
        !text.contains("| drift |"),
        "what was not made has no row: {text}"
    );
}
