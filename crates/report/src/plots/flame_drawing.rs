//! Flame graphs from lines of stacks, by `inferno`.

use inferno::flamegraph::{Options, from_lines};

const TITLE: &str = "The treatment that takes longer: red more than the other, blue less";

/// Width of each graph, in pixels.
const WIDTH: usize = 1200;

pub fn draw(lines: &[String]) -> Option<String> {
    let mut options = Options::default();
    options.title = TITLE.to_owned();
    options.count_name = "ns".to_owned();
    options.image_width = Some(WIDTH);
    options.no_javascript = true;
    options.deterministic = true;
    // Narrower frames have no room for a letter.
    options.min_width = 0.2;
    let mut svg = Vec::new();
    from_lines(&mut options, lines.iter().map(String::as_str), &mut svg).ok()?;
    String::from_utf8(svg).ok()
}
