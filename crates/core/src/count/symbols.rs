//! Functions of the kernel, by address.

/// Functions by address, ascending.
#[derive(Debug, Clone, Default)]
pub struct Symbols(Vec<(u64, Symbol)>);

#[derive(Debug, Clone)]
struct Symbol {
    name: String,
    /// Whether executing the block at the symbol's address is a call of the function.
    is_entry: bool,
}

impl Symbols {
    /// Reads lines of `/proc/kallsyms`.
    pub fn read(lines: &str) -> Self {
        let symbol = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            let own = words.nth(1)?;
            // The compiler makes copies and parts of a function: `NAME.isra.0`,
            // `NAME.cold`. They count as one function, since the compiler may make
            // others if the source changes.
            let (name, part) = own.split_once('.').unwrap_or((own, ""));
            let name = match words.next() {
                Some(module) => format!("{name} {module}"),
                None => name.to_owned(),
            };
            let is_entry = part != "cold";
            Some((address, Symbol { name, is_entry }))
        };
        let mut all: Vec<(u64, Symbol)> = lines.lines().filter_map(symbol).collect();
        // Of several names for one address, takes the first.
        all.sort_by_key(|(address, _)| *address);
        all.dedup_by_key(|(address, _)| *address);
        Self(all)
    }

    /// Returns the function of a block, and whether the block is its start.
    pub(super) fn at(&self, address: u64) -> (&str, bool) {
        let behind = self.0.partition_point(|(begin, _)| *begin <= address);
        match behind.checked_sub(1) {
            Some(index) => {
                let (begin, symbol) = &self.0[index];
                (&symbol.name, symbol.is_entry && *begin == address)
            }
            None => ("kernel, without a symbol", false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_function_are_the_function() {
        let symbols = Symbols::read(
            "ffffffff81000000 t vfs_read.isra.0\nffffffff81000100 t vfs_read.cold\n\
             ffffffffc0000000 t ours\t[ours]",
        );
        assert_eq!(symbols.at(0xffff_ffff_8100_0000), ("vfs_read", true));
        assert_eq!(symbols.at(0xffff_ffff_8100_0100), ("vfs_read", false));
        assert_eq!(symbols.at(0xffff_ffff_c000_0000), ("ours [ours]", true));
        assert_eq!(symbols.at(1), ("kernel, without a symbol", false));
    }
}
