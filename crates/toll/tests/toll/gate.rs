//! `--fail-on`: the exit status that scripts react to.

use std::path::PathBuf;

use toll_testing::{Bench, has};

/// Writes an experiment whose values are printed by its commands, so its ratios do not depend on
/// how busy the machine is.
pub fn experiment(bench: &Bench, values: &str, rest: &str) -> String {
    let text = format!(
        "format = 1\nname = 'told'\nmetric = 'told_ns'\n[workload]\nkind = 'command'\n\
         command = 'echo took {{n}} ns'\n[metrics.told_ns]\npattern = 'took ([0-9]+) ns'\n\
         unit = 'ns'\nbetter = 'lower'\n[[factor]]\nname = 'n'\nlevels = {values}\n{rest}"
    );
    let path: PathBuf = bench.write("told.toml", &text);
    path.to_str().unwrap().to_owned()
}

fn claim(id: &str, direction: &str) -> String {
    format!(
        "[[claim]]\nid = 'told.{id}'\ntext = '{id}'\nof = {{ n = '110' }}\nto = {{ n = '100' }}\n\
         direction = '{direction}'\n"
    )
}

const QUIET: [&str; 5] = ["run", "-q", "--no-html", "-r", "8"];

#[test]
fn a_refuted_claim_ends_with_status_3_after_everything_was_written() {
    let bench = Bench::new();
    let claims = claim("longer", "greater") + &claim("shorter", "less");
    let file = experiment(&bench, "['100', '110']", &claims);
    let options = [&file, "--fail-on", "refuted", "--export-json", "out.json"];
    let ran = bench.run(&[&QUIET[..], &options].concat());
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert!(bench.read("out.json").contains("told.shorter"));
    assert!(
        ran.stdout.contains("1 supported (1 ✔✔), 1 refuted (1 ✘✘)"),
        "{ran:#?}"
    );
    let errors = ran.stderr;
    has(&errors, &["refuted: told.shorter: shorter: measured 1.10"]);
    assert!(errors.contains("--fail-on: 1 claim is refuted"), "{errors}");
    assert!(!errors.contains("told.longer"), "{errors}");
    // A stored run is judged in the same way, and its output is complete.
    let shown = bench.run("show --json --fail-on refuted");
    assert_eq!(shown.code, Some(3), "{shown:#?}");
    assert_eq!(shown.json()["run"]["id"], 1);
    bench.ok("show");
}

#[test]
fn claims_that_are_not_decided_do_not_fail() {
    let bench = Bench::new();
    let file = experiment(&bench, "['100', '110']", &claim("longer", "greater"));
    // One block decides nothing.
    let options = [
        "run",
        "-q",
        "--no-html",
        "-r",
        "1",
        &file,
        "--fail-on",
        "refuted",
    ];
    let ran = bench.ok(&options);
    has(
        &ran.stderr,
        &["1 claim judged, none refuted family-wise (✘✘); 1 undecided"],
    );
}

#[test]
fn a_ratio_wholly_past_the_limit_on_the_worse_side_ends_with_status_3() {
    let bench = Bench::new();
    let file = experiment(&bench, "['100', '90', '104', '120']", "");
    let text = bench
        .read("told.toml")
        .replace("metric =", "reference = { n = '100' }\nmetric =");
    bench.write("told.toml", &text);
    let gated = |conditions: &[&str]| {
        let mut arguments = [&QUIET[..], &[file.as_str()]].concat();
        for condition in conditions {
            arguments.extend(["--fail-on", condition]);
        }
        bench.run(&arguments)
    };
    let met = gated(&["regression=5%"]);
    assert_eq!(met.code, Some(3), "{met:#?}");
    let found = "regression: 120 over 100: told_ns: 1.20× slower [1.20, 1.20]";
    assert!(met.stderr.contains(found), "{met:#?}");
    has(&met.stderr, &["1 ratio lies wholly past 5 %"]);
    let stricter = gated(&["regression=2%"]);
    has(&stricter.stderr, &["2 ratios lie wholly past 2 %"]);
    let passed = gated(&["regression=25%"]);
    assert_eq!(passed.code, Some(0), "{passed:#?}");
    assert!(passed.stderr.contains("3 ratios judged"), "{passed:#?}");
    let both = gated(&["regression=25%", "regression=5%"]);
    assert_eq!(both.code, Some(3), "{both:#?}");
}
