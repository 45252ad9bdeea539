//! A trial beside a process that competes for memory.

use std::process::{Child, Command};

use toll_wire::{
    Competitor, CompetitorUses, FailureKind, Mapping, MemoryRequest, ReachedPages, Request,
    Workload,
};

use crate::common::{
    PROBE, answer, children, completed, directory, refused, resident_bytes, sample, start,
    wait_until,
};
use crate::memory::{memory, zeros};

const COMPETITOR_BYTES: u64 = 32 << 20;

fn beside(bytes: u64, uses: CompetitorUses, steps: u64) -> Workload {
    Workload::Memory(MemoryRequest {
        competitor: Some(Competitor { bytes, uses }),
        steps,
        ..memory()
    })
}

/// Starts a probe with a competitor beside it, and returns both.
fn start_both(uses: CompetitorUses, steps: u64) -> (Child, u32) {
    let request = Request::new(beside(COMPETITOR_BYTES, uses, steps));
    let probe = start(&mut Command::new(PROBE), &request);
    let mut competitor = None;
    wait_until("a competitor has its memory", || {
        let wanted_bytes = match uses {
            // Of this many random pages, with one write per page, 1 - 1/e are
            // resident.
            CompetitorUses::Random => COMPETITOR_BYTES / 2,
            CompetitorUses::Sweep => COMPETITOR_BYTES,
        };
        let has_memory = |child: &u32| resident_bytes(*child) >= Some(wanted_bytes);
        competitor = children(probe.id()).into_iter().find(has_memory);
        competitor.is_some()
    });
    (probe, competitor.expect("there is one"))
}

#[test]
fn a_competitor_takes_its_memory_and_ends_with_the_trial() {
    for uses in [CompetitorUses::Random, CompetitorUses::Sweep] {
        // Long enough to observe the competitor meanwhile.
        let (probe, competitor) = start_both(uses, 20_000);
        let data = completed(answer(probe), "a trial beside a competitor");
        assert_eq!(data.samples.len(), 1);
        assert_eq!(resident_bytes(competitor), None, "{uses:?} is still alive");
    }
}

#[test]
fn a_competitor_ends_with_a_killed_probe() {
    let (mut probe, competitor) = start_both(CompetitorUses::Sweep, 1 << 30);
    probe.kill().expect("the probe can be killed");
    probe.wait().expect("the probe ends");
    wait_until("the competitor has ended", || {
        resident_bytes(competitor).unwrap_or(0) == 0
    });
}

#[test]
fn a_competitor_for_more_than_a_process_can_have_is_an_error() {
    let workload = beside(1 << 62, CompetitorUses::Random, 1);
    let message = refused(&workload, FailureKind::Unsupported);
    assert!(message.starts_with("cannot map"), "{message}");
}

#[test]
fn pages_that_the_accesses_reach_are_in_memory_only_if_they_were_used() {
    let directory = directory();
    let file = zeros(directory.path());
    let before = |reached_pages| {
        let sample = sample(&Workload::Memory(MemoryRequest {
            mapping: Mapping::FilePrivate(file.clone()),
            reached_pages,
            competitor: Some(Competitor {
                bytes: COMPETITOR_BYTES,
                uses: CompetitorUses::Random,
            }),
            ..memory()
        }));
        let reached_bytes = sample.metrics["reachable_pages"] * 4096.0;
        sample.metrics["init_resident_bytes"] / reached_bytes
    };
    assert_eq!(before(ReachedPages::AsLeft), 0.0);
    let used = before(ReachedPages::Used);
    // A fault may map pages around its own.
    assert!((1.0..2.0).contains(&used), "{used}");
}
