//! Any input in any chunks, against a model that looks at one byte at a time.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Returns the expected output for a whole input, following the manual of `cat`.
fn model(decoration: &Decoration, input: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    let mut number = 0;
    let mut blank_lines = 0;
    for line in input.split_inclusive(|&byte| byte == b'\n') {
        let is_blank = line == b"\n";
        blank_lines = if is_blank { blank_lines + 1 } else { 0 };
        if decoration.squeezes_blank && blank_lines > 1 {
            continue;
        }
        let is_numbered = match decoration.numbering {
            Numbering::None => false,
            Numbering::All => true,
            Numbering::NonBlank => !is_blank,
        };
        if is_numbered {
            number += 1;
            output.extend(format!("{number:6}\t").bytes());
        }
        for (at, &byte) in line.iter().enumerate() {
            let is_before_end = line.get(at + 1) == Some(&b'\n');
            match byte {
                b'\n' if decoration.shows_ends => output.extend(b"$\n"),
                b'\r' if decoration.shows_ends && is_before_end => output.extend(b"^M"),
                _ => show(decoration, byte, &mut output),
            }
        }
    }
    output
}

fn show(decoration: &Decoration, byte: u8, output: &mut Vec<u8>) {
    match byte {
        b'\n' => output.push(byte),
        b'\t' if decoration.shows_tabs => output.extend(b"^I"),
        b'\t' => output.push(byte),
        _ if !decoration.shows_nonprinting => output.push(byte),
        128.. => {
            output.extend(b"M-");
            show_ascii(byte - 128, output);
        }
        _ => show_ascii(byte, output),
    }
}

fn show_ascii(byte: u8, output: &mut Vec<u8>) {
    if byte < 32 || byte == 127 {
        output.extend([b'^', byte ^ 64]);
    } else {
        output.push(byte);
    }
}

fn decorations() -> Vec<Decoration> {
    let mut all = Vec::new();
    for numbering in [Numbering::None, Numbering::All, Numbering::NonBlank] {
        for flags in 0..16 {
            all.push(Decoration {
                numbering,
                squeezes_blank: flags & 1 != 0,
                shows_ends: flags & 2 != 0,
                shows_tabs: flags & 4 != 0,
                shows_nonprinting: flags & 8 != 0,
            });
        }
    }
    all
}

fn decorated(decoration: Decoration, chunks: &[&[u8]]) -> Vec<u8> {
    let mut decorator = Decorator::new(decoration);
    let mut output = Vec::new();
    for chunk in chunks {
        decorator.decorate(chunk, &mut output);
    }
    decorator.finish(&mut output);
    output
}

/// Bytes of text with blank lines and both kinds of line ends, and now and then any
/// value.
fn byte() -> impl Strategy<Value = u8> {
    prop_oneof![
        6 => b'a'..=b'z',
        3 => Just(b'\n'),
        2 => Just(b'\r'),
        1 => Just(b'\t'),
        2 => any::<u8>(),
    ]
}

/// Inputs from short ones, where state at the edges matters, to ones that fill the sink's
/// buffer more than once.
fn input() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => vec(byte(), 0..40),
        6 => vec(any::<u8>(), 0..200),
        6 => vec(prop_oneof![9 => b' '..=b'~', 1 => Just(b'\n')], 0..2000),
        3 => vec(Just(b'\n'), 0..2000),
        1 => vec(byte(), 14000..18000),
    ]
}

fn cut<'a>(input: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let mut rest = input;
    let mut chunks = Vec::new();
    for &length in lengths {
        let (chunk, tail) = rest.split_at(length.min(rest.len()));
        chunks.push(chunk);
        rest = tail;
    }
    chunks.push(rest);
    chunks
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_chunks_give_what_the_model_gives(
        input in input(),
        lengths in vec(prop_oneof![0usize..4, 0usize..40, 0usize..4000], 0..60),
    ) {
        let chunks = cut(&input, &lengths);
        for decoration in decorations() {
            let expected = model(&decoration, &input);
            let found = decorated(decoration, &chunks);
            prop_assert!(
                found == expected,
                "{decoration:?}\nfound    {}\nexpected {}",
                found.escape_ascii(),
                expected.escape_ascii()
            );
        }
    }
}

#[test]
fn single_bytes_give_what_the_model_gives() {
    let input: Vec<u8> = (0..=u8::MAX)
        .flat_map(|byte| [byte, b'\r', b'\n', b'\n', b'\n', byte])
        .collect();
    let chunks: Vec<&[u8]> = input.chunks(1).collect();
    for decoration in decorations() {
        assert_eq!(
            decorated(decoration, &chunks),
            model(&decoration, &input),
            "{decoration:?}"
        );
    }
}

#[test]
fn only_the_decoration_without_any_option_is_plain() {
    let plain: Vec<bool> = decorations().iter().map(Decoration::is_plain).collect();
    assert!(plain[0]);
    assert!(plain[1..].iter().all(|is_plain| !is_plain));
}
