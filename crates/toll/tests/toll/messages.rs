//! Messages about wrong names, missing files, full disks and closed streams. Apart from the
//! message, such a command has no effect.

use toll_testing::isolated;
use toll_testing::{Bench, has, in_a_namespace, is_root, lacks, skip};

/// One case per line: the exit status, the arguments of `toll`, and words of the message.
const TABLE: &str = r#"
2 run swep => did you mean sweep?
2 run missing.toml => missing.toml: there is no such file
2 run fifo.toml => fifo.toml: it is not a regular file
2 run directory.toml => it is a directory; name a file
2 run empty.toml => empty.toml:1: cannot read it
2 run claim.toml --dry-run => claim.toml:12: cannot use claim c
2 run claim.toml --dry-run => did you mean 64KiB?
2 run open.toml --dry-run => name a level of sink
2 run --metric durtion_ns true => did you mean duration_ns?
2 run --counter page-fault true => cannot use counter page-fault: there is no such counter; did you mean page-faults?
2 run --counter nonsense true => no such counter; `toll run --help` lists all
2 run counter.toml --dry-run => counter.toml:3: cannot use counter
1 run --store missing/y/x true => its directory does not exist
1 run --store fifo true => it is not a regular file
1 run --store directory true => is a directory
1 run --store text true => cannot read the store
5 run --work-dir text true => choose another place with --work-dir
5 run --work-dir text --dry-run true => choose another place with --work-dir
5 run --work-dir /proc/x --dry-run true => choose another place with --work-dir
1 run --html missing/x true => missing/x: its directory does not exist
1 run --plots missing/x/y true => its directory does not exist
1 run --export-csv missing/x true => its directory does not exist
2 run --baseline none true => cannot find baseline none
2 run --fail-on refuted --allow-different-work sweep => no other run is compared; add --baseline
2 show 1 --fail-on refuted --allow-different-work => no other run is compared; add --baseline
2 ci --baseline main true => --baseline is an option of toll run, not of this command
2 ci --guest true => --guest is an option of toll run, not of this command
2 ci --resume => --resume is an option of toll run, not of this command
2 ci --bas main true => --base
2 run --why true => cannot use --why with commands: it compares nothing
2 run --why --metric max_rss_bytes true 'true 2' => it compares max_rss_bytes first, and only times are explained
2 run --why --guest true 'true 2' => it runs in guests, which cannot be profiled; `toll count`
2 run --why --dry-run true 'true 2' => cannot be used with
2 run --why kernel => cannot use --why with kernel
1 run --resume 99 => cannot find run 99
1 list --store fifo => it is not a regular file
1 show 99 => cannot find run 99; see `toll list`
1 show last --store missing/x => there is no store yet
1 report 1 --html missing/x => its directory does not exist
1 report 1 --html directory => it is a directory
1 report 1 --plots missing/x/y => its directory does not exist
1 report 1 --plots text => it is not a directory
1 export 1 --json missing/x => missing/x: its directory does not exist
1 export 1 --csv /dev/full => the disk is full
2 export 1 --junit - => it has no claims and no comparisons
1 import missing => missing: there is no such file
1 import directory => it is a directory
1 import fifo => fifo: it is not a regular file
1 grade fifo => fifo: it is not a regular file
1 prices --compare fifo => fifo: it is not a regular file
1 observe session fifo => fifo: it is not a regular file
1 observe session text --timing fifo => fifo: it is not a regular file
1 observe dhcp /dev/zero => /dev/zero: it is not a regular file
2 import text => cannot read the document
1 import run.json => it already exists, as run 1
1 import run.json --store fifo => it is not a regular file
1 compare 1 99 => cannot find run 99
1 baseline save x 99 => cannot find run 99
2 baseline remove none => cannot find baseline none
2 baseline lsit => 'list'
127 trace nosuchprogram => there is no such program
1 trace -o missing/x true => its directory does not exist
1 observe devices 99999999 => there is no such process
1 observe session missing => missing: there is no such file
1 observe dhcp missing => neither a file nor a network interface
1 observe interface none0 => there is no such network interface
2 guest run --add missing -- true => it is not a regular file
5 guest run -- true => toll kernel build
2 mount missing directory => missing: it does not exist
2 mount directory text => text: it is not a directory
1 doctor --salvage text => the file already exists
1 doctor --salvage missing/x => its directory does not exist
1 selftest --keep --store missing/y/x => its directory does not exist
5 kernel show => toll kernel build
2 --store x kernel list => neither reads nor stores runs
2 completions none => possible values
2 frobnicate => frobnicate
2 run --profile thorough true => standard
2 run true -L size => expected NAME=LEVEL
2 run -L size=1,1 'echo {size}' => is given twice
2 run -P n 4 1 'echo {n}' => n
2 run -P 'n=1..4*1' 'echo {n}' => n
2 run -D 2 true => -D
2 run -r 0 true => at least 1
2 run -m 9 -M 3 true => --max-runs
2 run -r 3 -m 2 true => --min-runs
2 run --time-budget soon true => 30s
2 run --target-ci 0% true => share
2 run -N -S bash true => --shell
2 run -n a -n b true => cannot name 2 commands
2 run true true => is given twice
2 run cat -L colour=red => no such factor
2 run cat -n name => no command to name
2 run cat write --export-json x.json => several
2 run missing.toml => missing.toml
2 run --resume --seed 4 => --seed
2 run --resume => no unfinished run
2 export last => --json
2 compare last => single SIDE
2 completions tcsh => tcsh
2 doctor --restore --no-noise => --no-noise
2 doctor --restore --work-dir x => --work-dir
2 why --stored --work-dir x => --work-dir
2 why --stored --run-foreign-commands => --run-foreign-commands
2 prices --last --work-dir x => --work-dir
2 prices --all --group memory => --group
2 show --kernel-log --metric duration_ns => --metric
2 grade run.json --work-dir x => --measure
2 kernel => build
2 kernel build vanilla => there is no such kernel
2 kernel build --jobs 0 => --jobs
2 trace => required
2 trace --measure --no-prices true => cannot be used
126 trace ./text => is not an executable program
2 guest run --add /tmp -- true => it is not a regular file
2 guest run --accelerator hvf -- true => hvf
2 observe devices 1 x => not a process number
2 observe devices 99999999999 => 99999999999
127 observe devices nosuchprogram => there is no such program
1 observe dhcp run.json => not a pcap or pcapng capture
2 observe dhcp text --seconds 1 => --seconds and --packets are for interfaces
2 observe session text --columns 0 => --columns
1 observe interface $'no\x1bsuch' => there are: lo
2 run true --fail-on refuted => there are no claims
2 run true --fail-on regression=5% => compares nothing
2 run true --fail-on regression => regression=5%
2 run true --fail-on regression=-1 => share
2 run true --fail-on slower => expected refuted
2 run 'echo 1' 'echo 2' --metric exit_status --fail-on regression=1% => no worse side
2 prices --group disk => cannot list group "disk": there is no such group; choose one of
2 prices --group disk => "io_uring"
2 prices --row fly => cannot list row "fly"
2 prices --row fly => "stat"
2 prices -r 0 => blocks need 1 <= min_blocks
2 prices --compare text => text:
1 prices --compare missing => missing: there is no such file
2 prices --last => no list of this machine
2 prices --compare run.json => has no prices
"#;

const CLAIM: &str = "format = 1\nname = 't'\n[workload]\nkind = 'copy'\n[[factor]]\nname = 'buffer'\n\
    levels = ['4KiB', '64KiB']\n[[claim]]\nid = 'c'\ntext = 'x'\ndirection = 'less'\n";

/// Prepares a bench with a run, and with unsuitable files of all kinds.
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
    let mut wrong = Vec::new();
    for row in TABLE.trim().lines() {
        let (given, words) = row.split_once(" => ").expect(row);
        let (code, line) = given.split_once(' ').expect(row);
        let ran = bench.shell(&format!("timeout 60 toll {line} </dev/null"));
        if ran.code != code.parse().ok() || !ran.stderr.contains(words) {
            wrong.push(format!("{row}: {:?}: {}", ran.code, ran.stderr));
        }
        lacks(&ran.stderr, &["panicked", "\u{1b}"]);
        assert!(!bench.path("missing").exists(), "{row}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(!bench.path("x.json").exists());
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
        "memory_access --buffer 1MiB --steps 1 0 0 0 0 0 >&-",
        "compete_for_memory 1MiB >&-",
        "meow text >&-",
        "master --help >&-",
        "slave --help >&-",
        "toll-probe --version >&-",
        // Open for the wrong direction, which Rust's standard streams treat as success.
        "toll list 1<text",
        "prime_user --runs 1 1<text",
        "timewrite out <text 1<text",
        "toll-probe --version 1<text",
    ] {
        let ran = bench.shell(line);
        if ran.code == Some(127) {
            skip(&format!("{line}: the program is not built"));
            continue;
        }
        assert_eq!(ran.code, Some(1), "{line}: {ran:#?}");
        // The probe writes for a program, which sees its exit status.
        assert_eq!(
            ran.stderr.is_empty(),
            line.starts_with("toll-probe"),
            "{line}"
        );
    }
    assert!(!bench.path("out").exists());
    // A command that prints nothing needs no standard output.
    let ran = bench.shell("toll export 1 --csv run.csv >&-");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(!bench.ok("list").stdout.contains("unfinished"));
}

#[test]
fn a_closed_standard_input_is_an_error_of_whatever_reads_it() {
    let bench = prepared();
    for redirection in ["<&-", "0>unread"] {
        for line in [
            "toll import -",
            "toll observe session -",
            "toll observe dhcp -",
        ] {
            let ran = bench.shell(&format!("{line} {redirection}"));
            assert_eq!(ran.code, Some(1), "{line} {redirection}: {ran:#?}");
            has(&ran.stderr, &["cannot read -: ", "ad file descriptor"]);
        }
    }
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
    let found = "cannot import the run: it already exists, as run 1";
    assert_eq!(ran.stderr.matches(found).count(), 15, "{ran:#?}");
    assert_eq!(ran.stderr.lines().count(), 15, "{ran:#?}");
}

/// A command that unmounts the tmpfs at its fifth run.
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
        assert_eq!(treatment["skipped"].is_object(), is_lost, "{treatment}");
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
    isolated(|| {
        let bench = Bench::new();
        let ran = bench.shell(
            "set -e; place=$(mktemp -d /tmp/toll-XXXXXX); trap 'rm -rf $place' EXIT
         cp $(command -v toll) $TOLL_PROBE $place; cd $place; mkdir locked; echo x >locked.toml
         chmod 700 locked; chmod 600 locked.toml; chown 65534 .
         as() { setpriv --reuid=65534 --regid=65534 --clear-groups env -u TOLL_PROBE HOME=$place \
                  XDG_DATA_HOME=$place/d XDG_CACHE_HOME=$place/c XDG_STATE_HOME=$place/s \
                  TOLL_RUN_LOCK=$place/lock \
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
    });
}
