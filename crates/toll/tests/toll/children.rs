//! Processes that a measured command leaves running: each ends with its trial, however it tries to
//! escape, and nobody waits for files that it holds open.

use toll_testing::{Bench, all_are, has, list, processes_marked, texts, wait_until};

use crate::settings::Settings;

/// Ways to outlive the command that started the process: in the background; in a session and
/// process group of its own; with a dead parent (double-forked); the same with all descriptors
/// closed, as daemons do; the same without the environment by which a test or a program could find
/// it. A process that keeps the command's outputs open does not prolong the trial.
const ESCAPES: [&str; 5] = [
    "sleep 300 &",
    "setsid sleep 300 &",
    "(setsid sleep 300 &) & ",
    "(setsid sh -c 'cd /; exec 0<&- 1>&- 2>&-; sleep 300; true' &) &",
    "(setsid env -i sleep 300 &) &",
];

/// Writes an experiment with one command for each way to escape. `ending` makes the command end
/// before the process that it left, or not.
fn escapes(bench: &Bench, output: &str, timeout: &str, ending: &str) -> String {
    let mut toml = format!(
        "format = 1\nname = 'escapes'\n[workload]\nkind = 'command'\noutput = '{output}'\n\
         command = '''sh -c \"{{way}}\"'''\n[run]\ntrial_timeout = '{timeout}'\n[[factor]]\n\
         name = 'way'\nlevels = [\n"
    );
    for way in ESCAPES {
        let quoted = way.replace('"', "\\\\\"");
        toml.push_str(&format!("\"{quoted} {ending}\",\n"));
    }
    toml.push_str("]\n");
    bench.write("escapes.toml", &toml).display().to_string()
}

#[test]
fn what_a_command_leaves_running_ends_with_its_trial() {
    for output in ["null", "pipe"] {
        let bench = Bench::new();
        let settings = Settings::before(&bench);
        let file = escapes(&bench, output, "100s", "true");
        let run = bench.measured(&["-r", "2", &file]);
        let trials = list(&run["trials"]);
        assert_eq!(trials.len(), 2 * (ESCAPES.len() + 1));
        all_are("completed", trials);
        // Checked at once, because toll has ended.
        settings.are_back_at_once();
    }
}

#[test]
fn a_command_out_of_time_is_ended_with_all_that_got_away_from_it() {
    let bench = Bench::new();
    let settings = Settings::before(&bench);
    let file = escapes(&bench, "pipe", "500ms", "sleep 300");
    bench.ok(&["run", "-q", "--no-html", "-r", "1", &file]);
    let document = bench.document("last");
    let trials = list(&document["trials"]);
    all_are("timed-out", trials);
    for message in texts(trials, "message") {
        has(message, &["--trial-timeout"]);
    }
    settings.are_back_at_once();
}

#[test]
fn nothing_that_got_away_from_a_command_outlives_a_kill_of_toll() {
    let bench = Bench::new();
    let settings = Settings::before(&bench);
    // All ways at once, in one long trial.
    let line = format!("sh -c \"{} sleep 301; true\"", ESCAPES[..4].join(" "));
    let run = ["run", "-q", "--no-html", "-r", "1", &line];
    let mut running = bench.start(&run);
    let sleeping = |line: &&String| line.contains(" sleep 30") && !line.contains(" sh ");
    wait_until("all processes have escaped", || {
        settings.changed().iter().filter(sleeping).count() > ESCAPES[..4].len()
    });
    running.kill();
    wait_until("all processes are gone", || {
        processes_marked(&bench.marker()).is_empty()
    });
    bench.ok("doctor --restore");
    settings.are_back();
}

#[test]
fn what_one_iteration_leaves_running_does_not_run_in_the_next() {
    let bench = Bench::new();
    let script = "test -e \"$1/left\" && kill -0 \"$(cat \"$1/left\")\" && echo 1 || echo 0
                  (setsid sh -c 'echo $$ >\"$0/left\"; exec sleep 300' \"$1\" >/dev/null 2>&1 &)
                  while ! test -s \"$1/left\"; do :; done";
    let script = bench.write("leave.sh", script);
    let toml = format!(
        "format = 1\nname = 'left'\n[workload]\nkind = 'command'\ncommand = 'sh {} {{workdir}}'\n\
         [metrics.left]\npattern = '([0-9]+)'\n[run]\niterations = 3\n",
        script.display()
    );
    bench.write("left.toml", &toml);
    let run = bench.measured("-r 2 left.toml");
    for trial in list(&run["trials"]) {
        assert_eq!(
            trial["samples"]["left"],
            serde_json::json!([0.0, 0.0, 0.0]),
            "{trial:#}"
        );
    }
}

/// A server that a set-up command starts in the background, and trials that need it.
const SERVER: [&str; 6] = [
    "-s",
    "(setsid sh -c 'echo $$ >{workdir}/new; mv {workdir}/new {workdir}/pid; exec sleep 300' &); \
     while ! test -e {workdir}/pid; do :; done",
    "-r",
    "3",
    "kill -0 $(cat {workdir}/pid)",
    "kill -0 $(cat {workdir}/pid) 2>/dev/null",
];

#[test]
fn a_server_of_the_set_up_lives_for_all_trials_and_no_longer() {
    let bench = Bench::new();
    let settings = Settings::before(&bench);
    let run = bench.json(&[&["run", "-q", "--no-html", "--json"], &SERVER[..]].concat());
    all_are("completed", list(&run["runs"][0]["trials"]));
    settings.are_back_at_once();
}

#[test]
fn a_server_of_a_killed_run_is_ended_by_the_next_start() {
    let bench = Bench::new();
    let settings = Settings::before(&bench);
    let many = SERVER.map(|word| if word == "3" { "1000" } else { word });
    let run = [&["run", "-q", "--no-html"], &many[..]].concat();
    let mut running = bench.start_measuring(&run);
    running.kill();
    bench.ok("doctor --restore");
    settings.are_back();
}

#[test]
fn a_command_that_stops_itself_fails_its_trial_and_says_so() {
    let bench = Bench::new();
    let stops = "sh -c 'kill -STOP $$; true'; true";
    let settings = Settings::before(&bench);
    let errors = bench.fails(1, &["run", "-q", "--no-html", "-r", "3", stops]);
    assert!(errors.contains("(sh) was stopped by a signal"), "{errors}");
    settings.are_back_at_once();
    // A stopped command that another process continues goes on.
    let line = "sh -c '(until grep -q \"State:.T\" /proc/$$/status; do sleep 0.01; done; \
                sleep 0.1; kill -CONT $$) & kill -STOP $$; true'";
    let run = bench.measured(&["-r", "2", line]);
    for trial in list(&run["trials"]) {
        assert_eq!(trial["state"], "completed", "{trial:#}");
        assert!(trial["samples"]["duration_ns"][0].as_f64() > Some(1e8));
    }
}

#[test]
fn a_command_without_descriptors_and_one_that_reads_its_input_come_to_an_end() {
    let bench = Bench::new();
    let closed = "sh -c 'exec 0<&- 1>&- 2>&-; sleep 0.01; true'";
    let quiet = ["run", "-q", "--no-html", "--json", "-r", "2"];
    let run = bench.json(&[&quiet[..], &[closed, "cat -", "cat /dev/stdin"]].concat());
    all_are("completed", list(&run["runs"][0]["trials"]));
}
