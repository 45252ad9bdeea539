//! The command `toll observe session`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use toll_document::sanitize;
use toll_observe::session::{COLUMNS_MAX, LINES_MAX, Settings, Shown, Timing, clean};
use toll_system::{Failure, output};

use super::input;

const NOTES: &str = "\
Examples:
  script -c 'make test' typescript; toll observe session typescript
  script --log-timing times --log-out typescript
  toll observe session --timing times --json typescript

The first line of a recording gives the size of the terminal. A timing file in the format of
`script --logging-format advanced` also has changes of the size. Without either, 80 columns
and 24 lines are assumed.";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(super) struct SessionArguments {
    /// The recording; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Timing of the recording: the file that `script --log-timing` wrote, in either
    /// format
    #[arg(long, value_name = "FILE")]
    timing: Option<PathBuf>,
    /// Columns of the terminal [default: as recorded, or else 80]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=COLUMNS_MAX as u64))]
    columns: Option<usize>,
    /// Lines of the terminal [default: as recorded, or else 24]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=LINES_MAX as u64))]
    lines: Option<usize>,
    /// Show titles of the window, each on a line in brackets
    #[arg(long)]
    titles: bool,
    /// Show the last content of each alternate screen (vi, less), between two
    /// lines in brackets
    #[arg(long)]
    alternate_screens: bool,
    /// Print one JSON document: lines (with times if there is a timing), titles,
    /// alternate screens, and facts about the recording
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &SessionArguments) -> anyhow::Result<ExitCode> {
    let timing = match &arguments.timing {
        Some(path) => {
            let parsed = Timing::parse(&input::read(path)?);
            let wrong = |error| Failure::Usage(format!("cannot read {}: {error}", path.display()));
            Some(parsed.map_err(wrong)?)
        }
        None => None,
    };
    let settings = Settings {
        columns: arguments.columns,
        lines: arguments.lines,
    };
    let session = clean(&input::read(&arguments.file)?, timing.as_ref(), settings);
    for note in session.recordings.iter().flat_map(|one| &one.notes) {
        output::note(&format!("note: {note}"));
    }
    if arguments.json {
        output::json(&session)?;
        return Ok(ExitCode::SUCCESS);
    }
    let shown = Shown {
        titles: arguments.titles,
        alternate_screens: arguments.alternate_screens,
    };
    let text = session.text(shown);
    if !text.is_empty() {
        let lines: Vec<String> = text.lines().map(sanitize).collect();
        output::document(&lines.join("\n"))?;
    }
    let screens = session.recordings.iter();
    let screens: usize = screens.map(|one| one.alternate_screens.len()).sum();
    if screens > 0 && !arguments.alternate_screens {
        output::note(&format!(
            "note: the text leaves out the alternate screens of editors or pagers ({screens}); \
             --alternate-screens shows the last content of each"
        ));
    }
    Ok(ExitCode::SUCCESS)
}
