//! Guests: trials in them, their ends, and `toll guest`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use toll::environment::guest::{
    AcceleratorChoice, BootFailure, Guest, GuestDisk, GuestSpec, guest_obstacle, shell_obstacle,
};
use toll::environment::kernel::{self, Kernel, Variant};
use toll::environment::paths;
use toll_wire::guest::{GuestTrial, Knob};
use toll_wire::{
    AccessOrder, Addressing, CacheState, ChaseRequest, CommandRequest, FailureKind, HugePages,
    Initialisation, Mapping, MemoryAdvice, MemoryRequest, Outcome, OutputPolicy, Request,
    ShellChoice, TrialData, Workload,
};

use crate::common::{
    Bench, Ran, Running, has_program, is_root, probe, processes_marked, skip, wait_until,
};

/// A kernel to boot, if guests can be had here.
fn kernel(variant: Variant) -> Option<Kernel> {
    if let Some(reason) = guest_obstacle().or_else(shell_obstacle) {
        skip(&reason);
        return None;
    }
    kernel::find(variant).map_err(|reason| skip(&reason)).ok()
}

/// A place for the disks of a guest, and what it is to be.
struct Setting {
    directory: tempfile::TempDir,
    spec: GuestSpec,
}

fn setting(kernel: Kernel) -> Setting {
    Setting {
        directory: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
        spec: GuestSpec {
            kernel,
            memory_bytes: 128 << 20,
            vcpus: 2,
            swap_bytes: 0,
            command_line: String::new(),
            // Whether there is KVM is a question of one test alone.
            accelerator: AcceleratorChoice::Tcg,
            seed: 1,
            probe: probe(),
            extra_files: Vec::new(),
        },
    }
}

impl Setting {
    fn boot(&self) -> Result<Guest, BootFailure> {
        let disk = GuestDisk::create(&self.directory.path().join("disk"), 64 << 20, None);
        Guest::boot(&self.spec, &disk.unwrap(), &|| false)
    }

    #[track_caller]
    fn booted(&self) -> Guest {
        self.boot().unwrap_or_else(|failure| panic!("{failure}"))
    }

    #[track_caller]
    fn fails_to_boot(&self) -> String {
        match self.boot() {
            Err(BootFailure::Failed(message)) => message,
            other => panic!("{other:?}"),
        }
    }
}

fn trial(workload: Workload) -> GuestTrial {
    GuestTrial {
        request: Request::new(workload),
        padding_bytes: 100,
        timeout_ms: 60_000,
        knobs: Vec::new(),
    }
}

fn chase() -> GuestTrial {
    trial(Workload::Chase(ChaseRequest {
        size_bytes: 4096,
        huge_pages: HugePages::None,
        accesses: 10_000,
        seed: 1,
    }))
}

fn shell(line: &str) -> GuestTrial {
    trial(Workload::Command(CommandRequest {
        command: line.into(),
        shell: ShellChoice::Program("/bin/sh".into()),
        prepare: None,
        output: OutputPolicy::Pipe,
        capture_bytes_max: 4096,
        ignore_failure: false,
        directory: Some("/work".into()),
    }))
}

/// More memory than a guest of these tests has.
fn memory_hog() -> GuestTrial {
    trial(Workload::Memory(MemoryRequest {
        addressing: Addressing::Corrected,
        order: AccessOrder::Sequential,
        mapping: Mapping::Anonymous,
        initialisation: Initialisation::MemsetMsync,
        huge_pages: HugePages::None,
        advice: MemoryAdvice::None,
        cache: CacheState::Warm,
        buffer_bytes: 512 << 20,
        steps: 1,
        competitor_bytes: 0,
        seed: 1,
    }))
}

fn knob(path: &str, value: &str) -> Knob {
    Knob {
        path: path.into(),
        value: value.into(),
    }
}

#[track_caller]
fn completed(outcome: Option<Outcome>) -> TrialData {
    match outcome {
        Some(Outcome::Completed(data)) => *data,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn failed(outcome: Option<Outcome>, kind: FailureKind) -> String {
    match outcome {
        Some(Outcome::Failed(failure)) if failure.kind == kind => failure.message,
        other => panic!("{other:?}"),
    }
}

const NEVER: &dyn Fn() -> bool = &|| false;

#[test]
fn trials_run_in_a_guest_with_their_knobs() {
    let Some(kernel) = kernel(Variant::Toll) else {
        return;
    };
    let mut setting = setting(kernel);
    setting.spec.swap_bytes = 64 << 20;
    setting.spec.command_line = "lru_gen=0".into();
    let mut guest = setting.booted();
    let facts = guest.facts().clone();
    assert_eq!(facts.kernel_release, setting.spec.kernel.release);
    assert!(facts.command_line.contains("lru_gen=0"), "{facts:?}");
    assert_eq!(
        (facts.cpus_online, facts.swap_bytes),
        (2, (64 << 20) - 4096)
    );
    assert_eq!(facts.file_systems["ext4"], Path::new("/work"));
    assert_eq!(facts.randomize_va_space.as_deref(), Some("2"));

    let sample = &completed(guest.trial(&chase(), NEVER)).samples[0];
    assert!(sample.metrics["duration_ns"] > 0.0, "{sample:?}");

    let mut read = shell("cat /proc/sys/vm/page-cluster; df . | tail -n 1; pwd");
    for value in ["0", "3"] {
        read.knobs = vec![knob("/proc/sys/vm/page-cluster", value)];
        let data = completed(guest.trial(&read, NEVER));
        let said = data.samples[0].stdout.clone().unwrap_or_default();
        assert!(said.starts_with(&format!("{value}\n/dev/vd")), "{said}");
        assert!(said.ends_with("/work\n"), "{said}");
    }
    guest.end();
}

#[test]
fn a_trial_that_fails_leaves_the_guest_to_the_next() {
    let Some(kernel) = kernel(Variant::Toll) else {
        return;
    };
    let mut guest = setting(kernel).booted();

    let mut unknown = chase();
    unknown.knobs = vec![knob("/proc/sys/vm/no_such_switch", "1")];
    let message = failed(guest.trial(&unknown, NEVER), FailureKind::Unsupported);
    assert!(message.contains("no_such_switch"), "{message}");
    unknown.knobs = vec![knob("/proc/sys/vm/page-cluster", "many")];
    let message = failed(guest.trial(&unknown, NEVER), FailureKind::Instrument);
    assert!(message.contains("page-cluster to \"many\""), "{message}");

    let message = failed(guest.trial(&shell("exit 3"), NEVER), FailureKind::Failed);
    assert!(message.contains('3'), "{message}");

    let mut endless = shell("setsid sleep 1000 & sleep 1000");
    endless.timeout_ms = 1500;
    let message = failed(guest.trial(&endless, NEVER), FailureKind::TimedOut);
    assert!(message.contains("stopped after 1.5 s"), "{message}");
    // Nothing of it is left.
    let data = completed(guest.trial(&shell("ps | grep -c '[s]leep' || true"), NEVER));
    assert_eq!(data.samples[0].stdout.as_deref(), Some("0\n"));

    let message = failed(guest.trial(&memory_hog(), NEVER), FailureKind::Crashed);
    assert!(message.contains("killed by signal 9"), "{message}");
    assert!(
        message.contains("Out of memory: Killed process"),
        "{message}"
    );
    completed(guest.trial(&chase(), NEVER));
    guest.end();
}

#[test]
fn a_panic_is_a_failed_trial_with_the_kernels_last_words() {
    let Some(kernel) = kernel(Variant::Toll) else {
        return;
    };
    let mut guest = setting(kernel).booted();
    let mut panic = memory_hog();
    panic.knobs = vec![knob("/proc/sys/vm/panic_on_oom", "1")];
    let message = failed(guest.trial(&panic, NEVER), FailureKind::Crashed);
    assert!(message.starts_with("the guest died"), "{message}");
    assert!(
        message.contains("Kernel panic - not syncing: Out of memory"),
        "{message}"
    );
    assert!(!guest.is_alive());
    failed(guest.trial(&chase(), NEVER), FailureKind::Crashed);
}

#[test]
fn a_guest_that_hangs_is_given_up() {
    let Some(kernel) = kernel(Variant::Toll) else {
        return;
    };
    let mut guest = setting(kernel).booted();
    let process = i32::try_from(guest.process_id()).unwrap();
    let pid = rustix::process::Pid::from_raw(process).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let mut chase = chase();
    chase.timeout_ms = 100;
    let message = failed(guest.trial(&chase, NEVER), FailureKind::TimedOut);
    assert!(message.contains("does not answer"), "{message}");
    assert!(!guest.is_alive());
    assert!(!Path::new(&format!("/proc/{process}")).exists());
}

#[test]
fn an_interrupt_ends_the_guest() {
    let Some(kernel) = kernel(Variant::Toll) else {
        return;
    };
    let mut guest = setting(kernel).booted();
    assert_eq!(guest.trial(&shell("sleep 1000"), &|| true), None);
    assert!(!guest.is_alive());
}

#[test]
fn a_guest_that_will_not_boot_says_why() {
    let Some(kernel) = kernel(Variant::Toll) else {
        return;
    };
    let mut setting = setting(kernel);
    let good = setting.spec.clone();

    let garbage = setting.directory.path().join("garbage");
    std::fs::write(&garbage, vec![7_u8; 100_000]).unwrap();
    setting.spec.kernel.image = garbage.clone();
    let message = setting.fails_to_boot();
    assert!(message.contains("QEMU"), "{message}");

    setting.spec = good.clone();
    setting.spec.probe = garbage;
    let message = setting.fails_to_boot();
    assert!(message.contains("Kernel panic - not syncing"), "{message}");

    setting.spec = good;
    setting.spec.command_line = "rdinit=/no/such/init".into();
    let message = setting.fails_to_boot();
    assert!(message.contains("Kernel panic - not syncing"), "{message}");
}

#[test]
fn instructions_are_counted_in_place_of_time() {
    let Some(kernel) = kernel(Variant::Toll) else {
        return;
    };
    let mut setting = setting(kernel);
    setting.spec.accelerator = AcceleratorChoice::Icount;
    let lengths: Vec<f64> = (0..2)
        .map(|_| {
            let mut guest = setting.booted();
            assert_eq!(guest.facts().cpus_online, 1);
            let mut long = chase();
            let Workload::Chase(request) = &mut long.request.workload else {
                panic!("it is a chase");
            };
            request.accesses = 1_000_000;
            let sample = completed(guest.trial(&long, NEVER)).samples.remove(0);
            guest.end();
            let times = sample.metrics.keys().filter(|name| name.ends_with("_ns"));
            assert_eq!(times.count(), 0, "{sample:?}");
            sample.metrics["path_length_instructions"]
        })
        .collect();
    let difference = (lengths[0] - lengths[1]).abs() / lengths[0];
    assert!(lengths[0] > 1e6 && difference < 0.01, "{lengths:?}");
}

#[test]
fn a_kernel_of_the_distribution_runs_trials_too() {
    let Some(kernel) = kernel(Variant::Stock) else {
        return;
    };
    let mut setting = setting(kernel);
    setting.spec.memory_bytes = 512 << 20;
    setting.spec.swap_bytes = 64 << 20;
    let mut guest = setting.booted();
    assert_eq!(guest.facts().cpus_online, 2);
    completed(guest.trial(&chase(), NEVER));
    guest.end();
}

/// Directories of a user's own, in which the kernels of the real one are found.
fn bench() -> Bench {
    let bench = Bench::new();
    let cache = bench.path("cache/toll");
    std::fs::create_dir_all(&cache).unwrap();
    std::os::unix::fs::symlink(paths::kernels(), cache.join("kernels")).unwrap();
    bench
}

fn in_guest(bench: &Bench, options: &[&str], command: &[&str]) -> Ran {
    let start = ["guest", "run", "--accelerator", "tcg", "--memory", "128MiB"];
    bench.run(&[&start, options, &["--"], command].concat())
}

#[test]
fn a_command_in_a_guest_has_its_output_and_its_status() {
    if kernel(Variant::Toll).is_none() {
        return;
    }
    let bench = bench();
    bench.write("note", "from the host");
    let ran = in_guest(
        &bench,
        &["--add", "note", "--log", "kernel.log"],
        &[
            "sh",
            "-c",
            "cat /host/note; echo aside >&2; ls /work; exit 7",
        ],
    );
    assert_eq!(ran.code, Some(7), "{ran:#?}");
    assert_eq!(ran.stdout, "from the hostlost+found\n");
    assert_eq!(ran.stderr, "aside\n");
    assert!(bench.read("kernel.log").contains("Linux version"));
    assert_eq!(bench.leftovers(), Vec::<PathBuf>::new());

    // More than any buffer on the way holds.
    let ran = in_guest(&bench, &[], &["sh", "-c", "seq 200000; kill -9 $$"]);
    assert_eq!(ran.code, Some(128 + 9));
    assert_eq!(ran.stdout.lines().count(), 200_000);
    assert!(ran.stdout.ends_with("\n200000\n"));

    let ran = in_guest(&bench, &[], &["/no/such/program"]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(
        ran.stderr.contains("cannot run /no/such/program"),
        "{ran:#?}"
    );
}

#[test]
fn a_guest_that_cannot_be_had_is_told_with_what_to_do() {
    let bench = Bench::new();
    let told = bench.fails(5, &["guest", "run", "--", "true"]);
    assert!(told.contains("toll kernel build"), "{told}");
    let told = bench.fails(2, &["guest", "run", "--add", "/tmp", "--", "true"]);
    assert!(told.contains("no regular file"), "{told}");
    bench.fails(2, &["guest", "run", "--accelerator", "hvf", "--", "true"]);
}

#[test]
fn a_missing_qemu_is_named_with_its_package() {
    if kernel(Variant::Toll).is_none() {
        return;
    }
    if !is_root() || !has_program("unshare") {
        skip("hiding QEMU takes root and unshare");
        return;
    }
    let bench = bench();
    let ran = bench.shell(
        "unshare -m sh -c 'mount --bind /dev/null \"$(command -v qemu-system-x86_64)\" && \
         toll guest run -- true'",
    );
    assert_eq!(ran.code, Some(5), "{ran:#?}");
    assert!(ran.stderr.contains("qemu-system-x86"), "{ran:#?}");
    assert_eq!(bench.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn a_killed_toll_leaves_no_guest() {
    if kernel(Variant::Toll).is_none() {
        return;
    }
    let bench = bench();
    let mut toll = bench.spawnable(&[
        "guest",
        "run",
        "--accelerator",
        "tcg",
        "--",
        "sleep",
        "1000",
    ]);
    let mut running = Running(toll.spawn().unwrap());
    // QEMU has the environment of the toll that started it.
    let marker = bench.path("state").display().to_string();
    wait_until("the guest is there", || {
        processes_marked(&marker).len() == 2
    });
    running.0.kill().unwrap();
    running.0.wait().unwrap();
    wait_until("the guest is gone", || processes_marked(&marker).is_empty());
    assert!(!bench.leftovers().is_empty());
    bench.ok(&["doctor", "--restore"]);
    assert_eq!(bench.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn a_shell_in_a_guest_obeys_what_it_is_given() {
    if kernel(Variant::Toll).is_none() {
        return;
    }
    let bench = bench();
    let start = "toll guest shell --accelerator tcg --memory 128MiB";
    let ran = bench.shell(&format!("printf 'echo $((6*7))\\nexit 3\\n' | {start}"));
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert!(ran.stdout.contains("\r\n42\r\n"), "{ran:#?}");
    // The end of the input is the end of the shell.
    let ran = bench.shell(&format!("echo true | {start}"));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

#[test]
fn a_terminal_is_put_back_after_a_shell() {
    if kernel(Variant::Toll).is_none() {
        return;
    }
    if !has_program("script") {
        skip("script is missing; install the package bsdutils");
        return;
    }
    let bench = bench();
    let line =
        "stty -a; toll guest shell --accelerator tcg --memory 128MiB; echo ended $?; stty -a";
    let ran = bench.shell(&format!(
        "printf 'tty; exit 4\\n' | script -qec '{line}' /dev/null"
    ));
    let settings = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| line.trim().to_owned());
        lines.filter(|line| line.contains("icanon")).collect()
    };
    assert!(ran.stdout.contains("/dev/pts/"), "{ran:#?}");
    assert!(ran.stdout.contains("ended 4"), "{ran:#?}");
    let settings = settings(&ran.stdout);
    assert_eq!(settings.len(), 2, "{ran:#?}");
    assert_eq!(settings[0], settings[1]);
}

#[test]
fn kvm_is_used_only_where_a_guest_has_booted_under_it() {
    if kernel(Variant::Toll).is_none() {
        return;
    }
    let bench = bench();
    bench.ok(&["guest", "run", "--", "true"]);
    let known = bench.path("cache/toll/kvm.json");
    let has_device = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/kvm")
        .is_ok();
    assert_eq!(known.exists(), has_device);
    let examination = bench.json(&["doctor", "--json", "--no-noise"]);
    let list = crate::common::list(&examination["capabilities"]);
    let guests = list.iter().find(|one| one["what"] == "guests").unwrap();
    let detail = guests["detail"].as_str().unwrap();
    let word = match std::fs::read_to_string(&known) {
        Ok(text) if text.contains("\"obstacle\": null") => "by KVM",
        _ => "by emulation",
    };
    assert!(detail.starts_with(word), "{detail}");
    // What is known is not tried again.
    let before = std::fs::metadata(&known)
        .and_then(|file| file.modified())
        .ok();
    std::thread::sleep(Duration::from_millis(20));
    bench.ok(&["guest", "run", "--", "true"]);
    let after = std::fs::metadata(&known)
        .and_then(|file| file.modified())
        .ok();
    assert_eq!(before, after);
}
