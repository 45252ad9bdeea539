//! How programs are read, and which are refused.

use super::*;

fn read(text: &str) -> Result<Program, String> {
    Program::try_from(text.to_owned())
}

#[test]
fn parts_results_buffers_and_children_are_told_apart() {
    let program = read(
        "# made once\nbase = dup 0\n---\np = fork {\n  exit_group 0\n}\nwait4 p s:4 0 0\n\
         assert s.0 0\n---\nclose_range base -1 0",
    )
    .unwrap();
    assert_eq!(program.before.len(), 1);
    assert_eq!(program.timed.len(), 3);
    assert_eq!(program.after[0].arguments[1], Argument::Number(u64::MAX));
    let child = program.timed[0].child.as_ref().unwrap();
    assert_eq!((child[0].line, child[0].arguments.len()), (5, 1));
    assert_eq!(program.values, 2);
    let status = Argument::Word {
        buffer: 0,
        place: 0,
        bytes: 4,
    };
    assert_eq!(program.timed[2].arguments[0], status);
    let names = ["dup", "fork", "exit_group", "wait4", "close_range"];
    assert_eq!(program.names(), names);
    let text = String::from(program.clone());
    assert_eq!(read(&text).unwrap(), program);
}

#[test]
fn a_record_has_its_items_at_their_places() {
    let program = read("bind 3 [AF_UNIX/2 'ab' :3 [7/1 \"x\"]] 110").unwrap();
    let Argument::Record { buffer, items } = &program.timed[0].arguments[1] else {
        panic!("{program:?}");
    };
    assert_eq!(program.buffers[*buffer], *b"\0\0ab\0\0\0\0\0\0\0\0\0\0\0");
    let places: Vec<_> = items.iter().map(|item| (item.offset, item.bytes)).collect();
    assert_eq!(places, [(0, 2), (7, 8)]);
    assert_eq!(items[0].content, Argument::Number(1));
}

#[test]
fn numbers_are_those_of_c() {
    for (word, value) in [
        ("0", 0),
        ("0644", 420),
        ("0x10", 16),
        ("-100", 100_u64.wrapping_neg()),
        ("O_RDWR|O_CREAT|0x1000", 0o102 | 0x1000),
    ] {
        assert_eq!(constants(word), Ok(value), "{word}");
    }
    assert_eq!(number_of_call("read"), Ok(0));
    assert_eq!(number_of_call("mseal"), Ok(462));
    assert_eq!(number_of_call("549"), Ok(549));
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    for (text, why) in [
        (
            "getpid\nopn \"a\"",
            "line 2 of the program: there is no system call opn",
        ),
        ("close f", "f is not defined above this line"),
        ("f = dup 0\nread f.0 0 0", "f is not a buffer"),
        ("pipe p:8\nclose p.2", "p has only 2 words"),
        ("getpid 1 2 3 4 5 6 7", "7 arguments"),
        ("close O_NOTHING", "nor a known constant"),
        ("write 1 \"a 1", "no closing \""),
        ("bind 3 [1/3] 4", "1, 2, 4 or 8 bytes"),
        ("bind 3 [1 2", "no closing ]"),
        ("fork {\ngetpid", "the child has no closing }"),
        ("}", "closes no child"),
        ("---\n---\n---", "at most three parts"),
        ("read 0 :99999999999 1", "buffers together may have at most"),
        (
            "read 0 [:9999999 :9999999 :9999999] 1",
            "buffers together may have at most",
        ),
        ("read 0 0 0 -> -1", "-1 is not an error"),
        ("read 0 0 0 -> 0", "0 is not an error"),
    ] {
        let refused = read(text).unwrap_err();
        assert!(refused.starts_with("cannot read "), "{refused}");
        assert!(refused.contains(why), "{text:?}: {refused}");
    }
}
