//! Texts that an attacker may put where this program reads one.

use toll_stats::Rng;

/// Begins the name of every file that an obeyed text creates.
pub const OBEYED: &str = "OBEYED";

/// A file that an obeyed text removes.
pub const CANARY: &str = "canary";

/// Commands in the texts. As long as a text has no slash, it can be a file name.
const ACTIONS: [&str; 6] = [
    "touch OBEYED",
    "touch\tOBEYED",
    "touch${IFS}OBEYED",
    ">OBEYED",
    "rm canary",
    "mv canary OBEYED",
];

/// Syntax with which shells, make, git, ssh and other programs run commands; `@` stands for the
/// command.
const FRAMES: [&str; 22] = [
    "$(shell @)",
    "${shell @}",
    "$(eval $(shell @))",
    "$$(@)",
    "$(@)",
    "`@`",
    ";@;",
    "&@&",
    "|@",
    "x\n@\n",
    "x\n\t@",
    "x\r\n@",
    "'; @; '",
    "\"; @; \"",
    "\\'; @ #",
    "--eval=$(shell @)",
    "-oProxyCommand=@",
    "--upload-pack=@",
    "--exec=@",
    "!@",
    "-cmd|' /C @'!A0",
    "{{ @ }}{% @ %}",
];

/// Texts that have a meaning in paths, options, markup, tables or terminals.
const MEANINGS: [&str; 42] = [
    "../../../OBEYED",
    "..",
    "--output=OBEYED",
    "-rf",
    "--",
    "$(error stop)",
    "$^",
    "#hash",
    "100%n%s",
    "two  words",
    "colon:",
    "{}{n}{workdir}{tree}",
    "é~*?[a]",
    "back\\slash\\",
    "\"",
    "'",
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "</title></style></text></svg><svg onload=alert(1)>",
    "</script><script src=//x>",
    "javascript:alert(1)",
    "]]><!-- &lt; &#60;b&#62;",
    "\u{1b}]0;title\u{7}\u{1b}[31mred\u{9b}1m\u{90}q\u{9c}",
    "\u{8}\u{7f}\u{0}\u{1}\u{b}\u{c}",
    "first\r\nsecond\u{2028}third\u{85}fourth\tfifth",
    "\u{202e}desrever\u{2066}isolated\u{200f}\u{61c}",
    "\u{fffe}\u{ffff}\u{feff}",
    "'; DROP TABLE runs; --\" OR 1=1",
    "a|b\\|c **e** [f](http://example.org) ![g](x)",
    "@everyone # h ~i~ $j$",
    "=1+1\",\"@SUM(A1)",
    "Unit ns/op better=lower\nBenchmarkFake 1 1 ns/op\npkg: other",
    ".SH FAKE\n.sp \\fBbold\\fR 'x",
    "::error file=x::annotation",
    "last",
    "-1",
    "1e999",
    "null",
    "[",
    "0000000000000000",
    "CONFIG_X=y",
];

/// Makes a random text of one to three pieces.
pub fn make(rng: &mut Rng) -> String {
    (0..1 + rng.below(3)).map(|_| piece(rng)).collect()
}

fn piece(rng: &mut Rng) -> String {
    let action = ACTIONS[rng.below(ACTIONS.len())];
    let meaning = MEANINGS[rng.below(MEANINGS.len())];
    match rng.below(12) {
        0..=5 => FRAMES[rng.below(FRAMES.len())].replace('@', action),
        6..=10 => meaning.to_owned(),
        _ => meaning.repeat(1 + 1024 / meaning.len()),
    }
}

/// Turns a text into a word of a command line, which cannot contain a null byte.
pub fn word(text: &str) -> String {
    text.replace('\0', "")
}

/// Turns a text into a file name without slashes, short enough to be extended.
pub fn file_name(text: &str) -> String {
    const BYTES_MAX: usize = 150;
    let name = word(text).replace('/', "_");
    let end = name.floor_char_boundary(BYTES_MAX);
    match &name[..end] {
        "." | ".." => "dots".to_owned(),
        name => name.to_owned(),
    }
}
