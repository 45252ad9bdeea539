//! Recordings by hand, where every byte counts.

use proptest::prelude::*;

use super::*;

/// The text of bytes written to a terminal of 20 columns and 5 lines.
fn text(bytes: &[u8]) -> String {
    let settings = Settings {
        columns: Some(20),
        lines: Some(5),
    };
    clean(bytes, None, settings).text(Shown::default())
}

#[track_caller]
fn check(bytes: &str, expected: &str) {
    assert_eq!(text(bytes.as_bytes()), expected, "{bytes:?}");
}

#[test]
fn colours_and_styles_are_left_out() {
    check(
        "\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mgreen\x1b(B\x1b[m\r\n",
        "red green\n",
    );
}

#[test]
fn what_is_overwritten_is_gone() {
    check("10%\r50%\r100%\r\ndone\r\n", "100%\ndone\n");
    check("long line\rok\x1b[K\r\n", "ok\n");
    check("abc\x08\x08X\r\n", "aXc\n");
    check("typo\x08 \x08\x08 \x08es\r\n", "tyes\n");
}

#[test]
fn characters_and_lines_are_inserted_and_deleted() {
    check("acd\r\x1b[C\x1b[@b\r\n", "abcd\n");
    check("axxb\r\x1b[C\x1b[2P\r\n", "ab\n");
    check("ac\r\x1b[C\x1b[4hb\x1b[4l\r\n", "abc\n");
    check("1\r\n3\r\n4\x1b[1A\r\x1b[L2\x1b[4B\r\n", "1\n2\n3\n4\n");
    check("1\r\n2\r\n3\x1b[A\r\x1b[M\x1b[4B\r\n", "1\n3\n");
    check("abcdef\r\x1b[2C\x1b[2X\r\n", "ab  ef\n");
    check("a\x1b[5b\r\n", "aaaaaa\n");
}

#[test]
fn tabs_go_to_the_next_stop() {
    check("a\tb\tc\r\n", "a       b       c\n");
    check(
        "abc\x1bH\r\tx\x1b[3g\r\ty\r\n",
        &format!("abcx{:15}y\n", ""),
    );
    check("a\tb\x1b[2Zc\r\n", "c       b\n");
}

#[test]
fn a_line_that_the_terminal_wrapped_is_one_line() {
    let long = "0123456789".repeat(5);
    check(&format!("{long}\r\nnext\r\n"), &format!("{long}\nnext\n"));
    let full = "0123456789".repeat(2);
    check(&format!("{full}\r\nnext\r\n"), &format!("{full}\nnext\n"));
    // Readline makes sure of the wrap like this.
    check(&format!("{full} \rx\r\n"), &format!("{full}x\n"));
    check(
        &format!("\x1b[?7l{full}xyz\r\n"),
        &format!("{}z\n", &full[..19]),
    );
    let many = "y".repeat(20 * 30);
    check(&format!("{many}\r\n"), &format!("{many}\n"));
}

#[test]
fn wide_and_combining_characters_take_the_columns_they_take() {
    check("漢字\x08\x08x\r\n", "漢x\n");
    check("cafe\u{301}s\r\n", "cafe\u{301}s\n");
    check("👩\u{200d}🔬 ok\r\n", "👩\u{200d}🔬 ok\n");
    let nineteen = "x".repeat(19);
    check(&format!("{nineteen}漢\r\n"), &format!("{nineteen}漢\n"));
    check("\u{301}\r\n", " \u{301}\n");
}

#[test]
fn lines_that_scrolled_off_are_kept() {
    let all: String = (0..30).map(|n| format!("{n}\r\n")).collect();
    check(&all, &all.replace('\r', ""));
}

#[test]
fn what_scrolls_in_a_region_alone_is_gone() {
    // Lines 2 to 4 scroll; the first and the last stay.
    check(
        "head\x1b[5;1Hfoot\x1b[2;4r\x1b[2;1Ha\r\nb\r\nc\r\nd\x1b[r\x1b[5;1H",
        "head\nb\nc\nd\nfoot\n",
    );
    check("\x1b[2;1Hx\x1bM\x1bM\x1bMtop", " top\n\nx\n");
}

#[test]
fn a_bar_below_a_scrolling_region_is_gone_when_it_is_taken_away() {
    // As apt shows its progress: the last line does not scroll.
    let bar = |percent: u32| {
        format!("\x1b7\x1b[5;0f\x1b[42m\x1b[30mProgress: [{percent:3}%]\x1b[49m\x1b[39m\x1b8")
    };
    let mut bytes = "$ apt\r\n\n\x1b7\x1b[0;4r\x1b8\x1b[1A".to_owned();
    for package in 0..9 {
        bytes.push_str(&bar(package * 11));
        bytes.push_str(&format!("Setting up {package} ...\r\n"));
    }
    bytes.push_str("\n\x1b7\x1b[0;5r\x1b8\x1b[1A\x1b[J$ exit\r\n");
    let lines: String = (0..9)
        .map(|package| format!("Setting up {package} ...\n"))
        .collect();
    check(&bytes, &format!("$ apt\n{lines}$ exit\n"));
}

#[test]
fn a_cleared_screen_has_been_read() {
    check("one\r\ntwo\r\n\x1b[H\x1b[2Jthree\r\n", "one\ntwo\nthree\n");
    check("one\r\n\x1b[H\x1b[Jtwo\r\n", "one\ntwo\n");
    check("one\r\n\x1bctwo\r\n", "one\ntwo\n");
    // What is erased on the way is not.
    check("one\r\ntwo\r\n\x1b[A\x1b[Jx\r\n", "one\nx\n");
    check("\x1b[2J\x1b[2J\x1b[2Jx\r\n", "x\n");
}

#[test]
fn the_alternate_screen_is_apart() {
    let file = "before\r\n$ vi\r\n\x1b[?1049h\x1b[Hedited\r\n~\r\n\x1b[?1049lafter\r\n";
    let session = clean(file.as_bytes(), None, Settings::default());
    assert_eq!(session.text(Shown::default()), "before\n$ vi\nafter\n");
    let screens = &session.recordings[0].alternate_screens;
    assert_eq!(screens.len(), 1);
    assert_eq!(
        (screens[0].line, &screens[0].text[..]),
        (2, &["edited".to_owned(), "~".into()][..])
    );
    let shown = Shown {
        alternate_screens: true,
        ..Shown::default()
    };
    let expected =
        "before\n$ vi\n[alternate screen:]\nedited\n~\n[end of the alternate screen]\nafter\n";
    assert_eq!(session.text(shown), expected);
    // Still open at the end.
    check("a\r\n\x1b[?1049hb", "a\n");
}

#[test]
fn titles_are_told_apart() {
    let file = "\x1b]0;user@host: ~\x07$ ls\r\n\x1b]2;a;b\x1b\\$ \x1bkscreen\x1b\\x\r\n";
    let session = clean(file.as_bytes(), None, Settings::default());
    assert_eq!(session.text(Shown::default()), "$ ls\n$ x\n");
    let titles: Vec<(usize, &str)> = session.recordings[0]
        .titles
        .iter()
        .map(|title| (title.line, title.text.as_str()))
        .collect();
    assert_eq!(titles, [(0, "user@host: ~"), (1, "a;b"), (1, "screen")]);
    let shown = Shown {
        titles: true,
        ..Shown::default()
    };
    assert!(
        session
            .text(shown)
            .starts_with("[title: user@host: ~]\n$ ls\n[title: a;b]\n")
    );
}

#[test]
fn other_strings_show_nothing() {
    check(
        "a\x1bP1$r0m\x1b\\b\x1b_apc\x1b\\c\x1b^pm\x1b\\d\x1bXsos\x1b\\e\r\n",
        "abcde\n",
    );
    check("\x1b[?2004h$ \x1b[?25l\x1b[6n\x1b[>c\x1b=x\r\n", "$ x\n");
}

#[test]
fn line_drawing_is_drawn() {
    check("\x1b(0lqk\x1b(B x\r\n", "┌─┐ x\n");
    check("\x1b)0\x0elqk\x0f lqk\r\n", "┌─┐ lqk\n");
}

#[test]
fn bytes_that_are_no_utf8_are_shown() {
    assert_eq!(text(b"a\xff\xfeb\xc3\r\n"), "a\\xff\\xfeb\\xc3\n");
    assert_eq!(text(b"end\xe2\x82"), "end\\xe2\\x82\n");
    assert_eq!(
        text("\u{10ffff}\u{10ff80}".as_bytes()),
        "\u{fffd}\u{fffd}\n"
    );
    let session = clean(b"\xff\xff\n", None, Settings::default());
    assert_eq!(session.recordings[0].invalid_bytes, 2);
}

#[test]
fn a_recording_that_is_cut_says_so() {
    let notes = |bytes: &[u8]| {
        clean(bytes, None, Settings::default()).recordings[0]
            .notes
            .len()
    };
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
    let timing = Timing::parse(b"0.5 2\n0.5 1\n1.0 5\n").unwrap();
    let file = "a漢\r\nb\r\n".as_bytes();
    let session = clean(file, Some(&timing), Settings::default());
    let lines = &session.recordings[0].lines;
    assert_eq!(lines[0].text, "a漢");
    assert_eq!(lines[0].begin_ns, Some(500_000_000));
    assert_eq!(lines[0].end_ns, Some(2_000_000_000));
    assert_eq!(
        session.recordings[0].notes.len(),
        1,
        "two bytes have no time"
    );
}

#[test]
fn input_in_the_same_file_is_left_out() {
    let timing = "H 0 INPUT_LOG t\nH 0 OUTPUT_LOG t\nI 0.1 3\nO 0.1 4\n";
    let timing = Timing::parse(timing.as_bytes()).unwrap();
    let session = clean(b"ls\nls\r\n", Some(&timing), Settings::default());
    assert_eq!(session.text(Shown::default()), "ls\n");
}

#[test]
fn a_window_of_another_size_loses_nothing() {
    let timing = "O 0.1 20\nS 0.1 SIGWINCH ROWS=2 COLS=5\nO 0.1 20\nS 0.1 SIGWINCH ROWS=9 COLS=30\nO 0.1 8\n";
    let timing = Timing::parse(timing.as_bytes()).unwrap();
    let file = "one.\r\ntwo.\r\nthree.\r\nfour.\r\nfive.\r\nsix.\r\nend.\r\n\r\n";
    let session = clean(file.as_bytes(), Some(&timing), Settings::default());
    let expected = "one.\ntwo.\nthree.\nfour.\nfive.\nsix.\nend.\n";
    assert_eq!(session.text(Shown::default()), expected);
}

#[test]
fn line_feeds_alone_begin_lines_where_there_are_no_others() {
    check("one\ntwo\n", "one\ntwo\n");
    check("one\ntwo\r\nthree\r\n", "one\n   two\nthree\n");
}

#[test]
fn sequences_with_the_largest_numbers_end() {
    for action in "@ABCDEFGHIJKLMPSTXZ`abdefgrst".chars() {
        let bytes = format!("x\x1b[65535;65535{action}y\x1b[99999999999{action}z\r\n");
        let told = text(bytes.as_bytes());
        assert!(told.contains('z'), "{action}: {told:?}");
    }
}

/// Pieces that a recording is made of.
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
        let told = clean(&bytes, None, settings).text(shown);
        prop_assert!(!told.chars().any(|c| c.is_control() && c != '\n'), "{told:?}");
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
