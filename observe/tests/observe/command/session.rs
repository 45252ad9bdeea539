//! Tests `toll observe session` on recordings of real programs by `script`.

use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use toll_testing::{Bench, PATIENCE, Running, has, has_program, list, skip};

/// Returns whether sessions with these programs can be recorded here. Prints the reason
/// if not.
fn can_record(programs: &[&str]) -> bool {
    for program in ["script", "bash"].iter().chain(programs) {
        if !has_program(program) {
            skip(&format!("there is no {program}"));
            return false;
        }
    }
    true
}

/// Separates texts to wait for, in order. After a command's output, the test waits for
/// the prompt. Text that is typed earlier appears twice: when the terminal echoes it,
/// and when the shell begins to read.
const THEN: char = '…';

/// Records a shell into `typescript`. Each step has a string to wait for, which must come
/// after the string of the previous step, and the text to type then.
fn record(bench: &Bench, options: &[&str], steps: &[(&str, &str)]) {
    let shell = "stty rows 24 cols 80; exec env PS1='$ ' bash --norc --noprofile -i";
    let mut command = Command::new("script");
    command
        .args(["-q", "-f"])
        .args(options)
        .args(["-c", shell, "typescript"])
        .envs(bench.environment())
        .env("TERM", "xterm")
        .env("HISTFILE", "")
        .env_remove("LESS")
        .current_dir(bench.path(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    let mut running = Running(command.spawn().expect("script starts"));
    let mut typing = running.0.stdin.take().expect("it is piped");
    let mut seen = 0;
    for (awaited, typed) in steps {
        for text in awaited.split(THEN) {
            seen = wait_for(bench, text, seen);
        }
        typing.write_all(typed.as_bytes()).expect("script reads");
    }
    drop(typing);
    let status = running.0.wait().expect("it can be waited for");
    assert!(status.success(), "{status}");
}

/// Returns where a string ends in the recording, searching from a position.
#[track_caller]
fn wait_for(bench: &Bench, text: &str, behind: usize) -> usize {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let recorded = std::fs::read(bench.path("typescript")).unwrap_or_default();
        let rest = recorded.get(behind..).unwrap_or_default();
        let found = rest
            .windows(text.len())
            .position(|part| part == text.as_bytes());
        if let Some(at) = found {
            return behind + at + text.len();
        }
        let shown = String::from_utf8_lossy(rest);
        assert!(
            Instant::now() < deadline,
            "{text:?} does not come: {shown:?}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[track_caller]
fn text(bench: &Bench) -> String {
    bench.ok("session typescript").stdout
}

#[test]
fn lines_edited_in_bash_read_as_they_were_entered() {
    if !can_record(&[]) {
        return;
    }
    let bench = super::bench();
    let long = "0123456789".repeat(10);
    record(
        &bench,
        &[],
        &[
            ("$ ", "echo helo\x1b[D\x1b[Dl\r"),
            ("hello\r\n…$ ", "\x1b[A\x01\x0becho ä漢x\x7fß\r"),
            (
                "漢ß\r\n…$ ",
                &format!("echo {long}\x01\x06\x06\x06\x06\x05z\r"),
            ),
            (&format!("{long}z\r\n…$ "), "\x12hel\x05p\r"),
            ("hellop\r\n…$ ", "exit\r"),
        ],
    );
    let expected = format!(
        "$ echo hello\nhello\n$ echo ä漢ß\nä漢ß\n$ echo {long}z\n{long}z\n$ echo hellop\nhellop\n\
         $ exit\nexit\n"
    );
    // The search shows its own prompt on the line, and clears it.
    assert_eq!(text(&bench), expected);
}

#[test]
fn colours_progress_bars_and_cleared_screens_leave_their_text() {
    if !can_record(&["ls", "dd", "clear"]) {
        return;
    }
    let bench = super::bench();
    std::fs::create_dir_all(bench.path("shown/folder")).unwrap();
    bench.write("shown/file", "");
    let dd = "dd if=/dev/zero of=/dev/null bs=1k count=9 status=progress";
    let bar = "for i in 0 50 100; do printf '\\r\\033[K%d%% [working]' $i; done; echo";
    record(
        &bench,
        &[],
        &[
            ("$ ", "ls --color=always shown\r"),
            ("$ ", &format!("{dd} 2>&1 | sed 's/,.*//'\r")),
            ("kB\r\n…$ ", &format!("{bar}\r")),
            ("100% [working]\r\n…$ ", "clear\r"),
            ("$ ", "exit\r"),
        ],
    );
    let output = text(&bench);
    let line = |wanted: &str| {
        let found = output.lines().any(|line| line == wanted);
        assert!(found, "{wanted:?} is no line of {output}");
    };
    line("$ ls --color=always shown");
    line("file  folder");
    line("9+0 records out");
    line("9216 bytes (9.2 kB");
    line("100% [working]");
    line("$ exit");
    assert!(!output.contains("50% [working]"), "{output}");
}

#[test]
fn editors_and_pagers_are_left_out_unless_wanted() {
    if !can_record(&["less", "vi", "seq"]) {
        return;
    }
    let bench = super::bench();
    record(
        &bench,
        &[],
        &[
            ("$ ", "seq 100 | less\r"),
            ("\r\n:", "q"),
            ("$ ", "vi -u NONE -i NONE written\r"),
            ("[New File]", "iedited text\x1b"),
            ("text", ":w\r"),
            ("written", ":q\r"),
            ("$ ", "echo over\r"),
            ("over\r\n…$ ", "exit\r"),
        ],
    );
    assert_eq!(bench.read("written"), "edited text\n");
    let ran = bench.ok("session typescript");
    let expected =
        "$ seq 100 | less\n$ vi -u NONE -i NONE written\n$ echo over\nover\n$ exit\nexit\n";
    assert_eq!(ran.stdout, expected);
    assert!(ran.stderr.contains("editors or pagers (2)"), "{ran:#?}");
    let shown = bench.ok("session --alternate-screens typescript");
    for line in [
        "[alternate screen:]",
        "edited text",
        "22",
        "[end of the alternate screen]",
    ] {
        assert!(
            shown.stdout.lines().any(|shown| shown == line),
            "{line}: {shown:#?}"
        );
    }
}

#[test]
fn a_screenful_of_top_is_a_screenful_of_text() {
    if !can_record(&["top"]) {
        return;
    }
    let bench = super::bench();
    record(
        &bench,
        &[],
        &[("$ ", "top -n1\r"), ("COMMAND", ""), ("$ ", "exit\r")],
    );
    let output = text(&bench);
    assert!(
        output.lines().any(|line| line.starts_with("top - ")),
        "{output}"
    );
    assert!(
        output
            .lines()
            .any(|line| line.trim_start().starts_with("PID USER")),
        "{output}"
    );
    assert!(
        output.lines().any(|line| line.starts_with("MiB Mem")),
        "{output}"
    );
}

#[test]
fn times_stand_at_lines_in_both_forms_of_timing() {
    if !can_record(&[]) {
        return;
    }
    for format in ["classic", "advanced"] {
        let bench = super::bench();
        let options = ["--log-timing", "times", "--logging-format", format];
        record(
            &bench,
            &options,
            &[
                ("$ ", "sleep 0.2; echo la''te\r"),
                ("late\r\n…$ ", "exit\r"),
            ],
        );
        let arguments = "session --timing times --json typescript";
        let document = bench.json(arguments);
        let recording = &list(&document["recordings"])[0];
        let lines = list(&recording["lines"]);
        let texts: Vec<&str> = lines
            .iter()
            .filter_map(|line| line["text"].as_str())
            .collect();
        assert_eq!(
            texts,
            ["$ sleep 0.2; echo la''te", "late", "$ exit", "exit"],
            "{format}"
        );
        let begins: Vec<u64> = lines
            .iter()
            .filter_map(|line| line["begin_ns"].as_u64())
            .collect();
        assert!(
            begins.is_sorted() && begins.len() == 4,
            "{format}: {begins:?}"
        );
        assert!(begins[1] - begins[0] >= 200_000_000, "{format}: {begins:?}");
        assert_eq!(
            list(&recording["notes"]).len(),
            0,
            "{format}: {recording:#}"
        );
    }
}

#[test]
fn what_a_recording_says_of_itself_is_told() {
    if !can_record(&[]) {
        return;
    }
    let bench = super::bench();
    let ran = bench.shell("script -e -c 'printf \"\\033]0;title\\007\"; exit 3' t >/dev/null");
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    bench.shell("script -a -c 'echo more' t >/dev/null");
    let document = bench.json("session --json t");
    let recordings = list(&document["recordings"]);
    assert_eq!(recordings.len(), 2);
    assert_eq!(recordings[0]["exit_status"], 3);
    assert!(
        recordings[0]["command"]
            .as_str()
            .is_some_and(|text| text.ends_with("exit 3"))
    );
    assert!(recordings[0]["started"].is_string() && recordings[0]["ended"].is_string());
    assert_eq!(recordings[0]["is_size_assumed"], true);
    assert_eq!(recordings[1]["lines"][0]["text"], "more");
    let shown = bench.shell("toll-observe session --titles - <t");
    assert_eq!(shown.stdout, "[title: title]\nmore\n");
}

#[test]
fn megabytes_of_hostile_bytes_come_to_an_end() {
    let bench = super::bench();
    // This is the largest possible screen.
    let header = b"Script started on X [TERM=\"xterm\" COLUMNS=\"1000\" LINES=\"500\"]\n";
    let pieces: [&[u8]; 10] = [
        b"\xff",
        b"\x1b[H\x1b[2J\x1b[24;80Hx",
        b"\x1b[65535b",
        b"\x1b[65535S\x1b[65535L",
        b"\x1b]0;\xe2\x82",
        b"\nScript done on",
        b"x\xcc\x81",
        b"\x1b[250d\x1b[65535M\x1b[65535T\x1b[65535L",
        b"\x1b]0;x\x07\x1bM",
        b"\x1b[?1049hx\x1b[?1049l",
    ];
    for piece in pieces {
        let repeated = piece.repeat((1 << 18) / piece.len());
        let mut file = File::create(bench.path("hostile")).unwrap();
        file.write_all(header).unwrap();
        file.write_all(&repeated).unwrap();
        let ran = bench.ok("session --titles hostile");
        let has_control = |c: char| c.is_control() && c != '\n';
        assert!(!ran.stdout.contains(has_control), "{piece:?}");
    }
}

#[test]
fn what_cannot_be_read_is_told() {
    let bench = super::bench();
    bench.write("t", "x\r\n");
    bench.write("times", "soon 3\n");
    let errors = bench.fails(2, "session t --timing times");
    has(&errors, &["line 1", "--log-timing"]);
    assert_eq!(bench.ok("session t").stdout, "x\n");
    let _ = std::fs::write(bench.path("empty"), "");
    assert_eq!(bench.ok("session empty").stdout, "");
}
