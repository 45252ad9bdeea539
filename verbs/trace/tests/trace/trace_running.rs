//! `toll trace --pid` and `--cgroup`, and that a trace with BPF leaves nothing behind.

use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use toll_testing::{Bench, Running, has_program, list, skip, wait_until};

use crate::trace::{file, report};

/// Arguments of a trace that writes its document to a file.
const TO_FILE: [&str; 5] = ["trace", "--no-prices", "--json", "-o", "trace.json"];

/// Directories in which BPF may count.
fn bench_for_bpf() -> Option<Bench> {
    let bench = Bench::new();
    let ran = bench.run("trace --no-prices --with=bpf true");
    if ran.code == Some(5) {
        skip(ran.stderr.trim());
        return None;
    }
    Some(bench)
}

/// A program that writes until it is killed.
fn writer(bench: &Bench) -> Running {
    let line =
        "echo x >started; exec dd if=/dev/zero of=endless bs=1000 count=100000000 status=none";
    let line = line.replace("of=endless", "of=/dev/null");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &line]).current_dir(bench.path("."));
    let running = Running(command.spawn().expect("sh starts"));
    wait_until("it writes", || {
        let comm = std::fs::read_to_string(format!("/proc/{}/comm", running.0.id()));
        bench.path("started").exists() && comm.is_ok_and(|comm| comm.trim_end() == "dd")
    });
    running
}

#[test]
fn a_running_process_is_traced_for_a_time_and_goes_on() {
    let Some(bench) = bench_for_bpf() else { return };
    let mut running = writer(&bench);
    let pid = running.0.id().to_string();
    bench.ok(&[&TO_FILE[..], &["--for", "300ms", "--pid", &pid]].concat());
    assert!(
        running.0.try_wait().expect("it is ours").is_none(),
        "it still runs"
    );
    let report = report(&bench);
    assert_eq!(report["ended"]["watch"], "time-over");
    assert_eq!(report["command"][0], "dd");
    assert_eq!(report["programs"][0]["name"], "dd");
    let written = &file(&report, "/dev/null")["written"];
    let (calls, bytes) = (written["calls"].as_u64(), written["bytes"].as_u64());
    assert!(calls > Some(0), "{report:#}");
    assert_eq!(bytes, calls.map(|calls| calls * 1000));
    assert_eq!(list(&report["notes"]), [] as [Value; 0], "{report:#}");
}

#[test]
fn a_trace_of_a_process_ends_with_it_and_by_a_signal() {
    let Some(bench) = bench_for_bpf() else { return };
    for (signals_toll, end) in [(true, "interrupted"), (false, "all-ended")] {
        let mut running = writer(&bench);
        let pid = running.0.id().to_string();
        let words = [&TO_FILE[..], &["--pid", &pid]].concat();
        let mut tracer = Running(bench.spawnable(&words).spawn().expect("toll starts"));
        wait_until("BPF counts", || has_programs_of(tracer.0.id()));
        if signals_toll {
            let pid = Pid::from_raw(i32::try_from(tracer.0.id()).expect("a process"));
            kill_process(pid.expect("a process"), Signal::INT).expect("it is ours");
        } else {
            running.0.kill().expect("it is ours")
        }
        let ended = tracer.0.wait().expect("it can be waited for");
        assert_eq!(ended.code(), Some(0));
        assert_eq!(report(&bench)["ended"]["watch"], end);
    }
}

#[test]
fn what_cannot_be_traced_is_told() {
    let Some(bench) = bench_for_bpf() else { return };
    for (line, code, found) in [
        (
            "trace --pid 4194304",
            2,
            "cannot trace process 4194304: there is no such process",
        ),
        (
            "trace --pid 1 --with strace",
            2,
            "cannot trace running processes with strace",
        ),
        (
            "trace --cgroup no/such.slice",
            2,
            "cannot trace cgroup no/such.slice: ",
        ),
        ("trace --cgroup / --pid 1", 2, "cannot be used with"),
        (
            "trace --calls --with bpf true",
            2,
            "cannot list calls with BPF",
        ),
        ("trace --pid 1 true", 2, "cannot be used with"),
        ("trace --for 1s true", 2, "cannot be used with"),
    ] {
        let ran = bench.run(line);
        assert_eq!(ran.code, Some(code), "{line}: {ran:#?}");
        assert!(ran.stderr.contains(found), "{line}: {ran:#?}");
    }
}

/// Whether all BPF programs of a process are attached, except the one that is only called.
fn has_programs_of(pid: u32) -> bool {
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd"));
    let descriptors = descriptors.into_iter().flatten();
    let names = descriptors.filter_map(|one| std::fs::read_link(one.ok()?.path()).ok());
    let names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    let count = |kind: &str| names.iter().filter(|name| name.contains(kind)).count();
    let links = count("bpf_link");
    links > 0 && links + 1 >= count("bpf-prog")
}

/// IDs of the BPF programs that a process holds.
fn programs_of(pid: u32) -> Vec<String> {
    let all = std::fs::read_dir(format!("/proc/{pid}/fdinfo"))
        .into_iter()
        .flatten();
    let texts = all.filter_map(|one| std::fs::read_to_string(one.ok()?.path()).ok());
    let numbers = texts.filter_map(|text| {
        let line = text.lines().find(|line| line.starts_with("prog_id:"))?;
        Some(line.split_whitespace().nth(1)?.to_owned())
    });
    numbers.collect()
}

/// Whether the kernel has a BPF program with this ID.
fn is_loaded(number: &str) -> bool {
    let show = ["prog", "show", "id", number];
    let ran = std::process::Command::new("bpftool").args(show).output();
    ran.expect("it is there").status.success()
}

#[test]
fn nothing_is_left_behind_even_by_a_kill() {
    let Some(bench) = bench_for_bpf() else { return };
    if !has_program("bpftool") {
        return skip("bpftool is missing");
    }
    let mounts = || std::fs::read_to_string("/proc/self/mounts").expect("there are mounts");
    let before = mounts();
    let running = writer(&bench);
    let pid = running.0.id().to_string();
    let mut tracer = bench.spawnable(&["trace", "--no-prices", "--pid", &pid]);
    let mut tracer = Running(tracer.spawn().expect("toll starts"));
    wait_until("BPF counts", || has_programs_of(tracer.0.id()));
    let programs = programs_of(tracer.0.id());
    assert!(
        programs.iter().any(|number| is_loaded(number)),
        "{programs:?}"
    );
    tracer.0.kill().expect("it is ours");
    tracer.0.wait().expect("it can be waited for");
    wait_until("the kernel has removed them", || {
        !programs.iter().any(|number| is_loaded(number))
    });
    assert_eq!(mounts(), before);
}

/// A control group of version 2 that is removed at the end of the test.
struct Group(PathBuf);

impl Group {
    fn new(name: &str) -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/mounts").expect("Linux has it");
        let mut mounts = mounts.lines().map(|line| line.split(' '));
        let point = mounts.find_map(|mut words| {
            let point = words.nth(1)?;
            (words.next()? == "cgroup2").then(|| PathBuf::from(point))
        });
        let Some(point) = point else {
            skip("control groups of version 2 are not mounted");
            return None;
        };
        let group = point.join(format!("toll-{name}-{}", std::process::id()));
        match std::fs::create_dir(&group) {
            Ok(()) => Some(Self(group)),
            Err(error) => {
                skip(&format!("cannot create a control group: {error}"));
                None
            }
        }
    }

    /// Starts a shell that moves into the group and runs a line there.
    fn shell(&self, line: &str) -> Running {
        let line = format!("echo $$ >{}/cgroup.procs; {line}", self.0.display());
        let mut command = std::process::Command::new("sh");
        Running(command.args(["-c", &line]).spawn().expect("sh starts"))
    }

    fn has_processes(&self) -> bool {
        let processes = std::fs::read_to_string(self.0.join("cgroup.procs"));
        processes.is_ok_and(|processes| !processes.is_empty())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Processes leave the group a moment after they end.
        wait_until("the group is empty", || !self.has_processes());
        std::fs::remove_dir(&self.0).expect("it is empty");
    }
}

#[test]
fn a_control_group_is_traced_from_its_first_process_to_its_last() {
    let Some(bench) = bench_for_bpf() else { return };
    let Some(group) = Group::new("first") else {
        return;
    };
    let path = group.0.file_name().expect("it has one").to_str();
    let words = [&TO_FILE[..], &["--cgroup", path.expect("ASCII")]].concat();
    let mut tracer = Running(bench.spawnable(&words).spawn().expect("toll starts"));
    wait_until("BPF counts", || has_programs_of(tracer.0.id()));
    // A process outside the group makes the same calls.
    let dd = "dd if=/dev/zero of=/dev/null count=100 status=none";
    let outside = std::process::Command::new("sh")
        .args(["-c", &format!("{dd} bs=3000")])
        .status();
    assert!(outside.expect("sh runs").success());
    // Moves in, forks there, and leaves before the end.
    let line = format!(
        "{dd} bs=1000; echo $$ >{}/../cgroup.procs; {dd} bs=2000",
        group.0.display()
    );
    assert!(group.shell(&line).0.wait().expect("sh runs").success());
    assert_eq!(tracer.0.wait().expect("toll runs").code(), Some(0));
    let report = report(&bench);
    assert_eq!(report["ended"]["watch"], "all-ended");
    assert_eq!(report["command"][1].as_str(), group.0.to_str());
    let written = &file(&report, "/dev/null")["written"];
    assert_eq!(
        (&written["calls"], &written["bytes"]),
        (&100.into(), &100_000.into())
    );
    let programs: Vec<&Value> = list(&report["programs"])
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert!(programs.iter().any(|name| *name == "dd"), "{report:#}");
    assert!(!programs.iter().any(|name| *name == "toll"), "{report:#}");
}

#[test]
fn a_process_that_comes_and_goes_between_two_looks_ends_the_trace() {
    let Some(bench) = bench_for_bpf() else { return };
    let Some(group) = Group::new("short") else {
        return;
    };
    let path = group.0.display().to_string();
    let words = [&TO_FILE[..], &["--cgroup", &path]].concat();
    let mut tracer = Running(bench.spawnable(&words).spawn().expect("toll starts"));
    wait_until("BPF counts", || has_programs_of(tracer.0.id()));
    tracer.send(Signal::STOP);
    let mut short = group.shell("dd if=/dev/zero of=/dev/null count=10 bs=1000 status=none");
    assert!(short.end().success());
    wait_until("it has left", || !group.has_processes());
    tracer.send(Signal::CONT);
    assert_eq!(tracer.end().code(), Some(0));
    let report = report(&bench);
    assert_eq!(report["ended"]["watch"], "all-ended");
    assert_eq!(file(&report, "/dev/null")["written"]["calls"], 10);
}

#[test]
fn a_trace_of_a_control_group_ends_though_another_has_its_name() {
    let Some(bench) = bench_for_bpf() else { return };
    let Some(group) = Group::new("again") else {
        return;
    };
    let mut running = group.shell("exec sleep 1000");
    wait_until("it is there", || group.has_processes());
    let path = group.0.display().to_string();
    let words = [&TO_FILE[..], &["--cgroup", &path]].concat();
    let mut tracer = Running(bench.spawnable(&words).spawn().expect("toll starts"));
    wait_until("BPF counts", || has_programs_of(tracer.0.id()));
    running.0.kill().expect("it is ours");
    running.0.wait().expect("it is ours");
    drop(group);
    let another = Group::new("again").expect("one could be made before");
    let mut running = another.shell("exec sleep 1000");
    wait_until("the trace ends", || {
        tracer.0.try_wait().expect("it is ours").is_some()
    });
    assert_eq!(report(&bench)["ended"]["watch"], "all-ended");
    running.0.kill().expect("it is ours");
    running.0.wait().expect("it is ours");
}

#[test]
fn processes_that_are_in_a_group_before_are_counted_with_their_programs() {
    let Some(bench) = bench_for_bpf() else { return };
    let Some(group) = Group::new("before") else {
        return;
    };
    let line = "exec dd if=/dev/zero of=/dev/null bs=1000 count=100000000 status=none";
    let mut running = group.shell(line);
    wait_until("it is there", || group.has_processes());
    let path = group.0.display().to_string();
    bench.ok(&[&TO_FILE[..], &["--for", "300ms", "--cgroup", &path]].concat());
    running.0.kill().expect("it is ours");
    running.0.wait().expect("it is ours");
    let report = report(&bench);
    assert_eq!(report["ended"]["watch"], "time-over");
    assert_eq!(report["programs"][0]["name"], "dd", "{report:#}");
    let written = &file(&report, "/dev/null")["written"];
    assert_eq!(
        written["bytes"].as_u64(),
        written["calls"].as_u64().map(|calls| calls * 1000)
    );
}
