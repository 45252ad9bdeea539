//! Output of measured commands, of any size and content: it never fills memory, stops a trial, or
//! is shown unescaped.

use std::io::Read;
use std::path::Path;

use serde_json::Value;
use toll_testing::{Bench, TOLL, all_are, list};

/// Most memory, in KiB, that `toll`, its probe and the command may each use. It is a small part of
/// the output of the commands in these tests.
const MEMORY_KIB: u32 = 300_000;

/// Writes an experiment whose levels are commands, and whose outputs are parsed.
fn printing(bench: &Bench, output: &str, commands: &[&str]) -> String {
    let levels: Vec<String> = commands
        .iter()
        .map(|command| format!("{command:?}"))
        .collect();
    let toml = format!(
        "format = 1\nname = 'printing'\n[workload]\nkind = 'command'\noutput = '{output}'\n\
         command = '{{print}}'\nshell = 'bash'\n[metrics.first]\npattern = 'first=([0-9]+)'\n\
         [run]\ntrial_timeout = '60s'\n[[factor]]\nname = 'print'\nlevels = [{}]\n",
        levels.join(", ")
    );
    bench.write("printing.toml", &toml).display().to_string()
}

#[track_caller]
fn all_completed(run: &Value) {
    for trial in list(&run["trials"]) {
        assert_eq!(trial["state"], "completed", "{trial:#}");
        assert_eq!(trial["samples"]["first"][0], 7.0, "{trial:#}");
    }
}

#[test]
fn huge_outputs_fill_nobodys_memory() {
    let bench = Bench::new();
    let file = printing(
        &bench,
        "pipe",
        &[
            "echo first=7; head -c 1G /dev/zero",
            "echo first=7; head -c 1G /dev/zero >&2",
            // Both streams in turn, in pieces of odd sizes.
            "echo first=7; for i in $(seq 300); do head -c 1000001 /dev/zero; \
             head -c 1000001 /dev/zero >&2; done",
            // One line without an end.
            "printf first=7; head -c 300M /dev/zero | tr '\\0' x",
        ],
    );
    let line = format!("ulimit -v {MEMORY_KIB}; toll run -q --no-html --json -r 1 {file}");
    let ran = bench.shell(&line);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stdout.len() < 200_000, "the output itself is not kept");
    all_completed(&ran.json()["runs"][0]);
}

#[test]
fn outputs_that_are_no_text_are_taken_as_they_are() {
    let bench = Bench::new();
    let commands = [
        r"printf 'first=7\n\0\0\377\376\200\n'",
        r"printf '\377\0first=7\0\377'",
        r"printf 'first=7'; printf '\xc3\x28\xa0\xa1\xed\xa0\x80\xf8' >&2",
        "echo first=7; head -c 1000000 /dev/urandom; head -c 1000000 /dev/urandom >&2",
        r"printf '\033[2J\033]0;pwned\007first=7\r\n\b\b\x9b31m'",
    ];
    for output in ["pipe", "null"] {
        let file = printing(&bench, output, &commands);
        let run = bench.measured(&["-r", "2", &file]);
        all_completed(&run);
    }
}

#[test]
fn last_words_that_are_no_text_are_shown_as_text() {
    let bench = Bench::new();
    let words = [
        r"printf 'a\0b\n' >&2; exit 1",
        r"printf '\377\376\n' >&2; exit 1",
        r"printf '\033[31mred\033[2J\n' >&2; exit 1",
        r"head -c 100000 /dev/zero | tr '\0' y >&2; exit 1",
        "head -c 100000 /dev/urandom >&2; exit 1",
        // The text after the last complete line must be kept, too.
        "yes last | head -n 100000 >&2; printf 'after all' >&2; exit 1",
    ];
    let all = [&["run", "-r", "3", "--html", "page.html", "-q"], &words[..]].concat();
    assert_eq!(bench.run(&all).code, Some(1));
    let exported = "export last --json - --csv out.csv --markdown out.md";
    bench.ok(exported);
    let shown = bench.ok("show").stdout;
    assert!(shown.contains("after all"), "{shown}");
    for text in [shown, bench.read("page.html"), bench.read("out.md")] {
        let control = text
            .chars()
            .find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
        assert_eq!(control, None);
        assert!(text.len() < 2_000_000, "{}", text.len());
    }
    for trial in list(&bench.document("last")["trials"]) {
        let message = trial["message"].as_str().unwrap();
        assert!(message.len() < 20_000, "{}", message.len());
    }
}

#[test]
fn an_output_without_end_is_stopped_with_the_trial() {
    for output in ["pipe", "null"] {
        let bench = Bench::new();
        let commands = ["yes", "yes >&2", "cat /dev/zero", "yes | cat - /dev/zero"];
        let file = printing(&bench, output, &commands);
        let impatient = bench.read("printing.toml").replace("'60s'", "'500ms'");
        bench.write("printing.toml", &impatient);
        let line = format!("ulimit -v {MEMORY_KIB}; toll run -q --no-html -r 1 {file}");
        assert_eq!(bench.shell(&line).code, Some(0));
        let trials = bench.document("last")["trials"].clone();
        assert_eq!(list(&trials).len(), 5);
        all_are("timed-out", list(&trials));
    }
}

#[test]
fn a_command_that_fills_its_file_of_output_fails_alone() {
    let bench = Bench::new();
    let toml = "format = 1\nname = 'filling'\n[workload]\nkind = 'command'\ncommand = 'echo much'\n\
                output = '{where}'\n[[factor]]\nname = 'where'\n\
                levels = ['/dev/full', '/dev/null']\n";
    bench.write("filling.toml", toml);
    let run = bench.measured("-r 2 filling.toml");
    let trials = list(&run["trials"]);
    let failed = trials.iter().filter(|trial| trial["state"] == "failed");
    let messages: Vec<_> = failed
        .map(|trial| trial["message"].as_str().unwrap())
        .collect();
    assert!(
        !messages.is_empty() && messages.len() < trials.len(),
        "{trials:#?}"
    );
    assert!(
        messages
            .iter()
            .all(|message| message.contains("No space left")),
        "{messages:?}"
    );
}

#[test]
fn a_message_is_one_write_which_no_program_beside_it_tears() {
    let bench = Bench::new();
    for (name, arguments) in [
        ("toll", &["show", "99"][..]),
        ("toll", &["run", "--nonsense"]),
        ("toll-probe", &["--nonsense"]),
        ("meow", &["/nonexistent"]),
        ("meow", &["--nonsense"]),
        ("timewrite", &["/"]),
        ("timewrite", &[]),
        ("master", &["/nonexistent", "mmap"]),
        ("slave", &["f", "nonsense"]),
        ("prime_user", &["nonsense"]),
        ("prime_sys_test", &["nonsense"]),
        ("memory_access", &["nonsense"]),
        ("compete_for_memory", &["nonsense"]),
    ] {
        let program = Path::new(TOLL).with_file_name(name);
        assert!(
            program.is_file(),
            "{name} is not built: cargo build --workspace"
        );
        // Each write becomes one packet, and each read takes one (pipe(2)).
        let flags = rustix::pipe::PipeFlags::DIRECT | rustix::pipe::PipeFlags::CLOEXEC;
        let (read, write) = rustix::pipe::pipe_with(flags).unwrap();
        let mut command = bench.spawnable_program(program.to_str().unwrap(), arguments);
        command.stderr(write);
        let status = command.status().unwrap();
        drop(command);
        let mut packets = std::fs::File::from(read);
        let mut buffer = [0; 4096];
        let length = packets.read(&mut buffer).unwrap();
        let message = String::from_utf8_lossy(&buffer[..length]).into_owned();
        assert!(!status.success(), "{name} {arguments:?}: {message}");
        assert!(message.ends_with('\n'), "{name} {arguments:?}: {message}");
        let more = packets.read(&mut buffer).unwrap();
        let more = String::from_utf8_lossy(&buffer[..more]);
        assert_eq!(more, "", "{name} {arguments:?}, after {message}");
    }
}
