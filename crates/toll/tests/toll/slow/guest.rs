//! Guests: their trials, how they end, and `toll guest`.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use toll_host::environment::guest::{
    Accelerator, AcceleratorChoice, Guest, GuestDisk, GuestFailure, GuestSpec, guest_obstacle,
    shell_obstacle,
};
use toll_host::environment::kernel;
use toll_host::environment::kernel::Kernel;
use toll_testing::{any_kernel, build_kernel, full_or, has, is_root, probe, skip};
use toll_wire::guest::{GuestTrial, Knob};
use toll_wire::{
    AccessOrder, Addressing, CacheState, ChaseRequest, CommandRequest, CopyMethod, CopyRequest,
    FailureKind, HugePages, Initialisation, Mapping, MemoryAdvice, MemoryRequest, Outcome,
    OutputPolicy, ReachedPages, Request, ShellChoice, Sink, Source, TrialData, Workload,
};

/// Returns a kernel to boot, and builds it if it is missing; `None`, with a skip line, if guests
/// are not available.
pub fn kernel(name: &str) -> Option<Kernel> {
    let obstacle = guest_obstacle().or_else(shell_obstacle);
    let built = obstacle.map_or_else(|| build_kernel(name), Err);
    let found = built.and_then(|()| kernel::find(name));
    found.map_err(|reason| skip(&reason)).ok()
}

/// A directory for the disks of a guest, and the guest's specification.
pub struct Setting {
    pub directory: tempfile::TempDir,
    pub spec: GuestSpec,
}

pub fn setting(kernel: Kernel) -> Setting {
    Setting {
        directory: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
        spec: GuestSpec {
            memory_bytes: 128 << 20,
            vcpus: 2,
            // Only one test depends on whether KVM is available.
            accelerator: AcceleratorChoice::Only(Accelerator::Tcg),
            ..GuestSpec::new(kernel, probe())
        },
    }
}

impl Setting {
    fn boot(&self) -> Result<Guest, GuestFailure> {
        let disk = GuestDisk::create(&self.directory.path().join("disk"), 64 << 20, None).unwrap();
        if self.spec.has_shared_directory {
            disk.share(Some(&self.directory.path().join("content")))
                .unwrap();
        }
        Guest::boot(&self.spec, &disk, &|| false)
    }

    #[track_caller]
    fn booted(&self) -> Guest {
        self.boot().unwrap_or_else(|failure| panic!("{failure}"))
    }

    #[track_caller]
    fn fails_to_boot(&self) -> String {
        match self.boot() {
            Err(GuestFailure::Failed(message)) => message,
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
        wants_symbols: false,
    }
}

fn chase() -> GuestTrial {
    trial(Workload::Chase(ChaseRequest {
        size_bytes: 4096,
        accesses: 10_000,
        seed: 1,
        ..ChaseRequest::default()
    }))
}

/// A trial that runs a shell line.
pub fn shell(line: &str) -> GuestTrial {
    trial(Workload::Command(CommandRequest {
        command: line.into(),
        shell: ShellChoice::Program("/bin/sh".into()),
        prepare: None,
        input: None,
        expected: None,
        output: OutputPolicy::Pipe,
        capture_bytes_max: 4096,
        ignore_failure: false,
        directory: Some("/work".into()),
        ..CommandRequest::default()
    }))
}

/// A copy from the guest's own memory through a loopback connection.
fn copy_to_a_socket() -> GuestTrial {
    trial(Workload::Copy(CopyRequest {
        method: CopyMethod::Swept,
        source: Source::Zero,
        sink: Sink::Socket,
        cache: CacheState::Warm,
        size_bytes: 1 << 20,
        buffer_bytes: Some(64 << 10),
        directory: "/work".into(),
        ..CopyRequest::default()
    }))
}

/// A trial that needs more memory than a guest of these tests has.
fn memory_hog() -> GuestTrial {
    let mut hog = trial(Workload::Memory(MemoryRequest {
        addressing: Addressing::Corrected,
        order: AccessOrder::Sequential,
        mapping: Mapping::Anonymous,
        initialisation: Initialisation::MemsetMsync,
        huge_pages: HugePages::None,
        advice: MemoryAdvice::None,
        cache: CacheState::Warm,
        buffer_bytes: 512 << 20,
        steps: 1,
        reached_pages: ReachedPages::AsLeft,
        competitor: None,
        seed: 1,
    }));
    // Overcommit lets the kernel promise memory that does not exist.
    hog.knobs = vec![knob("/proc/sys/vm/overcommit_memory", "1")];
    hog
}

fn knob(path: &str, value: &str) -> Knob {
    Knob {
        path: path.into(),
        value: value.into(),
    }
}

#[track_caller]
pub fn completed(outcome: Option<Outcome>) -> TrialData {
    match outcome {
        Some(Outcome::Completed(data)) => *data,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
pub fn failed(outcome: Option<Outcome>, kind: FailureKind) -> String {
    match outcome {
        Some(Outcome::Failed(failure)) if failure.kind == kind => failure.message,
        other => panic!("{other:?}"),
    }
}

pub const NEVER: &dyn Fn() -> bool = &|| false;

#[test]
fn trials_run_in_a_guest_with_their_knobs() {
    let Some(kernel) = kernel(any_kernel()) else {
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
fn a_guest_has_a_directory_of_the_host_over_9p() {
    let Some(kernel) = kernel("toll") else {
        return;
    };
    let mut setting = setting(kernel);
    let content = setting.directory.path().join("content");
    std::fs::create_dir(&content).unwrap();
    std::fs::write(content.join("laid"), "from the host").unwrap();
    setting.spec.has_shared_directory = true;
    let mut guest = setting.booted();
    assert_eq!(guest.facts().file_systems["9p"], Path::new("/shared"));
    let line =
        "grep /shared /proc/mounts | cut -d ' ' -f 3; cat /shared/laid; echo back >/shared/new";
    let data = completed(guest.trial(&shell(line), NEVER));
    let said = data.samples[0].stdout.clone().unwrap_or_default();
    assert_eq!(said, "9p\nfrom the host");
    // 9p keeps no pages of a file that was read.
    let warm = trial(Workload::Copy(CopyRequest {
        method: CopyMethod::Swept,
        source: Source::File {
            path: "/shared/laid".into(),
            xxh3: 0,
        },
        sink: Sink::Null,
        cache: CacheState::Warm,
        size_bytes: said.len() as u64 - 3,
        buffer_bytes: Some(64 << 10),
        directory: "/work".into(),
        ..CopyRequest::default()
    }));
    let message = failed(guest.trial(&warm, NEVER), FailureKind::Instrument);
    has(&message, &["0 of 1 pages are resident"]);
    let shared = setting.directory.path().join("disk/shared");
    assert_eq!(
        std::fs::read_to_string(shared.join("new")).unwrap(),
        "back\n"
    );
    // Changes to the guest's copy do not reach the original.
    completed(guest.trial(&shell("echo other >/shared/laid"), NEVER));
    assert_eq!(
        std::fs::read_to_string(content.join("laid")).unwrap(),
        "from the host"
    );
    guest.end();
}

#[test]
fn a_guest_has_a_network_of_its_own_to_itself() {
    // Includes the oldest and the newest kernel that can be downloaded.
    for &name in full_or(&["stock"][..], &["toll", "stock", "bullseye", "sid"]) {
        let Some(kernel) = kernel(name) else {
            return;
        };
        let mut setting = setting(kernel);
        setting.spec.memory_bytes = 512 << 20;
        setting.spec.swap_bytes = 64 << 20;
        let mut guest = setting.booted();
        assert_eq!(guest.facts().cpus_online, 2);
        completed(guest.trial(&chase(), NEVER));
        completed(guest.trial(&copy_to_a_socket(), NEVER));
        let reach = shell("for a in 127.0.0.1 ::1; do ping -c 1 -W 20 $a || exit 1; done");
        completed(guest.trial(&reach, NEVER));
        // There is no other interface that could reach anything.
        let list = shell("ls /sys/class/net");
        let data = completed(guest.trial(&list, NEVER));
        let said = data.samples[0].stdout.clone().unwrap_or_default();
        let others = said.lines().filter(|name| *name != "lo");
        assert_eq!(others.count(), 0, "{said}");
        guest.end();
    }
}

#[test]
fn a_trial_that_fails_leaves_the_guest_to_the_next_unless_the_kernel_panics() {
    let Some(kernel) = kernel("toll") else {
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
    // No process of the trial is left.
    let data = completed(guest.trial(&shell("ps | grep -c '[s]leep' || true"), NEVER));
    assert_eq!(data.samples[0].stdout.as_deref(), Some("0\n"));

    let message = failed(guest.trial(&memory_hog(), NEVER), FailureKind::Crashed);
    assert!(message.contains("killed by signal 9"), "{message}");
    has(&message, &["Out of memory: Killed process"]);
    completed(guest.trial(&chase(), NEVER));

    // A panic leaves no guest, only the kernel's last messages.
    let mut panic = memory_hog();
    panic.knobs.push(knob("/proc/sys/vm/panic_on_oom", "1"));
    let message = failed(guest.trial(&panic, NEVER), FailureKind::Crashed);
    assert!(message.starts_with("the guest died"), "{message}");
    has(&message, &["Kernel panic - not syncing: Out of memory"]);
    assert!(!guest.is_alive());
    failed(guest.trial(&chase(), NEVER), FailureKind::Crashed);
}

/// Returns a field of a process's status file (proc_pid_status(5)).
fn status_of(process: u32, member: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(member));
    line.unwrap_or_default().trim().replace('\t', " ")
}

#[test]
fn the_process_of_a_guest_is_confined() {
    let Some(kernel) = kernel("toll") else {
        return;
    };
    let setting = setting(kernel);
    let mut guest = setting.booted();
    let process = guest.process_id();
    let of = |member: &str| status_of(process, member);
    assert_eq!(
        (of("NoNewPrivs:"), of("Seccomp:")),
        ("1".into(), "2".into())
    );
    if is_root() {
        assert_has_a_user_of_its_own(&setting, &mut guest)
    } else {
        skip("only root can give a guest's process another user")
    }

    // A guest that hangs is ended.
    let pid = rustix::process::Pid::from_raw(process.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let mut chase = chase();
    chase.timeout_ms = 100;
    let message = failed(guest.trial(&chase, NEVER), FailureKind::TimedOut);
    assert!(message.contains("no longer answers"), "{message}");
    assert!(!guest.is_alive());
    assert!(!Path::new(&format!("/proc/{process}")).exists());
}

#[track_caller]
fn assert_has_a_user_of_its_own(setting: &Setting, guest: &mut Guest) {
    let process = guest.process_id();
    let of = |member: &str| status_of(process, member);
    let users = of("Uid:");
    let user: u32 = users.split(' ').next().unwrap().parse().unwrap();
    assert!((61_184..65_520).contains(&user), "{users}");
    assert_eq!(users, format!("{user} {user} {user} {user}"));
    assert_eq!(of("Gid:"), users);
    assert_eq!(
        (of("Groups:").as_str(), of("CapEff:").as_str()),
        ("", "0000000000000000")
    );
    // The process can write its disk, but create nothing beside it.
    let disk = setting.directory.path().join("disk");
    let directory = std::fs::metadata(&disk).unwrap();
    assert_eq!((directory.uid(), directory.mode() & 0o777), (0, 0o710));
    let image = std::fs::metadata(disk.join("work.img")).unwrap();
    assert_eq!((image.uid(), image.mode() & 0o777), (user, 0o600));
    completed(guest.trial(
        &shell("echo kept >/work/file && sync && cat /work/file"),
        NEVER,
    ));
}

/// Compiles a program to replace a guest's init, which attacks its host; `None`, with a skip line,
/// if that is not possible.
fn hostile_init(directory: &Path, source: &str) -> Option<PathBuf> {
    let (file, program) = (directory.join("init.c"), directory.join("init"));
    std::fs::write(&file, source).unwrap();
    let status = std::process::Command::new("cc")
        .args(["-static", "-O1", "-o"])
        .arg(&program)
        .arg(&file)
        .status();
    if !status.is_ok_and(|status| status.success()) {
        skip("no static program can be compiled here");
        return None;
    }
    Some(program)
}

/// Opens the ports by the names that virtio gives them, since no udev makes links. The kernel adds
/// ports after it has started init, so the first attempts may come too early.
const PORTS: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static char noise[65536];
static int port(int number)
{
    char path[64];
    snprintf(path, sizeof(path), "/dev/vport0p%d", number);
    int opened;
    while ((opened = open(path, O_RDWR)) < 0)
        usleep(1000);
    return opened;
}
static void begin(void)
{
    mkdir("/dev", 0755);
    mount("dev", "/dev", "devtmpfs", 0, "");
    memset(noise, 'x', sizeof(noise));
}
"#;

/// Resident memory of this process, shared by all its tests.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size() as u64
}

#[test]
fn a_hostile_init_that_floods_port_and_console_ends_with_an_error_and_little_memory() {
    let Some(kernel) = kernel("toll") else {
        return;
    };
    let mut setting = setting(kernel);
    // The output ports are not flooded. Nothing reads these before a command runs, and QEMU 7.2 may
    // then forget to wake the other port.
    let flood = format!(
        "{PORTS} int main(void) {{ begin(); if (!fork()) for (;;) write(1, noise, 4096); \
         int p = port(1); for (;;) write(p, noise, sizeof(noise)); }}"
    );
    let Some(init) = hostile_init(setting.directory.path(), &flood) else {
        return;
    };
    setting.spec.probe = init;
    setting.spec.command_line = "loglevel=0".into();
    let before = resident_bytes();
    let message = setting.fails_to_boot();
    has(&message, &["it sent a message longer than 64 MiB"]);
    assert!(message.len() < 4 << 20, "{}", message.len());
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 512 << 20, "{grown}");
}

#[test]
fn a_hostile_init_that_counts_without_an_end_is_stopped_by_a_limit() {
    let Some(kernel) = kernel("toll") else {
        return;
    };
    let mut setting = setting(kernel);
    // Much code between the marks, executed again and again.
    let code = (0..20_000).map(|n| format!("a: if (v == {n}) w++;").replace("a:", ""));
    let code: String = code.collect();
    let count = format!(
        "{PORTS} static volatile int v, w; __attribute__((noinline)) static void much(void) {{ {code} }} \
         int main(void) {{ begin(); for (;;) {{ \
         __asm__ volatile(\".byte 0x0f,0x1f,0x80,'T','O','L','b'\" ::: \"memory\"); much(); \
         __asm__ volatile(\".byte 0x0f,0x1f,0x80,'T','O','L','e'\" ::: \"memory\"); }} }}"
    );
    let Some(init) = hostile_init(setting.directory.path(), &count) else {
        return;
    };
    setting.spec.probe = init;
    setting.spec.accelerator = AcceleratorChoice::Only(Accelerator::Icount);
    setting.spec.counts_functions = true;
    let message = setting.fails_to_boot();
    has(&message, &["counted more regions than the file may hold"]);
    let counts = setting.directory.path().join("disk/counts");
    assert!(std::fs::metadata(counts).unwrap().len() <= 256 << 20);
}

#[test]
fn an_interrupt_ends_the_guest() {
    let Some(kernel) = kernel("toll") else {
        return;
    };
    let mut guest = setting(kernel).booted();
    assert_eq!(guest.trial(&shell("sleep 1000"), &|| true), None);
    assert!(!guest.is_alive());
}

#[test]
fn a_guest_that_will_not_boot_says_why() {
    let Some(kernel) = kernel("toll") else {
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
fn a_guest_that_counts_instructions_is_limited_by_the_hosts_clock() {
    let Some(kernel) = kernel("toll") else {
        return;
    };
    let mut setting = setting(kernel);
    setting.spec.accelerator = AcceleratorChoice::Only(Accelerator::Icount);
    let mut guest = setting.booted();
    let mut endless = shell("while :; do :; done");
    endless.timeout_ms = 1500;
    let message = failed(guest.trial(&endless, NEVER), FailureKind::TimedOut);
    assert!(message.contains("stopped after 1.5 s"), "{message}");
    // The guest's init enforces no limit, so the guest was ended with the trial.
    assert!(!guest.is_alive());
}

#[test]
fn instructions_are_not_counted_where_the_kernel_does_not_account_idle_time() {
    let Some(kernel) = kernel("toll") else {
        return;
    };
    let mut setting = setting(kernel);
    setting.spec.accelerator = AcceleratorChoice::Only(Accelerator::Icount);
    setting.spec.command_line = "nohz=off".into();
    let mut guest = setting.booted();
    let message = failed(guest.trial(&chase(), NEVER), FailureKind::Unsupported);
    has(
        &message,
        &["does not account idle time", "CONFIG_NO_HZ_IDLE"],
    );
}

#[test]
fn instructions_are_counted_in_place_of_time() {
    let Some(kernel) = kernel("toll") else {
        return;
    };
    let mut setting = setting(kernel);
    setting.spec.accelerator = AcceleratorChoice::Only(Accelerator::Icount);
    let lengths: Vec<f64> = (0..2)
        .map(|_| {
            let mut guest = setting.booted();
            assert_eq!(guest.facts().cpus_online, 1);
            let mut long = chase();
            let Workload::Chase(request) = &mut long.request.workload else {
                panic!("the workload is a chase");
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
