//! Instructions of a command, as QEMU's plugin counted them.

use std::collections::BTreeMap;

use serde::Serialize;

/// Bytes of the head of a record, and of an entry behind it
/// (`crates/toll/plugin/count_blocks.c`).
const HEAD_BYTES: usize = 16;
const ENTRY_BYTES: usize = 32;

const MAGIC: &[u8] = b"TOLLCNT1";

/// Two runs that differ by more than this share do not agree.
pub const AGREEMENT: f64 = 1e-4;

/// Instructions of one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Instructions {
    pub total: u64,
    pub user: u64,
    pub kernel: u64,
}

/// What a kernel's function executed, or all programs together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FunctionCount {
    pub name: String,
    pub instructions: u64,
    /// How often it was begun; of programs 0.
    pub calls: u64,
}

/// What one run executed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Executed {
    pub instructions: Instructions,
    /// Those with most instructions first.
    pub functions: Vec<FunctionCount>,
}

/// The name of what programs execute among functions of the kernel.
pub const PROGRAMS: &str = "programs";

/// Reads the one record that a guest with one command wrote; `symbols` are the kernel's
/// functions, lines of `/proc/kallsyms`.
///
/// # Errors
/// What is wrong with it.
pub fn executed(record: &[u8], symbols: &str) -> Result<Executed, String> {
    let word = |bytes: &[u8], index: usize| -> u64 {
        let bytes = &bytes[8 * index..8 * index + 8];
        u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
    };
    let Some((head, entries)) = record.split_at_checked(HEAD_BYTES) else {
        return Err("nothing was counted".into());
    };
    let is_whole = usize::try_from(word(head, 1))
        .ok()
        .and_then(|count| count.checked_mul(ENTRY_BYTES))
        .is_some_and(|bytes| bytes == entries.len());
    if !head.starts_with(MAGIC) || !is_whole {
        return Err("what was counted is damaged".into());
    }
    let symbols = Symbols::read(symbols);
    let mut sum = Instructions::default();
    let mut functions: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for entry in entries.chunks_exact(ENTRY_BYTES) {
        let (address, executions, count) = (word(entry, 0), word(entry, 2), word(entry, 3));
        // The upper half of the addresses is the kernel's.
        let (name, calls) = match address >> 63 {
            0 => (PROGRAMS, 0),
            _ => match symbols.at(address) {
                Some((begin, name)) if begin == address => (name, executions),
                Some((_, name)) => (name, 0),
                None => ("kernel, without a symbol", 0),
            },
        };
        match name {
            PROGRAMS => sum.user += count,
            _ => sum.kernel += count,
        }
        let function = functions.entry(name).or_default();
        *function = (function.0 + count, function.1 + calls);
    }
    sum.total = sum.user + sum.kernel;
    let functions = functions.into_iter();
    let functions = functions.map(|(name, (instructions, calls))| FunctionCount {
        name: name.to_owned(),
        instructions,
        calls,
    });
    let mut functions: Vec<FunctionCount> = functions.collect();
    functions.sort_by_key(|one| std::cmp::Reverse(one.instructions));
    Ok(Executed {
        instructions: sum,
        functions,
    })
}

/// Functions by their addresses, ascending.
struct Symbols<'a>(Vec<(u64, &'a str)>);

impl<'a> Symbols<'a> {
    fn read(lines: &'a str) -> Self {
        let symbol = |line: &'a str| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            Some((address, words.nth(1)?))
        };
        let mut all: Vec<(u64, &str)> = lines.lines().filter_map(symbol).collect();
        // Of several names of one place the first is taken.
        all.sort_by_key(|(address, _)| *address);
        all.dedup_by_key(|(address, _)| *address);
        Self(all)
    }

    fn at(&self, address: u64) -> Option<(u64, &'a str)> {
        let behind = self.0.partition_point(|(begin, _)| *begin <= address);
        Some(self.0[behind.checked_sub(1)?])
    }
}

/// By how much each function's instructions differ from a reference's, the largest
/// differences first.
pub fn differences(one: &[FunctionCount], reference: &[FunctionCount]) -> Vec<(String, i64)> {
    let mut all: BTreeMap<&str, i64> = BTreeMap::new();
    for (functions, sign) in [(one, 1), (reference, -1)] {
        for function in functions {
            let signed = sign * i64::try_from(function.instructions).unwrap_or(i64::MAX);
            *all.entry(&function.name).or_default() += signed;
        }
    }
    let differing = all.into_iter().filter(|(_, difference)| *difference != 0);
    let mut differing: Vec<(String, i64)> = differing
        .map(|(name, difference)| (name.to_owned(), difference))
        .collect();
    differing.sort_by_key(|(_, difference)| std::cmp::Reverse(difference.abs()));
    differing
}

/// The runs of one command.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CommandCount {
    pub command: String,
    /// Of the run in the middle; of an even number the smaller one.
    pub instructions: Instructions,
    pub minor_faults: u64,
    pub major_faults: u64,
    /// Largest less smallest total, as a share of the one in the middle.
    pub spread: f64,
    pub runs: Vec<Instructions>,
    /// Functions of the run in the middle.
    pub functions: Vec<FunctionCount>,
}

impl CommandCount {
    /// Sums up at least one run, each with its minor and major page faults.
    pub fn new(command: String, mut runs: Vec<(Executed, [u64; 2])>) -> Self {
        runs.sort_by_key(|(executed, _)| executed.instructions.total);
        let (executed, [minor_faults, major_faults]) = runs[(runs.len() - 1) / 2].clone();
        let totals: Vec<Instructions> = runs.iter().map(|(one, _)| one.instructions).collect();
        let middle = executed.instructions;
        let range = totals[totals.len() - 1].total - totals[0].total;
        Self {
            command,
            instructions: middle,
            minor_faults,
            major_faults,
            spread: range as f64 / middle.total as f64,
            runs: totals,
            functions: executed.functions,
        }
    }

    /// System calls by name, those with most calls first. Their functions have this name on
    /// x86-64 (arch/x86/include/asm/syscall_wrapper.h).
    pub fn system_calls(&self) -> Vec<(&str, u64)> {
        let calls = self.functions.iter().filter_map(|one| {
            let name = one.name.strip_prefix("__x64_sys_")?;
            (one.calls > 0).then_some((name, one.calls))
        });
        let mut calls: Vec<(&str, u64)> = calls.collect();
        calls.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        calls
    }

    /// Whether the runs agree.
    pub fn is_settled(&self) -> bool {
        self.spread <= AGREEMENT
    }

    /// Whether every run has more instructions than every run of another command, by
    /// more than a share.
    pub fn is_regression(&self, reference: &Self, limit: f64) -> bool {
        let [least, most] = [self, reference].map(|one| one.runs.iter().map(|run| run.total));
        let (Some(least), Some(most)) = (least.min(), most.max()) else {
            return false;
        };
        least as f64 > most as f64 * (1.0 + limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(entries: &[[u64; 4]]) -> Vec<u8> {
        let count = (entries.len() as u64).to_le_bytes();
        let words = entries.iter().flatten().flat_map(|word| word.to_le_bytes());
        MAGIC.iter().copied().chain(count).chain(words).collect()
    }

    #[test]
    fn a_record_is_split_at_the_half_of_the_addresses() {
        let bytes = record(&[[0x40_1000, 7, 1, 3], [0xffff_ffff_8100_0000, 0, 2, 10]]);
        let expected = Instructions {
            total: 13,
            user: 3,
            kernel: 10,
        };
        assert_eq!(executed(&bytes, "").unwrap().instructions, expected);
        for damaged in [&bytes[..40], &bytes[..10], &[&bytes[..], &[0]].concat()] {
            assert!(executed(damaged, "").is_err());
        }
    }

    #[test]
    fn blocks_are_their_functions_and_those_at_its_begin_are_calls() {
        let symbols = "ffffffff81000020 t vfs_read\nffffffff81000000 T __x64_sys_read\n\
                       ffffffffc0000000 t ours\t[ours]";
        let kernel = 0xffff_ffff_8100_0000;
        let bytes = record(&[
            [kernel, 0, 4, 8],
            [kernel + 8, 0, 4, 40],
            [kernel + 0x28, 0, 9, 90],
            [0xffff_ffff_c000_0010, 0, 1, 2],
            [0x40_1000, 7, 1, 3],
        ]);
        let found = executed(&bytes, symbols).unwrap();
        let count = |name: &str, instructions, calls| FunctionCount {
            name: name.into(),
            instructions,
            calls,
        };
        let expected = [
            count("vfs_read", 90, 0),
            count("__x64_sys_read", 48, 4),
            count(PROGRAMS, 3, 0),
            count("ours", 2, 0),
        ];
        assert_eq!(found.functions, expected);
        let command = CommandCount::new("x".into(), vec![(found, [0, 0])]);
        assert_eq!(command.system_calls(), [("read", 4)]);
        let other = [count("vfs_read", 190, 0), count(PROGRAMS, 3, 0)];
        let differing = differences(&other, &expected[..1]);
        let expected = [("vfs_read".to_owned(), 100), (PROGRAMS.to_owned(), 3)];
        assert_eq!(differing, expected);
    }

    #[test]
    fn runs_that_differ_are_told_and_are_no_regression_where_they_overlap() {
        let command = |totals: &[u64]| {
            let run = |total: &u64| {
                let total = *total;
                let instructions = Instructions {
                    total,
                    user: total,
                    kernel: 0,
                };
                let functions = Vec::new();
                (
                    Executed {
                        instructions,
                        functions,
                    },
                    [0, 0],
                )
            };
            CommandCount::new("x".into(), totals.iter().map(run).collect())
        };
        let (old, new) = (command(&[100_000, 100_005]), command(&[101_000, 101_001]));
        assert!(old.is_settled() && old.instructions.total == 100_000);
        assert!(new.is_regression(&old, 0.001) && !new.is_regression(&old, 0.01));
        let varying = command(&[99_000, 102_000]);
        assert!(!varying.is_settled() && !varying.is_regression(&old, 0.001));
    }
}
