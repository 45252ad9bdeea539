//! Directories and journals of other users: no journal in them is obeyed, and nothing is created in
//! them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toll_testing::isolated;
use toll_testing::{Bench, Ran, has, has_program, in_a_namespace, lacks, skip};

fn line_of(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.trim().to_owned()
}

/// A directory with another one in it, and a journal of a killed run that says to remove it.
struct Planted {
    bench: Bench,
    victim: PathBuf,
}

impl Planted {
    fn new() -> Self {
        let bench = Bench::new();
        let victim = bench.path("victim");
        fs::create_dir_all(victim.join("deep")).unwrap();
        let metadata = fs::metadata(&victim).unwrap();
        let origin = json!({
            "host": line_of("/proc/sys/kernel/hostname"),
            "machine_id": line_of("/etc/machine-id"),
            "boot_id": line_of("/proc/sys/kernel/random/boot_id"),
            "pid_namespace": fs::metadata("/proc/self/ns/pid").unwrap().ino(),
            // Larger than any process ID.
            "process": { "pid": 99_999_999, "start_ticks": 1 },
        });
        let made = json!({ "device": metadata.dev(), "inode": metadata.ino() });
        let change = json!({ "directory": { "path": victim, "made": made } });
        let directory = bench.path("state/toll/leftovers");
        fs::create_dir_all(&directory).unwrap();
        bench.write(
            "state/toll/leftovers/99999999-1.jsonl",
            &format!("{origin}\n{change}\n"),
        );
        let planted = Self { bench, victim };
        planted.shell("chmod -R go-rwx state");
        planted
    }

    fn shell(&self, line: &str) -> Ran {
        let ran = self.bench.shell(line);
        assert_eq!(ran.code, Some(0), "{line}: {ran:#?}");
        ran
    }

    fn is_obeyed(&self) -> bool {
        !self.victim.join("deep").exists()
    }
}

#[test]
fn a_journal_of_this_user_is_obeyed() {
    isolated(|| {
        let planted = Planted::new();
        has(
            &planted.bench.ok("doctor --restore").stdout,
            &["cleared after a killed run", "victim"],
        );
        assert!(planted.is_obeyed());
    });
}

#[test]
fn journals_in_a_directory_that_others_can_change_are_not_obeyed_and_nothing_is_made_there() {
    isolated(|| {
        let changes = [
            "chown 65534 state/toll/leftovers",
            "chown 65534 state/toll",
            "chmod 777 state/toll/leftovers",
            "chmod 770 state/toll",
            "mv state/toll/leftovers aside && ln -s $PWD/aside state/toll/leftovers",
            "mv state/toll aside && ln -s ../aside state/toll",
        ];
        for change in changes {
            let planted = Planted::new();
            planted.shell(change);
            let ran = planted.bench.run("doctor --restore");
            assert_eq!(ran.code, Some(1), "{change}: {ran:#?}");
            has(&ran.stdout, &["cannot use ", "state/toll"]);
            let before = planted.shell("find . | sort").stdout;
            let ran = planted.bench.run("run -q --no-html -r 1 true");
            assert_eq!(ran.code, Some(5), "{change}: {ran:#?}");
            has(&ran.stderr, &["cannot use ", "state/toll"]);
            let after = planted.shell("find . | sort").stdout;
            let made = after.lines().filter(|line| !before.contains(line));
            let made: Vec<&str> = made.collect();
            assert!(made.iter().all(|path| !path.contains("run-")), "{made:?}");
            assert!(!planted.is_obeyed(), "{change}");
            // `toll doctor` reports the problem and its remedy, and succeeds.
            for line in ["doctor --no-noise", "doctor --json"] {
                let ran = planted.bench.ok(line);
                has(&ran.stdout, &["cannot use ", "state/toll"]);
            }
        }
    });
}

#[test]
fn journals_that_others_can_write_or_name_are_not_obeyed() {
    isolated(|| {
        let changes = [
            "chown 65534 $journal",
            "chmod 644 $journal",
            "chmod 620 $journal",
            "ln $journal another",
            "mv $journal another && ln -s $PWD/another $journal",
            "rm $journal && mkfifo -m 600 $journal",
            "truncate -s 9M $journal",
            "echo '{\"directory\": \"/\"}' >>$journal",
        ];
        for change in changes {
            let planted = Planted::new();
            planted.shell(&format!(
                "journal=$PWD/state/toll/leftovers/99999999-1.jsonl; {change}"
            ));
            let ran = planted.bench.run("doctor --restore");
            assert_eq!(ran.code, Some(1), "{change}: {ran:#?}");
            has(&ran.stdout, &["99999999-1.jsonl", "remove it"]);
            let ran = planted.bench.ok("run -q --no-html -r 1 true");
            has(&ran.stderr, &["warning: ", "99999999-1.jsonl"]);
            assert!(!planted.is_obeyed(), "{change}");
        }
    });
}

/// Here HOME names a directory that everybody may write to, and another user has filled it.
#[test]
fn a_home_directory_that_others_filled_is_not_used() {
    isolated(|| {
        for made in [
            ".local",
            ".local/state",
            ".local/state/toll",
            ".local/state/toll/leftovers",
        ] {
            let planted = Planted::new();
            let parent = Path::new(made).parent().unwrap().display();
            planted.shell(&format!(
                "mkdir -m 1777 shared && mkdir -p shared/.local/state && cp -a state/toll \
             shared/.local/state/ && chmod -R go-w shared/.local && chown -R 65534 shared/{made}; \
             true {parent}"
            ));
            let ran = planted.bench.shell(
                "unset XDG_STATE_HOME XDG_CACHE_HOME XDG_DATA_HOME; export HOME=$PWD/shared; \
             toll run -q --no-html -r 1 --store s.sqlite true",
            );
            assert_eq!(ran.code, Some(5), "{made}: {ran:#?}");
            has(&ran.stderr, &["it belongs to ", made]);
            assert!(!planted.is_obeyed(), "{made}");
        }
    });
}

#[test]
fn a_link_of_this_user_leads_the_cache_to_another_disk_and_one_of_another_user_does_not() {
    isolated(|| {
        let bench = Bench::new();
        let line = "mkdir -p other && mkdir -p home/.local/share && ln -sfn $PWD/other home/.cache; \
                unset XDG_STATE_HOME XDG_CACHE_HOME XDG_DATA_HOME; ";
        let run = "toll run -q --no-html -r 1 true";
        let ran = bench.shell(&format!("{line} {run} && test -d other/toll/work"));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        let ran = bench.shell(&format!("{line} chown -h 65534 home/.cache; {run}"));
        assert_eq!(ran.code, Some(5), "{ran:#?}");
        has(&ran.stderr, &["it is a symbolic link of "]);
    });
}

#[test]
fn all_that_is_made_is_of_this_user_alone_whatever_the_umask_is() {
    isolated(|| {
        let bench = Bench::new();
        let command = "sh -c 'stat -c \"%n %a\" {workdir}/.. >>modes'";
        let ran = bench.shell(&format!(
            "umask 0; toll run -q -r 1 \"{}\" && toll doctor --no-noise",
            command.replace('"', "\\\"")
        ));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        let open = "find state cache data -type d ! -perm 700; find state -type f ! -perm 600";
        assert_eq!(bench.shell(open).stdout, "");
        let modes = bench.read("modes");
        for line in modes.lines() {
            let (path, mode) = line.rsplit_once(' ').unwrap();
            let root = path.strip_suffix("/work/..").unwrap();
            let (_, random) = root.rsplit_once("/run-").unwrap();
            assert_eq!((random.len(), mode), (16, "700"), "{line}");
        }
        assert!(!modes.is_empty());
    });
}

#[test]
fn a_work_directory_where_all_may_rename_is_refused_and_a_sticky_one_is_not() {
    isolated(|| {
        let bench = Bench::new();
        bench.shell("mkdir work && chmod 777 work");
        let run = "run -q --no-html -r 1 --work-dir work true";
        let output = bench.fails(5, run);
        has(
            &output,
            &["cannot use ", "set its sticky bit", "--work-dir"],
        );
        bench.shell("chmod +t work");
        bench.ok(run);
        assert_eq!(fs::read_dir(bench.path("work")).unwrap().count(), 0);
    });
}

const NO_PLACES: &str = "unset XDG_STATE_HOME XDG_CACHE_HOME XDG_DATA_HOME TOLL_STORE; ";

#[test]
fn without_a_home_in_the_environment_it_is_that_of_the_password_database() {
    for home in ["unset HOME", "export HOME=", "export HOME=relative"] {
        let bench = Bench::new();
        let line = format!(
            "printf 'root:x:0:0::%s/real:/bin/sh\\n' \"$PWD\" >passwd; mkdir real cwd tmp; \
             mount --bind passwd /etc/passwd; export TMPDIR=$PWD/tmp; cd cwd; {home}; {NO_PLACES} \
             export XDG_CACHE_HOME=relative XDG_STATE_HOME=; \
             toll run -q -r 1 true >/dev/null; cd ..; find real cwd tmp -maxdepth 4 | sort"
        );
        let Some(ran) = in_a_namespace(&bench, &line) else {
            return;
        };
        assert_eq!(ran.code, Some(0), "{home}: {ran:#?}");
        has(
            &ran.stdout,
            &[
                "real/.local/state/toll",
                "real/.cache/toll",
                "real/.local/share/toll",
            ],
        );
        lacks(&ran.stdout, &["cwd/", "tmp/"]);
    }
}

#[test]
fn without_any_home_the_message_says_what_to_set() {
    isolated(|| {
        if !has_program("setpriv") {
            return skip("running as a user without a name needs setpriv(1)");
        }
        let bench = Bench::new();
        let line = format!(
            "chmod 755 .; setpriv --reuid=54321 --regid=54321 --clear-groups bash -c \
         'toll --version >/dev/null || exit 99; unset HOME; {NO_PLACES} toll list'"
        );
        let ran = bench.shell(&line);
        if ran.code == Some(99) || ran.code == Some(126) {
            return skip("another user cannot read the build directory");
        }
        assert_eq!(ran.code, Some(1), "{ran:#?}");
        has(&ran.stderr, &["cannot find the home directory", "set HOME"]);
    });
}

/// Kills a run. Returns its bench, its journal and its work directory.
fn killed() -> (Bench, PathBuf, PathBuf) {
    let bench = Bench::new();
    bench
        .start_measuring("run -q --no-html -r 999 'sleep 0.05'")
        .kill();
    let [work, journals] = bench.places_of_leftovers();
    let only = |directory: PathBuf| {
        let mut entries = fs::read_dir(directory).unwrap();
        entries.next().unwrap().unwrap().path()
    };
    let (journal, work) = (only(journals), only(work));
    (bench, journal, work)
}

#[test]
fn a_mount_below_a_directory_that_a_link_leads_to_is_not_emptied() {
    isolated(|| {
        let (bench, _, work) = killed();
        let point = work.join("mounted");
        let made = bench.shell(&format!(
            "mv cache disk && ln -s disk cache && mkdir {0} && mount -t tmpfs none {0} && \
             touch {0}/precious",
            point.display()
        ));
        assert_eq!(made.code, Some(0), "{made:#?}");
        let ran = bench.run("doctor --restore");
        assert_eq!(ran.code, Some(1), "{ran:#?}");
        has(&ran.stdout, &["is mounted in it"]);
        assert!(point.join("precious").exists());
    });
}

/// Changes the origin in a journal: where it was written.
fn rewrite(journal: &Path, change: impl Fn(&mut Value)) {
    let text = fs::read_to_string(journal).unwrap();
    let (origin, changes) = text.split_once('\n').unwrap();
    let mut origin: Value = serde_json::from_str(origin).unwrap();
    change(&mut origin);
    fs::write(journal, format!("{origin}\n{changes}")).unwrap();
}

fn of_another_machine(origin: &mut Value) {
    origin["host"] = "elsewhere".into();
    origin["boot_id"] = "another".into();
}

fn of_a_container(origin: &mut Value) {
    origin["pid_namespace"] = 1.into();
}

#[test]
fn journals_of_other_machines_and_containers_are_left_alone_and_listed() {
    for whose in ["another machine", "another PID namespace"] {
        let (bench, journal, work) = killed();
        match whose {
            "another machine" => rewrite(&journal, of_another_machine),
            _ => rewrite(&journal, of_a_container),
        }
        let ran = bench.ok("run -q --no-html -r 1 true");
        lacks(&ran.stderr, &["warning", "cleared"]);
        for line in ["doctor --restore", "doctor --no-noise"] {
            let name = journal.file_name().unwrap().to_string_lossy();
            has(&bench.ok(line).stdout, &[whose, "left alone", &name]);
        }
        assert!(work.exists() && journal.exists(), "{whose}");
    }
}

#[test]
fn what_a_run_left_before_a_reboot_is_removed_and_nothing_that_took_its_place() {
    if line_of("/etc/machine-id").is_empty() {
        return skip("recognising a reboot needs /etc/machine-id, which is missing");
    }
    let reboot = |origin: &mut Value| origin["boot_id"] = "another".into();
    let (bench, journal, work) = killed();
    rewrite(&journal, reboot);
    has(&bench.ok("doctor --restore").stdout, &["cleared after a"]);
    assert!(!work.exists() && !journal.exists());
    for is_rebooted in [false, true] {
        let (bench, journal, work) = killed();
        if is_rebooted {
            rewrite(&journal, reboot);
        }
        fs::rename(&work, bench.path("moved")).unwrap();
        fs::create_dir_all(work.join("mine")).unwrap();
        let ran = bench.run("doctor --restore");
        assert_eq!(ran.code, Some(1), "{ran:#?}");
        has(&ran.stdout, &["it is not what the run made"]);
        assert!(work.join("mine").exists() && bench.path("moved").exists());
    }
}
