//! The invariants of `ARCHITECTURE.md`, checked by reading the source tree.

use std::path::{Path, PathBuf};

use toll_testing::source_tree;

/// A source file, without its comments and unit tests.
struct Source {
    /// Its path from the root of the tree, such as `crates/toll/src/cmd/mod.rs`.
    path: String,
    code: String,
}

fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("the tree can be read") {
        let path = entry.expect("the tree can be read").path();
        let name = path.file_name().unwrap_or_default();
        if path.is_symlink() || name == "target" || name == ".git" {
            continue;
        }
        if path.is_dir() {
            walk(&path, found)
        } else {
            found.push(path)
        }
    }
}

/// Returns all text files below a directory of the tree, with their paths from its root.
fn texts(directory: &str, extensions: &[&str]) -> Vec<(String, String)> {
    let root = source_tree();
    let mut found = Vec::new();
    walk(&root.join(directory), &mut found);
    found.sort();
    let is_wanted = |path: &PathBuf| {
        let extension = path.extension().unwrap_or_default();
        extensions.iter().any(|wanted| extension == *wanted)
    };
    let texts: Vec<(String, String)> = found
        .into_iter()
        .filter(is_wanted)
        .map(|path| {
            let name = path
                .strip_prefix(&root)
                .expect("the path is below the root")
                .display()
                .to_string();
            (
                name,
                std::fs::read_to_string(&path).expect("sources are UTF-8"),
            )
        })
        .collect();
    assert!(!texts.is_empty(), "{directory} has no sources");
    texts
}

fn all_sources() -> Vec<(String, String)> {
    let directories = ["crates", "verbs", "programs", "bench", "mount", "observe"];
    directories
        .map(|directory| texts(directory, &["rs"]))
        .concat()
}

/// Returns the code below a directory that is not only built for tests.
fn sources(directory: &str) -> Vec<Source> {
    let is_test = |path: &str| {
        path.ends_with("tests.rs")
            || path.contains("/tests/")
            || path.contains("/report/src/sample")
    };
    texts(directory, &["rs"])
        .into_iter()
        .filter(|(path, _)| !is_test(path))
        .map(|(path, text)| {
            let end = text.find("#[cfg(test)]\nmod tests").unwrap_or(text.len());
            let is_code = |line: &&str| !line.trim_start().starts_with("//");
            let code: Vec<&str> = text[..end].lines().filter(is_code).collect();
            Source {
                path,
                code: code.join("\n"),
            }
        })
        .collect()
}

/// Fails if a word occurs in the code of a directory, except in the given places.
#[track_caller]
fn only_in(word: &str, directory: &str, places: &[&str]) {
    for source in sources(directory) {
        let is_allowed = places.iter().any(|place| source.path.starts_with(place));
        let line = source.code.lines().find(|line| line.contains(word));
        assert!(
            is_allowed || line.is_none(),
            "{word} in {}: {}",
            source.path,
            line.unwrap_or_default()
        );
    }
}

fn dependencies(manifest: &str) -> Vec<String> {
    let text =
        std::fs::read_to_string(source_tree().join(manifest)).expect("the manifest can be read");
    let manifest: toml::Table = text.parse().expect("the manifest is TOML");
    let table = manifest.get("dependencies").and_then(toml::Value::as_table);
    table.map_or_else(Vec::new, |table| table.keys().cloned().collect())
}

#[test]
fn crates_depend_on_nothing_beyond_their_layer() {
    for (name, needed, banned) in [
        (
            "probe",
            "toll-wire",
            "toml rusqlite toll toll-cli toll-stats clap",
        ),
        (
            "core",
            "toll-stats",
            "rusqlite rustix libc nix jiff toll toll-cli toll-probe",
        ),
    ] {
        let has = dependencies(&format!("crates/{name}/Cargo.toml"));
        assert!(has.iter().any(|one| one == needed), "{has:?}");
        let found = has
            .iter()
            .find(|one| banned.split(' ').any(|word| word == *one));
        assert_eq!(found, None, "{name} has a banned dependency");
    }
    let wire = dependencies("crates/wire/Cargo.toml");
    assert_eq!(wire, ["schemars", "serde", "serde_json"]);
    let stats = dependencies("crates/stats/Cargo.toml");
    assert_eq!(stats, Vec::<String>::new());
}

#[test]
fn specifications_plans_claims_statistics_and_reports_do_no_input_or_output() {
    for directory in [
        "crates/document/src",
        "crates/stats/src",
        "crates/wire/src",
        "crates/core/src",
        "crates/report/src",
        "programs/meow/src/decorate",
    ] {
        for word in [
            "std::fs",
            "std::net",
            "std::process",
            "std::env",
            "std::thread",
            "std::time::Instant",
            "SystemTime",
            "io::stdin",
            "io::stdout",
            "io::stderr",
            "rustix",
            "libc::",
            "rusqlite",
            "jiff::Timestamp::now",
        ] {
            only_in(word, directory, &[]);
        }
    }
}

/// `toll VERB` starts `toll-VERB`, so nothing waits for the build of another product.
#[test]
fn no_crate_needs_a_product() {
    for directory in ["crates", "verbs", "bench"] {
        for (path, text) in texts(directory, &["toml"]) {
            for product in ["toll-mount", "toll-observe"] {
                assert!(!needs(&text, product), "{path} needs {product}");
            }
        }
    }
}

/// Whether a manifest names a dependency, not counting those of tests.
fn needs(manifest: &str, package: &str) -> bool {
    let manifest: toml::Table = manifest.parse().expect("the manifest is TOML");
    let tables = ["dependencies", "build-dependencies"].map(|table| manifest.get(table));
    let mut tables = tables
        .into_iter()
        .flatten()
        .filter_map(toml::Value::as_table);
    tables.any(|table| table.contains_key(package))
}

#[test]
fn only_the_command_line_uses_verbs() {
    let verbs = texts("verbs", &["toml"]);
    let name = |text: &str| {
        let manifest: toml::Table = text.parse().expect("the manifest is TOML");
        let name = manifest["package"]["name"].as_str();
        name.expect("a package has a name").to_owned()
    };
    let names: Vec<String> = verbs.iter().map(|(_, text)| name(text)).collect();
    assert!(names.len() >= 5, "{names:?}");
    for (path, text) in [texts("crates", &["toml"]), verbs].concat() {
        for verb in &names {
            let is_allowed = path == "crates/toll/Cargo.toml";
            assert!(is_allowed || !needs(&text, verb), "{path} needs {verb}");
        }
    }
}

/// Without Rust's start-up code, only glibc passes the arguments to the .init_array functions from
/// which Rust gets them.
#[test]
fn a_program_without_rusts_start_up_takes_its_arguments_from_main() {
    let programs = sources("programs")
        .into_iter()
        .filter(|source| source.code.contains("#![no_main]"))
        .filter_map(|source| Some(source.path.split_once("/src/")?.0.to_owned()));
    let programs: Vec<String> = programs.collect();
    assert_eq!(programs, ["programs/meow"]);
    for directory in &programs {
        only_in("args_os", directory, &[]);
        only_in("env::args", directory, &[]);
    }
}

#[test]
fn recordings_are_read_without_input_or_output() {
    for module in ["devices", "dhcp", "session", "interfaces.rs"] {
        for source in sources("observe/src") {
            let is_of_module = source.path.starts_with(&format!("observe/src/{module}"));
            for word in ["std::fs", "std::env", "std::process", "rustix", "libc::"] {
                assert!(
                    !is_of_module || !source.code.contains(word),
                    "{}",
                    source.path
                );
            }
        }
    }
}

#[test]
fn only_the_store_speaks_sql() {
    only_in(
        "rusqlite",
        "crates",
        &["crates/host/src/store/", "crates/toll/tests/"],
    );
}

#[test]
fn only_fleet_speaks_parquet() {
    only_in("parquet::", "crates", &["crates/tables/src/"]);
}

#[test]
fn only_environment_trials_and_the_probe_start_processes() {
    for word in [
        "Command::new",
        "process::Command",
        "posix_spawn(",
        "libc::fork",
    ] {
        only_in(
            word,
            "crates",
            &[
                // These run compilers when toll is built.
                "crates/callcount/build.rs",
                "crates/host/build.rs",
                "crates/host/src/environment/",
                "crates/host/src/trial/",
                "crates/probe/src/workloads/command/",
                "crates/probe/src/workloads/copy/system_cat.rs",
                "crates/probe/src/workloads/crossing/process.rs",
                "crates/probe/src/fork.rs",
                "crates/probe/src/guest/",
                "crates/probe/src/workloads/primes/process.rs",
                // These run programs for their effect, and strace.
                "crates/system/src/process.rs",
                "crates/system/src/strace.rs",
                // This becomes the program of a verb.
                "crates/toll/src/cmd/product.rs",
                // These are for tests and experiments.
                "crates/sshd/src/lib.rs",
                "crates/testing/src/",
                "crates/toll/tests/",
                "crates/checks/tests/",
                "crates/probe/tests/",
            ],
        );
    }
}

#[test]
fn only_the_commands_print() {
    let places = [
        // A build script talks to Cargo by printing.
        "crates/callcount/build.rs",
        "crates/host/build.rs",
        "crates/probe/build.rs",
        "crates/system/src/output.rs",
        "crates/testing/build.rs",
        "crates/testing/src/",
        "crates/toll/src/cmd/",
        "crates/toll/tests/",
        "crates/probe/tests/",
    ];
    for word in ["println!", "print!(", "dbg!", "clippy::print_std"] {
        only_in(word, "crates", &places);
    }
    let other_programs = ["crates/probe/src/main.rs", "crates/probe/src/program.rs"];
    let programs = [&places[..], &other_programs].concat();
    for word in ["io::stdout", "io::stderr"] {
        only_in(word, "crates", &programs);
    }
}

#[test]
fn functions_stay_short() {
    for (path, text) in all_sources() {
        assert!(
            !text.contains("clippy::too_many_lines") || path.ends_with("architecture.rs"),
            "{path}"
        );
    }
    // With this setting, clippy limits the length of functions.
    let clippy = std::fs::read_to_string(source_tree().join("clippy.toml")).unwrap();
    let settings: toml::Table = clippy.parse().unwrap();
    assert_eq!(settings["too-many-lines-threshold"].as_integer(), Some(70));
}

#[test]
fn every_crate_is_held_to_the_lints_of_the_workspace() {
    let text = std::fs::read_to_string(source_tree().join("Cargo.toml")).unwrap();
    let workspace: toml::Table = text.parse().unwrap();
    let lints = &workspace["workspace"]["lints"]["clippy"];
    for lint in [
        "undocumented_unsafe_blocks",
        "allow_attributes",
        "too_many_lines",
        "print_stdout",
        "print_stderr",
        "disallowed_methods",
    ] {
        assert_eq!(lints[lint].as_str(), Some("warn"), "{lint}");
    }
    for (name, text) in texts(".", &["toml"]) {
        if !name.ends_with("/Cargo.toml") || name.starts_with("./Cargo") {
            continue;
        }
        let manifest: toml::Table = text.parse().unwrap();
        assert_eq!(
            manifest["lints"]["workspace"].as_bool(),
            Some(true),
            "{name}"
        );
    }
}

#[test]
fn nothing_is_left_for_later_and_no_lint_is_silenced() {
    // The words are assembled here, so that this file does not contain them.
    let later = ["TO", "FIX", "XX"].map(|start| match start {
        "TO" => format!("{start}DO"),
        "FIX" => format!("{start}ME"),
        _ => format!("{start}X:"),
    });
    for (path, text) in texts(".", &["rs", "toml", "md", "html", "css", "yml", "sh"]) {
        for word in &later {
            assert!(!text.contains(word), "{word} in {path}");
        }
        if path.ends_with(".rs") {
            for attribute in ["#[", "#!["].map(|start| format!("{start}allow(")) {
                assert!(
                    !text.contains(&attribute),
                    "{attribute} in {path}: use expect"
                );
            }
        }
    }
}

#[test]
fn every_module_says_what_it_is_for() {
    for (path, text) in all_sources() {
        let is_tests = path.ends_with("/tests.rs");
        assert!(
            is_tests || text.starts_with("//! "),
            "{path} begins without //!"
        );
    }
}

#[test]
fn every_experiment_has_a_file_and_says_what_it_is() {
    let mut found = 0;
    for entry in std::fs::read_dir(source_tree().join("experiments")).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_dir() || path.ends_with("examples") || path.ends_with("published") {
            continue;
        }
        for name in ["experiment.toml", "README.md"] {
            assert!(
                path.join(name).is_file(),
                "{} has no {name}",
                path.display()
            );
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        let builtin = toll_core::spec::builtin::find(name);
        assert!(builtin.is_some(), "{name} is not built in");
        found += 1;
    }
    // There is one more experiment than `toll run` knows: that of `toll kernel ab`.
    assert_eq!(found, toll_core::spec::builtin::with_names().count() + 1);
}
