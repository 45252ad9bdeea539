//! Reading the tables of many machines for a report.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use parquet::record::Field;
use toll_core::claim::model::{ClaimDirection, Estimate, Outcome};
use toll_core::fleet::facts_of;
use toll_core::fleet::model::{FleetMachine, FleetVerdict};
use toll_core::run::{FileSystem, Machine};
use toll_core::spec::Platform;
use toll_host::store::exchange::is_uid;
use toll_system::bounded::{open_bounded, read_bounded};

use super::dataset::{folder, from_path};
use super::table::{BYTES_MAX, Row, decode};

/// The run that counts for an experiment on a machine: the newest complete run, or the newest run
/// if none is complete.
struct NewestRun {
    run: String,
    /// Whether the run is complete, and when it began. The run with the greatest rank counts.
    rank: (bool, String),
    platforms: Vec<Platform>,
}

/// Reads the machines of a directory, each with the verdicts of the newest run of each
/// experiment.
///
/// # Errors
/// Fails if the directory has no runs, or a file cannot be read; the error has the path.
pub fn read(directory: &Path) -> anyhow::Result<Vec<FleetMachine>> {
    let newest = newest_runs(directory)?;
    anyhow::ensure!(
        !newest.is_empty(),
        "cannot report on {}: it has no table of runs; export runs with toll export --parquet {0}",
        directory.display()
    );
    let mut machines: BTreeMap<String, FleetMachine> = BTreeMap::new();
    for ((experiment, machine), newest) in newest {
        let run = newest.run;
        anyhow::ensure!(
            is_uid(&run),
            "cannot read the run {run:?} of {experiment} on {machine}: its name is not 16 \
             hexadecimal digits; export it again"
        );
        let rows = |table| {
            let folder = folder(directory, table, &experiment, &machine);
            refuse_links(directory, &folder)?;
            read_file(&folder.join(format!("{run}.parquet")))
        };
        let verdicts = rows("verdicts")?;
        let verdicts = verdicts.iter().map(|row| Cells(row).verdict());
        let facts = match rows("machines")?.first() {
            Some(row) => facts_of(&Cells(row).machine()),
            None => BTreeMap::new(),
        };
        let new = || FleetMachine {
            id: machine.clone(),
            facts,
            verdicts: Vec::new(),
            platforms: Vec::new(),
        };
        let one = machines.entry(machine.clone()).or_insert_with(new);
        one.verdicts.extend(verdicts);
        one.platforms.extend(newest.platforms);
    }
    Ok(machines.into_values().collect())
}

fn newest_runs(directory: &Path) -> anyhow::Result<BTreeMap<(String, String), NewestRun>> {
    let mut newest: BTreeMap<(String, String), NewestRun> = BTreeMap::new();
    let runs = directory.join("runs");
    refuse_links(directory, &runs)?;
    for (experiment, folder) in entries(&runs, "experiment=")? {
        for (machine, folder) in entries(&folder, "machine=")? {
            if let Some(run) = newest_in(&folder)? {
                newest.insert((experiment.clone(), machine), run);
            }
        }
    }
    Ok(newest)
}

/// The newest run in a directory of the table `runs`.
fn newest_in(folder: &Path) -> anyhow::Result<Option<NewestRun>> {
    let mut newest: Option<NewestRun> = None;
    for (_, file) in entries(folder, "")? {
        if file
            .extension()
            .is_none_or(|extension| extension != "parquet")
        {
            continue;
        }
        for row in read_file(&file)? {
            let cells = Cells(&row);
            let rank = (cells.text("status") == "complete", cells.text("created_at"));
            if newest.as_ref().is_none_or(|known| known.rank < rank) {
                newest = Some(NewestRun {
                    run: cells.text("run"),
                    rank,
                    platforms: serde_json::from_str(&cells.text("platforms")).unwrap_or_default(),
                });
            }
        }
    }
    Ok(newest)
}

/// Lists the entries of a directory whose names begin with a prefix, by the rest of the name,
/// sorted.
fn entries(directory: &Path, prefix: &str) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let cannot = |error: io::Error| {
        anyhow::anyhow!(
            "cannot read {}: {error}; name a directory written by toll export --parquet or toll \
             fleet fetch",
            directory.display()
        )
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        refuse_links(directory, &path)?;
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(value) = name.and_then(|name| name.strip_prefix(prefix)) {
            found.push((from_path(value), path.clone()));
        }
    }
    found.sort();
    Ok(found)
}

const A_LINK: &str = "it is a symbolic link, which may lead elsewhere; replace it with a copy";

/// Refuses a path with a symbolic link below the directory.
fn refuse_links(directory: &Path, folder: &Path) -> anyhow::Result<()> {
    let below = folder.ancestors().take_while(|one| *one != directory);
    let found = Vec::from_iter(below)
        .into_iter()
        .find(|one| one.is_symlink());
    found.map_or(Ok(()), |link| {
        Err(anyhow::anyhow!("cannot read {}: {A_LINK}", link.display()))
    })
}

fn read_file(path: &Path) -> anyhow::Result<Vec<Row>> {
    let cannot = |why: String| {
        anyhow::anyhow!(
            "cannot read {}: {why}; export its run again, or remove the run's files",
            path.display()
        )
    };
    if path.is_symlink() {
        return Err(cannot(A_LINK.into()));
    }
    let bytes = open_bounded(path, BYTES_MAX).and_then(|file| read_bounded(file, BYTES_MAX));
    let bytes = bytes.map_err(|error| cannot(error.to_string()))?;
    decode(bytes).map_err(|error| cannot(error.to_string()))
}

/// The cells of a row by name. A cell that is null or has another type is empty.
struct Cells<'a>(&'a Row);

impl Cells<'_> {
    fn optional_text(&self, name: &str) -> Option<String> {
        match self.0.get(name) {
            Some(Field::Str(text)) => Some(text.clone()),
            _ => None,
        }
    }

    fn text(&self, name: &str) -> String {
        self.optional_text(name).unwrap_or_default()
    }

    fn number(&self, name: &str) -> Option<f64> {
        match self.0.get(name) {
            Some(Field::Double(number)) => Some(*number),
            _ => None,
        }
    }

    fn verdict(&self) -> FleetVerdict {
        let word = |name: &str| serde_json::Value::String(self.text(name));
        let measured = || {
            Some(Estimate {
                value: self.number("value")?,
                low: self.number("low")?,
                high: self.number("high")?,
                confidence: self.number("confidence")?,
            })
        };
        FleetVerdict {
            claim: self.text("claim"),
            text: self.text("text"),
            report: self.optional_text("report"),
            quantity: self.text("quantity"),
            unit: self.text("unit"),
            differ_by: self.optional_text("differ_by"),
            outcome: serde_json::from_value(word("outcome")).unwrap_or(Outcome::NotTestable),
            measured: measured(),
            direction: serde_json::from_value(word("direction")).unwrap_or(ClaimDirection::Equal),
            threshold: self.number("threshold").unwrap_or_default(),
        }
    }

    /// The facts that a report needs of a machine; all others are empty.
    fn machine(&self) -> Machine {
        Machine {
            hostname: self.text("hostname"),
            cpu_model: self.text("cpu_model"),
            mitigations: serde_json::from_str(&self.text("mitigations")).unwrap_or_default(),
            virtualization: self.text("virtualization"),
            os: self.optional_text("os"),
            kernel_release: self.text("kernel_release"),
            kernel_command_line: self.text("kernel_command_line"),
            work_file_system: FileSystem {
                kind: self.text("file_system"),
                ..FileSystem::default()
            },
            ..Machine::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use parquet::data_type::ByteArray;

    use super::super::table::{Column, Values, encode};
    use super::*;

    /// A directory with one run of this name.
    fn tables(run: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let text = |name, text: &str| Column {
            name,
            values: Values::Text(vec![Some(ByteArray::from(text))]),
        };
        let columns = [
            text("run", run),
            text("status", "complete"),
            text("created_at", "2026-01-01T00:00:00Z"),
        ];
        for table in ["runs", "verdicts", "machines"] {
            let folder = folder(&directory.path().join("tables"), table, "e", "m");
            fs::create_dir_all(&folder).unwrap();
            let name = run.rsplit('/').next().unwrap();
            let name = if name.is_empty() { "none" } else { name };
            fs::write(
                folder.join(format!("{name}.parquet")),
                encode(&columns).unwrap(),
            )
            .unwrap();
        }
        directory
    }

    fn error(directory: &tempfile::TempDir) -> String {
        read(&directory.path().join("tables"))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_name_of_a_run_that_leads_out_of_the_directory_is_refused() {
        assert!(read(&tables("00000000000000ab").path().join("tables")).is_ok());
        for run in ["../../../outside", "/etc/passwd", "..", "", "a/b"] {
            let error = error(&tables(run));
            assert!(error.contains("is not 16 hexadecimal digits"), "{error}");
        }
    }

    #[test]
    fn a_link_out_of_the_directory_is_refused() {
        for (place, is_folder) in [
            (
                "tables/verdicts/experiment=e/machine=m/00000000000000ab.parquet",
                false,
            ),
            ("tables/machines/experiment=e/machine=m", true),
            ("tables/runs/experiment=e", true),
            ("tables/runs", true),
        ] {
            let directory = tables("00000000000000ab");
            let place = directory.path().join(place);
            let outside = directory.path().join("outside");
            fs::rename(&place, &outside).unwrap();
            assert_eq!(outside.is_dir(), is_folder);
            symlink(&outside, &place).unwrap();
            let error = error(&directory);
            assert!(error.contains("it is a symbolic link"), "{error}");
        }
    }

    #[test]
    fn a_pipe_in_the_place_of_a_table_is_not_waited_for() {
        let directory = tables("00000000000000ab");
        let place = "tables/verdicts/experiment=e/machine=m/00000000000000ab.parquet";
        let place = directory.path().join(place);
        fs::remove_file(&place).unwrap();
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &place, kind, rustix::fs::Mode::RUSR, 0).unwrap();
        let error = error(&directory);
        assert!(error.contains("it is not a regular file"), "{error}");
    }
}
