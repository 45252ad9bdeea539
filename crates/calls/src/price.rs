//! Prices a tally without trace, and finds changes that would cost less.

use toll_core::format;

use super::costs::{Costs, TransferCost};
use super::descriptor::{Descriptor, Kind};
use super::model::{
    CallSummary, CountedBy, Ended, FileSummary, FlowSummary, ProgramSummary, TRACE_VERSION,
    TraceAdvice, TraceReport,
};
use super::shape::Direction;
use super::sizes::Sizes;
use super::slowdown::{self, Counting};
use super::tally::{CallTally, FileTally, Flow, ProgramTally, Tally};

/// Smallest saving that is worth a change, as a share of what all calls cost.
const SHARE_MIN: f64 = 0.05;
/// Smallest saving that is worth a change, in nanoseconds.
const SAVING_MIN_NS: f64 = 1e6;
/// A program with less than this share of the time under trace is a helper.
const HELPER_SHARE: f64 = 0.05;
/// Maximum number of changes of one kind that are advised.
const ADVICE_MAX: usize = 5;

/// What is known about a traced command besides its calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Traced {
    /// The command with its arguments.
    pub command: Vec<String>,
    pub ended: Ended,
    pub counting: Counting,
    /// Wall time under trace, in nanoseconds.
    pub wall_ns: u64,
    pub notes: Vec<String>,
}

/// Makes the report: sums, prices and advice.
pub fn report(traced: Traced, tally: &Tally, costs: Option<Costs>) -> TraceReport {
    let pricing = Pricing {
        costs: costs.as_ref(),
        tally,
    };
    let programs = programs(tally);
    let helpers: Vec<&str> = programs
        .iter()
        .filter(|program| program.is_helper)
        .map(|program| program.name.as_str())
        .collect();
    let mut calls: Vec<CallSummary> = tally
        .calls
        .iter()
        .map(|(name, call)| pricing.call(name, call))
        .collect();
    calls.sort_by(|a, b| b.traced_ns.cmp(&a.traced_ns).then(a.name.cmp(&b.name)));
    let mut files: Vec<FileSummary> = tally
        .files
        .iter()
        .map(|(d, f)| pricing.file(d, f, &helpers))
        .collect();
    files.retain(|file| file.read.is_some() || file.written.is_some());
    files.sort_by_key(|file| std::cmp::Reverse(traced_ns(file)));
    let priced_ns = costs
        .as_ref()
        .map(|_| calls.iter().filter_map(|call| call.priced_ns).sum());
    let counted_by = match traced.counting {
        Counting::Strace => CountedBy::Strace,
        Counting::Bpf { .. } => CountedBy::Bpf,
    };
    let slowdown = slowdown::estimate(traced.counting, traced.wall_ns, &calls);
    let advice = pricing.advice(priced_ns.unwrap_or(0.0));
    let mut notes = traced.notes;
    notes.extend(pricing.notes(&calls));
    TraceReport {
        version: TRACE_VERSION,
        command: traced.command,
        ended: traced.ended,
        counted_by,
        traced_wall_ns: traced.wall_ns,
        slowdown,
        threads: tally.threads.len(),
        programs,
        calls,
        files,
        costs,
        priced_ns,
        advice,
        notes,
    }
}

/// Summarises the programs, and marks those that hardly matter as helpers.
fn programs(tally: &Tally) -> Vec<ProgramSummary> {
    let all_ns: u64 = tally.programs.iter().map(|program| program.traced_ns).sum();
    let summary = |program: &ProgramTally| ProgramSummary {
        name: program.name.clone(),
        calls: program.calls,
        traced_ns: program.traced_ns,
        is_helper: (program.traced_ns as f64) < HELPER_SHARE * all_ns as f64,
    };
    let mut programs: Vec<ProgramSummary> = tally.programs.iter().map(summary).collect();
    programs.sort_by_key(|program| std::cmp::Reverse(program.traced_ns));
    programs
}

fn traced_ns(file: &FileSummary) -> u64 {
    let of = |flow: &Option<FlowSummary>| flow.as_ref().map_or(0, |flow| flow.traced_ns);
    of(&file.read).saturating_add(of(&file.written))
}

/// A change, with the flows of bytes that it affects.
struct Change {
    advice: TraceAdvice,
    flows: Vec<(usize, Direction)>,
}

/// Notes for each change which other changes are about the same bytes. The savings of such changes
/// cannot be added.
fn with_overlaps(changes: Vec<Change>) -> Vec<TraceAdvice> {
    let flows: Vec<_> = changes.iter().map(|change| change.flows.clone()).collect();
    let overlaps = |place: usize| {
        let own: &Vec<(usize, Direction)> = &flows[place];
        let is_shared =
            |other: &usize| *other != place && flows[*other].iter().any(|flow| own.contains(flow));
        let others = (0..flows.len()).filter(is_shared);
        others.map(|other| other + 1).collect()
    };
    let each = changes.into_iter().enumerate();
    each.map(|(place, change)| TraceAdvice {
        overlaps: overlaps(place),
        ..change.advice
    })
    .collect()
}

struct Pricing<'a> {
    costs: Option<&'a Costs>,
    tally: &'a Tally,
}

impl Pricing<'_> {
    /// Returns the cost of calls through a buffer, in nanoseconds.
    fn price(&self, way: Direction, kind: Kind, sizes: &Sizes) -> Option<f64> {
        let costs = self.costs?;
        let table = match way {
            Direction::Read => &costs.reads,
            Direction::Written => &costs.writes,
        };
        Some(table.get(&kind)?.of_sizes(sizes))
    }

    /// Returns the cost of calls without a buffer, in nanoseconds, by the cost per byte that was
    /// measured for the method.
    fn price_transfer(&self, name: &str, to: Kind, sizes: &Sizes) -> Option<f64> {
        let name = name.strip_suffix("64").unwrap_or(name);
        let mut all = self.costs?.transfers.iter();
        let cost = all.find(|cost| cost.method == name && cost.to == to)?;
        Some(sizes.bytes() as f64 * cost.ns / cost.bytes as f64)
    }

    fn call(&self, name: &str, tally: &CallTally) -> CallSummary {
        let moved = tally
            .moved
            .iter()
            .map(|((way, kind), sizes)| (sizes.calls(), self.price(*way, *kind, sizes)));
        let transferred = tally
            .transferred
            .iter()
            .map(|(to, sizes)| (sizes.calls(), self.price_transfer(name, *to, sizes)));
        let parts: Vec<(u64, Option<f64>)> = moved.chain(transferred).collect();
        let priced: Vec<f64> = parts.iter().filter_map(|(_, price)| *price).collect();
        CallSummary {
            name: name.to_owned(),
            calls: tally.calls,
            errors: tally.errors.clone(),
            bytes: tally.bytes,
            traced_ns: tally.traced_ns,
            priced_ns: (!priced.is_empty()).then(|| priced.iter().sum()),
            unpriced_calls: parts
                .iter()
                .filter(|(_, price)| price.is_none())
                .map(|(calls, _)| calls)
                .sum(),
        }
    }

    fn file(&self, descriptor: &Descriptor, tally: &FileTally, helpers: &[&str]) -> FileSummary {
        let flow = |way, flow: &Flow| {
            let sizes = flow.all();
            let mut buffered = flow.stream.clone();
            buffered.add_all(&flow.apart);
            let priced_ns = match buffered.calls() {
                0 => None,
                _ => self.price(way, descriptor.kind, &buffered),
            };
            (sizes.calls() > 0).then(|| FlowSummary {
                calls: sizes.calls(),
                bytes: sizes.bytes(),
                sizes,
                traced_ns: flow.traced_ns,
                priced_ns,
            })
        };
        FileSummary {
            name: descriptor.name.clone(),
            kind: descriptor.kind,
            read: flow(Direction::Read, &tally.read),
            written: flow(Direction::Written, &tally.written),
            seeks: tally.seeks,
            is_of_helpers: tally
                .programs
                .iter()
                .all(|index| helpers.contains(&self.tally.programs[*index].name.as_str())),
        }
    }

    fn advice(&self, priced_ns: f64) -> Vec<TraceAdvice> {
        let Some(costs) = self.costs else {
            return Vec::new();
        };
        let mut larger: Vec<Change> = Vec::new();
        for (index, (descriptor, file)) in self.tally.files.iter().enumerate() {
            for (way, flow) in [
                (Direction::Read, &file.read),
                (Direction::Written, &file.written),
            ] {
                let advice = self.larger_buffer(costs, descriptor, way, flow, file.seeks);
                larger.extend(advice.map(|advice| Change {
                    advice,
                    flows: vec![(index, way)],
                }));
            }
        }
        let copies = self.tally.copies.iter();
        let other = copies.filter_map(|((from, to), bytes)| {
            Some(Change {
                advice: self.no_buffer(costs, *from, *to, *bytes)?,
                flows: vec![(*from, Direction::Read), (*to, Direction::Written)],
            })
        });
        let mut changes = Vec::new();
        for mut sort in [larger, other.collect()] {
            for Change { advice, .. } in &mut sort {
                advice.share = advice.saving_ns() / priced_ns;
            }
            sort.retain(|Change { advice, .. }| {
                advice.saving_ns() >= SAVING_MIN_NS && advice.share >= SHARE_MIN
            });
            sort.sort_by(|a, b| b.advice.saving_ns().total_cmp(&a.advice.saving_ns()));
            sort.truncate(ADVICE_MAX);
            changes.extend(sort);
        }
        changes.sort_by(|a, b| b.advice.saving_ns().total_cmp(&a.advice.saving_ns()));
        with_overlaps(changes)
    }

    /// Advises moving the same bytes of a stream through the best buffer. Calls that
    /// cannot be merged stay, and a new call has to begin after each seek.
    fn larger_buffer(
        &self,
        costs: &Costs,
        descriptor: &Descriptor,
        way: Direction,
        flow: &Flow,
        seeks: u64,
    ) -> Option<TraceAdvice> {
        let (calls, bytes) = (flow.stream.calls(), flow.stream.bytes());
        let now_ns = self.price(way, descriptor.kind, &flow.stream)?;
        let least = bytes.div_ceil(costs.best_bytes).max(1) + seeks;
        if least >= calls {
            return None;
        }
        let table = match way {
            Direction::Read => &costs.reads,
            Direction::Written => &costs.writes,
        };
        let one = table
            .get(&descriptor.kind)?
            .of_call(bytes as f64 / least as f64);
        let (noun, relation) = match way {
            Direction::Read => ("reads", "from"),
            Direction::Written => ("writes", "to"),
        };
        Some(TraceAdvice {
            now: format!(
                "{} {noun} of {} {relation} {}",
                format::count(calls as f64),
                size_in_words(&flow.stream),
                descriptor.name
            ),
            instead: format!("at {}", format::bytes(costs.best_bytes as f64)),
            now_ns,
            instead_ns: least as f64 * one,
            share: 0.0,
            overlaps: Vec::new(),
            condition: None,
        })
    }

    /// Advises making the same copy by the best way that needs no buffer, if that costs less than
    /// now. Advice on larger buffers is given separately.
    fn no_buffer(&self, costs: &Costs, from: usize, to: usize, bytes: u64) -> Option<TraceAdvice> {
        let (from, from_tally) = &self.tally.files[from];
        let (to, to_tally) = &self.tally.files[to];
        if from.kind != Kind::File {
            return None;
        }
        let per_byte = |cost: &TransferCost| cost.ns / cost.bytes as f64;
        let ways = costs.transfers.iter().filter(|cost| cost.to == to.kind);
        let best = ways.min_by(|a, b| per_byte(a).total_cmp(&per_byte(b)))?;
        let of = |way, kind, flow: &Flow| {
            let mut sizes = flow.stream.clone();
            sizes.add_all(&flow.apart);
            self.price(way, kind, &sizes)
        };
        let now_ns = of(Direction::Read, from.kind, &from_tally.read)?
            + of(Direction::Written, to.kind, &to_tally.written)?;
        Some(TraceAdvice {
            now: format!(
                "{} read from {} and written to {}",
                format::bytes(bytes as f64),
                from.name,
                to.name
            ),
            instead: format!("by {} of {}", best.method, format::bytes(best.bytes as f64)),
            now_ns,
            instead_ns: bytes as f64 * per_byte(best),
            share: 0.0,
            overlaps: Vec::new(),
            condition: Some("if the bytes pass unchanged".into()),
        })
    }

    fn notes(&self, calls: &[CallSummary]) -> Vec<String> {
        let mut notes = Vec::new();
        if calls.iter().any(|call| call.name == "io_uring_enter") {
            notes.push(
                "io_uring moves bytes without a call for each transfer, so bytes moved through it \
                 are not counted"
                    .into(),
            );
        }
        let noisy = self.costs.filter(|costs| costs.is_noisy());
        if let Some(band) = noisy.and_then(|costs| costs.noise_band) {
            notes.push(format!(
                "the machine was busy when prices were measured: equal copies differed by up to \
                 ±{}; --measure measures prices again",
                format::percent(band)
            ));
        }
        let unpriced: u64 = calls.iter().map(|call| call.unpriced_calls).sum();
        if self.costs.is_some() && unpriced > 0 {
            notes.push(format!(
                "{} without a price: reads from pipes, sockets and terminals wait for others; \
                 files that the kernel generates on reading were not measured",
                format::counted(unpriced, "call")
            ));
        }
        notes
    }
}

fn size_in_words(sizes: &Sizes) -> String {
    if sizes.min_bytes == sizes.max_bytes {
        return format::bytes(sizes.min_bytes as f64);
    }
    let mean = sizes.bytes() as f64 / sizes.calls() as f64;
    format!("{} on average", format::bytes(mean.round()))
}

#[cfg(test)]
mod tests {
    use super::super::costs;
    use super::super::line_tally::LineTally;
    use super::*;

    fn priced(lines: &str) -> TraceReport {
        let mut tally = LineTally::default();
        for line in lines.lines() {
            tally.feed(line);
        }
        let (tally, _) = tally.finish();
        let traced = Traced {
            command: vec!["x".into()],
            ended: Ended::Status(0),
            counting: Counting::Strace,
            wall_ns: 5,
            notes: Vec::new(),
        };
        report(traced, &tally, Some(costs::tests::simple()))
    }

    fn byte_by_byte(count: usize, to: &str) -> String {
        let pair = format!(
            "1 read(3</in>, \"\"..., 1) = 1 <0.000010000>\n1 write(1<{to}>, \"\"..., 1) = 1 <0.000005000>\n"
        );
        pair.repeat(count) + "1 read(3</in>, \"\", 1) = 0 <0.000010000>\n1 +++ exited with 0 +++\n"
    }

    #[test]
    fn calls_are_priced_by_their_sizes() {
        let report = priced(&byte_by_byte(1000, "/dev/null"));
        assert_eq!(report.calls[0].name, "read");
        let priced = |at: usize| report.calls[at].priced_ns.unwrap();
        assert!((priced(0) - 1001.0 * 100.1).abs() < 1e-6, "{}", priced(0));
        assert!((priced(1) - 1000.0 * 50.0).abs() < 1e-6);
        assert!((report.priced_ns.unwrap() - priced(0) - priced(1)).abs() < 1e-6);
        assert!(
            report.advice.is_empty(),
            "a tenth of a millisecond is not worth a change"
        );
    }

    #[test]
    fn small_reads_are_advised_to_be_larger() {
        let report = priced(&byte_by_byte(131_072, "/dev/null"));
        let [reads, writes] = report.advice.as_slice() else {
            panic!("{:#?}", report.advice)
        };
        assert_eq!(reads.now, "131,072 reads of 1\u{a0}B from /in");
        assert_eq!(reads.instead, "at 128\u{a0}KiB");
        assert!((reads.now_ns - 131_072.0 * 100.1).abs() < 1e-3);
        // One call; the read at the end of the file stays.
        assert!((reads.instead_ns - 13_207.2).abs() < 1e-3);
        assert!((reads.share - reads.saving_ns() / report.priced_ns.unwrap()).abs() < 1e-12);
        assert!((writes.instead_ns - 50.0).abs() < 1e-9);
    }

    #[test]
    fn a_copy_is_advised_to_do_without_a_buffer() {
        let report = priced(&byte_by_byte(131_072, "/out"));
        let copy = report
            .advice
            .iter()
            .find(|a| a.condition.is_some())
            .unwrap();
        let numbers: Vec<&[usize]> = report.advice.iter().map(|a| &a.overlaps[..]).collect();
        assert_eq!(numbers, [&[2, 3][..], &[1], &[1]], "{:#?}", report.advice);
        assert_eq!(copy.instead, "by copy_file_range of 128\u{a0}KiB");
        assert!((copy.instead_ns - 13_107.2).abs() < 1e-6);
        assert!(copy.now_ns > 131_072.0 * 300.0);
    }

    #[test]
    fn what_cannot_be_one_call_is_left_alone() {
        // A seek before each call, a position of its own, or fewer bytes than requested.
        let all = [
            "1 lseek(3</in>, 0, SEEK_SET) = 0 <0.1>\n1 read(3</in>, \"\"..., 1) = 1 <0.1>\n",
            "1 pread64(3</in>, \"\"..., 1, 0) = 1 <0.1>\n",
            "1 read(3</in>, \"\"..., 2) = 1 <0.1>\n",
        ];
        for lines in all {
            let report = priced(&lines.repeat(100_000));
            assert!(report.priced_ns.unwrap() > 1e6);
            assert_eq!(report.advice, [], "{lines}");
        }
    }

    #[test]
    fn what_has_no_price_is_told() {
        let report = priced("1 read(0<pipe:[1]>, \"\"..., 1) = 1 <0.1>\n");
        assert_eq!(report.calls[0].priced_ns, None);
        assert_eq!(report.calls[0].unpriced_calls, 1);
        assert!(
            report.notes[0].starts_with("1 call without a price"),
            "{:?}",
            report.notes
        );
    }
}
