//! What commands say of wrong names, missing files, full disks and streams that are
//! closed; and that nothing but the message comes of it.

use crate::common::{Bench, has, in_a_namespace, is_root, skip};

/// A command line, its exit status, and words of its message.
const TABLE: &[(&str, i32, &str)] = &[
    ("run swep", 2, "did you mean sweep?"),
    ("run missing.toml", 2, "missing.toml: there is no such file"),
    ("run fifo.toml", 2, "fifo.toml: it is no regular file"),
    ("run directory.toml", 2, "it is no regular file"),
    ("run empty.toml", 2, "empty.toml:1: cannot read it"),
    (
        "run claim.toml --dry-run",
        2,
        "claim.toml:12: cannot use claim c",
    ),
    ("run claim.toml --dry-run", 2, "did you mean 64KiB?"),
    ("run open.toml --dry-run", 2, "name a level of sink"),
    (
        "run --metric durtion_ns true",
        2,
        "did you mean duration_ns?",
    ),
    (
        "run --counter page-fault true",
        2,
        "cannot use counter page-fault: there is none of this name; did you mean page-faults?",
    ),
    (
        "run --counter nonsense true",
        2,
        "none of this name; `toll run --help` lists all",
    ),
    (
        "run counter.toml --dry-run",
        2,
        "counter.toml:3: cannot use counter",
    ),
    (
        "run --store missing/y/x true",
        1,
        "its directory is not there",
    ),
    ("run --store fifo true", 1, "it is no regular file"),
    ("run --store directory true", 1, "is a directory"),
    ("run --store text true", 1, "cannot read the store"),
    (
        "run --work-dir text true",
        5,
        "choose another place with --work-dir",
    ),
    (
        "run --work-dir text --dry-run true",
        5,
        "choose another place with --work-dir",
    ),
    (
        "run --work-dir /proc/x --dry-run true",
        5,
        "choose another place with --work-dir",
    ),
    (
        "run --html missing/x true",
        1,
        "missing/x: its directory is not there",
    ),
    (
        "run --plots missing/x/y true",
        1,
        "its directory is not there",
    ),
    (
        "run --export-csv missing/x true",
        1,
        "its directory is not there",
    ),
    ("run --baseline none true", 2, "cannot find baseline none"),
    ("run --resume 99", 1, "cannot find run 99"),
    ("list --store fifo", 1, "it is no regular file"),
    ("show 99", 1, "cannot find run 99: see `toll list`"),
    ("show last --store missing/x", 1, "there is no store yet"),
    ("report 1 --html missing/x", 1, "its directory is not there"),
    ("report 1 --html directory", 1, "it is a directory"),
    (
        "report 1 --plots missing/x/y",
        1,
        "its directory is not there",
    ),
    ("report 1 --plots text", 1, "it is no directory"),
    (
        "export 1 --json missing/x",
        1,
        "missing/x: its directory is not there",
    ),
    ("export 1 --csv /dev/full", 1, "the disk is full"),
    ("export 1 --junit -", 2, "has no claim"),
    ("import missing", 1, "missing: there is no such file"),
    ("import directory", 1, "it is a directory"),
    ("import text", 2, "cannot read the document"),
    ("import run.json", 1, "it is here already, as run 1"),
    ("import run.json --store fifo", 1, "it is no regular file"),
    ("compare 1 99", 1, "cannot find run 99"),
    ("baseline save x 99", 1, "cannot find run 99"),
    ("baseline remove none", 2, "cannot find baseline none"),
    ("baseline lsit", 2, "'list'"),
    ("trace nosuchprogram", 127, "there is no such program"),
    ("trace -o missing/x true", 1, "its directory is not there"),
    (
        "observe devices 99999999",
        1,
        "there is none of this number",
    ),
    (
        "observe session missing",
        1,
        "missing: there is no such file",
    ),
    (
        "observe dhcp missing",
        1,
        "neither a file nor a network interface",
    ),
    (
        "observe interface none0",
        1,
        "there is no such network interface",
    ),
    (
        "guest run --add missing -- true",
        2,
        "it is no regular file",
    ),
    ("guest run -- true", 5, "toll kernel build"),
    ("mount missing directory", 2, "missing: it is not there"),
    ("mount directory text", 2, "text: it is no directory"),
    ("doctor --salvage text", 1, "a file is there already"),
    (
        "doctor --salvage missing/x",
        1,
        "its directory is not there",
    ),
    (
        "selftest --keep --store missing/y/x",
        1,
        "its directory is not there",
    ),
    ("kernel show", 5, "toll kernel build"),
    ("--store x kernel list", 2, "neither reads nor keeps runs"),
    ("completions none", 2, "possible values"),
];

const CLAIM: &str = "format = 1\nname = 't'\n[workload]\nkind = 'copy'\n[[factor]]\nname = 'buffer'\n\
    levels = ['4KiB', '64KiB']\n[[claim]]\nid = 'c'\ntext = 'x'\ndirection = 'less'\n";

/// A bench with a run, and with files of all kinds that are no right ones.
fn prepared() -> Bench {
    let bench = Bench::new();
    let made = bench.shell(
        "mkfifo fifo fifo.toml; mkdir directory directory.toml; touch empty.toml; echo x >text
         toll run -q --no-html -r 2 true && toll export 1 --json run.json",
    );
    assert_eq!(made.code, Some(0), "{made:#?}");
    let sides = "of = { buffer = '64kB' }\nto = { buffer = '4k' }\n";
    bench.write("claim.toml", &format!("{CLAIM}{sides}"));
    let sink = "[[factor]]\nname = 'sink'\nlevels = ['null', 'pipe']\n";
    let sides = sides.replace("64kB", "64k");
    let counter = CLAIM.replacen("'t'\n", "'t'\ncounters = ['cylces']\n", 1);
    bench.write("counter.toml", &counter);
    bench.write("open.toml", &format!("{CLAIM}{sides}{sink}"));
    bench
}

#[test]
fn whatever_is_wrong_is_told_with_what_to_do() {
    let bench = prepared();
    for (line, code, words) in TABLE {
        let ran = bench.shell(&format!("timeout 60 toll {line} </dev/null"));
        assert_eq!(ran.code, Some(*code), "{line}: {ran:#?}");
        assert!(ran.stderr.contains(words), "{line}: {ran:#?}");
        assert!(!bench.path("missing").exists(), "{line}");
    }
    let listed = bench.ok("list").stdout;
    assert!(!listed.contains("unfinished"), "no run began: {listed}");
}

#[test]
fn a_closed_standard_output_is_an_error_of_every_program() {
    let bench = prepared();
    for line in [
        "toll list >&-",
        "toll show 1 >&-",
        "toll --help >&-",
        "toll run -r 2 true >&-",
        "timewrite out <text >&-",
        "prime_user --runs 1 >&-",
        "prime_sys_test --help >&-",
        "meow text >&-",
        "master --help >&-",
        "slave --help >&-",
    ] {
        let ran = bench.shell(line);
        if ran.code == Some(127) {
            skip(&format!("{line}: the program is not built"));
            continue;
        }
        assert_eq!(ran.code, Some(1), "{line}: {ran:#?}");
        assert!(!ran.stderr.is_empty(), "{line}");
    }
    // What has nothing to print needs no standard output.
    let ran = bench.shell("toll export 1 --csv run.csv >&-");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(!bench.ok("list").stdout.contains("unfinished"));
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let bench = prepared();
    let line = "mkdir small; mount -t tmpfs -o size=4k small small
         echo before >small/run.json
         toll export 1 --json small/run.json || echo \"status $?\"
         toll export 1 --csv small/run.csv || echo \"status $?\"
         ls -A small; cat small/run.json";
    let Some(ran) = in_a_namespace(&bench, line) else {
        return;
    };
    assert_eq!(
        ran.stdout, "status 1\nstatus 1\nrun.json\nbefore\n",
        "{ran:#?}"
    );
    has(&ran.stderr, &["small/run.csv: the disk is full"]);
}

#[test]
fn a_store_on_a_full_disk_says_so_and_can_be_read() {
    let bench = prepared();
    for left_kib in [0, 8, 24, 40, 56, 72, 88, 104, 120, 136] {
        let line = format!(
            "mkdir -p small; mount -t tmpfs -o size=200k small small
             dd if=/dev/zero of=small/fill bs=1k count={} status=none
             for i in 1 2; do toll import run.json --store small/s.sqlite || echo \"status $?\"; done
             toll list --store small/s.sqlite >/dev/null || echo list",
            200 - left_kib
        );
        let Some(ran) = in_a_namespace(&bench, &line) else {
            return;
        };
        assert!(!ran.stdout.contains("list"), "{left_kib}: {ran:#?}");
        for error in ran.stderr.lines() {
            let is_expected = error.contains("disk is full") || error.contains("already");
            assert!(
                is_expected || error.starts_with("note:"),
                "{left_kib}: {error}"
            );
        }
    }
}

#[test]
fn of_imports_at_once_one_is_made_and_the_others_find_it() {
    let bench = prepared();
    let ran = bench.shell(
        "for round in 1 2 3; do rm -f new.sqlite*
           for i in 1 2 3 4 5 6; do toll import run.json --store new.sqlite & done; wait
         done",
    );
    assert_eq!(ran.stdout.matches("run 1:").count(), 3, "{ran:#?}");
    let told = "cannot import the run: it is here already, as run 1";
    assert_eq!(ran.stderr.matches(told).count(), 15, "{ran:#?}");
    assert_eq!(ran.stderr.lines().count(), 15, "{ran:#?}");
}

/// A command that takes the tmpfs away at its fifth run.
const THIEF: &str = "n=$(cat count); echo $((n + 1)) >count; \
    [ $n != 5 ] || umount -l $(dirname {workdir})/tmpfs; echo x >{workdir}/x";

#[test]
fn a_lost_file_system_ends_its_treatments_and_not_the_run() {
    if !is_root() {
        skip("mounting needs root");
        return;
    }
    let bench = Bench::new();
    bench.write("count", "1");
    let ran = bench.run(&[
        "run",
        "-q",
        "--no-html",
        "-r",
        "8",
        "-L",
        "fs=tmpfs,work",
        THIEF,
    ]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    has(
        &ran.stderr,
        &["its file system was lost during the run", "tmpfs"],
    );
    let document = bench.document("last");
    assert_eq!(document["run"]["status"], "complete");
    for treatment in document["treatments"].as_array().unwrap() {
        let is_lost = treatment["levels"]["fs"]["text"] == "tmpfs";
        assert_eq!(treatment["skipped"].is_string(), is_lost, "{treatment}");
    }
    let trials = document["trials"].as_array().unwrap();
    assert!(trials.iter().all(|trial| trial["state"] == "completed"));
    let on_work = trials.iter().filter(|trial| trial["treatment"] == 1);
    assert_eq!(on_work.count(), 8);
}

#[test]
fn an_experiment_that_loses_all_file_systems_leaves_the_others_to_run() {
    if !is_root() {
        skip("mounting needs root");
        return;
    }
    let bench = Bench::new();
    bench.write("count", "1");
    let file = |name: &str, fs: &str, command: &str| {
        let text = format!(
            "format = 1\nname = '{name}'\n[workload]\nkind = 'command'\ncommand = '{command}'\nfs = '{fs}'\n"
        );
        bench.write(&format!("{name}.toml"), &text);
    };
    file("lost", "tmpfs", THIEF);
    file("kept", "work", "true");
    let ran = bench.run("run -q --no-html -r 8 lost.toml kept.toml");
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    has(&ran.stderr, &["skipped: lost", "its file system was lost"]);
    assert_eq!(bench.document("last")["run"]["experiment"], "kept");
    assert_eq!(bench.document("last")["run"]["status"], "complete");
}

#[test]
fn what_a_user_may_not_read_or_write_is_told_before_a_run() {
    if !is_root() {
        skip("becoming another user needs root");
        return;
    }
    let bench = Bench::new();
    let ran = bench.shell(
        "set -e; place=$(mktemp -d /tmp/toll-XXXXXX); trap 'rm -rf $place' EXIT
         cp $(command -v toll) $TOLL_PROBE $place; cd $place; mkdir locked; echo x >locked.toml
         chmod 700 locked; chmod 600 locked.toml; chown 65534 .
         as() { setpriv --reuid=65534 --regid=65534 --clear-groups env -u TOLL_PROBE HOME=$place \
                  XDG_DATA_HOME=$place/d XDG_CACHE_HOME=$place/c XDG_STATE_HOME=$place/s \
                  ./toll \"$@\" 2>&1 >/dev/null || echo \"status $?\"; }
         as run locked.toml; as run --html locked/x -r 2 true; as run --work-dir locked -r 2 true
         as list --store locked/x; as run -q --no-html -r 2 true",
    );
    let ran_words: Vec<&str> = ran.stdout.lines().collect();
    let expected = [
        "locked.toml: Permission denied",
        "status 2",
        "locked/x: Permission denied",
        "status 1",
        "choose another place with --work-dir",
        "status 5",
        "cannot use the store",
        "status 1",
    ];
    assert_eq!(ran_words.len(), expected.len(), "{ran:#?}");
    for (line, words) in ran_words.iter().zip(expected) {
        assert!(line.contains(words), "{words}: {ran:#?}");
    }
}
