//! Symbols of the kernel and its modules; the host uses them to attribute counts to functions.

use std::fs;

/// Returns the functions in `/proc/kallsyms`; empty on a kernel without that
/// file.
pub fn functions() -> String {
    // Kernels without this setting show addresses to root anyway.
    let _ = fs::write("/proc/sys/kernel/kptr_restrict", "0");
    functions_of(&fs::read_to_string("/proc/kallsyms").unwrap_or_default())
}

/// Selects the lines of functions from a list of all symbols (nm(1)).
fn functions_of(symbols: &str) -> String {
    let is_function = |line: &&str| {
        let kind = line.split(' ').nth(1);
        kind.is_some_and(|kind| ["t", "T", "w", "W"].contains(&kind))
    };
    let lines: Vec<&str> = symbols.lines().filter(is_function).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_told_from_other_symbols() {
        let symbols = "ffffffff81000000 T _text\nffffffff82000000 D jiffies\n\
                       ffffffffc0000000 t ours\t[ours]";
        let expected = "ffffffff81000000 T _text\nffffffffc0000000 t ours\t[ours]";
        assert_eq!(functions_of(symbols), expected);
    }
}
