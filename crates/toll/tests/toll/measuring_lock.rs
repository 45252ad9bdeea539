//! Only one run measures on a machine at a time.

use std::fs;

use toll_testing::isolated;
use toll_testing::{Bench, Running, has, has_program, skip, wait_until};

/// Runs in a time namespace of its own, which plays a machine: a run of one user, and the output of
/// other runs that start meanwhile.
const RUNS: &str = "
unset TOLL_RUN_LOCK
toll run -q --no-html -r 999 'sleep 0.05' & one=$!
trap 'kill -KILL $one' EXIT
until toll list --json | grep -q 'unfinished'; do sleep 0.05; kill -0 $one; done
echo \"number $one\"
run='toll run -q --no-html -r 1 --store other.sqlite true'
elsewhere=\"env XDG_STATE_HOME=$PWD/2/state XDG_CACHE_HOME=$PWD/2/cache HOME=$PWD/2\"
echo another home; $elsewhere $run 2>&1 || echo status $?
echo container
$elsewhere unshare --mount --pid --fork --net --ipc --uts --mount-proc $run 2>&1 || echo status $?
echo another machine; unshare --time $run 2>&1 && echo done
";

#[test]
fn the_lock_is_one_for_all_homes_and_containers_of_a_machine_and_for_no_other_machine() {
    isolated(|| {
        let bench = Bench::new();
        if bench.shell("unshare --time true").code != Some(0) {
            return skip("this kernel has no time namespaces");
        }
        bench.write("runs", RUNS);
        let ran = bench.shell("unshare --time bash -e runs");
        let parts: Vec<&str> = ["another home\n", "container\n", "another machine\n"]
            .iter()
            .fold(vec![ran.stdout.as_str()], |mut parts, mark| {
                let last = parts.pop().unwrap();
                let split = last.split_once(mark);
                let (before, after) = split.unwrap_or_else(|| panic!("{mark}: {ran:#?}"));
                parts.extend([before, after]);
                parts
            });
        let number = parts[0].trim().strip_prefix("number ").unwrap();
        has(
            parts[1],
            &[
                &format!("process {number} (toll run -q --no-html -r 999 sleep 0.05) of user root"),
                "running since",
                "--wait",
                "status 1",
            ],
        );
        has(
            parts[2],
            &["a process that cannot be seen here", "status 1"],
        );
        assert!(parts[3].ends_with("done\n"), "{ran:#?}");
    });
}

#[test]
fn a_run_of_another_user_is_named() {
    isolated(|| {
        if !has_program("setpriv") {
            return skip("becoming another user needs setpriv(1)");
        }
        let bench = Bench::new();
        let script = "
unset TOLL_RUN_LOCK TOLL_PROBE
mkdir -m 1777 theirs; cp $(command -v toll) $(command -v toll-probe) theirs
export XDG_STATE_HOME=$PWD/theirs/s XDG_CACHE_HOME=$PWD/theirs/c XDG_DATA_HOME=$PWD/theirs/d
cd theirs
setpriv --reuid=65534 --regid=65534 --clear-groups ./toll run -q --no-html -r 999 'sleep 0.05' & one=$!
trap 'kill -KILL $one' EXIT
until ./toll list --json | grep -q 'unfinished'; do sleep 0.05; kill -0 $one; done
XDG_STATE_HOME=$PWD/../state XDG_CACHE_HOME=$PWD/../cache toll run -q --no-html -r 1 true
";
        bench.write("script", script);
        let reaches = bench.shell("chmod 755 .; setpriv --reuid=65534 --clear-groups ls \"$PWD\"");
        if reaches.code != Some(0) || bench.shell("unshare --time true").code != Some(0) {
            return skip("another user cannot read the build directory");
        }
        let ran = bench.shell("unshare --time bash -e script");
        assert_eq!(ran.code, Some(1), "{ran:#?}");
        has(&ran.stderr, &["of user nobody", "is measuring"]);
    });
}

#[test]
fn a_run_that_is_told_to_wait_waits_and_says_for_whom() {
    let bench = Bench::new();
    let mut one = bench.start_measuring("run -q --no-html -r 999 'sleep 0.05'");
    let mut command = bench.spawnable("run --wait -q --no-html -r 1 --store other.sqlite true");
    command.stderr(fs::File::create(bench.path("told")).unwrap());
    let mut waiting = Running(command.spawn().unwrap());
    let named = format!("waiting for process {} (", one.0.id());
    wait_until("toll names the process that it waits for", || {
        bench.read("told").contains(&named)
    });
    assert!(!bench.path("other.sqlite").exists());
    one.kill();
    assert_eq!(waiting.end().code(), Some(0));
    assert!(bench.path("other.sqlite").exists());
}

#[test]
fn a_run_that_waits_can_be_interrupted() {
    let bench = Bench::new();
    let mut one = bench.start_measuring("run -q --no-html -r 999 'sleep 0.05'");
    let mut command = bench.spawnable("run --wait -q --no-html -r 1 --store other.sqlite true");
    command.stderr(fs::File::create(bench.path("told")).unwrap());
    let mut waiting = Running(command.spawn().unwrap());
    wait_until("toll waits", || {
        bench.read("told").contains("waiting for process")
    });
    waiting.send(rustix::process::Signal::INT);
    assert_eq!(waiting.end().code(), Some(130));
    one.kill();
}

#[test]
fn a_lock_of_ones_own_is_for_runs_that_are_apart_and_the_doctor_names_it() {
    let bench = Bench::new();
    let mut one = bench.start_measuring("run -q --no-html -r 999 'sleep 0.05'");
    let ran = bench.shell(
        "export TOLL_RUN_LOCK=$PWD/apart XDG_STATE_HOME=$PWD/s; \
         toll run -q --no-html -r 1 --store other.sqlite true && toll doctor --no-noise",
    );
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    has(&ran.stdout, &["measuring lock", "apart, as TOLL_RUN_LOCK"]);
    one.kill();
    let ran = bench.shell("unset TOLL_RUN_LOCK; toll doctor --no-noise");
    has(&ran.stdout, &["one for all users and containers"]);
}
