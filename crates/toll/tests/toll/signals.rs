//! Signals that end, pause or continue a run, whenever they arrive.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use toll_testing::{
    Bench, Running, capability, make_executable, processes_marked, skip, wait_until,
};

use crate::settings::Settings;

/// Returns whether a process of the bench runs this program.
fn runs(bench: &Bench, program: &str) -> bool {
    let is_such = |pid: i32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.trim() == program)
    };
    processes_marked(&bench.marker()).into_iter().any(is_such)
}

/// Returns the state letter of a process, as in proc_pid_stat(5).
fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Makes a file system by calling the real program of the same name, and then stays running. The
/// script reports this without a child process: while a shell waits for a child, it does not act on
/// a signal itself.
const LASTING_MKFS: &str = "#!/bin/bash
PATH=$PATH:/usr/sbin:/sbin
real=$(type -ap \"$(basename \"$0\")\" | sed -n 2p)
\"$real\" \"$@\"; : >\"$HOME/made\"; exec sleep 300
";

#[test]
fn a_signal_during_the_set_up_leaves_neither_a_run_nor_anything_else() {
    let bench = Bench::new();
    if let Err(reason) = capability(&bench, "file system xfs on a loop device") {
        skip(&format!("xfs: {reason}"));
        return;
    }
    let settings = Settings::before(&bench);
    for directory in ["bin", "home"] {
        std::fs::create_dir_all(bench.path(directory)).unwrap();
    }
    let arguments = "run write --profile quick -q --no-html -L fs=xfs,ext4,btrfs -r 2";
    let path = std::env::var("PATH").unwrap_or_default();
    // The signal goes to the whole process group, as ^C at a terminal does.
    for kind in ["xfs", "ext4"] {
        let program = bench.write(&format!("bin/mkfs.{kind}"), LASTING_MKFS);
        make_executable(&program);
        let mut command = bench.spawnable(arguments);
        command.env("PATH", format!("{}:{path}", bench.path("bin").display()));
        let mut running = Running(command.process_group(0).spawn().unwrap());
        wait_until("a file system is made", || {
            let ended = running.0.try_wait().unwrap();
            assert_eq!(ended, None, "toll ended before its signal");
            bench.path("home/made").exists()
        });
        let group = Pid::from_child(&running.0);
        let _ = kill_process_group(group, Signal::INT);
        let status = running.end();
        assert_eq!(status.code(), Some(130), "{kind}: {status:?}");
        settings.are_back_at_once();
        let errors = bench.fails(2, "run --resume");
        assert!(errors.contains("no unfinished run"), "{errors}");
        for file in [program, bench.path("home/made")] {
            std::fs::remove_file(file).unwrap();
        }
    }
}

#[test]
fn a_run_that_is_told_to_ignore_the_end_of_its_terminal_does() {
    let bench = Bench::new();
    let line = "trap '' HUP; exec toll run -q --no-html -r 10 'sleep 0.05'";
    let mut command = bench.spawnable_program("bash", &["-c", line]);
    let mut running = Running(command.spawn().unwrap());
    running.until("the store has a trial", || !bench.trials().is_empty());
    running.send(Signal::HUP);
    let status = running.end();
    assert_eq!((status.code(), status.signal()), (Some(0), None));
    assert_eq!(bench.document("last")["run"]["status"], "complete");
}

#[test]
fn a_paused_run_measures_nothing_meanwhile_and_no_pause() {
    let bench = Bench::new();
    let settings = Settings::before(&bench);
    let arguments = [
        "run",
        "-q",
        "--no-html",
        "-r",
        "3",
        "--time-budget",
        "1000s",
        "sleep 0.5",
    ];
    let mut running = bench.start(&arguments);
    wait_until("a command is measured", || runs(&bench, "sleep"));
    running.send(Signal::TSTP);
    let pid = running.0.id();
    wait_until("toll is stopped", || state(pid) == Some('T'));
    assert!(!runs(&bench, "sleep"), "a paused run runs no command");
    // This is longer than the measured command takes, even on a busy machine.
    std::thread::sleep(std::time::Duration::from_secs(6));
    let kept = bench.trials();
    running.send(Signal::CONT);
    assert_eq!(running.end().code(), Some(0));
    let ended = bench.trials();
    assert_eq!(ended[..kept.len()], kept);
    assert_eq!(ended.len(), 6);
    for trial in ended {
        assert_eq!(trial["state"], "completed", "{trial:#}");
        let duration_ns = trial["samples"]["duration_ns"][0].as_f64().unwrap();
        assert!(duration_ns < 6e9, "the pause is not measured: {trial:#}");
    }
    settings.are_back_at_once();
}

#[test]
fn a_paused_run_can_be_ended() {
    let bench = Bench::new();
    let settings = Settings::before(&bench);
    let mut running = bench.start_measuring("run -q --no-html -r 30 'sleep 0.2'");
    running.send(Signal::TSTP);
    let pid = running.0.id();
    wait_until("toll is stopped", || state(pid) == Some('T'));
    running.send(Signal::TERM);
    running.send(Signal::CONT);
    assert_eq!(running.end().code(), Some(143));
    settings.are_back_at_once();
}

/// A stop that cannot be noticed in time (SIGSTOP, a frozen control group). The trial that was
/// running has its answer by the time `toll` continues, and the answer is valid.
#[test]
fn a_stop_of_toll_alone_costs_no_trial() {
    let bench = Bench::new();
    let toml = "format = 1\nname = 'stopped'\n[workload]\nkind = 'command'\ncommand = \
                'sleep 0.3'\n[run]\ntrial_timeout = '6s'\n";
    bench.write("stopped.toml", toml);
    let mut running = bench.start("run -q --no-html -r 2 stopped.toml");
    wait_until("a command is measured", || runs(&bench, "sleep"));
    running.send(Signal::STOP);
    std::thread::sleep(std::time::Duration::from_secs(8));
    running.send(Signal::CONT);
    assert_eq!(running.end().code(), Some(0));
    for trial in bench.trials() {
        assert_eq!(trial["state"], "completed", "{trial:#}");
    }
}

#[test]
fn a_trial_whose_processes_were_stopped_is_excluded_and_says_why() {
    let bench = Bench::new();
    // The sleep is long enough for its processes to be found.
    let mut running = bench.start("run -q --no-html -r 2 'sleep 3'");
    wait_until("a command is measured", || runs(&bench, "sleep"));
    let marked = processes_marked(&bench.marker());
    let others = marked
        .into_iter()
        .filter(|pid| pid.unsigned_abs() != running.0.id());
    let others: Vec<Pid> = others.filter_map(Pid::from_raw).collect();
    for signal in [Signal::STOP, Signal::CONT] {
        for pid in &others {
            let _ = kill_process(*pid, signal);
        }
    }
    assert_eq!(running.end().code(), Some(0));
    let ended = bench.trials();
    let excluded: Vec<_> = ended
        .iter()
        .filter(|trial| trial["state"] == "excluded")
        .collect();
    assert_eq!((ended.len(), excluded.len()), (4, 1), "{ended:#?}");
    let message = excluded[0]["message"].as_str().unwrap();
    assert!(message.contains("stopped and continued"), "{message}");
}

#[test]
fn a_second_signal_while_the_results_are_shown_ends_toll_at_once() {
    let bench = Bench::new();
    // Nobody reads the page, which is larger than the buffer of a pipe.
    let mut command = bench.spawnable("run -r 200 --html - 'sleep 0.01'");
    command.stdout(Stdio::piped());
    let mut running = Running(command.spawn().unwrap());
    running.until("the store has a trial", || !bench.trials().is_empty());
    running.send(Signal::INT);
    wait_until("the measurement has ended", || bench.leftovers().is_empty());
    let again = || {
        running.send(Signal::INT);
        running.0.try_wait().unwrap().is_some()
    };
    wait_until("toll has ended", again);
    let status = running.end();
    assert_eq!((status.code(), status.signal()), (None, Some(2)));
    assert_eq!(bench.document("last")["run"]["status"], "unfinished");
}
