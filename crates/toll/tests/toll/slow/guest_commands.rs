//! `toll guest run` and `toll guest shell`, as their users see them.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use toll_system::paths;
use toll_testing::{
    Bench, Ran, Running, TOLL, any_kernel, has, has_program, is_root, processes_marked, skip,
    wait_until,
};

use super::guest::kernel;

/// Prepares a bench that finds the kernels in the real user's cache.
pub fn bench() -> Bench {
    let bench = Bench::new();
    link_kernels(&bench);
    bench
}

/// Links the kernels of the real user into the cache of a bench, one by one, because toll refuses a
/// cache that is itself a link.
pub fn link_kernels(bench: &Bench) {
    let links = bench.path("cache/toll/kernels");
    std::fs::create_dir_all(&links).unwrap();
    let kernels = paths::kernels().unwrap().path().unwrap();
    for entry in std::fs::read_dir(kernels).into_iter().flatten().flatten() {
        std::os::unix::fs::symlink(entry.path(), links.join(entry.file_name())).unwrap();
    }
}

/// Returns whether one of the marked processes is QEMU.
pub fn has_emulator(marker: &str) -> bool {
    processes_marked(marker).iter().any(|pid| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.starts_with("qemu"))
    })
}

fn in_guest(bench: &Bench, options: &[&str], command: &[&str]) -> Ran {
    let start = ["guest", "run", "--accelerator", "tcg", "--memory", "128MiB"];
    bench.run(&[&start, options, &["--"], command].concat())
}

#[test]
fn a_command_in_a_guest_has_its_output_and_its_status() {
    if kernel(any_kernel()).is_none() {
        return;
    }
    let kernel_option = ["--kernel", any_kernel()];
    let bench = bench();
    bench.write("note", "from the host");
    let ran = in_guest(
        &bench,
        &[
            &kernel_option[..],
            &["--add", "note", "--log", "kernel.log"],
        ]
        .concat(),
        &[
            "sh",
            "-c",
            "cat /host/note; echo aside >&2; ls /work; file=$(mktemp) && rm $file; stat -c %a /tmp; exit 7",
        ],
    );
    assert_eq!(ran.code, Some(7), "{ran:#?}");
    assert_eq!(ran.stdout, "from the hostlost+found\n1777\n");
    assert_eq!(ran.stderr, "aside\n");
    assert!(bench.read("kernel.log").contains("Linux version"));
    assert_eq!(bench.leftovers(), Vec::<PathBuf>::new());

    // The output exceeds every buffer on its way.
    let ran = in_guest(
        &bench,
        &kernel_option,
        &["sh", "-c", "seq 200000; kill -9 $$"],
    );
    assert_eq!(ran.code, Some(128 + 9));
    assert_eq!(ran.stdout.lines().count(), 200_000);
    assert!(ran.stdout.ends_with("\n200000\n"));

    let ran = in_guest(&bench, &kernel_option, &["/no/such/program"]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    has(&ran.stderr, &["cannot run /no/such/program"]);
}

#[test]
fn what_ended_a_guest_before_its_command_is_said() {
    let hog = "tail /dev/zero";
    let panic = format!("echo 1 >/proc/sys/vm/panic_on_oom; {hog}");
    // A distribution's kernel can power its machine off; a microvm cannot.
    for name in ["stock", "toll"] {
        if kernel(name).is_none() {
            continue;
        }
        let bench = bench();
        for (command, code, expected) in [
            ("poweroff -f", 1, "the guest was powered off before its"),
            ("halt -f", 1, "the guest's kernel was halted before its"),
            ("reboot -f", 1, "the guest was rebooted before its"),
            (&panic, 1, "the guest died: its kernel panicked"),
            (
                &format!("exec {hog}"),
                128 + 9,
                "the guest ran out of memory",
            ),
        ] {
            let ran = in_guest(&bench, &["--kernel", name], &["sh", "-c", command]);
            assert_eq!(ran.code, Some(code), "{name}: {command}: {ran:#?}");
            has(&ran.stderr, &[expected]);
        }
        assert_eq!(bench.leftovers(), Vec::<PathBuf>::new());
    }
}

#[test]
fn a_killed_qemu_is_said_to_have_been_killed() {
    if kernel(any_kernel()).is_none() {
        return;
    }
    let bench = bench();
    let line = format!(
        "guest run --accelerator tcg --kernel {} -- sh -c 'echo up; sleep 1000'",
        any_kernel()
    );
    let mut toll = bench.spawnable(&line);
    let mut child = toll.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.as_mut().unwrap();
    let mut up = [0; 3];
    child.stdout.as_mut().unwrap().read_exact(&mut up).unwrap();
    let marker = bench.path("state").display().to_string();
    let emulator = processes_marked(&marker).into_iter().find(|pid| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.starts_with("qemu"))
    });
    let emulator = Pid::from_raw(emulator.unwrap()).unwrap();
    kill_process(emulator, Signal::KILL).unwrap();
    let mut said = String::new();
    let stderr = child.stderr.as_mut().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{said}");
    has(&said, &["the guest died: QEMU was killed (SIGKILL)"]);
}

#[test]
fn a_command_that_takes_too_long_is_an_error() {
    if kernel("toll").is_none() {
        return;
    }
    let bench = bench();
    let ran = in_guest(&bench, &["--timeout", "1s"], &["sleep", "1000"]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    has(&ran.stderr, &["it took over 1 s", "--timeout"]);
    assert_eq!(bench.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn a_guest_has_the_system_call_that_counts_primes() {
    if kernel("toll").is_none() {
        return;
    }
    let program = Path::new(TOLL).with_file_name("prime_sys_test");
    let bench = bench();
    let ran = bench.shell(&format!(
        "toll guest run --accelerator tcg --add {} -- /host/prime_sys_test --runs 3 2 1000 1048576",
        program.display()
    ));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let lines = ran.stdout.lines().map(str::split_whitespace);
    let words: Vec<Vec<&str>> = lines.map(Iterator::collect).collect();
    let [head, two, thousand, most] = &words[..] else {
        panic!("{ran:#?}");
    };
    assert_eq!(head[..], ["n", "count", "us"]);
    // Both the first number and its count are 2.
    assert_eq!(two[..2], ["2", "2"]);
    assert_eq!((thousand[0], most[0]), ("1000", "1048576"));
    // There are 82,025 primes below 2^20; the standard deviation of the count is 275.
    let count: u64 = most[1].parse().unwrap();
    assert!((80_000..84_000).contains(&count), "{ran:#?}");
    assert!(most[2].parse::<u64>().unwrap() > 0, "{ran:#?}");
}

#[test]
fn a_missing_qemu_is_named_with_its_package() {
    if kernel("toll").is_none() {
        return;
    }
    if !is_root() || !has_program("unshare") {
        skip("hiding QEMU needs root and unshare");
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
    if kernel("toll").is_none() {
        return;
    }
    let bench = bench();
    let mut toll = bench.spawnable("guest run --accelerator tcg -- sleep 1000");
    let mut running = Running(toll.spawn().unwrap());
    // QEMU inherits the environment of the toll that started it.
    let marker = bench.path("state").display().to_string();
    wait_until("the guest runs", || has_emulator(&marker));
    running.kill();
    wait_until("the guest is gone", || processes_marked(&marker).is_empty());
    assert!(!bench.leftovers().is_empty());
    bench.ok("doctor --restore");
    assert_eq!(bench.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn a_shell_in_a_guest_obeys_what_it_is_given() {
    if kernel("toll").is_none() {
        return;
    }
    let bench = bench();
    let start = "toll guest shell --accelerator tcg --memory 128MiB";
    let ran = bench.shell(&format!("printf 'echo $((6*7))\\nexit 3\\n' | {start}"));
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(3), "42\n"),
        "{ran:#?}"
    );
    // The shell ends at the end of its input.
    let ran = bench.shell(&format!("echo true | {start}"));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

#[test]
fn a_terminal_is_put_back_after_a_shell() {
    if kernel("toll").is_none() {
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
fn a_person_may_end_a_guest_by_powering_it_off() {
    if kernel(any_kernel()).is_none() {
        return;
    }
    if !has_program("script") {
        return skip("script is missing; install the package bsdutils");
    }
    let bench = bench();
    let kernel = any_kernel();
    let line = format!("toll guest shell --accelerator tcg --kernel {kernel}; echo ended $?");
    let ran = bench.shell(&format!(
        "printf 'poweroff -f\\n' | script -qec '{line}' /dev/null"
    ));
    has(&ran.stdout, &["the guest was powered off", "ended 0"]);
    // For a script, powering off is an error, because it did not reach its end.
    let ran = bench.shell(&format!(
        "echo 'poweroff -f' | toll guest shell --accelerator tcg --kernel {kernel}"
    ));
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    has(&ran.stderr, &["the guest was powered off before its"]);
}

#[test]
fn kvm_is_used_only_where_a_guest_has_booted_under_it() {
    if kernel("toll").is_none() {
        return;
    }
    let bench = bench();
    bench.ok("guest run -- true");
    let known = bench.path("cache/toll/kvm.json");
    let has_device = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/kvm")
        .is_ok();
    assert_eq!(known.exists(), has_device);
    let examination = bench.json("doctor --json --no-noise");
    let list = toll_testing::list(&examination["capabilities"]);
    let guests = list.iter().find(|one| one["what"] == "guests").unwrap();
    let detail = guests["detail"].as_str().unwrap();
    let word = match std::fs::read_to_string(&known) {
        Ok(text) if text.contains(": null") => "by KVM",
        _ => "by emulation",
    };
    assert!(detail.starts_with(word), "{detail}");
    // A known result is not tested again.
    let written_at = || known.metadata().and_then(|file| file.modified()).ok();
    let before = written_at();
    std::thread::sleep(Duration::from_millis(20));
    bench.ok("guest run -- true");
    assert_eq!(written_at(), before);
}
