//! `master` and `slave` in a guest, with the modules that they need.
//!
//! Each test boots a guest, whose shell plays the users of both programs. Its output shows any
//! errors.

use std::path::{Path, PathBuf};

use toll_testing::{Bench, Ran, TOLL, any_kernel, has};

use super::guest::kernel;
use super::guest_commands::bench;

/// Prelude of every script. `both MASTER-ARGUMENTS -- SLAVE-ARGUMENTS` runs the two and leaves
/// their output in m.out, m.err, s.out and s.err.
const PRELUDE: &str = r#"
set -u
insmod /modules/tolldev.ko && insmod /modules/master.ko && insmod /modules/slave.ko || exit 99
cd /work || exit 99
master() { timeout 600 /host/master "$@"; }
slave() { timeout 600 /host/slave "$@"; }
both() {
    first=""
    while [ "$1" != -- ]; do first="$first $1"; shift; done
    shift
    master $first >m.out 2>m.err &
    slave "$@" --timeout 200 >s.out 2>s.err
    s=$?
    wait $!
    m=$?
    echo "master $m slave $s"
    cat m.err s.err
}
# Waits until a process listens on the default port (0915 in hexadecimal digits, state 0A;
# proc_pid_net(5)).
listened() {
    for i in $(seq 2000); do
        cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -q ':0915 0*:0000 0A ' && return
        sleep 0.1
    done
    echo "no process listens"
}
# Waits until the slave with this process ID has begun its file, which has no name.
begun() {
    for i in $(seq 2000); do
        ls -l /proc/$1/fd 2>/dev/null | grep -q deleted && return
        sleep 0.1
    done
    echo "no file was begun"
}
"#;

fn program(name: &str) -> PathBuf {
    let program = Path::new(TOLL).with_file_name(name);
    assert!(
        program.is_file(),
        "{} is missing; build the workspace first: cargo build --workspace",
        program.display()
    );
    program
}

/// Runs a script in a guest; `None` if guests are not available here.
fn in_guest(script: &str) -> Option<Ran> {
    kernel(any_kernel())?;
    let bench: Bench = bench();
    let script = bench.write("script", &format!("{PRELUDE}{script}"));
    let mut arguments: Vec<std::ffi::OsString> = Vec::new();
    let start = "guest run --accelerator tcg --memory 512MiB --kernel";
    arguments.extend(start.split(' ').chain([any_kernel()]).map(Into::into));
    for file in [program("master"), program("slave"), script] {
        arguments.extend(["--add".into(), file.into()]);
    }
    arguments.extend(["--", "sh", "/host/script"].map(Into::into));
    let ran = bench.run(&arguments);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    Some(ran)
}

/// Parses the sizes from the lines of a program, in order.
#[track_caller]
fn sizes(lines: &str) -> Vec<u64> {
    lines
        .lines()
        .map(|line| {
            let output = line
                .strip_prefix("Transmission time: ")
                .and_then(|rest| rest.strip_suffix(" bytes"))
                .and_then(|rest| rest.split_once(" ms, File size: "));
            let (time, size) = output.unwrap_or_else(|| panic!("{line:?}"));
            let (_, decimals) = time.split_once('.').expect("a time has decimals");
            assert_eq!(decimals.len(), 6, "{line}");
            assert!(time.parse::<f64>().unwrap() >= 0.0, "{line}");
            size.parse().unwrap()
        })
        .collect()
}

#[test]
fn every_pair_of_methods_brings_files_of_every_size_in_every_mode() {
    let ran = in_guest(
        r#"
        sizes="0 4 577 4097 9695 1502860"
        for n in $sizes; do head -c $n /dev/urandom >f$n; done
        for pair in "fcntl fcntl" "fcntl mmap" "mmap fcntl" "mmap mmap" "mmap-device mmap-device"; do
        set -- $pair; master=$1; slave=$2
        for mode in sync fasync async; do for buffer in 512 5000 64KiB; do
            both f0 f4 f577 f4097 f9695 f1502860 $master --mode $mode --buffer $buffer --verify -- \
                o0 o4 o577 o4097 o9695 o1502860 $slave 127.0.0.1 --mode $mode --buffer $buffer \
                    --verify >said
            [ "$(cat said)" = "master 0 slave 0" ] ||
                echo "$master $slave $mode $buffer: $(cat said)"
            for n in $sizes; do cmp f$n o$n; done
            rm o*
            cat m.out s.out
        done; done; done
        "#,
    );
    let Some(ran) = ran else { return };
    let expected = [0, 4, 577, 4097, 9695, 1_502_860];
    let output = sizes(&ran.stdout);
    assert_eq!(output.len(), 2 * 5 * 9 * expected.len(), "{ran:#?}");
    for pass in output.chunks(expected.len()) {
        assert_eq!(pass, expected);
    }
}

#[test]
fn partners_meet_on_either_family_and_any_port() {
    let ran = in_guest(
        r#"
        echo hello >f
        both f fcntl -- o fcntl ::1; cmp f o
        both f mmap --listen ::1 --port 99 -- o mmap [::1]:99; cmp f o
        both f mmap --listen 127.0.0.1 -- o mmap 127.0.0.1 --port 2325; cmp f o
        master f fcntl --port 0 2>m.err &
        until grep -q port m.err; do sleep 0.1; done
        port=$(sed 's/.*port //' m.err)
        slave o fcntl 127.0.0.1:$port; cmp f o
        wait $!; echo "master $?"
        # Each program may have a mode and a buffer of its own.
        head -c 300000 /dev/urandom >f
        both f mmap --mode async --buffer 4096 -- o fcntl ::1 --buffer 1MiB; cmp f o
        both f fcntl --buffer 1000 -- o mmap ::1 --mode async; cmp f o
        both f mmap --page -- o mmap ::1 --page --window 4KiB; cmp f o
        both f mmap-device --page -- o mmap-device ::1 --page
        slave o fcntl 127.0.0.1; echo "slave $?"
        master f fcntl --listen 192.0.2.1; echo "master $?"
        "#,
    );
    let Some(ran) = ran else { return };
    let met = ran.stdout.matches("master 0 slave 0\n").count();
    assert_eq!(met, 7, "{ran:#?}");
    // Both entries are present, user-mode and accessed; the slave's is also writable and dirty.
    for (start, mask, state) in [("master: ", 0x65, 0x25), ("slave: ", 0x67, 0x67)] {
        let entries = ran
            .stdout
            .lines()
            .filter_map(|line| line.strip_prefix(start));
        let entries: Vec<u64> = entries
            .map(|entry| u64::from_str_radix(entry, 16).unwrap())
            .collect();
        assert_eq!(entries.len(), 2, "{ran:#?}");
        assert!(
            entries.iter().all(|entry| entry & mask == state),
            "{ran:#?}"
        );
    }
    has(
        &ran.stderr,
        &[
            "slave: cannot connect to 127.0.0.1:2325: connection refused; start master there \
             first, or wait for it with --timeout\n",
        ],
    );
    has(
        &ran.stderr,
        &["master: cannot wait on port 2325: cannot assign requested address"],
    );
    assert!(ran.stdout.ends_with("slave 1\nmaster 1\n"), "{ran:#?}");
}

#[test]
fn what_is_wrong_with_files_is_told_on_both_sides_and_nothing_stays() {
    let ran = in_guest(
        r#"
        mkdir small; mount -t tmpfs -o size=1m none small
        head -c 3000000 /dev/urandom >f
        for method in fcntl mmap; do
            echo "= full $method"
            both f $method -- small/o $method 127.0.0.1
            both f $method -- small/o $method 127.0.0.1 --buffer 4096
            echo before >o
            echo "= missing $method"
            both f $method -- none/o $method 127.0.0.1
            echo "= more names $method"
            both f $method -- o p $method 127.0.0.1
            echo "= more files $method"
            both f f $method -- o $method 127.0.0.1
            cat o
        done
        echo "= special"
        both f mmap -- /dev/null mmap 127.0.0.1
        echo "= unverified"
        both f mmap -- o mmap 127.0.0.1 --verify
        echo "= left"
        ls -A . small | grep -v '[.]out\|[.]err\|lost+found'
        "#,
    );
    let Some(ran) = ran else { return };
    let parts: Vec<&str> = ran.stdout.split("= ").collect();
    let has = |part: usize, output: &[&str]| {
        for line in output {
            assert!(parts[part].contains(line), "no {line:?}: {ran:#?}");
        }
    };
    for first in [1, 5] {
        assert_eq!(
            parts[first].matches("master 1 slave 1\n").count(),
            2,
            "{ran:#?}"
        );
        assert_eq!(
            parts[first].matches("no space left on device").count(),
            2,
            "{ran:#?}"
        );
        let output = "slave: cannot create none/o: no such file or directory; check the path\n";
        has(first + 1, &["master 1 slave 1\n", output]);
        has(
            first + 1,
            &["master: cannot send f: the slave cannot take it"],
        );
        has(first + 2, &["master 1 slave 1\n", "2 left to receive"]);
        has(first + 2, &["the slave has names for 2"]);
        has(first + 3, &["master 1 slave 1\n", "the master has 2"]);
        has(first + 3, &["before\n"]);
    }
    has(
        9,
        &["slave: cannot create /dev/null: it exists and is not a regular file"],
    );
    has(10, &["slave: cannot verify o: the master sends no hash"]);
    has(11, &[".:\nf\no\nsmall\n\nsmall:\n"]);
}

#[test]
fn a_partner_that_dies_stalls_or_never_comes_ends_in_a_message() {
    let ran = in_guest(
        r#"
        truncate -s 200000000 f
        start() {
            /host/master f $1 --buffer 512 ${2:-} >m.out 2>m.err & m=$!
            listened
            /host/slave o $1 127.0.0.1 --buffer 512 --timeout 5 >s.out 2>s.err & s=$!
            begun $s
        }
        for method in fcntl mmap; do
            start $method; kill -9 $s; wait $m; echo "= master $? $(cat m.err)"
            start $method; kill -9 $m; wait $s; echo "= slave $? $(cat s.err)"
            start $method "--timeout 10"; kill -STOP $s; wait $m; echo "= master $? $(cat m.err)"
            kill -9 $s
            start $method; kill -STOP $m; wait $s; echo "= slave $? $(cat s.err)"
            kill -9 $m
            start $method; kill -TERM $s; wait $s; echo "= slave $?"; wait $m
        done 2>/dev/null
        master f fcntl --timeout 0.3; echo "= master $?"
        slave o fcntl 127.0.0.1 --timeout 0.3; echo "= slave $?"
        wait
        ls -A | grep -v '[.]out\|[.]err\|lost+found'
        rmmod master slave tolldev; echo "removed $?"
        "#,
    );
    let Some(ran) = ran else { return };
    let parts: Vec<&str> = ran.stdout.split("= ").skip(1).collect();
    let gone =
        |peer: &str| format!("ended the connection before the end; see the {peer}'s message\n");
    let still = "nothing was sent or received within --timeout";
    for five in parts.chunks(5).take(2) {
        assert!(
            five[0].starts_with("master 1 master: cannot send f: the slave"),
            "{ran:#?}"
        );
        assert!(five[0].ends_with(&gone("slave")), "{ran:#?}");
        assert!(
            five[1].starts_with("slave 1 slave: cannot receive o: the master"),
            "{ran:#?}"
        );
        assert!(five[1].ends_with(&gone("master")), "{ran:#?}");
        assert!(
            five[2].starts_with("master 1 ") && five[2].contains(still),
            "{ran:#?}"
        );
        assert!(
            five[3].starts_with("slave 1 ") && five[3].contains(still),
            "{ran:#?}"
        );
        assert_eq!(five[4], "slave 143\n", "{ran:#?}");
    }
    assert_eq!(parts[10], "master 1\n");
    assert_eq!(parts[11], "slave 1\nf\nremoved 0\n", "{ran:#?}");
    has(&ran.stderr, &["master: cannot wait for a slave: "]);
    assert!(ran.stderr.contains("connection refused"), "{ran:#?}");
}

#[test]
fn what_strangers_say_is_not_taken_for_a_file() {
    let ran = in_guest(
        r#"
        echo hello >f
        # Magic, kind, size, hash, and one file with a hash.
        offer() {
            printf 'tolldev\001\001\0\0\0\0\0\0\0'
            printf "\\$1\0\0\0\0\0\0\0"
            printf '\1\2\3\4\5\6\7\10\1\0\0\0\1\0\0\0'
        }
        mkfifo feed
        # Makes nc send the content of a file and then nothing, until `silence`. nc's own output is
        # discarded, since it would mix with that of its peer.
        speak() {
            file=$1; shift
            { cat $file; exec sleep 10000; } >feed & feeder=$!
            nc "$@" <feed >/dev/null 2>&1 & speaker=$!
        }
        silence() {
            kill $feeder $speaker
            wait $feeder $speaker
        } 2>/dev/null
        # Runs the slave against a master that sends the content of the file.
        hear() {
            speak said -l -p 2325; listened
            slave o $method 127.0.0.1 --timeout $1
            echo "slave $?"; silence
        }
        head -c 40 /dev/zero >zeros
        for method in fcntl mmap; do
            echo "= garbage $method"
            head -c 100000 /dev/urandom >said; hear 200
            echo "= wrong hash $method"
            { offer 4; echo abc; } >said; hear 200
            echo "= too few $method"
            { offer 100; echo abc; } >said; hear 5
            echo "= client $method"
            master f $method --timeout 200 & m=$!
            listened; speak zeros 127.0.0.1 2325
            wait $m
            echo "master $?"; silence
        done 2>&1
        ls -A | grep -v '[.]out\|[.]err\|lost+found'
        "#,
    );
    let Some(ran) = ran else { return };
    let parts: Vec<&str> = ran.stdout.split("= ").skip(1).collect();
    for four in parts.chunks(4) {
        assert!(four[0].contains("slave: cannot receive from 127.0.0.1:2325: the peer is not a master of this version"), "{ran:#?}");
        assert!(four[0].contains("slave 1\n"), "{ran:#?}");
        assert!(
            four[1].contains("slave: cannot trust o: its hash differs from the hash"),
            "{ran:#?}"
        );
        assert!(four[2].contains("slave: cannot receive o: "), "{ran:#?}");
        assert!(
            four[3].contains("master: cannot send f: the peer is not a slave"),
            "{ran:#?}"
        );
    }
    assert!(
        ran.stdout.ends_with("master 1\nf\nfeed\nsaid\nzeros\n"),
        "{ran:#?}"
    );
}
