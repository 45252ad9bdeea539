//! Synthetic recordings in which every microsecond is known.

use super::*;
use crate::profile::record::Mapping;

const MAIN: u32 = 10;
const STARTER: u32 = 1;
const USER: u64 = 0_u64.wrapping_sub(512);

/// Makes a recording of events, given as microsecond, process, thread and
/// event. A stack is an address in the one file that the main process has
/// mapped.
fn recording(events: &[(u64, u32, u32, What)]) -> Recording {
    let mapping = Mapping {
        start: 0,
        end: 1000,
        offset: 0,
        file: "/bin/prog".into(),
    };
    let event = |(time_us, process, thread, what): &(u64, u32, u32, What)| Event {
        time_ns: time_us * 1000,
        process: *process,
        thread: *thread,
        what: what.clone(),
    };
    let mut recording = Recording::default();
    recording.stacks = (0..10).map(|address| vec![USER, address]).collect();
    recording.events = events.iter().map(event).collect();
    let at = recording
        .events
        .iter()
        .position(|event| event.what == What::Exec);
    let maps = Event {
        what: What::Maps(mapping),
        ..recording.events[at.unwrap_or(0)].clone()
    };
    recording.events.insert(at.map_or(0, |at| at + 1), maps);
    recording
}

/// Returns microseconds by activity and address.
fn split(events: &[(u64, u32, u32, What)], end_us: u64, timed: Timed) -> Vec<(Activity, u64, f64)> {
    let region = Region {
        start_ns: 0,
        end_ns: end_us * 1000,
    };
    let mut tally = Tally::default();
    tally.add(&recording(events), &[region], timed, Clocking::Timer);
    let profile = tally.into_profile(Vec::new());
    let sum: f64 = profile.stacks.iter().map(|stack| stack.time_ns).sum();
    assert!((sum - region.end_ns as f64).abs() < 1.0, "{profile:?}");
    let row = |stack: &ProfiledStack| {
        let address = match stack.frames.first() {
            Some(CodeAddress::File(0, offset)) => *offset,
            _ => 99,
        };
        (stack.activity, address, (stack.time_ns / 1000.0).round())
    };
    let mut rows: Vec<_> = profile.stacks.iter().map(row).collect();
    rows.sort_by_key(|row| (row.0, row.1));
    rows
}

fn sample(stack: u32) -> What {
    What::Sample { stack, period: 1 }
}

const OUT: What = What::SwitchedOut { preempted: false };
const PREEMPTED: What = What::SwitchedOut { preempted: true };
const COMMAND: Timed = Timed::Command {
    process: MAIN,
    starter: STARTER,
};

#[test]
fn a_command_s_time_is_its_start_its_work_its_waits_and_its_end() {
    let events = [
        (10, STARTER, STARTER, OUT),
        (20, MAIN, MAIN, What::SwitchedIn),
        (30, MAIN, MAIN, What::Exec),
        (40, MAIN, MAIN, sample(1)),
        (45, MAIN, MAIN, sample(1)),
        (46, MAIN, MAIN, sample(2)),
        (60, MAIN, MAIN, What::LeavesAt { stack: 3 }),
        (60, MAIN, MAIN, OUT),
        (100, MAIN, MAIN, What::SwitchedIn),
        (110, MAIN, MAIN, PREEMPTED),
        (150, MAIN, MAIN, What::SwitchedIn),
        (170, MAIN, MAIN, What::Ends),
        (175, STARTER, STARTER, What::SwitchedIn),
    ];
    let rows = split(&events, 200, COMMAND);
    assert_eq!(
        rows,
        [
            // 30 to 60, 100 to 110 and 150 to 170, by samples.
            (Activity::OnCpu, 1, 40.0),
            (Activity::OnCpu, 2, 20.0),
            (Activity::Blocked, 3, 40.0),
            // Before the process first ran, while it was preempted, and until the
            // starter ran again.
            (Activity::WaitsForCpu, 99, 10.0 + 40.0 + 5.0),
            (Activity::StartAndEnd, 99, 10.0 + 10.0 + 25.0),
        ]
    );
}

#[test]
fn while_a_shell_waits_the_time_is_that_of_what_it_started() {
    let child = 20;
    let begins = What::Begins {
        parent_process: MAIN,
    };
    let events = [
        (0, MAIN, MAIN, What::Exec),
        (0, STARTER, STARTER, OUT),
        (0, child, child, begins),
        (10, MAIN, MAIN, What::LeavesAt { stack: 1 }),
        (10, MAIN, MAIN, OUT),
        (10, child, child, What::SwitchedIn),
        (20, child, child, sample(2)),
        // Nobody runs: the wait that ends next is the child's.
        (40, child, child, What::LeavesAt { stack: 3 }),
        (40, child, child, OUT),
        (90, child, child, What::SwitchedIn),
        (95, child, child, What::Ends),
        (95, MAIN, MAIN, What::SwitchedIn),
        (100, MAIN, MAIN, What::Ends),
    ];
    let rows = split(&events, 100, COMMAND);
    let expected = [(Activity::OnCpu, 2, 50.0), (Activity::Blocked, 3, 50.0)];
    assert_eq!(rows, expected);
}

#[test]
fn a_thread_s_moments_are_its_own_and_else_shared_by_those_that_run() {
    let timed = Timed::Thread((MAIN, MAIN));
    let events = [
        (0, MAIN, 11, What::SwitchedIn),
        (5, MAIN, 11, sample(5)),
        (10, MAIN, MAIN, sample(1)),
        (20, MAIN, MAIN, sample(1)),
        (50, MAIN, MAIN, What::LeavesAt { stack: 2 }),
        (50, MAIN, MAIN, OUT),
        (50, MAIN, 12, What::SwitchedIn),
        (60, MAIN, 11, sample(3)),
        (60, MAIN, 12, sample(4)),
        (70, MAIN, 11, OUT),
        (70, MAIN, 12, OUT),
        (100, MAIN, MAIN, What::SwitchedIn),
    ];
    let rows = split(&events, 100, timed);
    let share = (70.0_f64 / 3.0 / 2.0).round();
    assert_eq!(
        rows,
        [
            (Activity::OnCpu, 1, (70.0_f64 * 2.0 / 3.0).round()),
            (Activity::OnCpu, 3, share),
            (Activity::OnCpu, 4, share),
            (Activity::Blocked, 2, 30.0),
        ]
    );
}
