//! `make test` and `make test-all`: every test belongs to a tier that runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use regex::Regex;
use toll_testing::source_tree;

/// Returns the filter of a profile in .config/nextest.toml.
fn filter(profile: &str) -> String {
    let text = std::fs::read_to_string(source_tree().join(".config/nextest.toml")).unwrap();
    let settings: toml::Table = text.parse().unwrap();
    let filter = &settings["profile"][profile]["default-filter"];
    filter.as_str().unwrap().trim().to_owned()
}

/// Returns the slow tests that `make test` runs.
fn named() -> Vec<String> {
    let name = Regex::new(r"\| test\(=(slow::[a-z_:]+)\)\n?").unwrap();
    let filter = filter("default");
    let rest = name.replace_all(&filter, "");
    assert_eq!(rest.trim(), "not test(/^slow::/)");
    name.captures_iter(&filter)
        .map(|found| found[1].to_owned())
        .collect()
}

/// Returns the sources of each slow family, which is a module of `slow` in some test program.
fn slow_families() -> BTreeMap<String, String> {
    let mut families: BTreeMap<String, String> = BTreeMap::new();
    for file in rust_files(&source_tree()) {
        let mut parts = file.iter().skip_while(|part| *part != "slow").skip(1);
        let Some(first) = parts.next().and_then(|part| part.to_str()) else {
            continue;
        };
        let family = first.trim_end_matches(".rs");
        if family != "mod" {
            let text = std::fs::read_to_string(&file).unwrap();
            families
                .entry(family.to_owned())
                .or_default()
                .push_str(&text);
        }
    }
    families
}

#[test]
fn what_is_not_slow_runs_always_and_the_rest_has_all_that_is_slow() {
    assert!(!named().is_empty());
    assert!(filter("rest").starts_with("test(/^slow::/)\n|"));
}

#[test]
fn each_slow_family_has_a_test_among_the_fast_ones() {
    let families = slow_families();
    assert!(families.len() > 10, "{families:?}");
    let mut named_families = BTreeSet::new();
    for name in named() {
        let parts: Vec<&str> = name.split("::").collect();
        let [_, family, .., test] = parts.as_slice() else {
            panic!("{name} is not a test of a family");
        };
        let has_test = families
            .get(*family)
            .is_some_and(|text| text.contains(&format!("fn {test}()")));
        assert!(has_test, "test {name} is missing");
        named_families.insert((*family).to_owned());
    }
    assert_eq!(
        families.into_keys().collect::<BTreeSet<_>>(),
        named_families
    );
}

/// nextest leaves out ignored tests, and tests of targets that Cargo does not test.
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
