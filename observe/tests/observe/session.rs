//! Hand-written recordings, where every byte counts.

use proptest::prelude::*;
use toll_observe::session::{Session, Settings, Shown, Timing, clean};

/// Returns the text of bytes written to a terminal of 20 columns and 5 lines.
fn text(bytes: &[u8]) -> String {
    let settings = Settings {
        columns: Some(20),
        lines: Some(5),
    };
    clean(bytes, None, settings).text(Shown::default())
}

fn session(bytes: &[u8]) -> Session {
    clean(bytes, None, Settings::default())
}

fn timed(bytes: &[u8], timing: &str) -> Session {
    let timing = Timing::parse(timing.as_bytes()).expect("a timing");
    clean(bytes, Some(&timing), Settings::default())
}

#[test]
fn what_is_written_reads_as_it_stood_on_the_screen() {
    let cases = include_str!("session.txt").lines();
    let mut cases = cases.filter(|line| !line.is_empty() && !line.starts_with('#'));
    while let (Some(written), Some(expected)) = (cases.next(), cases.next()) {
        let string = |json: &str| serde_json::from_str::<String>(json).expect("a string");
        assert_eq!(
            text(string(written).as_bytes()),
            string(expected),
            "{written}"
        );
    }
}

#[test]
fn the_alternate_screen_is_apart() {
    let file = b"before\r\n$ vi\r\n\x1b[?1049h\x1b[Hedited\r\n~\r\n\x1b[?1049lafter\r\n";
    let session = session(file);
    assert_eq!(session.text(Shown::default()), "before\n$ vi\nafter\n");
    let screens = &session.recordings[0].alternate_screens;
    assert_eq!(screens.len(), 1);
    assert_eq!(
        (screens[0].line, &screens[0].text.join("\n")[..]),
        (2, "edited\n~")
    );
    let shown = Shown {
        alternate_screens: true,
        ..Shown::default()
    };
    let expected =
        "before\n$ vi\n[alternate screen:]\nedited\n~\n[end of the alternate screen]\nafter\n";
    assert_eq!(session.text(shown), expected);
}

#[test]
fn titles_are_told_apart() {
    let file = b"\x1b]0;user@host: ~\x07$ ls\r\n\x1b]2;a;b\x1b\\$ \x1bkscreen\x1b\\x\r\n";
    let session = session(file);
    assert_eq!(session.text(Shown::default()), "$ ls\n$ x\n");
    let titles = session.recordings[0].titles.iter();
    let titles: Vec<(usize, &str)> = titles.map(|title| (title.line, &title.text[..])).collect();
    assert_eq!(titles, [(0, "user@host: ~"), (1, "a;b"), (1, "screen")]);
    let shown = Shown {
        titles: true,
        ..Shown::default()
    };
    let begin = "[title: user@host: ~]\n$ ls\n[title: a;b]\n";
    assert!(session.text(shown).starts_with(begin));
}

#[test]
fn bytes_that_are_no_utf8_are_shown() {
    assert_eq!(text(b"a\xff\xfeb\xc3\r\n"), "a\\xff\\xfeb\\xc3\n");
    assert_eq!(text(b"end\xe2\x82"), "end\\xe2\\x82\n");
    assert_eq!(
        text("\u{10ffff}\u{10ff80}".as_bytes()),
        "\u{fffd}\u{fffd}\n"
    );
    assert_eq!(session(b"\xff\xff\n").recordings[0].invalid_bytes, 2);
}

#[test]
fn a_recording_that_is_cut_says_so() {
    let notes = |bytes: &[u8]| session(bytes).recordings[0].notes.len();
    assert_eq!(notes(b"a\r\n"), 0);
    for cut in [
        &b"a\x1b"[..],
        b"a\x1b[3",
        b"a\x1b]0;x",
        b"a\x1bPq",
        b"a\x1b_x",
    ] {
        assert_eq!(notes(cut), 1, "{cut:?}");
    }
}

#[test]
fn characters_cut_by_the_timing_are_whole_again() {
    let session = timed("a漢\r\nb\r\n".as_bytes(), "0.5 2\n0.5 1\n1.0 5\n");
    let recording = &session.recordings[0];
    let line = &recording.lines[0];
    assert_eq!(line.text, "a漢");
    assert_eq!(
        (line.begin_ns, line.end_ns),
        (Some(500_000_000), Some(2_000_000_000))
    );
    assert_eq!(recording.notes.len(), 1, "two bytes have no time");
}

#[test]
fn input_in_the_same_file_is_left_out() {
    let session = timed(
        b"ls\nls\r\n",
        "H 0 INPUT_LOG t\nH 0 OUTPUT_LOG t\nI 0.1 3\nO 0.1 4\n",
    );
    assert_eq!(session.text(Shown::default()), "ls\n");
}

#[test]
fn a_window_of_another_size_loses_nothing() {
    let timing = "O 0.1 20\nS 0.1 SIGWINCH ROWS=2 COLS=5\nO 0.1 20\nS 0.1 SIGWINCH ROWS=9 COLS=30\nO 0.1 8\n";
    let file = "one.\r\ntwo.\r\nthree.\r\nfour.\r\nfive.\r\nsix.\r\nend.\r\n\r\n";
    let expected = "one.\ntwo.\nthree.\nfour.\nfive.\nsix.\nend.\n";
    assert_eq!(
        timed(file.as_bytes(), timing).text(Shown::default()),
        expected
    );
}

#[test]
fn sequences_with_the_largest_numbers_end() {
    for action in "@ABCDEFGHIJKLMPSTXZ`abdefgrst".chars() {
        let bytes = format!("x\x1b[65535;65535{action}y\x1b[99999999999{action}z\r\n");
        let found = text(bytes.as_bytes());
        assert!(found.contains('z'), "{action}: {found:?}");
    }
}

/// A piece that a recording is made of.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[ -~]{0,30}".prop_map(String::into_bytes),
        "\\PC{0,8}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..8),
        (0_u16..200, 0_u16..200, "[?!> ]?", "[@-~]")
            .prop_map(|(a, b, mark, end)| format!("\x1b[{mark}{a};{b}{end}").into_bytes()),
        "\x1b[ -~]".prop_map(String::into_bytes),
        Just(b"\x1b[?1049h".to_vec()),
        Just(b"\x1b[?1049l".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\x1b]0;title\x07".to_vec()),
    ]
}

fn recording_of_pieces() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(piece(), 0..80).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn nothing_makes_it_panic_and_no_control_character_comes_out(bytes in recording_of_pieces(), columns in 1_usize..40, lines in 1_usize..12) {
        let settings = Settings { columns: Some(columns), lines: Some(lines) };
        let shown = Shown { titles: true, alternate_screens: true };
        let found = clean(&bytes, None, settings).text(shown);
        prop_assert!(!found.chars().any(|c| c.is_control() && c != '\n'), "{found:?}");
    }

    #[test]
    fn where_the_timing_cuts_makes_no_difference(bytes in recording_of_pieces(), cuts in proptest::collection::vec(0_usize..60, 0..20)) {
        let timing: String = cuts.iter().map(|cut| format!("0.1 {cut}\n")).collect();
        let timing = Timing::parse(timing.as_bytes()).unwrap();
        let shown = Shown::default();
        let whole = clean(&bytes, None, Settings::default()).text(shown);
        let cut = clean(&bytes, Some(&timing), Settings::default()).text(shown);
        prop_assert_eq!(whole, cut);
    }

    #[test]
    fn plain_lines_come_out_as_they_are(lines in proptest::collection::vec("[!-~]([ -~]{0,100}[!-~])?", 0..60)) {
        let written: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        let expected: String = lines.iter().map(|line| format!("{line}\n")).collect();
        prop_assert_eq!(text(written.as_bytes()), expected);
    }

    #[test]
    fn no_timing_makes_it_panic(text in "[HOIS0-9. a-z=\n]{0,80}", bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(timing) = Timing::parse(text.as_bytes()) {
            let _ = clean(&bytes, Some(&timing), Settings::default());
        }
    }
}
