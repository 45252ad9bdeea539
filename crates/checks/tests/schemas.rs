//! Validates documents of `toll` against the schemas in `docs/schema`, with a library
//! other than the one that wrote the schemas.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start the program, as users do"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use jsonschema::Validator;
use serde_json::{Value, json};
use tempfile::TempDir;

const LAB: &str = "format = 1\nname = 'lab'\n[workload]\nkind = 'command'\ncommand = 'sleep {s}'\n\
    [[factor]]\nname = 's'\nlevels = ['0.001', '0.2']\n[[claim]]\nid = 'lab.longer'\n\
    text = 'the longer sleep takes longer'\nof = { s = '0.2' }\nto = { s = '0.001' }\n\
    direction = 'greater'\nthreshold = 1.2\n[run]\niterations = 2\n";

/// Returns the path of `toll` from the same build.
fn program() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    let built = test.ancestors().nth(2).expect("cargo puts it into deps");
    let program = built.join("toll");
    assert!(
        program.is_file(),
        "{} is missing; build the workspace first: cargo build --workspace",
        program.display()
    );
    program
}

/// Runs `toll` in a directory that holds all that it reads and writes. Returns its
/// output. Panics if the exit status is not `status`.
#[track_caller]
fn toll(directory: &TempDir, status: i32, arguments: &str) -> String {
    let place = |name: &str| directory.path().join(name);
    let ran = Command::new(program())
        .args(arguments.split(' '))
        .current_dir(directory.path())
        .env("HOME", place("home"))
        .env("XDG_DATA_HOME", place("data"))
        .env("XDG_CACHE_HOME", place("cache"))
        .env("XDG_STATE_HOME", place("state"))
        .env("TOLL_RUN_LOCK", place("run.lock"))
        .env_remove("TOLL_STORE")
        .output()
        .expect("toll starts");
    assert_eq!(ran.status.code(), Some(status), "{arguments}: {ran:?}");
    String::from_utf8(ran.stdout).expect("it is UTF-8")
}

#[track_caller]
fn json_of(directory: &TempDir, status: i32, arguments: &str) -> Value {
    serde_json::from_str(&toll(directory, status, arguments)).expect("it is one JSON document")
}

fn schema(name: &str) -> Validator {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    let text = std::fs::read_to_string(root.join(name)).expect("it is published");
    let schema = serde_json::from_str(&text).expect("it is JSON");
    jsonschema::validator_for(&schema).expect("it is a schema")
}

#[track_caller]
fn check(schema: &Validator, document: &Value) {
    let errors = schema.iter_errors(document);
    let errors: Vec<String> = errors
        .map(|error| format!("{error} at {}", error.instance_path()))
        .collect();
    assert_eq!(errors, Vec::<String>::new());
}

/// Creates a directory with a run of an experiment in its store.
fn measured() -> TempDir {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("it is writable");
    std::fs::write(directory.path().join("lab.toml"), LAB).expect("it is writable");
    toll(&directory, 0, "run -q --no-html -r 8 lab.toml");
    directory
}

#[test]
fn exported_runs_are_valid() {
    let schema = schema("run.schema.json");
    let directory = measured();
    let document = json_of(&directory, 0, "export last --json -");
    check(&schema, &document);
    // With a single block, intervals have no ends.
    toll(&directory, 1, "run -q --no-html -r 1 true false");
    check(&schema, &json_of(&directory, 0, "export last --json -"));
    let mut wrong = document;
    wrong["trials"][0]["state"] = json!("purring");
    assert!(!schema.is_valid(&wrong), "it accepts an unknown state");
}

#[test]
fn grades_are_valid() {
    let directory = measured();
    toll(&directory, 0, "export last --json submission.json");
    toll(&directory, 0, "run -q --no-html -r 8 lab.toml");
    let report = json_of(&directory, 0, "grade --json submission.json");
    assert_eq!(report["files"][0]["result"], "holds");
    check(&schema("grade.schema.json"), &report);
}
