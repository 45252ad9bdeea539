mod checks;

use super::*;

const HEAD: &str = "format = 1\nname = \"t\"\n";
const COPY: &str = "[workload]\nkind = \"copy\"\n";
const FACTOR: &str = "[[factor]]\nname = \"buffer\"\nlevels = [\"4KiB\", \"64KiB\"]\n";

/// Parses the head, then `rest` from line 3 on, and returns the error.
fn error(rest: &str) -> SpecError {
    match parse(&format!("{HEAD}{rest}"), "x.toml", "quick") {
        Err(error) => error,
        Ok(_) => panic!("accepted:\n{rest}"),
    }
}

/// Checks that an experiment is refused at a line with words in the message.
fn refused(rest: &str, line: usize, words: &str) {
    let error = error(rest);
    assert!(error.message.contains(words), "{error}");
    assert_eq!(error.line, Some(line), "{error}");
}

#[test]
fn an_error_names_file_and_line() {
    let error = error(&format!("{COPY}{FACTOR}levles = 3\n"));
    assert_eq!(error.line, Some(8));
    assert!(
        error
            .to_string()
            .starts_with("x.toml:8: cannot read it: unknown field"),
        "{error}"
    );
}

#[test]
fn what_a_workload_does_not_have_is_refused() {
    refused(&format!("{COPY}bufer = \"4k\"\n"), 5, "no such parameter");
    refused(
        &format!("{COPY}method = \"teleport\"\n"),
        5,
        "it must be one of byte",
    );
    refused(&format!("{COPY}buffer = \"0\"\n"), 5, "1 byte to 1 GiB");
    refused(&format!("{COPY}size = \"much\"\n"), 5, "cannot read size");
    refused(
        &format!("{COPY}prepare = \"sync\"\n"),
        5,
        "only a workload of kind command",
    );
    refused("[workload]\nkind = \"dance\"\n", 4, "unknown variant");
    refused("[workload]\nkind = \"command\"\n", 3, "no command");
    refused(
        "[workload]\nkind = \"command\"\ncommand = \"x\"\ncommands = { a = \"y\" }\n",
        3,
        "choose one",
    );
    refused(
        "[workload]\nkind = \"command\"\ncommand = \"x\"\nsize = 3\n",
        6,
        "no command has {size}",
    );
    refused(
        "[workload]\nkind = \"command\"\ncommand = \"x\"\nprepair = true\n",
        3,
        "a number or a text",
    );
}

#[test]
fn what_a_transfer_cannot_be_is_refused() {
    for (line, words) in [
        (
            "channel = \"socket\"",
            "it must be one of device, tcp, unix, pipe",
        ),
        ("sender = \"fcntl\"", "it must be one of read-write"),
        (
            "receiver = \"sendfile\"",
            "it must be one of read-write, mmap, published-mmap, splice",
        ),
        ("mode = \"blocking\"", "it must be one of sync"),
        ("content = \"zeros\"", "it must be one of random, lines"),
        ("buffer = \"511\"", "512 bytes to 16 MiB"),
        ("buffer = \"17MiB\"", "512 bytes to 16 MiB"),
        ("window = \"4095\"", "4 KiB to 1 GiB"),
        ("page_log = \"yes\"", "it must be one of off, on"),
        ("size = \"-1\"", "cannot read size"),
        ("sink = \"pipe\"", "no such parameter"),
        ("command = \"cp\"", "only a workload of kind command"),
    ] {
        let toml = format!("[workload]\nkind = \"transfer\"\n{line}\n");
        let error = error(&toml);
        assert!(error.message.contains(words), "{line}: {error}");
    }
    let empty = format!("{HEAD}[workload]\nkind = \"transfer\"\nsize = 0\n");
    assert!(parse(&empty, "x.toml", "quick").is_ok(), "an empty file");
}

#[test]
fn what_a_work_on_memory_cannot_be_is_refused() {
    let memory = |line: &str| format!("[workload]\nkind = \"memory\"\n{line}\n");
    let chase = |line: &str| format!("[workload]\nkind = \"chase\"\n{line}\n");
    let reclaim = |line: &str| format!("[workload]\nkind = \"reclaim\"\n{line}\n");
    for (toml, words) in [
        (
            memory("order = \"backwards\""),
            "it must be one of sequential",
        ),
        (memory("mapping = \"file\""), "it must be one of anonymous"),
        (memory("huge_pages = \"always\""), "it must be one of none"),
        (memory("buffer = \"32KiB\""), "more than one working set"),
        (memory("buffer = \"65GiB\""), "to 64 GiB"),
        (memory("steps = 0"), "a whole number from 1"),
        (memory("steps = \"many\""), "a whole number from 1"),
        (memory("size = \"1MiB\""), "no such parameter"),
        (chase("size = \"64\""), "two lines"),
        (chase("accesses = 1.5"), "a whole number from 1"),
        (chase("fs = \"work\""), "no such parameter"),
        (chase("setup = \"true\""), "only a workload of kind command"),
        (reclaim("set = \"cold\""), "it must be one of published"),
        (
            reclaim("mapping = \"shared\""),
            "it must be one of anonymous",
        ),
        (reclaim("hot = \"4KiB\""), "1 MiB to 64 GiB"),
        (reclaim("limit = \"1MiB\""), "64 MiB"),
        (reclaim("processes = 65"), "a whole number from 1 to 64"),
        (reclaim("passes = 0"), "a whole number from 1"),
        (reclaim("advice = \"random\""), "no such parameter"),
    ] {
        refused(&toml, 5, words);
    }
    let level = "[[factor]]\nname = \"advice\"\nlevels = [\"none\", \"dontneed\"]\n";
    refused(
        &format!("{}{level}", memory("cache = \"warm\"")),
        8,
        "it must be one of none",
    );
}

#[test]
fn a_quotient_and_a_step_need_what_they_are_made_of() {
    let derived = |rest: &str| {
        format!(
            "{COPY}{FACTOR}[[derived]]\nid = \"d\"\ntext = \"x\"\nfactor = \"buffer\"\n{rest}\n"
        )
    };
    refused(
        &derived("kind = \"quotient\"\nlevel = \"4KiB\""),
        8,
        "missing field `per`",
    );
    refused(
        &derived("kind = \"quotient\"\nper = \"calls\""),
        8,
        "missing field `level`",
    );
    refused(&derived("kind = \"step\""), 8, "missing field `step`");
    refused(
        &derived("kind = \"step\"\nstep = 0"),
        12,
        "step must be 1 or more",
    );
    for kind in ["spread", "cost-per-byte", "call-share"] {
        let of_a_knee = derived(&format!("kind = \"{kind}\"\ntolerance = \"5%\""));
        refused(&of_a_knee, 13, "unknown field `tolerance`");
    }
    let zero = "[[factor]]\nname = \"size\"\nlevels = [0, 1, 2]\n[[derived]]\nid = \"d\"\n\
                text = \"x\"\nkind = \"step\"\nfactor = \"size\"\nstep = 1\n";
    refused(&format!("{COPY}{zero}"), 12, "above 0");
}

#[test]
fn factors_must_differ_and_not_be_fixed_too() {
    refused(&format!("{COPY}{FACTOR}{FACTOR}"), 9, "is given twice");
    refused(
        &format!("{COPY}buffer = \"8KiB\"\n{FACTOR}"),
        7,
        "sets it to one value",
    );
    refused(
        &format!("{COPY}[[factor]]\nname = \"buffer\"\nlevels = []\n"),
        5,
        "no levels",
    );
}

#[test]
fn constraints_are_checked_before_anything_runs() {
    let with = |constraint: &str| format!("require = [\"{constraint}\"]\n{COPY}{FACTOR}");
    refused(&with("buffer <"), 3, "it ends where");
    refused(&with("bufer <= 4KiB"), 3, "is a factor");
    refused(&with("buffer < page"), 3, "by order");
}

#[test]
fn claims_need_a_test_a_direction_and_bounds_above_zero() {
    let with =
        |claim: &str| format!("{COPY}{FACTOR}[[claim]]\nid = \"c\"\ntext = \"x\"\n{claim}\n");
    let pair = "of = { buffer = \"4KiB\" }\nto = { buffer = \"64KiB\" }\n";
    refused(
        &with(""),
        8,
        "either `of` and `to`, or `derived`, or `not_testable`",
    );
    refused(&with(pair), 8, "direction is missing");
    refused(
        &with(&format!("{pair}direction = \"less\"\nthreshold = -1")),
        8,
        "above 0",
    );
    refused(
        &with(&format!("{pair}between = [0, 2]")),
        8,
        "direction = \"less\" and a threshold",
    );
    refused(
        &with(&format!("{pair}between = [3, 2]")),
        8,
        "a lower and an upper bound",
    );
    refused(
        &with("check = true\nnot_testable = \"y\""),
        8,
        "a check is always measured",
    );
    refused(
        &with("derived = \"d\"\ndirection = \"less\"\nthreshold = 1"),
        11,
        "no derived quantity d",
    );
    let unknown = "of = { sise = \"4KiB\" }\nto = { buffer = \"64KiB\" }\ndirection = \"less\"";
    refused(&with(unknown), 11, "no factor sise");
}

#[test]
fn a_claim_stands_once_and_corrects_one_that_is_there() {
    let claim = "[[claim]]\nid = \"c\"\ntext = \"x\"\nnot_testable = \"y\"\n";
    refused(
        &format!("{COPY}{claim}{claim}"),
        10,
        "its id is given twice",
    );
    let twin = "[[claim]]\nid = \"c\"\ntext = \"x\"\nnot_testable = \"y\"\ncorrects = \"b\"\n";
    refused(&format!("{COPY}{twin}"), 6, "no such claim");
}

#[test]
fn derived_quantities_need_numbers_to_go_over() {
    let words = "[[factor]]\nname = \"sink\"\nlevels = [\"null\", \"pipe\"]\n";
    let knee = "[[derived]]\nid = \"k\"\ntext = \"x\"\nkind = \"knee\"\nfactor = \"sink\"\n";
    refused(&format!("{COPY}{words}{knee}"), 12, "not all numbers");
    let knee = "[[derived]]\nid = \"k\"\ntext = \"x\"\nkind = \"knee\"\nfactor = \"buffer\"\ntolerance = \"100%\"\n";
    refused(&format!("{COPY}{FACTOR}{knee}"), 13, "every level");
}

#[test]
fn a_newer_format_and_an_unknown_profile_are_refused() {
    let text = "format = 99\nname = \"t\"\n[workload]\nkind = \"copy\"\n";
    let error = parse(text, "x.toml", "quick").unwrap_err();
    assert!(error.message.contains("cannot read format 99"), "{error}");
    assert!(parse(&format!("{HEAD}{COPY}"), "x", "hasty").is_err());
    refused(
        &format!("{COPY}[profile.hasty]\n"),
        5,
        "choose one of quick",
    );
}

#[test]
fn profiles_change_levels_parameters_limits_and_constraints() {
    let text = format!(
        "{HEAD}{COPY}size = \"1MiB\"\n{FACTOR}[run]\niterations = 3\n\
         [profile.full]\nfactors = {{ buffer = {{ from = \"4KiB\", to = \"64KiB\", times = 2 }} }}\n\
         workload = {{ size = \"1GiB\" }}\nrun = {{ max_blocks = 77 }}\nrequire = [\"buffer != 8KiB\"]\n"
    );
    let quick = parse(&text, "x", "quick").unwrap();
    assert_eq!(
        (quick.factors[0].levels.len(), quick.run.iterations),
        (2, 3)
    );
    let full = parse(&text, "x", "full").unwrap();
    assert_eq!(full.factors[0].levels.len(), 5);
    assert_eq!(full.fixed("size").unwrap().number, Some(f64::from(1 << 30)));
    assert_eq!((full.run.max_blocks, full.run.iterations), (77, 3));
    assert_eq!(full.constraints, ["buffer != 8KiB"]);
}

#[test]
fn commands_by_name_become_the_levels_of_a_factor() {
    let text = format!(
        "{HEAD}[workload]\nkind = \"command\"\ncommands = {{ b = \"true\", a = \"false\" }}\n"
    );
    let experiment = parse(&text, "x", "quick").unwrap();
    assert_eq!(experiment.factors[0].name, "command");
    assert_eq!(experiment.factors[0].levels.len(), 2);
    let one = format!("{HEAD}[workload]\nkind = \"command\"\ncommand = \"true\"\n");
    assert!(parse(&one, "x", "quick").unwrap().factors.is_empty());
}

#[test]
fn levels_set_from_outside_must_fit() {
    let base = parse(
        &format!("{HEAD}{COPY}size = \"1MiB\"\n{FACTOR}"),
        "x",
        "quick",
    )
    .unwrap();
    let apply = |text: &str| {
        let mut experiment = base.clone();
        let chosen = parse_override(text).unwrap();
        apply_levels(&mut experiment, &[chosen]).map(|()| experiment)
    };
    assert_eq!(apply("buffer=8k").unwrap().factors[0].levels.len(), 1);
    let varied = apply("size=1MiB,2MiB").unwrap();
    assert!(varied.fixed("size").is_none() && varied.factor("size").is_some());
    assert!(
        apply("colour=red")
            .unwrap_err()
            .message
            .contains("no such factor")
    );
    assert!(
        apply("sink=sky")
            .unwrap_err()
            .message
            .contains("it must be one of")
    );
}

#[test]
fn a_shell_is_used_only_where_a_command_needs_one() {
    for plain in [
        "dd if=/dev/zero of=/dev/null",
        "grep -c root /etc/passwd",
        "awk 'a b' f",
    ] {
        assert!(!adhoc::needs_shell(plain), "{plain}");
    }
    for shell in [
        "a | b",
        "a > b",
        "echo $HOME",
        "X=1 a",
        "cd /tmp",
        "a; b",
        "ls *.rs",
        "",
    ] {
        assert!(adhoc::needs_shell(shell), "{shell}");
    }
}

#[test]
fn a_box_plot_says_what_it_is_of() {
    let figure = |keys: &str| {
        let toml = format!(
            "format = 1\nname = 't'\n[workload]\nkind = 'command'\ncommand = 'true {{n}}'\n\
             [[factor]]\nname = 'n'\nlevels = [1, 2]\n[[figure]]\ntitle = 'x'\n{keys}\n"
        );
        parse(&toml, "t.toml", "standard")
    };
    let group = |rest: &str| format!("groups = [{{ label = 'a', at = {{ n = 1 }}{rest} }}]");
    let good = format!(
        "kind = 'box'\nscale = 1e6\n{}",
        group(", published = [1, 2, 3, 4, 5]")
    );
    let groups = &figure(&good).unwrap().figures[0].groups;
    assert_eq!(groups[0].published, [1e6, 2e6, 3e6, 4e6, 5e6]);
    for (wrong, why) in [
        ("kind = 'box'".to_owned(), "boxes and bars need groups"),
        (
            format!("kind = 'box'\nfactor = 'n'\n{}", group("")),
            "no factor",
        ),
        (
            format!("kind = 'box'\nscale = 0\n{}", group("")),
            "scale must be a number",
        ),
        (
            format!("kind = 'box'\n{}", group(", published = [3, 1, 2, 4, 5]")),
            "those of a box must ascend",
        ),
        (
            format!("kind = 'bar'\n{}", group(", published = [1, 2, 3, 4, 5]")),
            "one number for a bar",
        ),
        (
            format!("kind = 'bar'\nrelative_to = 'b'\n{}", group("")),
            "there is no bar \"b\"",
        ),
        (
            "kind = 'curve'\nfactor = 'n'\nseries = 'n'\nlines = [{ label = 'a' }]".to_owned(),
            "with `lines`, leave out `series`",
        ),
        (
            format!("kind = 'box'\nrelative_to = 'a'\n{}", group("")),
            "`relative_to` needs kind = \"bar\"",
        ),
        (
            format!("kind = 'distribution'\nfactor = 'n'\n{}", group("")),
            "takes no groups",
        ),
        ("kind = 'distribution'".to_owned(), "needs a factor"),
        (
            "kind = 'box'\ngroups = [{ label = 'a', at = { m = 1 } }]".to_owned(),
            "m",
        ),
    ] {
        let message = figure(&wrong).unwrap_err().to_string();
        assert!(message.contains(why), "{wrong}: {message}");
    }
}

#[test]
fn a_table_says_what_its_numbers_are() {
    let table = |keys: &str| {
        let toml = format!(
            "format = 1\nname = 't'\n[workload]\nkind = 'command'\ncommand = 'true'\n\
             [[table]]\ntitle = 'x'\n{keys}\n"
        );
        parse(&toml, "t.toml", "standard")
    };
    let rows = "rows = [{ label = 'a', published = 1 }]";
    let scaled = |scale: &str| format!("unit = 'KB'\nscale = {scale}\n{rows}");
    let good = table(&scaled("1024")).unwrap();
    assert_eq!(good.tables[0].quantities[0].scale, Some(1024.0));
    let number = "scale must be a number above 0";
    let matrix = |quantity: &str| {
        format!(
            "conditions = [{{ label = 'a', at = {{}} }}]\n\
             quantities = [{{ label = 'q', metric = 'duration_ns', {quantity} }}]"
        )
    };
    assert!(table(&matrix("published = [1]")).is_ok());
    for (wrong, why) in [
        (scaled("0"), number),
        (scaled("-1"), number),
        (scaled("nan"), number),
        (scaled("inf"), number),
        (rows.to_owned(), "needs the unit"),
        (
            "unit = ''".to_owned(),
            "either rows, or conditions and quantities",
        ),
        (
            format!("{rows}\n{}", matrix("published = [1]")),
            "either rows",
        ),
        (
            format!("unit = 's'\n{}", matrix("published = [1]")),
            "its own metric, unit",
        ),
        (
            matrix("published = [1, 2]"),
            "number per condition (1 in all)",
        ),
        (
            matrix("published = [1], deviation = [-1]"),
            "a number of 0 or more",
        ),
        (
            matrix("published = [nan], deviation = [1]"),
            "needs a published value",
        ),
        (
            format!("relative_to = 'b'\n{}", matrix("published = [1]")),
            "no such row",
        ),
    ] {
        let message = table(&wrong).unwrap_err().to_string();
        assert!(message.contains(why), "{wrong}: {message}");
    }
}

#[test]
fn a_claim_of_nobody_names_no_report() {
    let claim = |report: &str| {
        let text = format!(
            "{HEAD}report = \"R\"\n{COPY}{FACTOR}[[claim]]\nid = \"c\"\ntext = \"t\"\n{report}\
             of = {{ buffer = \"4KiB\" }}\nto = {{ buffer = \"64KiB\" }}\ndirection = \"less\"\n"
        );
        let experiment = parse(&text, "x.toml", "quick").unwrap_or_else(|e| panic!("{e}"));
        experiment.claims[0].report.clone()
    };
    assert_eq!(claim("").as_deref(), Some("R"));
    assert_eq!(claim("report = \"S\"\n").as_deref(), Some("S"));
    assert_eq!(claim("report = \"\"\n"), None);
}

#[test]
fn statements_and_combinations_have_a_limit() {
    let head = "format = 1\nname = 'x'\n[workload]\nkind = 'command'\ncommand = 'true'\n";
    let many = |one: &str, count: usize| format!("{head}{}", one.repeat(count));
    let twins = "[[twins]]\n";
    let constraints = format!("require = [{}]\n{head}", "'a == 1',".repeat(1_001));
    for text in [many(twins, 1_001), constraints] {
        let error = parse(&text, "x.toml", "quick").unwrap_err().to_string();
        assert!(error.contains("at most 1000"), "{error}");
    }
    let mut text = head.replace("true", "true {a} {b} {c}");
    for name in ["a", "b", "c"] {
        let range = "levels = { from = 1, to = 101, step = 1 }";
        text.push_str(&format!("[[factor]]\nname = '{name}'\n{range}\n"));
    }
    let error = parse(&text, "x.toml", "quick").unwrap_err().to_string();
    assert!(error.contains("1030301 combinations"), "{error}");
    let text = format!(
        "require = [{}]\n{}",
        "'a == 1',".repeat(900),
        text.replace("101", "24")
    );
    let error = parse(&text, "x.toml", "quick").unwrap_err().to_string();
    assert!(error.contains("13824 combinations"), "{error}");
}
