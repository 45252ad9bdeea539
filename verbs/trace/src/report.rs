//! The summary of a trace as text: a table of calls, histograms of sizes, advice.

use toll_calls::model::{
    CallSummary, CountedBy, Ended, FileSummary, FlowSummary, ProgramSummary, TraceAdvice,
    TraceReport, WatchEnd,
};
use toll_calls::sizes::Sizes;
use toll_core::format;
use toll_document::{
    Column, Document, Paint, Row, alternatives, columns, figure, heading, notes, paragraph, right,
    section, table,
};
use toll_report::words;

/// Longest bar of a histogram, in columns.
const BAR_COLUMNS_MAX: usize = 40;
/// Histograms have no bars if there is room for fewer columns.
const BAR_COLUMNS_MIN: usize = 4;
/// Longest command, in characters, that the heading shows whole.
const COMMAND_COLUMNS_MAX: usize = 240;

/// How much of a trace to show.
#[derive(Debug, Clone, Copy)]
pub struct Shown {
    /// Number of files, at most.
    pub files_max: usize,
    /// Whether to show programs that hardly matter, and files that only they used.
    pub helpers: bool,
}

/// Formats the report of a traced program.
pub fn of_report(report: &TraceReport, shown: Shown) -> Document {
    Document::sections([
        header(report),
        advice(report),
        programs(report, shown),
        calls(report),
        section("Sizes of the calls, by file", files(report, shown)),
        notes(&report.notes, Paint::Yellow),
    ])
}

fn header(report: &TraceReport) -> Document {
    let mut command: String = report.command.join(" ");
    if command.chars().count() > COMMAND_COLUMNS_MAX {
        command = command
            .chars()
            .take(COMMAND_COLUMNS_MAX - 1)
            .chain(['…'])
            .collect();
    }
    let mut text = heading(&format!("trace: {command}"));
    let wall = format::duration_ns(report.traced_wall_ns as f64);
    let ended = match report.ended {
        Ended::Status(status) => format!("ended with status {status} after {wall} under trace"),
        Ended::Signal(signal) => format!("ended by signal {signal} after {wall} under trace"),
        Ended::Watch(WatchEnd::AllEnded) => format!("ended after {wall} under trace"),
        Ended::Watch(WatchEnd::TimeOver) => {
            format!("traced for {wall}; the program is still running")
        }
        Ended::Watch(WatchEnd::Interrupted) => {
            format!("traced for {wall}, until interrupted; the program is still running")
        }
    };
    let line = format!("{ended}, {}", words::plural(report.threads, "thread"));
    text += paragraph(&line, 0, Paint::Plain);
    text += paragraph(meaning(report), 0, Paint::Dim);
    text
}

/// Explains the columns that show times.
fn meaning(report: &TraceReport) -> String {
    let stops = match (report.counted_by, report.slowdown) {
        (CountedBy::Bpf, Some(factor)) => format!(
            "Counting in the kernel takes time at every call, so the program took up to {} times \
             as long as without.",
            format::ratio(factor.most)
        ),
        (CountedBy::Bpf, None) => "Counting in the kernel takes time at every call, so its times \
                                   under trace are slightly longer than without."
            .to_owned(),
        (CountedBy::Strace, Some(factor)) => format!(
            "Tracing stops the program at every call that is counted, so it took {} to {} times as \
             long as without.",
            format::ratio(factor.least),
            format::ratio(factor.most)
        ),
        (CountedBy::Strace, None) => {
            "Tracing stops the program at every call that is counted, so its times under \
                 trace are longer than without."
                .to_owned()
        }
    };
    let (Some(costs), Some(priced_ns)) = (&report.costs, report.priced_ns) else {
        return stops;
    };
    format!(
        "{stops} The column priced shows what the same calls cost without trace, {} together, as \
         measured by run {} ({}; files are warm and on {}).",
        format::duration_ns(priced_ns),
        costs.run,
        words::minute(&costs.measured_at),
        costs.file_system
    )
}

fn calls(report: &TraceReport) -> Document {
    if report.calls.is_empty() {
        return paragraph(
            "The program made none of the counted calls.",
            0,
            Paint::Plain,
        );
    }
    let mut titles = vec![
        Column::words("call"),
        Column::numbers("calls"),
        Column::numbers("errors"),
        Column::numbers("bytes"),
        Column::numbers("under trace"),
        Column::numbers("mean"),
    ];
    let has_prices = report.costs.is_some();
    if has_prices {
        titles.push(Column::numbers("priced"));
    }
    let rows: Vec<Row> = report
        .calls
        .iter()
        .map(|call| row(call, has_prices))
        .collect();
    table(titles, rows)
}

fn row(call: &CallSummary, has_prices: bool) -> Row {
    let nothing = || format::NOTHING.to_owned();
    let errors: u64 = call.errors.values().sum();
    let mut cells = vec![
        call.name.clone(),
        format::count(call.calls as f64),
        match errors {
            0 => String::new(),
            errors => format::count(errors as f64),
        },
        call.bytes
            .map_or_else(nothing, |bytes| format::bytes(bytes as f64)),
        format::duration_ns(call.traced_ns as f64),
        format::duration_ns(call.traced_ns as f64 / call.calls as f64),
    ];
    if has_prices {
        cells.push(call.priced_ns.map_or_else(nothing, format::duration_ns));
    }
    let mut row = Row::new(cells);
    if errors > 0 {
        let each = call
            .errors
            .iter()
            .map(|(name, count)| format!("{name} {count}"));
        row.below.push(each.collect::<Vec<_>>().join(", "));
    }
    row
}

/// The table of programs, if there are several.
fn programs(report: &TraceReport, shown: Shown) -> Document {
    let (helpers, others): (Vec<_>, Vec<_>) = report
        .programs
        .iter()
        .partition(|program| program.is_helper && !shown.helpers);
    if report.programs.len() < 2 {
        return Document::default();
    }
    let titles = [
        Column::words("program"),
        Column::numbers("calls"),
        Column::numbers("under trace"),
    ];
    let row = |program: &&ProgramSummary| {
        Row::new([
            program.name.clone(),
            format::count(program.calls as f64),
            format::duration_ns(program.traced_ns as f64),
        ])
    };
    let rows: Vec<Row> = others.iter().map(row).collect();
    let mut text = table(titles, rows);
    if !helpers.is_empty() {
        let names: Vec<&str> = helpers.iter().map(|one| one.name.as_str()).collect();
        let line = format!(
            "and helpers with less than 5 % of that time each: {}; --helpers shows them",
            names.join(", ")
        );
        text += paragraph(&line, 0, Paint::Dim);
    }
    text
}

fn files(report: &TraceReport, shown: Shown) -> Document {
    let mut text = Document::default();
    let is_shown = |file: &&FileSummary| shown.helpers || !file.is_of_helpers;
    let files: Vec<&FileSummary> = report.files.iter().filter(is_shown).collect();
    for file in files.iter().take(shown.files_max) {
        text += self::file(file);
    }
    let more = files.len().saturating_sub(shown.files_max);
    if more > 0 {
        let line = format!("and {}; --top shows more", words::plural(more, "file"));
        text += paragraph(&line, 0, Paint::Dim);
    }
    text
}

fn file(file: &FileSummary) -> Document {
    let mut text = paragraph(&file.name, 0, Paint::Bold);
    let flows = [("read", &file.read), ("written", &file.written)];
    for (name, flow) in flows {
        if let Some(flow) = flow {
            text += self::flow(name, flow);
        }
    }
    text
}

fn flow(name: &str, flow: &FlowSummary) -> Document {
    let calls = usize::try_from(flow.calls).unwrap_or(usize::MAX);
    let mut line = format!(
        "{name}: {} in {}, {} under trace",
        format::bytes(flow.bytes as f64),
        match calls {
            1 => "1 call".to_owned(),
            _ => format!("{} calls", format::count(flow.calls as f64)),
        },
        format::duration_ns(flow.traced_ns as f64)
    );
    if let Some(priced_ns) = flow.priced_ns {
        line.push_str(&format!(", priced {}", format::duration_ns(priced_ns)));
    }
    let mut text = paragraph(&line, 2, Paint::Plain);
    text += histogram(&flow.sizes);
    text
}

/// The number of calls of each size, with bars where there is room.
fn histogram(sizes: &Sizes) -> Document {
    let buckets = sizes.buckets.iter();
    let rows: Vec<(String, String, u64)> = buckets
        .map(|(bound, bucket)| {
            let count = format::count(bucket.calls as f64);
            (range(*bound), count, bucket.calls)
        })
        .collect();
    let widest = |pick: fn(&(String, String, u64)) -> &String| {
        rows.iter().map(|row| columns(pick(row))).max().unwrap_or(0)
    };
    let (ranges, counts) = (widest(|row| &row.0), widest(|row| &row.1));
    let most = rows.iter().map(|row| row.2).max().unwrap_or(1);
    let taken = 4 + ranges + 2 + counts + 2;
    figure(move |style| {
        let room = style.width.saturating_sub(taken).min(BAR_COLUMNS_MAX);
        let line = |(range, count, calls): &(String, String, u64)| {
            if taken - 2 > style.width {
                return paragraph(format!("{range}: {count}"), 2, Paint::Plain).show(style);
            }
            let bar = match room {
                0..BAR_COLUMNS_MIN => String::new(),
                _ => bar(*calls, most, room, style.unicode),
            };
            let (range, count) = (right(range, ranges), right(count, counts));
            format!("    {range}  {count}  {bar}").trim_end().to_owned() + "\n"
        };
        Some(rows.iter().map(line).collect())
    })
}

/// A bar whose length is proportional to `calls`, with `room` columns for `most`. A nonzero count
/// is always visible.
fn bar(calls: u64, most: u64, room: usize, unicode: bool) -> String {
    let (full, trace) = if unicode { ("█", "▏") } else { ("#", ".") };
    let share = calls as f64 / most as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between zero and the room"
    )]
    let length = (share * room as f64).round().clamp(0.0, room as f64) as usize;
    match length {
        0 => trace.to_owned(),
        length => full.repeat(length),
    }
}

/// The sizes in a bucket: `[4 KiB, 8 KiB)`.
fn range(bound: u64) -> String {
    let shown = |bytes: f64| format::bytes(bytes);
    match bound {
        0 | 1 => shown(bound as f64),
        _ => format!("[{}, {})", shown(bound as f64), shown(bound as f64 * 2.0)),
    }
}

fn advice(report: &TraceReport) -> Document {
    if report.costs.is_none() {
        return Document::default();
    }
    let mut text = heading("What to do");
    if report.advice.is_empty() {
        let line = "Nothing: no larger buffer and no other way to move these bytes would save as much \
                    as 1 ms and 5 % of what the priced calls cost.";
        text += paragraph(line, 0, Paint::Plain);
    }
    let is_numbered = report.advice.iter().any(|one| !one.overlaps.is_empty());
    for (index, one) in report.advice.iter().enumerate() {
        let number = is_numbered.then_some(index + 1);
        text += advice_lines(one, number);
    }
    text
}

fn advice_lines(advice: &TraceAdvice, number: Option<usize>) -> Document {
    let number = number.map_or_else(String::new, |number| format!("{number}. "));
    let now = format!(
        "{number}{}: {}",
        advice.now,
        format::duration_ns(advice.now_ns)
    );
    let condition = advice.condition.as_ref();
    let instead = format!(
        "{}: {}, which saves {} ({}){}",
        advice.instead,
        format::duration_ns(advice.instead_ns),
        format::duration_ns(advice.saving_ns()),
        format::percent(advice.share),
        condition.map_or_else(String::new, |condition| format!(", {condition}"))
    );
    let others: Vec<String> = advice.overlaps.iter().map(usize::to_string).collect();
    let overlaps = if others.is_empty() {
        Document::default()
    } else {
        let line = format!(
            "overlaps with {}: these savings cannot be added",
            others.join(", ")
        );
        paragraph(&line, 2, Paint::Dim)
    };
    let whole = paragraph(format!("{now}; {instead}"), 0, Paint::Bold);
    let parts = paragraph(&now, 0, Paint::Plain) + paragraph(&instead, 2, Paint::Bold);
    alternatives([whole, parts]) + overlaps
}

#[cfg(test)]
mod tests {
    use toll_document::Style;

    use std::fmt::Write as _;

    use super::*;
    use toll_calls::line_tally::LineTally;
    use toll_calls::price::{self, Traced};
    use toll_calls::slowdown::Counting;

    fn report() -> TraceReport {
        let mut tally = LineTally::default();
        let mut lines = String::new();
        for _ in 0..200 {
            lines.push_str("1 read(3</in\\33[1m>, \"\"..., 1) = 1 <0.000010000>\n");
        }
        let _ = writeln!(lines, "1 read(3</in\\33[1m>, \"\", 1) = 0 <0.000010000>");
        let _ = writeln!(
            lines,
            "1 write(1<pipe:[5]>, \"\"..., 5000) = 5000 <0.000020000>"
        );
        let _ = writeln!(
            lines,
            "1 write(1<pipe:[5]>, 0x1, 5) = -1 EPIPE (Broken pipe) <0.000001000>"
        );
        for line in lines.lines() {
            tally.feed(line);
        }
        let (tally, _) = tally.finish();
        let traced = Traced {
            command: vec!["cp".into(), "a\nb".into()],
            ended: Ended::Signal(13),
            counting: Counting::Strace,
            wall_ns: 3_000_000,
            notes: vec!["a remark".into()],
        };
        let mut report = price::report(traced, &tally, None);
        report.advice.push(TraceAdvice {
            now: "200 reads of 1\u{a0}B from /in".into(),
            instead: "at 128\u{a0}KiB".into(),
            now_ns: 2e6,
            instead_ns: 1e3,
            share: 0.5,
            overlaps: vec![2],
            condition: None,
        });
        report
    }

    fn shown(width: usize, unicode: bool) -> String {
        let style = Style::new(false, width, unicode);
        let shown = Shown {
            files_max: 10,
            helpers: false,
        };
        of_report(&report(), shown).show(style)
    }

    #[test]
    fn what_was_traced_is_shown_as_tables_and_bars() {
        insta::assert_snapshot!("trace_80", shown(80, true));
        insta::assert_snapshot!("trace_30_ascii", shown(30, false));
    }

    #[test]
    fn advice_stands_on_one_line_where_there_is_room() {
        let report = report();
        let lines = |width| {
            let style = Style::new(false, width, true);
            advice_lines(&report.advice[0], None).show(style)
        };
        let whole = "200 reads of 1 B from /in: 2.00 ms; at 128 KiB: 1.00 µs, which saves 2.00 ms \
                     (50 %)\n";
        assert!(lines(100).starts_with(whole));
        assert_eq!(lines(60).lines().count(), 3);
    }
}
