//! One line of strace's output, as `strace -f -y --syscall-times=ns -o` writes it, with or without
//! `--relative-timestamps=ns`.
//!
//! The parser is strict: a line of another form is not a call. The caller counts such lines. In
//! file names, as in strings, strace escapes `<`, `>`, quotes, control characters and everything
//! that is not ASCII (strace(1), option `-y`). So brackets and quotes are delimiters.

/// A line without its thread and time, which are separate fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamped<'a> {
    pub thread: u32,
    /// Time since the previous line in nanoseconds, if strace was asked to print it.
    pub since_last_ns: Option<u64>,
    pub rest: &'a str,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Line<'a> {
    Call(Call),
    /// A call whose end comes in a later line of the same thread.
    Unfinished {
        name: &'a str,
        /// Text after the opening parenthesis, up to the end of the line.
        arguments: &'a str,
    },
    /// The end of a call that an earlier line began.
    Resumed {
        name: &'a str,
        /// The rest of the arguments, the closing parenthesis and the result.
        rest: &'a str,
    },
    /// A signal arrived, or stopped the thread.
    Signal(Signal),
    /// The thread took the number of the first thread, because it executed
    /// another program.
    Superseded,
    /// The thread ended. The field is the signal that killed it, if a signal did.
    Ended(Option<Signal>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// The signal's name, such as `SIGCHLD`.
    pub name: String,
    /// Where the signal came from, as strace writes it (`{si_signo=SIGCHLD, …}`), or what it did:
    /// `stopped`, `killed`, `killed (core dumped)`.
    pub details: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub name: String,
    /// The call's arguments as strace writes them.
    pub arguments: Vec<String>,
    pub result: CallResult,
    /// The result as strace writes it, such as `3</etc/passwd>` or
    /// `-1 ENOENT (No such file or directory)`.
    pub returned: String,
    /// Wall time in the call under trace in nanoseconds, if strace prints it.
    pub duration_ns: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallResult {
    /// A value that is not an error.
    Value(i64),
    /// An error by its name, such as `ENOENT`.
    Error(String),
    /// The call was interrupted by a signal and restarted by the kernel (`ERESTARTSYS` and similar,
    /// which no program sees).
    Restarted,
    /// The call never returned, or strace does not print its result.
    Unknown,
}

/// Splits thread and time from a line. Returns `None` for a line of another form.
pub fn stamped(line: &str) -> Option<Stamped<'_>> {
    let line = line.trim_end_matches(['\n', '\r']);
    let digits = line.find(|c: char| !c.is_ascii_digit())?;
    let thread = line[..digits].parse().ok()?;
    let rest = line[digits..].strip_prefix(' ')?.trim_start_matches(' ');
    // No system call's name begins with a digit.
    let (since_last_ns, rest) = match rest.split_once(' ') {
        Some((time, rest)) if time.starts_with(|c: char| c.is_ascii_digit()) => {
            (Some(nanoseconds(time)?), rest.trim_start_matches(' '))
        }
        _ => (None, rest),
    };
    Some(Stamped {
        thread,
        since_last_ns,
        rest,
    })
}

/// Parses a line: the number of its thread, and its content. Returns `None` for a
/// line of another form.
pub fn parse<'a>(stamped: &Stamped<'a>) -> Option<(u32, Line<'a>)> {
    let Stamped { thread, rest, .. } = *stamped;
    if let Some(marker) = rest.strip_prefix("+++ ") {
        let marker = marker.strip_suffix(" +++")?;
        let line = if marker.starts_with("superseded by ") {
            Line::Superseded
        } else {
            Line::Ended(acted(marker, "killed"))
        };
        return Some((thread, line));
    }
    if let Some(marker) = rest.strip_prefix("--- ") {
        let marker = marker.strip_suffix(" ---")?;
        let signal = acted(marker, "stopped").unwrap_or_else(|| {
            let (name, details) = marker.split_once(' ').unwrap_or((marker, ""));
            Signal {
                name: name.to_owned(),
                details: details.to_owned(),
            }
        });
        return Some((thread, Line::Signal(signal)));
    }
    if let Some(resumed) = rest.strip_prefix("<... ") {
        let (name, rest) = resumed.split_once(" resumed>")?;
        return is_name(name).then_some((thread, Line::Resumed { name, rest }));
    }
    let (name, arguments) = rest.split_once('(')?;
    if !is_name(name) {
        return None;
    }
    if let Some((arguments, why)) = cut_short(arguments) {
        // A thread that executes a program continues under another number.
        let thread = match why.strip_prefix("pid changed to ") {
            Some(number) => number.parse().ok()?,
            None => thread,
        };
        return Some((thread, Line::Unfinished { name, arguments }));
    }
    Some((thread, Line::Call(finish(name, arguments)?)))
}

/// Returns the signal in a string such as `killed by SIGSEGV (core dumped)`, if the string begins
/// with `did`.
fn acted(marker: &str, did: &str) -> Option<Signal> {
    let signal = marker.strip_prefix(did)?.strip_prefix(" by ")?;
    let (name, more) = signal.split_once(' ').unwrap_or((signal, ""));
    Some(Signal {
        name: name.to_owned(),
        details: format!("{did} {more}").trim_end().to_owned(),
    })
}

/// Parses a call from its name and the text after its opening parenthesis.
pub fn finish(name: &str, text: &str) -> Option<Call> {
    let (arguments, rest) = split_arguments(text)?;
    let (returned, duration_ns) = returned(rest)?;
    Some(Call {
        name: name.to_owned(),
        arguments,
        result: result(returned)?,
        returned: returned.to_owned(),
        duration_ns,
    })
}

/// Returns the text before ` <unfinished ...>` or a similar mark, and the words of the mark.
fn cut_short(text: &str) -> Option<(&str, &str)> {
    let (arguments, why) = text.strip_suffix(" ...>")?.rsplit_once('<')?;
    let is_known = matches!(why, "unfinished" | "detached") || why.starts_with("pid changed to ");
    let arguments = arguments.strip_suffix(' ').unwrap_or(arguments);
    is_known.then_some((arguments, why))
}

fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '?';
    !name.is_empty() && name.chars().all(is_part)
}

/// Returns the arguments, split at the commas between them, and the text after
/// the parenthesis that closes them.
fn split_arguments(text: &str) -> Option<(Vec<String>, &str)> {
    let mut arguments = Vec::new();
    let mut begin = 0;
    let mut depth = 0_usize;
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = behind_quote(bytes, at + 1)?,
            // `3</path>` is a file descriptor with its file; `1<<20` is a shift.
            b'<' if bytes.get(at + 1) == Some(&b'<') => at += 1,
            b'<' if at > 0 && (bytes[at - 1].is_ascii_digit() || bytes[at - 1] == b'D') => {
                at += text[at..].find('>')?;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.checked_sub(1)?,
            b')' if depth == 0 => {
                let last = text[begin..at].trim();
                if !(arguments.is_empty() && last.is_empty()) {
                    arguments.push(last.to_owned());
                }
                return Some((arguments, &text[at + 1..]));
            }
            b')' => depth -= 1,
            b',' if depth == 0 => {
                arguments.push(text[begin..at].trim().to_owned());
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the place of the quote that closes a string begun before `at`.
fn behind_quote(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at),
            _ => at += 1,
        }
    }
}

/// Splits result and duration in `  = -1 ENOENT (No such file or directory) <0.000012>`.
fn returned(text: &str) -> Option<(&str, Option<u64>)> {
    let text = text.trim_start_matches(' ').strip_prefix("= ")?;
    Some(match text.rsplit_once(" <") {
        // strace was detached before it could read the result.
        Some((before, "unavailable>")) => (before, None),
        Some((before, time)) if time.ends_with('>') => {
            (before, Some(nanoseconds(time.strip_suffix('>')?)?))
        }
        _ => (text, None),
    })
}

/// Parses a result such as `-1 ENOENT (No such file or directory)`.
fn result(text: &str) -> Option<CallResult> {
    let (value, rest) = text.split_once(' ').unwrap_or((text, ""));
    let error = rest.split(' ').next().unwrap_or_default();
    let is_error = error.starts_with('E') && error.chars().all(|c| c.is_ascii_alphanumeric());
    Some(match value {
        _ if is_error && error.starts_with("ERESTART") => CallResult::Restarted,
        "-1" if is_error => CallResult::Error(error.to_owned()),
        "?" => CallResult::Unknown,
        _ => CallResult::Value(integer(value)?),
    })
}

/// Parses a returned number: `5`, `0x7f…`, or a file descriptor with its file, `3</path>`.
fn integer(text: &str) -> Option<i64> {
    if let Some(digits) = text.strip_prefix("0x") {
        // An address may use all 64 bits. It only matters that an address is no error.
        return u64::from_str_radix(digits, 16).ok().map(u64::cast_signed);
    }
    let digits = text.split('<').next().unwrap_or(text);
    digits.parse().ok()
}

/// Converts seconds with up to nine decimals to nanoseconds.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, decimals) = text.split_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(seconds) || !is_number(decimals) || decimals.len() > 9 {
        return None;
    }
    let fraction: u64 = format!("{decimals:0<9}").parse().ok()?;
    let whole: u64 = seconds.parse().ok()?;
    whole.checked_mul(1_000_000_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(line: &str) -> Option<(u32, Line<'_>)> {
        super::parse(&stamped(line)?)
    }

    #[track_caller]
    fn call(line: &str) -> Call {
        match parse(line) {
            Some((_, Line::Call(call))) => call,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_plain_read_is_read() {
        let call = call(r#"7512  read(3</etc/locale.alias>, ""..., 4096) = 2996 <0.017012036>"#);
        assert_eq!(call.name, "read");
        assert_eq!(call.arguments, ["3</etc/locale.alias>", r#"""..."#, "4096"]);
        assert_eq!(call.result, CallResult::Value(2996));
        assert_eq!(call.duration_ns, Some(17_012_036));
    }

    #[test]
    fn a_time_in_front_is_no_part_of_the_call() {
        let line = r#"5323       0.000119237 access("/x", R_OK) = -1 ENOENT (No such file or directory) <0.000052963>"#;
        assert_eq!(stamped(line).unwrap().since_last_ns, Some(119_237));
        let call = call(line);
        assert_eq!(call.name, "access");
        assert_eq!(call.returned, "-1 ENOENT (No such file or directory)");
        let line = "5324       0.100000000 +++ exited with 0 +++";
        assert_eq!(parse(line), Some((5324, Line::Ended(None))));
        assert_eq!(parse("5324       0.1.0 close(3) = 0"), None);
    }

    #[test]
    fn results_are_told_apart() {
        let result = |text: &str| call(&format!("9  f({text}")).result;
        let error = CallResult::Error("ENOENT".into());
        assert_eq!(
            result(
                r#""/x", [...], 0x1 /* 35 vars */) = -1 ENOENT (No such file or directory) <0.000179626>"#
            ),
            error
        );
        assert_eq!(
            result("0<pipe:[1]>, 1) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <0.1>"),
            CallResult::Restarted
        );
        assert_eq!(
            result("0)                           = ?"),
            CallResult::Unknown
        );
        assert_eq!(
            result("NULL, 0) = 0x7f5a858c8000 <0.000001>"),
            CallResult::Value(0x7f5a_858c_8000)
        );
        assert_eq!(
            result(r#""x") = 3</tmp/a) = 9> <0.000001>"#),
            CallResult::Value(3)
        );
        assert_eq!(
            result("4, [], 2) = 1 (in [4]) <0.000001>"),
            CallResult::Value(1)
        );
        assert_eq!(result("-1) = -1 <0.000001>"), CallResult::Value(-1));
        assert_eq!(result("0, 1) = ? <unavailable>"), CallResult::Unknown);
    }

    #[test]
    fn names_of_files_do_not_end_the_arguments() {
        let call = call(
            r#"7543  read(3</tmp/a\76b) = 5 \74c, "d\"e\\f>, ""..., 131072) = 1 <0.000001000>"#,
        );
        // Inside the brackets a quote does not delimit.
        assert_eq!(call.arguments.len(), 3);
        assert_eq!(call.arguments[2], "131072");
        let call =
            self::call(r#"1 f("a) = \"7, ", {x=(1, 2), y=[3, 4]}, 21<<MAP_HUGE_SHIFT) = 0 <0.0>"#);
        assert_eq!(call.arguments.len(), 3);
    }

    #[test]
    fn what_is_cut_in_two_is_told() {
        let (thread, line) = parse("7593  read(3</etc/locale.alias>,  <unfinished ...>").unwrap();
        assert_eq!(thread, 7593);
        let arguments = "3</etc/locale.alias>, ";
        assert_eq!(
            line,
            Line::Unfinished {
                name: "read",
                arguments
            }
        );
        let (_, line) =
            parse(r#"7593  <... read resumed>""..., 4096)    = 2996 <0.000603855>"#).unwrap();
        let rest = r#"""..., 4096)    = 2996 <0.000603855>"#;
        assert_eq!(line, Line::Resumed { name: "read", rest });
    }

    #[test]
    fn ends_and_signals_are_no_calls() {
        let signal = |name: &str, details: &str| Signal {
            name: name.into(),
            details: details.into(),
        };
        let killed = signal("SIGSEGV", "killed (core dumped)");
        let child = "{si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=1, si_uid=0}";
        let arrived = format!("--- SIGCHLD {child} ---");
        for (marker, line) in [
            ("+++ exited with 0 +++", Line::Ended(None)),
            (
                "+++ killed by SIGSEGV (core dumped) +++",
                Line::Ended(Some(killed)),
            ),
            (&arrived, Line::Signal(signal("SIGCHLD", child))),
            (
                "--- stopped by SIGTSTP ---",
                Line::Signal(signal("SIGTSTP", "stopped")),
            ),
            (
                "+++ superseded by execve in pid 21955 +++",
                Line::Superseded,
            ),
        ] {
            assert_eq!(parse(&format!("7592  {marker}")), Some((7592, line)));
        }
        for cut in ["7592  +++ exited with 0", "7592  --- SIGCHLD {si_signo"] {
            assert_eq!(parse(cut), None, "{cut}");
        }
    }

    #[test]
    fn what_has_not_the_form_is_refused() {
        for line in [
            "",
            "12",
            "read(3, \"\", 1) = 0",
            "12 Read(3) = 0",
            "12 read(3",
            "12 read(3) 0",
            "12 read(3) = x",
            "12 read(3) = 0 <0.1234567890>",
            "12 read(\"x\\",
            "12 read(3</x, 1) = 0 <0.1",
            "99999999999 read() = 0",
            "12 read(]) = 0",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC*") {
            let _ = parse(&text);
        }

        #[test]
        fn nothing_like_a_call_makes_it_panic(
            text in r#"[0-9]{1,3} (read\(|<\.\.\. read resumed>|\+\+\+ )[0-9<>"\\,(){}\[\] =?.a-zE-]{0,60}"#
        ) {
            let _ = parse(&text);
        }

        #[test]
        fn every_plain_call_is_read(value in 0_i64..1 << 40, ns in 0_u64..1 << 40, asked in 0_u64..1 << 40) {
            let line = format!(
                "12    write(1</dev/null>, \"\"..., {asked})   = {value} <{}.{:09}>",
                ns / 1_000_000_000,
                ns % 1_000_000_000
            );
            let call = call(&line);
            prop_assert_eq!(call.result, CallResult::Value(value));
            prop_assert_eq!(call.duration_ns, Some(ns));
            prop_assert_eq!(&call.arguments[2], &asked.to_string());
        }
    }
}
