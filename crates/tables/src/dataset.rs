//! Writes the tables of a run into a directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use toll_core::claim::Run;
use toll_core::claim::model::OverRuns;
use toll_host::machine_id;

use super::run_tables::tables;
use super::table::encode;

/// Writes all tables of a run, with its verdicts over comparable runs. `put` puts a whole file in
/// place at once. Returns the number of bytes written.
pub fn write(
    directory: &Path,
    run: &Run,
    over: Option<&OverRuns>,
    mut put: impl FnMut(&Path, &[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let record = &run.stored.run;
    let mut bytes_written = 0;
    for (name, columns) in tables(run, over) {
        let folder = folder(
            directory,
            name,
            &record.experiment,
            &machine_id(&record.machine),
        );
        fs::create_dir_all(&folder).map_err(|error| cannot_make(&folder, &error))?;
        let bytes = encode(&columns)?;
        put(&folder.join(format!("{}.parquet", record.uid)), &bytes)?;
        bytes_written += bytes.len() as u64;
    }
    Ok(bytes_written)
}

pub fn folder(directory: &Path, table: &str, experiment: &str, machine: &str) -> PathBuf {
    directory
        .join(table)
        .join(format!("experiment={}", in_path(experiment)))
        .join(format!("machine={}", in_path(machine)))
}

/// Encodes a value for a path, as query engines read it: all characters except letters, digits,
/// `.`, `_` and `-` become escaped bytes (Hive's `escapePathName`).
fn in_path(value: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    value.bytes().map(escape).collect()
}

/// Decodes a value from a path.
pub fn from_path(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind
            .get(..2)
            .and_then(|two| std::str::from_utf8(two).ok());
        let escaped = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        match (first, escaped) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn cannot_make(path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow::anyhow!(
        "cannot make {}: {error}; name a directory that you may write to",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_paths_hold_any_text() {
        for text in ["cat", "a b/c=d%", "gr\u{f6}\u{df}e", "", "100%", "%4"] {
            assert_eq!(from_path(&in_path(text)), text);
        }
        assert_eq!(in_path("a/b"), "a%2Fb");
    }
}
