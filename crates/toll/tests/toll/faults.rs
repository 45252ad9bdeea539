//! Faults around a measurement: of probes, commands, disks and stores.

use serde_json::Value;
use toll_testing::{
    Bench, all_are, has, in_a_namespace, list, probe, processes_marked, skip, texts, wait_until,
};

fn states(run: &Value) -> Vec<&str> {
    texts(list(&run["trials"]), "state")
}

fn messages(run: &Value) -> Vec<&str> {
    texts(list(&run["trials"]), "message")
}

/// Writes an experiment of one command with a trial timeout.
fn impatient(bench: &Bench, timeout: &str, more: &str, command: &str) -> String {
    let toml = format!(
        "format = 1\nname = 'impatient'\n[workload]\nkind = 'command'\ncommand = '''{command}'''\n\
         {more}\n[run]\ntrial_timeout = '{timeout}'\n"
    );
    bench.write("impatient.toml", &toml).display().to_string()
}

#[test]
fn each_misbehaviour_of_a_probe_is_one_failed_trial_and_the_run_goes_on() {
    // The real probe cannot be made to fail in these ways.
    let script = format!(
        "#!/bin/sh\necho x >>count\ncase $(wc -l <count) in\n\
         2) kill -SEGV $$ ;;\n\
         5) echo 'this is no answer' ;;\n\
         8) exec sleep 300 ;;\n\
         11) echo '{{\"version\":99}}' ;;\n\
         14) echo 'out of luck' >&2; exit 9 ;;\n\
         16) ;;\n\
         *) exec {} ;;\nesac\n",
        probe().display()
    );
    let bench = Bench::with_probe(&script);
    let file = impatient(&bench, "15s", "", "true");
    let run = bench.measured(&["-r", "10", &file]);
    let states = states(&run);
    // The twin only runs in the first six blocks.
    assert_eq!(states.len(), 16);
    let mut failed: Vec<(usize, &str)> = Vec::new();
    failed.extend(
        states
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, state)| *state != "completed"),
    );
    assert_eq!(
        failed,
        [
            (1, "crashed"),
            (4, "crashed"),
            (7, "timed-out"),
            (10, "crashed"),
            (13, "crashed"),
            (15, "crashed"),
        ],
        "{run:#}"
    );
    let messages = messages(&run);
    for (message, needle) in messages.iter().zip([
        "killed by signal 11",
        "cannot read the probe's response",
        "stopped after 15 s",
        "version 99",
        "out of luck",
        "cannot read the probe's response",
    ]) {
        assert!(message.contains(needle), "{needle}: {message}");
    }
    let shown = bench.ok("show").stdout;
    assert!(
        shown.contains("killed by signal 11") || shown.contains("failed"),
        "{shown}"
    );
}

#[test]
fn a_probe_that_never_works_is_given_up_with_its_last_words() {
    let bench = Bench::with_probe("#!/bin/sh\necho 'no CPU today' >&2\nexit 4\n");
    let errors = bench.fails(1, "run -q --no-html true");
    assert!(errors.contains("no CPU today"), "{errors}");
    assert_eq!(states(&bench.document("last")), ["crashed"; 6]);
}

#[test]
fn a_probe_whose_answer_has_no_end_is_stopped() {
    let bench = Bench::with_probe("#!/bin/sh\nexec yes\n");
    bench.fails(1, "run -q --no-html true");
    let run = bench.document("last");
    assert!(
        messages(&run)
            .iter()
            .all(|message| message.contains("over 67108864 bytes")),
        "{run:#}"
    );
}

#[test]
fn a_probe_that_answers_and_stays_is_ended() {
    let bench = Bench::with_probe("#!/bin/sh\nexec >&- 2>&-\nexec sleep 300\n");
    let file = impatient(&bench, "1s", "", "true");
    bench.fails(1, &["run", "-q", "--no-html", "-r", "3", &file]);
    let marker = format!("TOLL_PROBE={}", bench.path("fake-probe").display());
    wait_until("the probes are gone", || {
        processes_marked(&marker).is_empty()
    });
}

#[test]
fn a_run_completes_where_the_kernel_refuses_descriptors_of_processes() {
    let bench = Bench::new();
    let strace = "strace -f -qq -o /dev/null";
    if bench.shell(&format!("{strace} true")).code != Some(0) {
        return skip("strace is missing or may not trace");
    }
    for errno in ["ENOSYS", "EPERM"] {
        let rule = format!("-e inject=pidfd_open:error={errno}");
        let ran = bench.shell(&format!("{strace} {rule} toll run -q --no-html -r 2 true"));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        let run = bench.document("last");
        all_are("completed", list(&run["trials"]));
    }
}

#[test]
fn of_a_long_output_the_start_is_parsed_and_the_rest_dropped() {
    let bench = Bench::new();
    let metrics = "[metrics.speed]\npattern = 'speed ([0-9]+)'";
    let file = impatient(
        &bench,
        "30s",
        metrics,
        "sh -c 'echo speed 5; head -c 20000000 /dev/zero; echo speed 6'",
    );
    let ran = bench.ok(&["run", "-q", "--no-html", "--json", "-r", "1", &file]);
    assert_eq!(
        ran.json()["runs"][0]["trials"][0]["samples"]["speed"],
        serde_json::json!([5.0])
    );
    assert!(ran.stdout.len() < 100_000, "the output itself is not kept");
}

#[test]
fn a_work_directory_that_is_too_small_is_told_before_anything_runs() {
    let bench = Bench::new();
    let line = "mkdir small; mount -t tmpfs -o size=1m small small; cd small
                toll run -q --no-html --work-dir . -r 1 cat";
    let Some(ran) = in_a_namespace(&bench, line) else {
        return;
    };
    assert_eq!(ran.code, Some(5), "{ran:#?}");
    has(&ran.stderr, &["--work-dir", "MiB free"]);
}

#[test]
fn a_full_work_directory_is_a_failed_trial() {
    let bench = Bench::new();
    let line = "mkdir small; mount -t tmpfs -o size=200m small small
                toll run -q --no-html --json --work-dir small -r 1 -L size=1M,300M \
                    \"dd if=/dev/zero of={workdir}/file bs=1M count={size} iflag=count_bytes status=none\"";
    let Some(ran) = in_a_namespace(&bench, line) else {
        return;
    };
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let run = &ran.json()["runs"][0];
    let mut states = states(run);
    states.sort_unstable();
    assert_eq!(states, ["completed", "completed", "failed"], "{run:#}");
    assert!(
        messages(run)[0].contains("No space left on device"),
        "{run:#}"
    );
}

#[test]
fn a_store_that_cannot_be_written_is_named() {
    let bench = Bench::new();
    bench.write("file", "in the way");
    let errors = bench.fails(1, "run -r 1 --store file/runs.sqlite true");
    assert!(errors.contains("file"), "{errors}");
    let line = "toll run -q --no-html -r 1 --store ro/runs.sqlite true
                mount -o bind,ro ro ro 2>/dev/null || mount --bind ro ro && mount -o remount,bind,ro ro
                toll run -r 1 --store ro/runs.sqlite true";
    let Some(ran) = in_a_namespace(&bench, line) else {
        return;
    };
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let errors = ran.stderr.to_lowercase();
    has(&errors, &["ro/runs", "read-only"]);
}

#[test]
fn a_newer_store_is_refused_unharmed() {
    let bench = Bench::new();
    bench.ok("run -q --no-html -r 1 true");
    set_pragma(&bench, "user_version = 99");
    bench.write("run.json", "{}");
    let before = std::fs::read(bench.store()).unwrap();
    for arguments in [
        &["list"][..],
        &["show"],
        &["report", "1"],
        &["export", "1", "--csv", "-"],
        &["compare", "1", "1"],
        &["import", "run.json"],
        &["baseline", "list"],
        &["baseline", "save", "main"],
        &["baseline", "remove", "main"],
        &["run", "-r", "1", "true"],
        &["run", "--resume"],
        &["selftest", "--keep"],
        &["trace", "--cost-model", "1", "true"],
        &["doctor", "--salvage", "new.sqlite"],
    ] {
        let errors = bench.fails(1, arguments);
        has(&errors, &["version 99", "the toll that wrote it"]);
    }
    let doctor = bench.ok("doctor --no-noise").stdout;
    assert!(doctor.contains("version 99"), "{doctor}");
    assert_eq!(std::fs::read(bench.store()).unwrap(), before);
    assert!(!bench.path("new.sqlite").exists());
    let own = toll_host::store::SCHEMA_VERSION;
    set_pragma(&bench, &format!("user_version = {own}"));
    bench.ok("show");
}

#[test]
fn another_programs_database_and_a_text_are_refused_unharmed() {
    let bench = Bench::new();
    let text = "not a database at all, however long one looks at it. ".repeat(50);
    let path = bench.write("text", &text);
    let errors = bench.fails(
        1,
        &["run", "-r", "1", "--store", path.to_str().unwrap(), "true"],
    );
    has(&errors, &["store", "text"]);
    assert_eq!(bench.read("text"), text);
    let other = bench.path("other.sqlite");
    rusqlite::Connection::open(&other)
        .unwrap()
        .execute_batch("CREATE TABLE t (x)")
        .unwrap();
    let errors = bench.fails(1, &["list", "--store", other.to_str().unwrap()]);
    assert!(errors.contains("another program"), "{errors}");
}

#[test]
fn rows_that_make_no_sense_are_told_of() {
    for damage in [
        "UPDATE runs SET record = json_set(record, '$.status', 'purring')",
        "UPDATE runs SET record = json_set(record, '$.seed', 'many')",
        "UPDATE runs SET record = '{'",
        "UPDATE runs SET experiment = '{}'",
        "UPDATE runs SET treatments = '[[]]'",
        "UPDATE runs SET treatments = '[]'",
        "UPDATE trials SET record = json_set(record, '$.state', 'odd')",
        "UPDATE trials SET record = json_set(record, '$.notes', 'x')",
        "UPDATE samples SET iterations = x'01'",
    ] {
        let bench = Bench::new();
        bench.ok("run -q --no-html -r 2 true");
        let connection = rusqlite::Connection::open(bench.store()).unwrap();
        // With a hash, any change would be reported, so it is removed.
        connection
            .execute_batch(&format!("UPDATE runs SET hash = NULL; {damage}"))
            .unwrap();
        drop(connection);
        for arguments in [
            &["show"][..],
            &[
                "export",
                "1",
                "--json",
                "-",
                "--csv",
                "-",
                "--markdown",
                "-",
            ],
        ] {
            let ran = bench.run(arguments);
            assert_eq!(ran.code, Some(1), "{damage}: {ran:#?}");
            assert!(
                ran.stderr.contains("cannot read the store"),
                "{damage}: {}",
                ran.stderr
            );
        }
    }
}

fn set_pragma(bench: &Bench, pragma: &str) {
    let connection = rusqlite::Connection::open(bench.store()).unwrap();
    connection
        .execute_batch(&format!("PRAGMA {pragma}"))
        .unwrap();
}
