//! The directory of the tables.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::run_tables::{machine_id, tables};
use super::table::encode;
use crate::claim::Run;

/// Writes all tables of a run by `put`, which puts a file in place whole; gives how many
/// bytes they take.
pub fn write(
    directory: &Path,
    run: &Run,
    mut put: impl FnMut(&Path, &[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let record = &run.stored.run;
    let mut bytes_written = 0;
    for (name, columns) in tables(run) {
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

fn folder(directory: &Path, table: &str, experiment: &str, machine: &str) -> PathBuf {
    directory
        .join(table)
        .join(format!("experiment={}", in_path(experiment)))
        .join(format!("machine={}", in_path(machine)))
}

/// A value as query engines read it from a path: other characters than these by their
/// bytes (`escapePathName` of Hive).
fn in_path(value: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    value.bytes().map(escape).collect()
}

fn cannot_make(path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow::anyhow!(
        "cannot make {}: {error}; name a directory that you may write",
        path.display()
    )
}
