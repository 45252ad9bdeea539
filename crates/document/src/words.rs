//! Words for numbers.

/// A count with its noun: `1 block`, `2 blocks`.
pub fn plural(count: usize, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}
