//! Instructions of a command, as QEMU's plugin counted them.

mod programs;

use std::collections::BTreeMap;

use serde::Serialize;

pub use programs::Programs;

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

/// What a function executed. Those of programs, libraries and modules have the file's
/// name behind their own: `memcpy [libc.so.6]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FunctionCount {
    pub name: String,
    pub instructions: u64,
    /// How often it was begun.
    pub calls: u64,
}

/// By how much a function's instructions differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FunctionDifference {
    pub name: String,
    pub instructions: i64,
}

/// What one run executed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Executed {
    pub instructions: Instructions,
    /// Those with most instructions first.
    pub functions: Vec<FunctionCount>,
}

/// Reads the one record that a guest with one command wrote; `symbols` are the kernel's
/// functions, lines of `/proc/kallsyms`, and `programs` the files that it was given.
///
/// # Errors
/// What is wrong with it.
pub fn executed(record: &[u8], symbols: &str, programs: &Programs) -> Result<Executed, String> {
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
    let mut functions: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for entry in entries.chunks_exact(ENTRY_BYTES) {
        let (address, page) = (word(entry, 0), word(entry, 1));
        let (executions, count) = (word(entry, 2), word(entry, 3));
        // The upper half of the addresses is the kernel's.
        let (name, is_begin) = match address >> 63 {
            0 => {
                sum.user += count;
                programs.at(page, address)
            }
            _ => {
                sum.kernel += count;
                symbols.at(address)
            }
        };
        let calls = if is_begin { executions } else { 0 };
        let function = functions.entry(name).or_default();
        *function = (function.0 + count, function.1 + calls);
    }
    sum.total = sum.user + sum.kernel;
    let functions = functions.into_iter();
    let functions = functions.map(|(name, (instructions, calls))| FunctionCount {
        name,
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

/// Functions of the kernel by their addresses, ascending.
struct Symbols(Vec<(u64, String)>);

impl Symbols {
    fn read(lines: &str) -> Self {
        let symbol = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            // A module's name in brackets may follow.
            let names: Vec<&str> = words.skip(1).collect();
            Some((address, names.join(" ")))
        };
        let mut all: Vec<(u64, String)> = lines.lines().filter_map(symbol).collect();
        // Of several names of one place the first is taken.
        all.sort_by_key(|(address, _)| *address);
        all.dedup_by_key(|(address, _)| *address);
        Self(all)
    }

    /// The function of a block, and whether the block is its begin.
    fn at(&self, address: u64) -> (String, bool) {
        let behind = self.0.partition_point(|(begin, _)| *begin <= address);
        match behind.checked_sub(1) {
            Some(index) => {
                let (begin, name) = &self.0[index];
                (name.clone(), *begin == address)
            }
            None => ("kernel, without a symbol".to_owned(), false),
        }
    }
}

/// By how much each function's instructions differ from a reference's, the largest
/// differences first.
pub fn differences(one: &[FunctionCount], reference: &[FunctionCount]) -> Vec<FunctionDifference> {
    let mut all: BTreeMap<&str, i64> = BTreeMap::new();
    for (functions, sign) in [(one, 1), (reference, -1)] {
        for function in functions {
            let signed = sign * i64::try_from(function.instructions).unwrap_or(i64::MAX);
            *all.entry(&function.name).or_default() += signed;
        }
    }
    let differing = all.into_iter().filter(|(_, difference)| *difference != 0);
    let mut differing: Vec<FunctionDifference> = differing
        .map(|(name, instructions)| FunctionDifference {
            name: name.to_owned(),
            instructions,
        })
        .collect();
    differing.sort_by_key(|one| std::cmp::Reverse(one.instructions.abs()));
    differing
}

/// The runs of one command under one kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CommandCount {
    pub command: String,
    /// The kernel's name.
    pub kernel: String,
    /// As it names itself.
    pub kernel_release: String,
    /// Of the run in the middle; of an even number the smaller one.
    pub instructions: Instructions,
    pub minor_faults: u64,
    pub major_faults: u64,
    /// Largest less smallest total, as a share of the one in the middle.
    pub spread: f64,
    pub runs: Vec<Instructions>,
    /// Functions of the run in the middle.
    pub functions: Vec<FunctionCount>,
    /// Of runs that do not agree: the largest less the smallest, by function.
    pub varying: Vec<FunctionDifference>,
}

/// One run, and its page faults.
#[derive(Debug, Clone, Default)]
pub struct CountedRun {
    pub executed: Executed,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub kernel_release: String,
}

impl CommandCount {
    /// Sums up at least one run.
    pub fn new(command: String, kernel: String, mut runs: Vec<CountedRun>) -> Self {
        runs.sort_by_key(|run| run.executed.instructions.total);
        let totals = runs.iter().map(|run| run.executed.instructions).collect();
        let [least, middle, most] = [0, (runs.len() - 1) / 2, runs.len() - 1].map(|i| &runs[i]);
        let instructions = middle.executed.instructions;
        let range = most.executed.instructions.total - least.executed.instructions.total;
        let spread = range as f64 / instructions.total as f64;
        let varying = match spread > AGREEMENT {
            true => differences(&most.executed.functions, &least.executed.functions),
            false => Vec::new(),
        };
        Self {
            command,
            kernel,
            kernel_release: middle.kernel_release.clone(),
            instructions,
            minor_faults: middle.minor_faults,
            major_faults: middle.major_faults,
            spread,
            runs: totals,
            functions: middle.executed.functions.clone(),
            varying,
        }
    }

    /// System calls by name, those with most calls first. Their functions have this name on
    /// x86-64 (arch/x86/include/asm/syscall_wrapper.h).
    pub fn system_calls(&self) -> Vec<(&str, u64)> {
        let calls = self.functions.iter().filter_map(|one| {
            let name = one.name.strip_prefix("__x64_sys_")?;
            // A name of two words is a module's or a program's own function.
            (one.calls > 0 && !name.contains(' ')).then_some((name, one.calls))
        });
        let mut calls: Vec<(&str, u64)> = calls.collect();
        calls.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        calls
    }

    /// Whether the runs agree.
    pub fn is_settled(&self) -> bool {
        self.spread <= AGREEMENT
    }

    /// How many times the instructions of another command it has.
    pub fn factor(&self, reference: &Self) -> f64 {
        self.instructions.total as f64 / reference.instructions.total as f64
    }

    /// Largest less smallest total.
    pub fn range(&self) -> u64 {
        let totals = || self.runs.iter().map(|run| run.total);
        totals().max().unwrap_or(0) - totals().min().unwrap_or(0)
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

/// Each count with the one that it is compared with: of several kernels the same command
/// under the first kernel, of one kernel the first command. Those compared with are in
/// no pair of their own.
pub fn comparisons(counts: &[CommandCount]) -> Vec<(&CommandCount, &CommandCount)> {
    let Some(first) = counts.first() else {
        return Vec::new();
    };
    let has_kernels = has_several_kernels(counts);
    let reference = |one: &CommandCount| match has_kernels {
        true => counts.iter().find(|other| other.command == one.command),
        false => Some(first),
    };
    counts
        .iter()
        .filter_map(|one| Some((one, reference(one)?)))
        .filter(|(one, reference)| !std::ptr::eq(*one, *reference))
        .collect()
}

pub fn has_several_kernels(counts: &[CommandCount]) -> bool {
    counts.iter().any(|one| one.kernel != counts[0].kernel)
}

/// How counts are called: by their commands, and where that is needed by their kernels.
pub fn labels(counts: &[CommandCount]) -> Vec<String> {
    let has_kernels = has_several_kernels(counts);
    let label = |one: &CommandCount| match has_kernels {
        true => format!("{} on {}", one.command, one.kernel),
        false => one.command.clone(),
    };
    counts.iter().map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(entries: &[[u64; 4]]) -> Vec<u8> {
        let count = (entries.len() as u64).to_le_bytes();
        let words = entries.iter().flatten().flat_map(|word| word.to_le_bytes());
        MAGIC.iter().copied().chain(count).chain(words).collect()
    }

    fn read(record: &[u8], symbols: &str) -> Result<Executed, String> {
        executed(record, symbols, &Programs::default())
    }

    fn function(name: &str, instructions: u64, calls: u64) -> FunctionCount {
        FunctionCount {
            name: name.into(),
            instructions,
            calls,
        }
    }

    /// Runs of so many instructions, all in one function.
    fn command(name: &str, kernel: &str, totals: &[u64]) -> CommandCount {
        let run = |total: &u64| CountedRun {
            executed: Executed {
                instructions: Instructions {
                    total: *total,
                    user: *total,
                    kernel: 0,
                },
                functions: vec![function("main [x]", *total, 1)],
            },
            ..CountedRun::default()
        };
        let runs = totals.iter().map(run).collect();
        CommandCount::new(name.into(), kernel.into(), runs)
    }

    #[test]
    fn a_record_is_split_at_the_half_of_the_addresses() {
        let bytes = record(&[[0x40_1000, 7, 1, 3], [0xffff_ffff_8100_0000, 0, 2, 10]]);
        let expected = Instructions {
            total: 13,
            user: 3,
            kernel: 10,
        };
        assert_eq!(read(&bytes, "").unwrap().instructions, expected);
        for damaged in [&bytes[..40], &bytes[..10], &[&bytes[..], &[0]].concat()] {
            assert!(read(damaged, "").is_err());
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
        let found = read(&bytes, symbols).unwrap();
        let expected = [
            function("vfs_read", 90, 0),
            function("__x64_sys_read", 48, 4),
            function("programs, without a file", 3, 0),
            function("ours [ours]", 2, 0),
        ];
        assert_eq!(found.functions, expected);
        let run = CountedRun {
            executed: found,
            ..CountedRun::default()
        };
        let command = CommandCount::new("x".into(), "toll".into(), vec![run]);
        assert_eq!(command.system_calls(), [("read", 4)]);
        let other = [function("vfs_read", 190, 0), function("main [x]", 3, 0)];
        let differing = differences(&other, &expected[..1]);
        let expected = [("vfs_read", 100), ("main [x]", 3)];
        let expected = expected.map(|(name, instructions)| FunctionDifference {
            name: name.into(),
            instructions,
        });
        assert_eq!(differing, expected);
    }

    #[test]
    fn runs_that_differ_are_told_and_are_no_regression_where_they_overlap() {
        let command = |totals: &[u64]| command("x", "toll", totals);
        let (old, new) = (command(&[100_000, 100_005]), command(&[101_000, 101_001]));
        assert!(old.is_settled() && old.instructions.total == 100_000);
        assert!(old.varying.is_empty());
        assert!(new.is_regression(&old, 0.001) && !new.is_regression(&old, 0.01));
        let varying = command(&[102_000, 99_000]);
        assert!(!varying.is_settled() && !varying.is_regression(&old, 0.001));
        assert_eq!(varying.varying[0].instructions, 3_000);
    }

    #[test]
    fn counts_are_compared_with_the_first_kernel_or_the_first_command() {
        let compared = |sides: &[(&str, &str)]| -> Vec<[String; 2]> {
            let counts = sides
                .iter()
                .map(|(name, kernel)| command(name, kernel, &[1]));
            let counts: Vec<CommandCount> = counts.collect();
            let labels = labels(&counts);
            let index = |one: &CommandCount| {
                let mut all = counts.iter();
                all.position(|other| std::ptr::eq(other, one)).unwrap()
            };
            let pairs = comparisons(&counts).into_iter();
            pairs
                .map(|(one, reference)| [one, reference].map(|one| labels[index(one)].clone()))
                .collect()
        };
        assert!(compared(&[]).is_empty() && compared(&[("a", "toll")]).is_empty());
        let commands = [("a", "toll"), ("a", "toll"), ("b", "toll")];
        assert_eq!(compared(&commands), [["a", "a"], ["b", "a"]]);
        let kernels = [("a", "toll"), ("a", "mine"), ("b", "toll"), ("b", "mine")];
        let expected = [["a on mine", "a on toll"], ["b on mine", "b on toll"]];
        assert_eq!(compared(&kernels), expected);
    }
}
