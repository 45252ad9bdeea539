//! Shows which processes hold which devices.

use toll_core::format;
use toll_document::{Column, Document, Paint, Row, heading, notes, paragraph, table};
use toll_observe::devices::{Access, By, Ended, Held, Hold, Process, Report, totals};

/// Maximum number of processes that are named of those that could not be inspected.
const UNSEEN_MAX: usize = 8;

/// Returns the report for a terminal: which processes hold which devices.
pub fn of_report(report: &Report) -> Document {
    let head = report.command.as_ref().map(|command| {
        let ended = match report.ended {
            Some(Ended::Status(status)) => format!("ended with status {status}"),
            Some(Ended::Signal(signal)) => format!("ended by signal {signal}"),
            None => "has not ended".into(),
        };
        let title = format!("devices: {}", command.join(" "));
        heading(&title) + paragraph(&ended, 0, Paint::Plain)
    });
    let together = (report.processes.len() > 1).then(|| together(report));
    let processes = report.processes.iter().map(process);
    let sections = head.into_iter().chain(processes).chain(together);
    let notes = notes(&report.notes, Paint::Yellow);
    Document::sections(sections.chain([counted(report) + notes]))
}

fn process(process: &Process) -> Document {
    let name = match process.name.as_str() {
        "" => "a process without a name",
        name => name,
    };
    let mut text = paragraph(format!("{name} ({})", process.pid), 0, Paint::Bold);
    if process.has_other_mounts {
        let remark =
            "it sees different file systems than toll does, so its paths may lead to other files";
        text += paragraph(remark, 2, Paint::Dim);
    }
    for held in &process.devices {
        let line = format!("{}: {}", path(held), held.kind);
        text += paragraph(&line, 2, Paint::Plain);
        let holds: Vec<String> = held.holds.iter().map(hold).collect();
        text += paragraph(holds.join("; "), 4, Paint::Dim);
    }
    text
}

fn path(held: &Held) -> String {
    if held.is_deleted {
        format!("{} (deleted)", held.path)
    } else {
        held.path.clone()
    }
}

fn hold(hold: &Hold) -> String {
    let many = |one: &str, more: &str| match hold.descriptors.len() {
        1 => format!("{one} {}", hold.descriptors[0]),
        _ => format!("{more} {}", ranges(&hold.descriptors)),
    };
    let times = match hold.count {
        1 => String::new(),
        count => format!(", {} times", format::count(count as f64)),
    };
    let how = match hold.by {
        By::Descriptor => many("descriptor", "descriptors"),
        By::Inherited => format!("{}, inherited", many("descriptor", "descriptors")),
        By::Opened => format!("opened as {}{times}", many("descriptor", "descriptors")),
        By::Mapping => format!("mapped{times}"),
        By::WorkingDirectory => "working directory".into(),
        By::RootDirectory => "root directory".into(),
        By::ControllingTerminal => "controlling terminal".into(),
    };
    let access = match hold.access {
        Access::Read => " (read)",
        Access::Write => " (write)",
        Access::ReadWrite => " (read and write)",
        Access::PathOnly => " (as a path only)",
        Access::Unknown => "",
    };
    how + access
}

/// Formats numbers in ascending order as ranges, such as `0-2, 255`.
fn ranges(numbers: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => parts.push((*number, *number)),
        }
    }
    let shown = parts.iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}–{last}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Lists each kind of device with the number of times it is held.
fn together(report: &Report) -> Document {
    let mut totals: Vec<(&str, u64)> = totals(&report.processes).into_iter().collect();
    totals.sort_by_key(|(kind, count)| (std::cmp::Reverse(*count), *kind));
    let columns = [Column::numbers("held"), Column::words("device")];
    let row =
        |(kind, count): &(&str, u64)| Row::new([format::count(*count as f64), (*kind).to_owned()]);
    table(columns, totals.iter().map(row))
}

/// Says how many processes were inspected and how many could not be. Otherwise a reader
/// would assume that there were no others.
fn counted(report: &Report) -> Document {
    let holding = report.processes.len();
    let line = match report.processes_seen {
        1 if holding == 1 => "1 process was inspected".into(),
        1 => "1 process was inspected; it holds no device".into(),
        seen => format!("{holding} of {seen} inspected processes hold devices"),
    };
    let mut text = paragraph(&line, 0, Paint::Plain);
    if report.unseen.is_empty() {
        return text;
    }
    let mut named: Vec<String> = report.unseen[..report.unseen.len().min(UNSEEN_MAX)]
        .iter()
        .map(|one| format!("{} ({}): {}", one.name, one.pid, one.reason))
        .collect();
    if report.unseen.len() > UNSEEN_MAX {
        named.push(format!("and {} more", report.unseen.len() - UNSEEN_MAX));
    }
    let line = format!(
        "{} could not be inspected, which needs their owner's rights or the capability SYS_PTRACE: {}",
        report.unseen.len(),
        named.join(", ")
    );
    text += paragraph(&line, 0, Paint::Yellow);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_that_follow_each_other_are_a_range() {
        assert_eq!(ranges(&[0, 1, 2, 255]), "0–2, 255");
        assert_eq!(ranges(&[3, 4, 9]), "3, 4, 9");
    }
}
