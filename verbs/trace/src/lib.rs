//! `toll trace`: counts and prices the system calls of a program.

mod arguments;
mod call_list;
mod costs;
mod lines;
mod observation;
mod report;

use std::path::Path;
use std::process::ExitCode;

use toll_calls::costs::Costs;
use toll_calls::model::{Ended, TraceReport};
use toll_calls::price::{self, Traced};
use toll_system::output;
use toll_system::strace::unstartable;

use call_list::CallList;
use costs::Prices;
use observation::Source;
use report::Shown as TraceShown;

pub use arguments::TraceArguments;

pub fn run(arguments: &TraceArguments, store: &Path) -> anyhow::Result<ExitCode> {
    if let Some(code) = arguments.command.first().and_then(|name| unstartable(name)) {
        return Ok(code);
    }
    arguments
        .output
        .as_deref()
        .map_or(Ok(()), output::check_file)?;
    let source = Source::find(arguments)?;
    let work_dir = arguments.work_dir.as_deref();
    // A missing run is reported here, before the command runs.
    let stored = match (arguments.no_prices, arguments.measure) {
        (true, _) => Prices::NotWanted,
        (false, true) => Prices::Missing,
        (false, false) => costs::stored(arguments.cost_model.as_deref(), store, work_dir)?,
    };
    let mut list = if arguments.calls {
        Some(CallList::begin(
            arguments.output.as_deref(),
            arguments.json,
        )?)
    } else {
        None
    };
    let observation = source.observe(arguments, list.as_mut())?;
    let mut notes = observation.notes;
    let costs = match stored {
        Prices::NotWanted => None,
        Prices::Found(costs) => Some(*costs),
        Prices::Missing if observation.was_interrupted => {
            notes.push(
                "there are no prices: the cost of calls is not measured after an interrupt".into(),
            );
            None
        }
        Prices::Missing => match measure(arguments, store) {
            Ok(costs) => Some(costs),
            Err(failure) => {
                notes.push(format!("there are no prices: {failure}"));
                None
            }
        },
    };
    let traced = Traced {
        command: observation.command,
        ended: observation.ended,
        counting: observation.counting,
        wall_ns: u64::try_from(observation.wall.as_nanos()).unwrap_or(u64::MAX),
        notes,
    };
    show(
        arguments,
        &price::report(traced, &observation.tally, costs),
        list,
    )?;
    Ok(exit_code(observation.ended))
}

fn measure(arguments: &TraceArguments, store: &Path) -> anyhow::Result<Costs> {
    // With --json and without --output, standard error is one JSON document.
    if arguments.output.is_some() || !arguments.json {
        output::note(
            "measuring what calls cost here, which takes a few seconds; later traces find the \
             prices in the store …",
        );
    }
    costs::measure(store, arguments.work_dir.as_deref())
}

fn exit_code(ended: Ended) -> ExitCode {
    match ended {
        Ended::Signal(signal) => toll_system::exit_code_of(signal),
        Ended::Status(status) => ExitCode::from(u8::try_from(status).unwrap_or(1)),
        Ended::Watch(_) => ExitCode::SUCCESS,
    }
}

fn show(
    arguments: &TraceArguments,
    report: &TraceReport,
    list: Option<CallList>,
) -> anyhow::Result<()> {
    let to = arguments.output.as_deref();
    let text = if arguments.json {
        output::json_text(report)? + "\n"
    } else {
        let shown = TraceShown {
            files_max: arguments.top,
            helpers: arguments.helpers,
        };
        report::of_report(report, shown).show(output::style_aside(to))
    };
    if let Some(list) = list {
        return list.finish(&text);
    }
    // Separates the summary from the command's own output.
    let gap = if to.is_none() && !arguments.json {
        "\n"
    } else {
        ""
    };
    output::write_aside(to, &format!("{gap}{text}"))
}
