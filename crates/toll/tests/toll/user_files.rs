//! Files of the user: none is lost when it is named twice, and a rewritten file keeps its mode,
//! owner and links.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use toll_testing::isolated;
use toll_testing::{Bench, has, in_a_namespace};

const NUMBERS: &str = "1\n2\n3\n";

#[test]
fn a_file_that_a_command_reads_is_not_its_output() {
    for (make, input, output) in [
        ("true", "f", "f"),
        ("true", "f", "./f"),
        ("ln -s f g", "f", "g"),
        ("ln -s f g", "g", "f"),
        ("ln f g", "f", "g"),
        ("mkdir d && ln -s .. d/up", "f", "d/up/f"),
    ] {
        let bench = Bench::new();
        let file = bench.write("f", NUMBERS);
        bench.shell(make);
        let words = [
            "run", "-q", "--input", input, "--output", output, "/bin/cat",
        ];
        let error = bench.fails(2, &words);
        has(&error, &["input and output are the same file"]);
        assert_eq!(fs::read_to_string(file).unwrap(), NUMBERS, "{make}");
    }
}

#[test]
fn levels_in_names_are_filled_in_before_files_are_compared() {
    let bench = Bench::new();
    let file = bench.write("f2", NUMBERS);
    bench.write("f1", NUMBERS);
    let words = [
        "run", "-q", "-L", "n=1,2", "--input", "f{n}", "--output", "./f{n}", "/bin/cat",
    ];
    has(&bench.fails(2, &words), &["the same file"]);
    // One command must not write to what another command reads.
    let words = [
        "run", "-q", "-L", "n=1,2", "--input", "f{n}", "--output", "f1", "/bin/cat",
    ];
    has(&bench.fails(2, &words), &["the same file"]);
    assert_eq!(fs::read_to_string(file).unwrap(), NUMBERS);
    assert_eq!(bench.read("f1"), NUMBERS);
}

#[test]
fn a_file_that_becomes_the_input_during_the_run_is_not_lost() {
    let bench = Bench::new();
    let file = bench.write("f", NUMBERS);
    let words = [
        "run",
        "-q",
        "--no-html",
        "-r",
        "3",
        "--prepare",
        "ln -f f g",
        "--input",
        "f",
        "--output",
        "g",
        "/bin/cat",
    ];
    let ran = bench.run(&words);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    has(&ran.stderr, &["input and output are the same file"]);
    assert_eq!(fs::read_to_string(file).unwrap(), NUMBERS);
}

#[test]
fn an_output_of_another_name_and_a_device_are_written() {
    let bench = Bench::new();
    bench.write("f", NUMBERS);
    bench.ok(&[
        "run",
        "-q",
        "--no-html",
        "-r",
        "3",
        "--input",
        "f",
        "--output",
        "g",
        "/bin/cat",
    ]);
    assert_eq!(bench.read("g"), NUMBERS);
    let words = [
        "run",
        "-q",
        "--no-html",
        "-r",
        "3",
        "--input",
        "/dev/null",
        "--output",
        "/dev/null",
        "/bin/cat",
    ];
    bench.ok(&words);
}

#[test]
fn a_result_is_not_written_over_what_the_command_reads_or_keeps() {
    let bench = Bench::new();
    let toml = "format = 1\nname = 'x'\n[workload]\nkind = 'command'\ncommand = 'true'\n";
    bench.write("x.toml", toml);
    bench.ok("run -q --no-html -r 3 true");
    let store = fs::read(bench.store()).unwrap();
    bench.shell("ln -s data/toll/runs.sqlite link; ln x.toml y.toml");
    for line in [
        "run -q x.toml --export-json ./x.toml",
        "run -q x.toml --html y.toml",
        "run -q x.toml --export-csv link",
        "run -q --output x.toml x.toml",
        "run -q --output link true",
        "run -q true --export-csv data/toll/runs.sqlite-wal",
        "export last --json data/toll/runs.sqlite",
        "report last --html link",
    ] {
        let error = bench.fails(2, line);
        has(&error, &["cannot write", "choose another file"]);
    }
    for line in [
        "run -q x.toml --export-json a --export-csv ./a",
        "run -q x.toml --export-json a --html a",
        "export last --json a --csv a",
    ] {
        has(&bench.fails(2, line), &["it is named for two results"]);
    }
    assert_eq!(bench.read("x.toml"), toml);
    assert_eq!(fs::read(bench.store()).unwrap(), store);
    assert!(!bench.path("a").exists());
}

fn exported(bench: &Bench, name: &str) {
    bench.ok(&["export", "last", "--json", name]);
    let text = bench.read(name);
    assert!(
        serde_json::from_str::<serde_json::Value>(&text).is_ok(),
        "{text}"
    );
}

fn inode(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}

#[test]
fn an_export_keeps_mode_owner_and_links_of_the_file() {
    isolated(|| {
        let bench = Bench::new();
        bench.ok("run -q --no-html -r 3 true");
        let long = "x".repeat(1 << 20);
        let private = bench.write("private", &long);
        fs::set_permissions(&private, fs::Permissions::from_mode(0o600)).unwrap();
        exported(&bench, "private");
        assert_eq!(fs::metadata(&private).unwrap().mode() & 0o777, 0o600);

        let linked = bench.write("linked", &long);
        fs::hard_link(&linked, bench.path("other")).unwrap();
        exported(&bench, "linked");
        assert_eq!(inode(&linked), inode(&bench.path("other")));
        assert_eq!(bench.read("linked"), bench.read("other"));

        symlink("private", bench.path("to")).unwrap();
        exported(&bench, "to");
        assert!(bench.path("to").is_symlink());
        assert_eq!(fs::metadata(&private).unwrap().mode() & 0o777, 0o600);
        let theirs = bench.write("theirs", &long);
        std::os::unix::fs::chown(&theirs, Some(65534), Some(65534)).unwrap();
        exported(&bench, "theirs");
        let found = fs::metadata(&theirs).unwrap();
        assert_eq!((found.uid(), found.gid()), (65534, 65534));
    });
}

#[test]
fn a_full_disk_leaves_what_was_in_a_linked_file() {
    let bench = Bench::new();
    bench.ok("run -q --no-html -r 3 true");
    let ran = in_a_namespace(
        &bench,
        "mkdir small; mount -t tmpfs -o size=64k none small; echo old >small/f; ln small/f small/g; \
         head -c 56k /dev/zero >small/filler; ! toll export last --json small/f; cat small/f",
    );
    if let Some(ran) = ran {
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert_eq!(ran.stdout, "old\n", "{ran:#?}");
        has(&ran.stderr, &["the disk is full"]);
    }
}
