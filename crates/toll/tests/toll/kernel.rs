//! `toll kernel` except for building: missing prerequisites, the content of the cache, one builder
//! at a time. Building is in `kernel_build`.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use toll_testing::{Bench, Running, has, list, skip, wait_until};

/// Returns the record of a kernel that another `toll` might have made.
fn record(key: &str) -> Value {
    json!({
        "version": 1,
        "name": "toll",
        "key": key,
        "recipe": "0123456789abcdef",
        "release": "6.12.1-toll",
        "source": "linux-source-6.12 6.12.1-1",
        "compiler": "gcc (Debian 12.2.0-14) 12.2.0",
        "patches": ["0001-one.patch"],
        "image": "bzImage",
        "config": "config",
        "modules": ["modules/one.ko"],
        "trial_modules": [],
        "boot_modules": [],
        "board": "microvm",
        "checks_itself": false,
        "built_at": "2026-01-02T03:04:05Z",
    })
}

/// Makes a cache entry with the files that its record names.
fn entry(bench: &Bench, key: &str, record: Option<&Value>) {
    let directory = format!("cache/toll/kernels/{key}");
    std::fs::create_dir_all(bench.path(&format!("{directory}/modules"))).unwrap();
    for (name, text) in [
        ("bzImage", "an image"),
        ("config", "CONFIG_SMP=y\n"),
        ("modules/one.ko", "a module"),
    ] {
        bench.write(&format!("{directory}/{name}"), text);
    }
    if let Some(record) = record {
        bench.write(&format!("{directory}/kernel.json"), &record.to_string());
    }
}

fn states(bench: &Bench) -> Vec<(String, String)> {
    let listing = bench.json("kernel list --json");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    list(&listing["kernels"])
        .iter()
        .map(|row| {
            let directory = text(&row["directory"]);
            let key = directory.rsplit('/').next().unwrap_or_default().to_owned();
            (key, text(&row["state"]))
        })
        .collect()
}

#[test]
fn all_that_is_missing_to_build_is_named_at_once_with_the_command_that_installs_it() {
    let bench = Bench::new();
    let mut command = bench.toll("kernel build toll stock");
    let output = command.env("PATH", bench.path("empty")).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{errors}");
    for program in [
        "gcc", "make", "flex", "bison", "bc", "xz", "patch", "apt-get",
    ] {
        assert!(
            errors.contains(&format!("{program},")),
            "{program}: {errors}"
        );
    }
    let (_, packages) = errors
        .split_once("--no-install-recommends")
        .expect("the message has a command");
    for package in ["xz-utils", "binutils", "gcc", "flex"] {
        assert!(packages.contains(package), "{package}: {errors}");
    }
    assert!(!bench.path("cache").exists(), "no build is begun");
}

#[test]
fn an_empty_cache_is_listed_shown_and_cleaned() {
    let bench = Bench::new();
    let listing = bench.json("kernel list --json");
    assert_eq!(listing["kernels"], json!([]));
    let built_in = [
        "toll",
        "toll-debug",
        "stock",
        "bullseye",
        "bookworm",
        "trixie",
        "sid",
    ];
    assert_eq!(listing["not_built"], json!(built_in));
    let text = bench.ok("kernel list").stdout;
    has(&text, &["toll kernel build toll toll-debug stock"]);
    let errors = bench.fails(5, "kernel show stock");
    assert!(errors.contains("run toll kernel build stock"), "{errors}");
    for arguments in [&["kernel", "clean"][..], &["kernel", "clean", "--all"]] {
        assert_eq!(bench.ok(arguments).stdout, "nothing to remove\n");
    }
    assert!(!bench.path("cache").exists(), "listing creates no cache");
}

#[test]
fn what_guests_cannot_use_is_listed_with_the_reason_and_cleaned() {
    let bench = Bench::new();
    entry(&bench, "toll-stale", Some(&record("toll-stale")));
    entry(&bench, "toll-begun", None);
    let mut newer = record("toll-newer");
    newer["version"] = 99.into();
    entry(&bench, "toll-newer", Some(&newer));
    entry(&bench, "toll-torn", Some(&record("toll-torn")));
    let torn = bench.path("cache/toll/kernels/toll-torn");
    std::fs::remove_file(torn.join("modules/one.ko")).unwrap();
    entry(&bench, "toll-noise", None);
    bench.write("cache/toll/kernels/toll-noise/kernel.json", "{\"version\":");

    let mut found = states(&bench);
    found.sort();
    let expected = [
        ("toll-begun", "unusable"),
        ("toll-newer", "unusable"),
        ("toll-noise", "unusable"),
        ("toll-stale", "stale"),
        ("toll-torn", "unusable"),
    ];
    assert_eq!(
        found,
        expected.map(|(key, state)| (key.to_owned(), state.to_owned()))
    );
    let text = bench.ok("kernel list").stdout;
    for reason in [
        "it is incomplete",
        "does not have version",
        "one.ko is missing",
        "stale",
    ] {
        assert!(text.contains(reason), "{reason}: {text}");
    }
    let errors = bench.fails(5, "kernel show");
    has(&errors, &["other patches, configuration or modules"]);

    let text = bench.ok("kernel clean").stdout;
    has(&text, &["toll-torn", "freed "]);
    assert_eq!(states(&bench), []);
}

#[test]
fn sources_stay_unless_all_is_to_go_and_build_trees_go() {
    let bench = Bench::new();
    for name in [
        "build/toll-1/objects/vmlinux",
        "source/linux/Makefile",
        "packages/one.deb",
    ] {
        let path = bench.path(&format!("cache/toll/kernel-work/{name}"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "content").unwrap();
    }
    let work = |name: &str| bench.path("cache/toll/kernel-work").join(name);
    bench.ok("kernel clean");
    assert!(!work("build/toll-1").exists());
    assert!(work("source/linux/Makefile").exists() && work("packages/one.deb").exists());
    let text = bench.ok("kernel clean --all").stdout;
    assert!(
        !work("source/linux").exists() && !work("packages/one.deb").exists(),
        "{text}"
    );
}

/// Holds the lock of a builder.
fn lock(bench: &Bench) -> File {
    std::fs::create_dir_all(bench.path("cache/toll/kernel-work")).unwrap();
    let path = bench.write("cache/toll/kernel-work/lock", "4242\n");
    let file = File::open(path).unwrap();
    file.lock().unwrap();
    file
}

#[test]
fn nothing_is_cleaned_while_a_build_goes_on() {
    let bench = Bench::new();
    entry(&bench, "toll-begun", None);
    let _lock = lock(&bench);
    for arguments in [&["kernel", "clean"][..], &["kernel", "clean", "--all"]] {
        let errors = bench.fails(1, arguments);
        assert!(errors.contains("process 4242"), "{errors}");
    }
    assert!(bench.path("cache/toll/kernels/toll-begun").exists());
}

#[test]
fn a_second_build_says_for_whom_it_waits_and_can_be_interrupted() {
    let bench = Bench::new();
    let _lock = lock(&bench);
    let mut command = bench.spawnable("kernel build");
    let mut running = Running(command.stderr(Stdio::piped()).spawn().unwrap());
    let mut stream = running.0.stderr.take().unwrap();
    let (mut errors, mut chunk) = (String::new(), [0; 1024]);
    // If this machine cannot build, the command ends without waiting.
    while !errors.contains("waiting") {
        match stream.read(&mut chunk).unwrap() {
            0 => break,
            read => errors.push_str(&String::from_utf8_lossy(&chunk[..read])),
        }
    }
    if !errors.contains("waiting") && running.end().code() == Some(5) {
        return skip(errors.trim());
    }
    assert!(errors.contains("process 4242"), "{errors}");
    let pid = Pid::from_child(&running.0);
    kill_process(pid, Signal::INT).unwrap();
    let mut status = None;
    wait_until("the build has ended", || {
        status = running.0.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.code()), Some(130));
}
