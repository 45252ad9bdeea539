//! Experiments for many machines, without a scheduler.

use rustix::process::Signal;
use serde_json::Value;
use toll_testing::isolated;
use toll_testing::{
    Bench, has, has_program, in_a_namespace, lacks, list, python_with_packages, skip,
};

use crate::fleet::CLOCKS;

const PODS: &str = "--kubernetes --nodes 2 --claim fleet --cpus 1 --memory 1GiB";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("clocks.toml", CLOCKS);
    bench
}

fn document(bench: &Bench, node: &str) -> Value {
    serde_json::from_str(&bench.read(&format!("toll-fleet/nodes/{node}/clocks.json"))).unwrap()
}

#[test]
fn machines_measure_what_was_submitted_once_each() {
    let bench = bench();
    let said = bench.ok(&format!("fleet submit clocks.toml {PODS} -- -r 12"));
    has(&said.stdout, &["kubectl apply -f ", "toll-fleet/job.json"]);
    for node in ["a", "b"] {
        bench.ok(&format!("fleet work toll-fleet --node {node}"));
    }
    let first = document(&bench, "a");
    assert_eq!(first["run"]["status"], "complete");
    bench.ok("fleet work toll-fleet --node a");
    assert_eq!(document(&bench, "a"), first);
    let output = bench.ok("fleet status").stdout;
    has(
        &output,
        &[
            "a     complete     1 of 1",
            "2 nodes: 2 complete",
            "requested nodes: 2",
        ],
    );
    has(
        &bench.ok("fleet fetch --parquet tables").stdout,
        &["wrote 2 runs as Parquet below tables"],
    );
    let said = bench.fails(1, "fleet report");
    has(&said, &["toll-fleet/tables/runs", "toll fleet fetch"]);
    bench.ok("fleet fetch");
    has(&bench.ok("fleet report").stdout, &["clocks.vdso", "1 of 1"]);
    has(
        &bench.fails(2, "fleet retry"),
        &["kubectl replace --force -f "],
    );
}

#[test]
fn a_script_measures_where_it_is_started() {
    let bench = bench();
    let submit = "fleet submit clocks.toml --script --work-dir";
    let work = bench.path("disk");
    let said = bench.ok(&format!("{submit} {} -- -r 12", work.display()));
    has(
        &said.stdout,
        &["start it on each machine: sh /", "toll-fleet/measure.sh"],
    );
    let ran = bench.shell("NODE_NAME=here sh toll-fleet/measure.sh");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    has(
        &bench.ok("fleet status").stdout,
        &["here  complete     1 of 1", "1 node: 1 complete"],
    );
    let mut own = std::fs::read_dir(&work).unwrap();
    let own = own.next().unwrap().unwrap().path();
    std::fs::rename(&own, bench.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(bench.path("elsewhere"), &own).unwrap();
    let ran = bench.shell("sh toll-fleet/measure.sh");
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    has(&ran.stderr, &["it is not this user's directory"]);
    has(&bench.fails(2, "fleet retry"), &["measure.sh continues"]);
    let shown = bench.ok("fleet submit cat --script --dry-run").stdout;
    let checked = bench.write("script.sh", &shown);
    if has_program("shellcheck") {
        let ran = bench.shell(&format!("shellcheck {}", checked.display()));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
    }
}

#[test]
fn what_a_signal_ends_goes_on_later() {
    let bench = bench();
    bench.ok(&format!("fleet submit clocks.toml {PODS} -- -r 300"));
    let mut job = bench.start("fleet work toll-fleet --node a");
    job.until("a trial is kept", || {
        let shown = bench.run("--store toll-fleet/nodes/a/clocks.sqlite show --json");
        let shown: Value = serde_json::from_str(&shown.stdout).unwrap_or_default();
        !list(&shown["trials"]).is_empty()
    });
    job.send(Signal::TERM);
    assert_eq!(job.end().code(), Some(143));
    let ended = document(&bench, "a");
    assert_eq!(ended["run"]["status"], "unfinished");
    has(
        &bench.ok("fleet status").stdout,
        &["a     unfinished   0 of 1"],
    );
    has(
        &bench.ok("fleet fetch").stdout,
        &["wrote 1 run as Parquet", "1 unfinished"],
    );

    bench.ok("fleet work toll-fleet --node a");
    let whole = document(&bench, "a");
    assert_eq!(whole["run"]["uid"], ended["run"]["uid"]);
    let before = list(&ended["trials"]);
    assert_eq!(&list(&whole["trials"])[..before.len()], before);
    lacks(&bench.ok("fleet fetch").stdout, &["unfinished"]);
}

#[test]
fn a_job_explains_what_an_earlier_one_left_unexplained() {
    let bench = bench();
    let compared = CLOCKS.replace(
        "[workload]",
        "reference = { operation = 'vdso' }\n[workload]",
    );
    bench.write("clocks.toml", &compared);
    bench.ok(&format!("fleet submit clocks.toml {PODS} -- -r 2"));
    let work = "fleet work toll-fleet --node a";
    bench.ok(work);
    let submission = bench.read("toll-fleet/submission.json");
    let with_why = submission.replace("\"-r\",", "\"--why\", \"-r\",");
    bench.write("toll-fleet/submission.json", &with_why);
    let trials = list(&document(&bench, "a")["trials"]).len();
    for _ in 0..2 {
        bench.ok(work);
        let explained = document(&bench, "a");
        assert_eq!(list(&explained["profiles"]).len(), 1);
        assert_eq!(list(&explained["trials"]).len(), trials);
    }
}

#[test]
fn a_job_that_cannot_measure_says_why_and_fails() {
    let bench = bench();
    bench.ok(&format!("fleet submit clocks.toml {PODS} -- -r 12"));
    bench.write(
        "toll-fleet/experiments/clocks.toml",
        "format = 1\nname = 3\n",
    );
    let said = bench.fails(1, "fleet work toll-fleet --node a");
    has(
        &said,
        &[
            "clocks.toml",
            "cannot measure clocks on a; see the error above",
        ],
    );
    for name in ["''", "../b", ".hidden"] {
        let said = bench.fails(2, &format!("fleet work toll-fleet --node {name}"));
        has(&said, &["cannot measure as "]);
    }
    has(
        &bench.fails(1, "fleet status nowhere"),
        &["nothing was submitted from this directory"],
    );
}

#[test]
fn options_that_jobs_cannot_use_are_refused_with_the_reason() {
    let bench = bench();
    for (options, why) in [
        (
            "--resume",
            "cannot use --resume after --: jobs take options",
        ),
        ("--export-json x", "cannot use --export-json after --"),
        ("-q", "cannot use -q after --: jobs take options"),
        ("true", "cannot use true after --"),
        (
            "--nonsense",
            "cannot use --nonsense after --: toll run has no such option; see toll run --help",
        ),
        (
            "--profil=quick",
            "cannot use --profil after --: toll run has no such option; did you mean --profile?",
        ),
        ("--reference x", "cannot use --reference after --"),
        ("--baseline x", "cannot use --baseline after --"),
        (
            "--fail-on refuted --allow-different-work",
            "cannot use --allow-different-work after --",
        ),
        ("--work-dir x", "cannot use --work-dir after --"),
        ("--runs 0", "--runs and --min-runs must be at least 1"),
        (
            "--fail-on regression=5%",
            "cannot fail on a regression of clocks: it compares nothing",
        ),
        ("--why", "cannot use --why with clocks: it compares nothing"),
    ] {
        let submit = format!("fleet submit clocks.toml --slurm -- {options}");
        has(&bench.fails(2, &submit), &[why]);
    }
    assert!(!bench.path("toll-fleet").exists());
}

#[test]
fn what_no_job_could_measure_is_refused_before_anything_is_made() {
    let bench = bench();
    bench.write("other.toml", CLOCKS);
    for (arguments, why) in [
        ("sleep --slurm", "it is neither a built-in experiment"),
        (
            "clocks.toml other.toml --slurm",
            "cannot submit two experiments named clocks",
        ),
        (
            "clocks.toml --slurm --directory 'a b'",
            "its path has characters",
        ),
        (
            "clocks.toml --slurm --work-dir here",
            "give an absolute path",
        ),
        ("clocks.toml", "<--slurm|--kubernetes|--script>"),
        ("clocks.toml --slurm --kubernetes", "cannot be used with"),
        ("clocks.toml --kubernetes", "--claim <NAME>"),
        (
            "clocks.toml --script --time-limit 2h",
            "'--script' cannot be used with '--time-limit <TIME>'",
        ),
        (
            "clocks.toml --slurm --partition 'a b'",
            "expected a word without spaces",
        ),
    ] {
        let code = if why.starts_with("its path") { 1 } else { 2 };
        has(
            &bench.fails(code, &format!("fleet submit {arguments}")),
            &[why],
        );
    }
    let label = format!("fleet submit clocks.toml {PODS} --constraint ssd");
    has(&bench.fails(2, &label), &["a label is NAME=VALUE"]);
    assert!(!bench.path("toll-fleet").exists());

    let submit = format!("fleet submit clocks.toml {PODS}");
    bench.ok(&submit);
    has(&bench.fails(2, &submit), &["it has a submission already"]);
    std::fs::create_dir(bench.path("full")).unwrap();
    bench.write("full/file", "");
    let said = bench.fails(2, &format!("{submit} --directory full"));
    has(&said, &["it is not empty"]);
}

#[test]
fn a_submission_of_another_user_is_read_and_neither_obeyed_nor_written_to() {
    isolated(|| {
        let bench = Bench::new();
        bench.write("kept", "kept");
        bench.ok("fleet submit cat --script --directory fleet");
        for change in ["chown 65534 fleet", "chown -h 0 fleet; chmod 777 fleet"] {
            assert_eq!(bench.shell(change).code, Some(0));
            for verb in ["fetch", "retry"] {
                let output = bench.fails(2, &format!("fleet {verb} fleet"));
                has(&output, &["cannot use ", "fleet: "]);
            }
            bench.ok("fleet status fleet");
            bench.ok("fleet fetch fleet --parquet tables");
        }
    });
}

#[test]
fn where_slurm_is_not_that_is_said() {
    let bench = bench();
    let hidden = "for path in /usr/bin/sbatch /bin/sbatch; do \
                  [ ! -e $path ] || mount --bind /dev/null $path; done";
    let line = format!("{hidden}; toll fleet submit clocks.toml --slurm");
    if let Some(ran) = in_a_namespace(&bench, &line) {
        assert_eq!(ran.code, Some(5), "{ran:#?}");
        has(&ran.stderr, &["cannot use Slurm: sbatch is missing"]);
    }
}

#[test]
fn a_full_disk_leaves_nothing_half_submitted() {
    let bench = bench();
    std::fs::create_dir(bench.path("small")).unwrap();
    let line = format!(
        "mount -t tmpfs -o size=1m none small; \
         toll fleet submit clocks.toml --directory small/fleet {PODS} || code=$?; \
         ls small; exit $code"
    );
    if let Some(ran) = in_a_namespace(&bench, &line) {
        assert_eq!(ran.code, Some(1), "{ran:#?}");
        has(&ran.stderr, &["cannot copy ", "No space left on device"]);
        assert_eq!(ran.stdout, "");
    }
}

#[test]
fn kubernetes_accepts_the_job() {
    if !has_program("python3") {
        return skip("the published schemas of Kubernetes come with a package of Python");
    }
    let python = python_with_packages();
    let bench = bench();
    let options = "--constraint disk=ssd --time-limit 2h --dry-run";
    let job = bench
        .ok(&format!("fleet submit cat {PODS} {options}"))
        .stdout;
    let accepts = |job: &str| {
        bench.write("job.json", job);
        let validate = "-m kubernetes_validate --strict job.json";
        let ran = bench.shell(&format!("{} {validate}", python));
        (ran.code == Some(0), ran)
    };
    let (accepted, ran) = accepts(&job);
    assert!(accepted, "{ran:#?}");
    for (right, wrong) in [
        ("backoffLimitPerIndex", "backoffLimitPerNode"),
        ("\"1\"", "true"),
    ] {
        let (accepted, ran) = accepts(&job.replace(right, wrong));
        assert!(!accepted, "{wrong}: {ran:#?}");
    }
    let job: Value = serde_json::from_str(&job).unwrap();
    let resources = &job["spec"]["template"]["spec"]["containers"][0]["resources"];
    // The quality of service Guaranteed.
    assert_eq!(resources["requests"], resources["limits"]);
}
