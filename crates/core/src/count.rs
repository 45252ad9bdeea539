//! Instructions of a command, as QEMU's plugin counted them.

mod comparison;
mod iteration;
mod linking;
mod programs;
mod symbols;

use std::collections::{BTreeMap, BTreeSet};

pub use comparison::{CountComparison, Pairs};
pub use iteration::{PROGRAMS, functions_in_the_middle};
pub use linking::Linking;
pub use programs::Programs;
use serde::Serialize;
pub use symbols::Symbols;

/// Bytes of the head of a record, and of each entry after it
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

/// Instructions and calls of a function. In programs, libraries and modules, the file's name
/// follows the function's name: `memcpy [libc.so.6]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FunctionCount {
    pub name: String,
    pub instructions: u64,
    /// How often the function was entered.
    pub calls: u64,
}

/// By how much a function's instructions vary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VaryingFunction {
    pub name: String,
    pub instructions: u64,
}

/// What one run executed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Executed {
    pub instructions: Instructions,
    /// Functions, those with most instructions first.
    pub functions: Vec<FunctionCount>,
}

/// Splits what the plugin wrote into records, one per counted region.
///
/// # Errors
/// Fails with what is wrong with the bytes.
fn records(mut bytes: &[u8]) -> Result<Vec<&[u8]>, String> {
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let damaged = || "the counts are damaged".to_owned();
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES).ok_or_else(damaged)?;
        let length = usize::try_from(word(head, 1)).ok();
        let length = length.and_then(|entries| entries.checked_mul(ENTRY_BYTES));
        let split = length.and_then(|length| rest.split_at_checked(length));
        let (record, rest) = split
            .filter(|_| head.starts_with(MAGIC))
            .ok_or_else(damaged)?;
        records.push(record);
        bytes = rest;
    }
    Ok(records)
}

fn word(bytes: &[u8], index: usize) -> u64 {
    let bytes = &bytes[8 * index..8 * index + 8];
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

/// Reads the one record that a guest with one command wrote; `symbols` are the kernel's
/// functions, and `programs` the files that the guest has.
///
/// # Errors
/// Fails with what is wrong with the bytes.
pub fn executed(bytes: &[u8], symbols: &Symbols, programs: &Programs) -> Result<Executed, String> {
    let records = records(bytes)?;
    let record = match records.as_slice() {
        [] => return Err("nothing was counted".into()),
        [record] => record,
        _ => return Err("more than the command was counted".into()),
    };
    let mut sum = Instructions::default();
    let mut functions: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for entry in record.chunks_exact(ENTRY_BYTES) {
        let (address, page) = (word(entry, 0), word(entry, 1));
        let (executions, count) = (word(entry, 2), word(entry, 3));
        // The kernel has the upper half of the addresses.
        let (name, is_begin) = match address >> 63 {
            0 => {
                sum.user += count;
                programs.at(page, address)
            }
            _ => {
                sum.kernel += count;
                let (name, is_begin) = symbols.at(address);
                (name.to_owned(), is_begin)
            }
        };
        let calls = if is_begin { executions } else { 0 };
        let function = functions.entry(name).or_default();
        *function = (function.0 + count, function.1 + calls);
    }
    sum.total = sum.user + sum.kernel;
    if sum.total == 0 {
        return Err("nothing was counted".into());
    }
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

/// The runs of one command under one kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CommandCount {
    pub command: String,
    /// The kernel's name.
    pub kernel: String,
    /// The release that the kernel reports.
    pub kernel_release: String,
    /// Instructions of the median run; of an even number of runs, the smaller of the two in the
    /// middle.
    pub instructions: Instructions,
    pub minor_faults: u64,
    pub major_faults: u64,
    /// Largest minus smallest total, as a share of the median total.
    pub spread: f64,
    /// Instructions of each run, in the order of their seeds.
    pub runs: Vec<Instructions>,
    /// Functions of the median run.
    pub functions: Vec<FunctionCount>,
    /// For runs that do not agree: the largest count of each function minus the smallest. The
    /// functions that vary most come first.
    pub varying: Vec<VaryingFunction>,
    /// Instructions by function of each run, in the order of `runs`.
    #[serde(skip)]
    by_function: Vec<BTreeMap<String, u64>>,
}

/// One run with its page faults.
#[derive(Debug, Clone, Default)]
pub struct CountedRun {
    pub executed: Executed,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub kernel_release: String,
}

impl CommandCount {
    /// Summarises the runs of a command under a kernel, at least one.
    pub fn new(command: String, kernel: String, runs: &[CountedRun]) -> Self {
        let total = |run: &CountedRun| run.executed.instructions.total;
        let mut sorted: Vec<&CountedRun> = runs.iter().collect();
        sorted.sort_by_key(|run| total(run));
        let [least, middle, most] = [0, (runs.len() - 1) / 2, runs.len() - 1].map(|i| sorted[i]);
        let spread = (total(most) - total(least)) as f64 / total(middle) as f64;
        let by_function: Vec<BTreeMap<String, u64>> = runs.iter().map(by_function).collect();
        let varying = if spread > AGREEMENT {
            varying(&by_function)
        } else {
            Vec::new()
        };
        Self {
            command,
            kernel,
            kernel_release: middle.kernel_release.clone(),
            instructions: middle.executed.instructions,
            minor_faults: middle.minor_faults,
            major_faults: middle.major_faults,
            spread,
            runs: runs.iter().map(|run| run.executed.instructions).collect(),
            functions: middle.executed.functions.clone(),
            varying,
            by_function,
        }
    }

    /// Returns system calls by name, those with most calls first. On x86-64, all functions of
    /// system calls have the same prefix (arch/x86/include/asm/syscall_wrapper.h).
    pub fn system_calls(&self) -> Vec<(&str, u64)> {
        let calls = self.functions.iter().filter_map(|one| {
            let name = one.name.strip_prefix("__x64_sys_")?;
            // A name of two words is a function of a module or a program.
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

    /// Returns the instructions of each run.
    fn totals_and_functions(&self) -> impl Iterator<Item = (f64, &BTreeMap<String, u64>)> {
        let totals = self.runs.iter().map(|run| run.total as f64);
        totals.zip(&self.by_function)
    }

    /// Returns the smallest and the largest total.
    pub fn ends(&self) -> [u64; 2] {
        let totals = || self.runs.iter().map(|run| run.total);
        [totals().min(), totals().max()].map(Option::unwrap_or_default)
    }
}

fn by_function(run: &CountedRun) -> BTreeMap<String, u64> {
    let functions = run.executed.functions.iter();
    functions
        .map(|one| (one.name.clone(), one.instructions))
        .collect()
}

/// Returns the functions whose count is not the same in all runs.
fn varying(runs: &[BTreeMap<String, u64>]) -> Vec<VaryingFunction> {
    let names: BTreeSet<&String> = runs.iter().flat_map(BTreeMap::keys).collect();
    let varying = |name: &String| {
        let counts = || runs.iter().map(|run| run.get(name).copied().unwrap_or(0));
        let instructions = counts().max()? - counts().min()?;
        (instructions > 0).then(|| VaryingFunction {
            name: name.clone(),
            instructions,
        })
    };
    let mut all: Vec<VaryingFunction> = names.into_iter().filter_map(varying).collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.instructions));
    all
}

/// Returns a label for each count: its command and, if there are several, its kernel.
pub fn labels(counts: &[CommandCount]) -> Vec<String> {
    let has_kernels = counts.iter().any(|one| one.kernel != counts[0].kernel);
    let label = |one: &CommandCount| {
        if has_kernels {
            format!("{} on {}", one.command, one.kernel)
        } else {
            one.command.clone()
        }
    };
    counts.iter().map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn record(entries: &[[u64; 4]]) -> Vec<u8> {
        let count = (entries.len() as u64).to_le_bytes();
        let words = entries.iter().flatten().flat_map(|word| word.to_le_bytes());
        MAGIC.iter().copied().chain(count).chain(words).collect()
    }

    fn read(record: &[u8], symbols: &str) -> Result<Executed, String> {
        executed(record, &Symbols::read(symbols), &Programs::default())
    }

    pub(super) fn function(name: &str, instructions: u64, calls: u64) -> FunctionCount {
        FunctionCount {
            name: name.into(),
            instructions,
            calls,
        }
    }

    /// Runs of this many instructions, all in one function.
    pub(super) fn command(name: &str, kernel: &str, totals: &[u64]) -> CommandCount {
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
        let runs: Vec<CountedRun> = totals.iter().map(run).collect();
        CommandCount::new(name.into(), kernel.into(), &runs)
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
        let command = CommandCount::new("x".into(), "toll".into(), &[run]);
        assert_eq!(command.system_calls(), [("read", 4)]);
    }

    #[test]
    fn functions_are_named_that_vary_between_runs_which_do_not_agree() {
        let settled = command("x", "toll", &[100_005, 100_000]);
        assert!(settled.is_settled() && settled.varying.is_empty());
        assert_eq!(settled.instructions.total, 100_000);
        let varying = command("x", "toll", &[102_000, 99_000]);
        assert!(!varying.is_settled());
        assert_eq!(varying.varying[0].instructions, 3_000);
    }
}
