//! A trial beside a process that competes for memory.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use toll_wire::{
    Competitor, CompetitorUses, FailureKind, MemoryRequest, Outcome, Request, Response, Workload,
    decode_response, encode,
};

use crate::common::{PROBE, ask, completed, failed};
use crate::memory::memory;

const COMPETITOR_BYTES: u64 = 32 << 20;

/// Resident memory of a live process (field 2 of /proc/PID/statm), in bytes.
pub fn resident_bytes(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Children of a process's first thread.
pub fn children(pid: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    list.unwrap_or_default()
        .split_whitespace()
        .filter_map(|child| child.parse().ok())
        .collect()
}

/// A probe with a competitor beside it, and the competitor.
fn start(uses: CompetitorUses, steps: u64) -> (Child, u32) {
    let request = Request::new(Workload::Memory(MemoryRequest {
        competitor: Some(Competitor {
            bytes: COMPETITOR_BYTES,
            uses,
        }),
        steps,
        ..memory()
    }));
    let mut probe = Command::new(PROBE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the probe starts");
    let mut stdin = probe.stdin.take().expect("it is piped");
    writeln!(stdin, "{}", encode(&request)).expect("the probe reads");
    let mut competitor = None;
    wait_until("a competitor has its memory", || {
        let wanted_bytes = match uses {
            // Of so many random pages, one written for each, 1 - 1/e are there.
            CompetitorUses::Random => COMPETITOR_BYTES / 2,
            CompetitorUses::Sweep => COMPETITOR_BYTES,
        };
        let has_memory = |child: &u32| resident_bytes(*child) >= Some(wanted_bytes);
        competitor = children(probe.id()).into_iter().find(has_memory);
        competitor.is_some()
    });
    (probe, competitor.expect("there is one"))
}

/// Waits for what must come.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(600);
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_competitor_takes_its_memory_and_ends_with_the_trial() {
    for uses in [CompetitorUses::Random, CompetitorUses::Sweep] {
        // Long enough to look at the competitor beside it.
        let (probe, competitor) = start(uses, 20_000);
        let output = probe.wait_with_output().expect("the probe ends");
        let text = String::from_utf8(output.stdout).expect("the response is UTF-8");
        let response: Response = decode_response(text.trim_end()).expect("a response");
        let data = completed(response.outcome, "a trial beside a competitor");
        assert_eq!(data.samples.len(), 1);
        assert_eq!(resident_bytes(competitor), None, "{uses:?} lives on");
    }
}

#[test]
fn a_competitor_ends_with_a_killed_probe() {
    let (mut probe, competitor) = start(CompetitorUses::Sweep, 1 << 30);
    probe.kill().expect("the probe can be killed");
    probe.wait().expect("the probe ends");
    wait_until("the competitor has ended", || {
        resident_bytes(competitor).unwrap_or(0) == 0
    });
}

#[test]
fn a_competitor_for_more_than_a_process_can_have_is_an_error() {
    let outcome: Outcome = ask(&Workload::Memory(MemoryRequest {
        competitor: Some(Competitor {
            bytes: 1 << 62,
            uses: CompetitorUses::Random,
        }),
        ..memory()
    }));
    let message = failed(
        outcome,
        FailureKind::Unsupported,
        "an impossible competitor",
    );
    assert!(message.starts_with("cannot map"), "{message}");
}
