use crate::plan::Plan;
use crate::spec::{Experiment, SpecError, parse};

/// Three rows: one varies the buffer, one holds it fixed, one has none.
const ROWS: &str = "[workload]
kind = 'write'
durability = 'none'
[[rows]]
list = [
    { name = 'varied', vary = ['buffer'] },
    { name = 'fixed', buffer = '4KiB' },
]
[[rows]]
kind = 'crossing'
list = [{ name = 'none', operation = 'empty-syscall' }]
[[factor]]
name = 'buffer'
levels = ['4KiB', '64KiB']
[[factor]]
name = 'environment'
levels = ['host', 'guest']
[guest]
";

fn read(require: &str, rest: &str, profile: &str) -> Result<Experiment, SpecError> {
    let text = format!("format = 1\nname = 't'\nrequire = [\"{require}\"]\n{ROWS}{rest}");
    parse(&text, "x.toml", profile)
}

fn claim(of: &str, to: &str) -> String {
    format!(
        "[[claim]]
id = 'c.{{environment}}'
text = 'x'
each = ['environment']
of = {{ {of} }}
to = {{ {to} }}
direction = 'less'
"
    )
}

fn ids(experiment: &Experiment) -> Vec<&str> {
    experiment
        .claims
        .iter()
        .map(|claim| claim.id.as_str())
        .collect()
}

#[test]
fn a_claim_on_rows_without_the_factor_of_a_constraint_is_made() {
    let claim = claim("row = 'none'", "row = 'varied', buffer = '64KiB'");
    for require in ["buffer == 64KiB", "buffer != 4KiB", "not buffer < 64KiB"] {
        let experiment = read(require, &claim, "quick");
        // The row with a buffer of 4 KiB has no treatment.
        assert!(experiment.unwrap_err().message.contains("excludes it"));
        let require = format!("row == fixed or {require}");
        let experiment = read(&require, &claim, "quick").unwrap();
        assert_eq!(ids(&experiment), ["c.host", "c.guest"], "{require}");
    }
}

#[test]
fn a_constraint_is_judged_against_what_a_row_holds_fixed() {
    let of_fixed = claim("row = 'fixed'", "row = 'none'");
    for (require, made) in [
        ("environment == host or buffer == 64KiB", &["c.host"][..]),
        (
            "environment == host or buffer == 4KiB",
            &["c.host", "c.guest"],
        ),
    ] {
        let experiment = read(require, &of_fixed, "quick").unwrap();
        assert_eq!(ids(&experiment), made, "{require}");
    }
}

#[test]
fn a_claim_of_which_nothing_is_left_is_refused() {
    for (require, of, to, why) in [
        (
            "row != fixed or buffer == 4KiB or environment == none",
            "row = 'varied', buffer = '4KiB'",
            "row = 'fixed', buffer = '64KiB'",
            "row \"fixed\" has buffer=4KiB",
        ),
        (
            "buffer <= 64KiB",
            "row = 'varied', buffer = '4KiB'",
            "row = 'none', buffer = '4KiB'",
            "row \"none\" has no buffer",
        ),
        (
            "row != varied or buffer == 4KiB",
            "row = 'varied', buffer = '64KiB'",
            "row = 'fixed'",
            "the constraint \"row != varied or buffer == 4KiB\" excludes them",
        ),
        (
            "buffer <= 64KiB",
            "row = 'fixed'",
            "row = 'fixed'",
            "it compares each treatment with itself",
        ),
    ] {
        let each = claim(of, to);
        let error = read(require, &each, "quick").unwrap_err();
        assert!(
            error
                .message
                .starts_with("cannot use claim c.{environment}: no treatment"),
            "{error}"
        );
        assert!(error.message.contains(why), "{error}");
        assert_eq!(error.line, Some(22), "{error}");
        let plain = each.replace(
            "each = ['environment']\n",
            "at = { environment = 'host' }\n",
        );
        let is_of_itself = of == to;
        let refused = read(require, &plain, "quick").is_err();
        assert_eq!(refused, !is_of_itself, "{require}");
    }
}

#[test]
fn what_a_profile_leaves_out_is_left_to_another() {
    let claim = claim("row = 'none'", "row = 'fixed'");
    for quick in [
        "factors = { environment = ['host'] }",
        "require = ['environment == host']",
    ] {
        let text = format!("{claim}[profile.quick]\n{quick}\n");
        let experiment = read("buffer <= 64KiB", &text, "quick").unwrap();
        assert_eq!(ids(&experiment), ["c.host", "c.guest"], "{quick}");
        let left: Vec<_> = experiment.left_to.into_iter().collect();
        assert_eq!(
            left,
            [("c.guest".to_owned(), "standard".to_owned())],
            "{quick}"
        );
    }
}

#[test]
fn a_level_that_no_profile_runs_makes_no_claim() {
    let claim = claim("row = 'none'", "row = 'fixed'");
    let profile = |name| format!("[profile.{name}]\nfactors = {{ environment = ['host'] }}\n");
    let profiles: String = ["quick", "standard", "full"].map(profile).concat();
    let experiment = read("buffer <= 64KiB", &(claim + &profiles), "quick").unwrap();
    assert_eq!(ids(&experiment), ["c.host"]);
}

#[test]
fn a_row_stays_where_a_constraint_names_what_other_rows_hold_fixed() {
    let experiment = read("durability == none", "", "quick").unwrap();
    let plan = Plan::new(&experiment, 1).unwrap();
    let is_of_row = |row: &str| {
        plan.treatments
            .iter()
            .any(|one| one.levels["row"].text == row)
    };
    for row in ["varied", "fixed", "none"] {
        assert!(is_of_row(row), "{row}");
    }
}

#[test]
fn a_row_that_a_constraint_leaves_out_is_refused() {
    let error = read("durability == fsync or buffer == 64KiB", "", "quick").unwrap_err();
    let expected = "cannot use row \"fixed\": the constraint \"durability == fsync or buffer == \
                    64KiB\" excludes it; change the row or the constraint";
    assert_eq!(error.message, expected);
    assert_eq!(error.line, Some(10));
}
