//! `make test` and `make test-all`: every test belongs to a part of them that runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use regex::Regex;

use crate::common::source_tree;

/// The filter of a profile in .config/nextest.toml.
fn filter(profile: &str) -> String {
    let text = std::fs::read_to_string(source_tree().join(".config/nextest.toml")).unwrap();
    let settings: toml::Table = text.parse().unwrap();
    let filter = &settings["profile"][profile]["default-filter"];
    filter.as_str().unwrap().trim().to_owned()
}

/// The slow tests that `make test` runs.
fn named() -> Vec<String> {
    let name = Regex::new(r"\| test\(=(slow::[a-z_:]+)\)\n?").unwrap();
    let filter = filter("default");
    let rest = name.replace_all(&filter, "");
    assert_eq!(rest.trim(), "not test(/^slow::/)");
    name.captures_iter(&filter)
        .map(|found| found[1].to_owned())
        .collect()
}

/// All tests of this program.
fn tests() -> BTreeSet<String> {
    let this = std::env::current_exe().unwrap();
    let output = std::process::Command::new(this).arg("--list").output();
    let lines = String::from_utf8(output.unwrap().stdout).unwrap();
    let names = lines.lines().filter_map(|line| line.strip_suffix(": test"));
    names.map(str::to_owned).collect()
}

#[test]
fn what_is_not_slow_runs_always_and_the_rest_has_all_that_is_slow() {
    assert!(!named().is_empty());
    assert!(filter("rest").starts_with("test(/^slow::/)\n|"));
}

#[test]
fn each_slow_family_has_a_test_among_the_fast_ones() {
    let (named, tests) = (named(), tests());
    for name in &named {
        assert!(tests.contains(name), "there is no test {name}");
    }
    let family = |name: &str| name.split("::").nth(1).unwrap().to_owned();
    let slow: BTreeSet<String> = tests
        .iter()
        .filter(|name| name.starts_with("slow::"))
        .map(|name| family(name))
        .collect();
    assert!(slow.len() > 10, "{slow:?}");
    assert_eq!(slow, named.iter().map(|name| family(name)).collect());
}

/// nextest leaves out ignored tests, and those of programs that Cargo does not test.
#[test]
fn no_test_is_left_out() {
    for file in rust_files(&source_tree()) {
        let text = std::fs::read_to_string(&file).unwrap();
        let lines = text
            .lines()
            .filter(|line| line.trim().starts_with("#[ignore"));
        for line in lines {
            assert!(line.contains("not a test: "), "{}: {line}", file.display());
        }
    }
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let listed = std::process::Command::new("git")
        .args(["ls-files", "-z", "*.rs"])
        .current_dir(directory)
        .output();
    let names = String::from_utf8(listed.unwrap().stdout).unwrap();
    let names = names
        .split_terminator('\0')
        .map(|name| directory.join(name));
    names.filter(|path| path.is_file()).collect()
}
