//! Running all trials.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use toll_stats::Rng;

use crate::case::{Case, FileSystem};
use crate::document::{BlockRecord, CellRecord, Document, ProgramRecord, VERSION};
use crate::machine::Machine;
use crate::peers::Programs;
use crate::plan::{self, Blocks, Size};
use crate::program::{Program, TWIN};
use crate::source_file::SourceFile;
use crate::trial::Bench;
use crate::watchdog::Watchdog;
use crate::workspace::Workspace;

/// Bytes of the small file: what a start costs.
const SMALL_BYTES: u64 = 1024;

/// What to run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Cases; empty for all that this machine has, of XFS and Btrfs the first.
    pub cases: Vec<Case>,
    /// Bytes of the large file.
    pub large_bytes: u64,
    /// Numbers of blocks.
    pub blocks: Blocks,
    /// Seed of the order of trials.
    pub seed: u64,
    /// No block begins after this time.
    pub limit: Duration,
    /// Directory below which work files lie.
    pub base: PathBuf,
    /// Command line, for the document.
    pub command_line: String,
    /// Becomes true when the user wants to stop.
    pub interrupted: Arc<AtomicBool>,
}

/// Why a run has no result.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop {
    /// The user wanted it.
    Interrupted,
    /// With the reason.
    Failed(String),
}

impl From<String> for Stop {
    fn from(reason: String) -> Stop {
        Stop::Failed(reason)
    }
}

/// One case and size.
struct Cell {
    size: Size,
    bench: Bench,
    programs: Vec<Program>,
    blocks: Vec<BlockRecord>,
    excluded: BTreeMap<String, String>,
}

/// Runs all trials; `progress` is told what is done.
///
/// # Errors
/// If it is interrupted, or there can be no work files.
pub fn run(
    settings: &Settings,
    programs: &Programs,
    progress: &mut dyn FnMut(&str),
) -> Result<Document, Stop> {
    let begin = Instant::now();
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S UTC");
    let (cases, file_systems) = cases_and_file_systems(settings);
    progress("laying out the work files");
    let workspace = Workspace::create(&settings.base, &file_systems, settings.large_bytes)?;
    let machine = Machine::inspect(workspace.root());
    let mut notes: Vec<String> = programs
        .missing
        .iter()
        .map(|(name, reason)| format!("Skipped program {name}: {reason}."))
        .collect();
    let mut cells = lay_out(settings, &cases, &workspace, programs, &mut notes)?;
    check_all(settings, &mut cells, progress)?;
    let blocks = measure(settings, &mut cells, begin, progress)?;
    if blocks != settings.blocks {
        notes.push(format!(
            "The time limit of {} min ended the run after {} of {} large and {} of {} small blocks.",
            settings.limit.as_secs() / 60,
            blocks.large,
            settings.blocks.large,
            blocks.small,
            settings.blocks.small
        ));
    }
    Ok(Document {
        version: VERSION,
        date: date.to_string(),
        command_line: settings.command_line.clone(),
        seed: settings.seed,
        machine,
        programs: programs.found.iter().map(program_record).collect(),
        cells: cells.into_iter().map(Cell::into_record).collect(),
        notes,
    })
}

/// The cases, and the file systems they need.
fn cases_and_file_systems(settings: &Settings) -> (Vec<Case>, Vec<FileSystem>) {
    let mut cases = settings.cases.clone();
    if cases.is_empty() {
        cases = Case::ALL.to_vec();
        // One file system that shares blocks is enough.
        let has_xfs = crate::filesystem::loop_obstacle(FileSystem::Xfs).is_none();
        let has_btrfs = crate::filesystem::loop_obstacle(FileSystem::Btrfs).is_none();
        let left_out = match !has_xfs && has_btrfs {
            true => Case::Xfs,
            false => Case::Btrfs,
        };
        cases.retain(|&case| case != left_out);
    }
    cases.sort_unstable();
    cases.dedup();
    let mut file_systems: Vec<FileSystem> = cases.iter().map(|case| case.file_system()).collect();
    file_systems.sort_unstable();
    file_systems.dedup();
    (cases, file_systems)
}

/// Writes the sources and makes the cells of all cases that can be run.
fn lay_out(
    settings: &Settings,
    cases: &[Case],
    workspace: &Workspace,
    programs: &Programs,
    notes: &mut Vec<String>,
) -> Result<Vec<Cell>, Stop> {
    let watchdog = Watchdog::start();
    let mut sources: BTreeMap<(FileSystem, Size), SourceFile> = BTreeMap::new();
    let mut cells = Vec::new();
    for &case in cases {
        let file_system = case.file_system();
        let directory = match workspace.directory(file_system) {
            Ok(directory) => directory,
            Err(reason) => {
                notes.push(format!("Skipped case {}: {reason}.", case.name()));
                continue;
            }
        };
        for (size, size_bytes, blocks) in [
            (Size::Large, settings.large_bytes, settings.blocks.large),
            (Size::Small, SMALL_BYTES, settings.blocks.small),
        ] {
            if blocks == 0 {
                continue;
            }
            let source = match sources.get(&(file_system, size)) {
                Some(source) => source.clone(),
                None => create_source(directory, size, size_bytes, settings)?,
            };
            sources.insert((file_system, size), source.clone());
            let bench = Bench {
                case,
                source,
                sink: directory.join("copy"),
                directory: File::open(directory).map_err(|error| error.to_string())?,
                complaints: workspace.root().join("complaints"),
                watchdog: watchdog.clone(),
            };
            cells.push(Cell::new(size, bench, &programs.found));
        }
    }
    Ok(cells)
}

fn create_source(
    directory: &Path,
    size: Size,
    size_bytes: u64,
    settings: &Settings,
) -> Result<SourceFile, Stop> {
    settings.check_interrupted()?;
    let path = directory.join(match size {
        Size::Small => "source-small",
        Size::Large => "source-large",
    });
    SourceFile::create(&path, size_bytes, settings.seed)
        .map_err(|error| Stop::Failed(format!("cannot write {}: {error}", path.display())))
}

/// Runs every program once in every cell and looks at the bytes.
fn check_all(
    settings: &Settings,
    cells: &mut [Cell],
    progress: &mut dyn FnMut(&str),
) -> Result<(), Stop> {
    for cell in cells {
        progress(&format!(
            "checking the bytes: {}, {}",
            cell.bench.case.name(),
            crate::table::size(cell.bench.source.size_bytes)
        ));
        cell.bench.source.warm()?;
        for position in 0..cell.programs.len() {
            if cell.programs[position].name != TWIN {
                cell.run_one(position, true, settings)?;
            }
        }
    }
    Ok(())
}

/// Runs the blocks and tells how many there were.
fn measure(
    settings: &Settings,
    cells: &mut [Cell],
    begin: Instant,
    progress: &mut dyn FnMut(&str),
) -> Result<Blocks, Stop> {
    let mut rng = Rng::new(settings.seed);
    let mut done = Blocks { large: 0, small: 0 };
    for size in plan::block_sizes(settings.blocks, &mut rng) {
        if begin.elapsed() > settings.limit {
            break;
        }
        if size == Size::Large {
            let minutes = begin.elapsed().as_secs_f64() / 60.0;
            let (block, blocks) = (done.large + 1, settings.blocks.large);
            progress(&format!(
                "large block {block} of {blocks} at {minutes:.1} min"
            ));
        }
        let of_size: Vec<usize> = (0..cells.len())
            .filter(|&index| cells[index].size == size)
            .collect();
        for place in plan::permutation(of_size.len(), &mut rng) {
            cells[of_size[place]].run_block(&mut rng, settings)?;
        }
        match size {
            Size::Large => done.large += 1,
            Size::Small => done.small += 1,
        }
    }
    Ok(done)
}

impl Settings {
    fn check_interrupted(&self) -> Result<(), Stop> {
        match self.interrupted.load(Ordering::Relaxed) {
            true => Err(Stop::Interrupted),
            false => Ok(()),
        }
    }
}

impl Cell {
    fn new(size: Size, bench: Bench, programs: &[Program]) -> Cell {
        let can = |program: &&Program| {
            program
                .invocation(bench.case, &bench.source.path, &bench.sink)
                .is_some()
        };
        Cell {
            size,
            programs: programs.iter().filter(can).cloned().collect(),
            bench,
            blocks: Vec::new(),
            excluded: BTreeMap::new(),
        }
    }

    /// Runs a program and yields its duration in nanoseconds; none, and no
    /// other time either, if it fails.
    fn run_one(
        &mut self,
        position: usize,
        verify: bool,
        settings: &Settings,
    ) -> Result<Option<u64>, Stop> {
        let program = &self.programs[position];
        if self.excluded.contains_key(program.name) {
            return Ok(None);
        }
        let result = self.bench.run(program, verify);
        // An interrupt from the terminal kills the program, too, which is then
        // no failure of it.
        settings.check_interrupted()?;
        match result {
            Ok(duration_ns) => Ok(Some(duration_ns)),
            Err(reason) => {
                self.excluded.insert(program.name.into(), reason);
                Ok(None)
            }
        }
    }

    fn run_block(&mut self, rng: &mut Rng, settings: &Settings) -> Result<(), Stop> {
        self.bench.source.warm()?;
        let order = plan::permutation(self.programs.len(), rng);
        let mut durations_ns = vec![None; self.programs.len()];
        for &position in &order {
            durations_ns[position] = self.run_one(position, false, settings)?;
        }
        self.blocks.push(BlockRecord {
            order,
            durations_ns,
        });
        Ok(())
    }

    fn into_record(self) -> CellRecord {
        CellRecord {
            case: self.bench.case,
            size_bytes: self.bench.source.size_bytes,
            programs: self.programs.iter().map(|it| it.name.into()).collect(),
            blocks: self.blocks,
            excluded: self.excluded,
        }
    }
}

fn program_record(program: &Program) -> ProgramRecord {
    ProgramRecord {
        name: program.name.into(),
        path: program.path.display().to_string(),
        arguments: program.leading.iter().map(|&it| it.into()).collect(),
        version: program.version.clone(),
    }
}
