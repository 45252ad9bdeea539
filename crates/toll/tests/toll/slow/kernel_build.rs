//! Builds the kernels of guests in the user's own cache. The first build takes minutes; later runs
//! find the kernels there.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;
use toll_testing::{
    BUILD_PATIENCE, Bench, Running, full_or, has, lacks, list, output_within, processes_marked,
    skip, source_tree, toll_kernel, wait_until,
};

fn show(variant: &str) -> Value {
    let text = toll_kernel(&["show", variant, "--json"]).expect("the kernel is built");
    serde_json::from_str(&text).expect("the output is one JSON document")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("the value is a string")
}

/// Recognises a kernel image as file(1) does: the header of the boot protocol
/// (Documentation/arch/x86/boot.rst) has these letters at offset 0x202.
fn is_image(path: &str) -> bool {
    std::fs::read(path).is_ok_and(|bytes| bytes.get(0x202..0x206) == Some(b"HdrS"))
}

fn is_module(path: &Value) -> bool {
    std::fs::read(text(path)).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF"))
}

#[test]
fn every_variant_is_built_or_found_and_whole() {
    // Debian's kernel is only unpacked; the others take minutes to compile.
    let variants = full_or(
        &["stock"][..],
        &["stock", "bullseye", "sid", "toll", "toll-debug"],
    );
    for &variant in variants {
        if let Err(reason) = toll_kernel(&["build", variant]) {
            return skip(&reason);
        }
        let shown = show(variant);
        assert!(is_image(text(&shown["image"])), "{shown:#}");
        let modules = list(&shown["modules"]);
        let is_of_suite = ["bullseye", "sid"].contains(&variant);
        assert_eq!(modules.is_empty(), is_of_suite, "{shown:#}");
        let boot_modules = list(&shown["boot_modules"]);
        let is_from_source = variant.starts_with("toll");
        assert_eq!(boot_modules.is_empty(), is_from_source, "{shown:#}");
        assert!(
            modules.iter().chain(boot_modules).all(is_module),
            "{shown:#}"
        );
        let release = text(&shown["release"]);
        for module in modules {
            // A kernel only loads modules that were built for it.
            let module = std::fs::read(text(module)).unwrap();
            let magic = format!("vermagic={release} ");
            assert!(
                module
                    .windows(magic.len())
                    .any(|bytes| bytes == magic.as_bytes())
            );
        }
        let again = toll_kernel(&["build", variant]).unwrap();
        assert!(again.contains("is built already"), "{again}");
    }
    if variants.contains(&"toll-debug") {
        let debug = toll_kernel(&["show", "toll-debug", "--against", "toll"]).unwrap();
        assert!(debug.contains("DEBUG_ATOMIC_SLEEP"), "{debug}");
    }
}

/// Starts the build of the stock kernel, and sends it a signal when its messages contain a word.
fn kill_at(bench: &Bench, word: &str, signal: Signal) {
    let errors = bench.path("errors");
    let mut command = bench.spawnable("kernel build stock");
    command.stderr(Stdio::from(std::fs::File::create(&errors).unwrap()));
    let mut running = Running(command.spawn().unwrap());
    wait_until(&format!("the build prints {word}"), || {
        let ended = running.0.try_wait().unwrap();
        let said = std::fs::read_to_string(&errors).unwrap();
        assert!(ended.is_none(), "the build ended before {word}: {said}");
        said.contains(word)
    });
    running.send(signal);
    let status = running.end();
    assert_eq!(status.code(), (signal == Signal::INT).then_some(130));
    // Its child processes end as well; otherwise the next build would wait for them.
    let marker = format!("XDG_CACHE_HOME={}", bench.path("cache").display());
    wait_until("all its child processes have ended", || {
        processes_marked(&marker).is_empty()
    });
    let kernels = bench.path("cache/toll/kernels");
    let records = std::fs::read_dir(kernels).map_or(0, |entries| {
        entries
            .filter(|entry| entry.as_ref().unwrap().path().join("kernel.json").exists())
            .count()
    });
    assert_eq!(
        records, 0,
        "an unfinished build leaves no record of a kernel"
    );
}

#[test]
fn a_build_that_was_killed_time_and_again_goes_on_to_a_whole_kernel() {
    if let Err(reason) = toll_kernel(&["build", "stock"]) {
        return skip(&reason);
    }
    let bench = Bench::new();
    kill_at(&bench, "fetching", Signal::INT);
    kill_at(&bench, "unpacking linux-image", Signal::KILL);
    kill_at(&bench, "unpacking linux-headers", Signal::INT);
    kill_at(&bench, "building the module", Signal::KILL);
    // A run that needs the kernel continues its build, too.
    let needy = "run --guest -L kernel=stock --build-kernels -r 1 true";
    let output = output_within(&mut bench.toll(needy), BUILD_PATIENCE);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("is built ("), "{errors}");
    assert!(!errors.contains("fetching"), "downloads are kept: {errors}");

    // The result equals that of an uninterrupted build.
    let (here, there) = (bench.json("kernel show stock --json"), show("stock"));
    assert_eq!(here["key"], there["key"]);
    let names = |shown: &Value, what: &str| -> Vec<String> {
        let name = |path: &Value| text(path).rsplit('/').next().map(str::to_owned);
        list(&shown[what]).iter().filter_map(name).collect()
    };
    for what in ["modules", "boot_modules"] {
        assert_eq!(names(&here, what), names(&there, what));
    }
    // Compiled modules are not compared, because their debug information contains paths.
    for (one, other) in list(&here["boot_modules"])
        .iter()
        .zip(list(&there["boot_modules"]))
    {
        assert!(
            std::fs::read(text(one)).unwrap() == std::fs::read(text(other)).unwrap(),
            "{one}"
        );
    }
}

/// Runs a command with the kernels of this user and the definitions of the bench. Returns its
/// status and its output.
fn run_with_own_kernels(bench: &Bench, command: &str) -> (Option<i32>, String) {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(std::path::PathBuf::from);
    let home = || std::path::PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache");
    let mut toll = bench.toll(command);
    toll.env("XDG_CACHE_HOME", cache.unwrap_or_else(home));
    let output = output_within(&mut toll, BUILD_PATIENCE);
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    (output.status.code(), said)
}

#[test]
fn the_tutorial_goes_from_a_patch_to_a_verdict() {
    if let Err(reason) = toll_kernel(&["build", "toll"]) {
        return skip(&reason);
    }
    if let Some(reason) = toll_host::environment::guest::guest_obstacle() {
        return skip(&reason);
    }
    let bench = Bench::new();
    let tutorial = std::fs::read_to_string(source_tree().join("docs/KERNELS.md")).unwrap();
    let commands = tutorial.lines().filter_map(|line| {
        let line = line.strip_prefix("toll ")?;
        let end = line.find("   ").unwrap_or(line.len());
        // Left out: the first two take longer and have tests of their own, and cleaning would
        // remove other builds.
        let left_out = ["bisect", "kernel ab", "kernel clean"];
        Some(&line[..end]).filter(|line| !left_out.iter().any(|one| line.starts_with(one)))
    });
    let mut said = Vec::new();
    for command in commands {
        let example = source_tree().join("experiments/examples");
        let command = command.replace("experiments/examples", example.to_str().unwrap());
        let (status, text) = run_with_own_kernels(&bench, &command);
        assert_eq!(status, Some(0), "{command}: {text}");
        said.push(text);
    }
    let verdicts = said.iter().find(|text| text.contains("kernels.read"));
    let verdicts = verdicts.expect("the tutorial runs the example");
    has(verdicts, &["2 supported"]);
}

/// Returns the commands in the first lines of a lab, with which a student begins.
fn commands_of_lab(lab: &str) -> Vec<String> {
    let path = source_tree().join(format!("experiments/examples/{lab}.toml"));
    let text = std::fs::read_to_string(path).unwrap();
    let head = text.lines().map_while(|line| line.strip_prefix('#'));
    let commands = head.filter_map(|line| line.strip_prefix("     "));
    let commands: Vec<&str> = commands.collect();
    let joined = commands.join("\n").replace(" \\\n", " ");
    let examples = source_tree().join("experiments/examples");
    let lines = joined.lines().filter_map(|line| line.strip_prefix("toll "));
    lines
        .map(|line| line.replace("experiments/examples", examples.to_str().unwrap()))
        .collect()
}

#[test]
fn the_labs_run_as_their_first_lines_say() {
    if let Err(reason) = toll_kernel(&["build", "toll"]) {
        return skip(&reason);
    }
    if let Some(reason) = toll_host::environment::guest::guest_obstacle() {
        return skip(&reason);
    }
    let bench = Bench::new();
    for lab in ["lab-system-call", "lab-page-faults"] {
        let commands = commands_of_lab(lab);
        assert_eq!(commands.len(), 2, "{commands:?}");
        let mut last = String::new();
        for command in commands {
            let (status, text) = run_with_own_kernels(&bench, &command);
            assert_eq!(status, Some(0), "{command}: {text}");
            last = text;
        }
        has(&last, &[" supported"]);
        lacks(&last, &["refuted", "undecided", "not testable", "failed"]);
    }
}

#[test]
fn what_makes_no_kernel_is_named() {
    if let Err(reason) = toll_kernel(&["build", "toll"]) {
        return skip(&reason);
    }
    let bench = Bench::new();
    let patch =
        std::fs::read_to_string(source_tree().join("experiments/examples/longer-read.patch"))
            .unwrap();
    bench.write(
        "rejected.patch",
        &patch.replace("ssize_t ret;", "ssize_t gone;"),
    );
    bench.write("wrong.patch", &patch.replace("int i;", "int i = ;"));
    bench.write("unmet.config", "CONFIG_NO_SUCH_OPTION=y\n");
    for (name, option, expected) in [
        (
            "rejected",
            "--patches rejected.patch",
            &["Hunk #1 FAILED", "rejected.patch"][..],
        ),
        (
            "wrong",
            "--patches wrong.patch",
            &["read_write.c:", "expected expression"],
        ),
        (
            "unmet",
            "--config unmet.config",
            &["CONFIG_NO_SUCH_OPTION=y (is n)"],
        ),
    ] {
        let added = run_with_own_kernels(&bench, &format!("kernel add {name} {option}"));
        assert_eq!(added.0, Some(0), "{}", added.1);
        let built = run_with_own_kernels(&bench, &format!("kernel build {name}"));
        assert_eq!(built.0, Some(1), "{}", built.1);
        has(&built.1, expected);
    }
    // The next kernel contains nothing from these definitions.
    toll_kernel(&["build", "toll"]).unwrap();
}
