use crate::spec::{self, Experiment, LevelOverride, SpecError, apply_levels, parse_override};

use super::*;

const HEAD: &str = "format = 1\nname = \"t\"\n[workload]\nkind = \"memory\"\nbuffer = \"1MiB\"\n";

fn parse(rest: &str) -> Result<Experiment, SpecError> {
    spec::parse(&format!("{HEAD}{rest}"), "test", "quick")
}

#[track_caller]
fn refused(rest: &str, words: &str) {
    let error = parse(rest).unwrap_err().to_string();
    assert!(error.contains(words), "{error}");
}

const KNOB: &str = "
[guest.knobs.policy]
path = '/proc/sys/vm/policy'
values = { kept = 1, dropped = 0 }
[[factor]]
name = 'policy'
levels = ['kept', 'dropped']
";

#[test]
fn without_a_guest_nothing_of_one_is_known() {
    let experiment = parse("").unwrap();
    assert_eq!(experiment.guest, None);
    refused("[[factor]]\nname = 'vcpus'\nlevels = [1, 2]\n", "vcpus");
    refused("[profile.quick]\nguest = { vcpus = 1 }\n", "no [guest]");
}

#[test]
fn a_guest_has_defaults_that_the_file_and_its_profile_replace() {
    let experiment =
        parse("[guest]\nmemory = '128MiB'\n[profile.quick]\nguest = { vcpus = 1 }\n").unwrap();
    let text = |name: &str| experiment.fixed(name).unwrap().text.clone();
    assert_eq!(text("memory"), "128MiB");
    assert_eq!(text("vcpus"), "1");
    assert_eq!(text("kernel"), "toll");
    assert_eq!(text(PLACE), IN_GUEST);
}

#[test]
fn parameters_and_knobs_may_be_factors() {
    let experiment = parse(&format!(
        "{KNOB}\n[[factor]]\nname = 'kernel'\nlevels = ['toll', 'stock']\n"
    ))
    .unwrap();
    assert!(experiment.fixed("kernel").is_none());
    let knob = &experiment.guest.as_ref().unwrap().knobs["policy"];
    assert_eq!(knob.written_for("dropped"), Some("0"));
    assert_eq!(knob.written_for("other"), None);
}

#[test]
fn what_a_guest_cannot_have_is_refused() {
    refused("[guest]\nmemory = '1MiB'\n", "64 MiB");
    refused("[guest]\nvcpus = 99\n", "1 to 8");
    refused(
        "[guest]\nkernel = 'The Hurd'\n",
        "cannot set kernel to \"The Hurd\": a kernel's name is",
    );
    refused("[guest]\naccelerator = 'hvf'\n", "icount");
    refused("[guest]\nenvironment = 'moon'\n", "host, guest");
    refused(
        "[guest]\ncommand_line = \"a\\u0007\"\n",
        "cannot set command_line to \"a\\u{7}\": use at most 1024 printable",
    );
    refused("[guest]\ncpus = 2\n", "cannot set cpus");
    refused(&KNOB.replace("'dropped']", "'gone']"), "dropped, kept");
    refused(&KNOB.replace("/proc/sys/vm", "/proc/sys/../../etc"), "path");
    refused(&KNOB.replace("/proc/sys/vm", "/etc"), "path");
    refused(&KNOB.replace("policy", "cache"), "parameter");
    refused(&KNOB.replace("values", "value = 1\nvalues"), "factor");
}

#[test]
fn levels_from_the_command_line_replace_what_is_fixed() {
    let mut experiment =
        parse("[guest]\n[guest.knobs.cluster]\npath = '/proc/sys/vm/page-cluster'\nvalue = 0\n")
            .unwrap();
    let chosen: Vec<LevelOverride> = ["memory=256MiB,512MiB", "cluster=0,3"]
        .iter()
        .map(|text| parse_override(text).unwrap())
        .collect();
    apply_levels(&mut experiment, &chosen).unwrap();
    assert!(experiment.fixed("memory").is_none());
    let knob = &experiment.guest.as_ref().unwrap().knobs["cluster"];
    assert_eq!(knob.value, None);
    assert_eq!(knob.written_for("3"), Some("3"));
    let wrong = [parse_override("memory=1k,512MiB").unwrap()];
    assert!(apply_levels(&mut experiment, &wrong).is_err());
}

#[test]
fn any_experiment_can_be_moved_into_a_guest() {
    let mut experiment = parse("").unwrap();
    experiment.move_into_guest();
    assert_eq!(experiment.fixed(PLACE).unwrap().text, IN_GUEST);
    experiment.check().unwrap();
}

#[test]
fn an_experiment_stored_before_there_were_guests_is_read() {
    let experiment = parse("").unwrap();
    let text = serde_json::to_string(&experiment).unwrap();
    assert!(!text.contains("guest"), "{text}");
    let read: Experiment = serde_json::from_str(&text).unwrap();
    assert_eq!(read, experiment);
}

/// An experiment whose guests have partners.
fn paired(kind: &str, rest: &str) -> Result<Experiment, SpecError> {
    let head = HEAD
        .replace("memory", kind)
        .replace("buffer = \"1MiB\"\n", "");
    spec::parse(&format!("{head}{rest}"), "test", "quick")
}

#[test]
fn a_partner_is_for_work_of_two_ends_that_real_time_passes_in() {
    let pair = "[guest]\npartner = 'guest'\n";
    let experiment = paired("transfer", pair).unwrap();
    assert_eq!(experiment.fixed(PARTNER).unwrap().text, PARTNER_GUEST);
    let error = paired("chase", pair).unwrap_err().to_string();
    assert!(error.contains("only transfer has two ends"), "{error}");
    let error = paired("transfer", "[guest]\npartner = 'host'\n").unwrap_err();
    assert!(error.to_string().contains("none, guest"), "{error}");
    let icount = format!("{pair}accelerator = 'icount'\n");
    let error = paired("transfer", &icount).unwrap_err().to_string();
    assert!(error.contains("counts its own instructions"), "{error}");
}

#[test]
fn constraints_may_keep_partners_from_clocks_of_instructions() {
    let factors = "[guest]
[[factor]]
name = 'partner'
levels = ['none', 'guest']
[[factor]]
name = 'accelerator'
levels = ['tcg', 'icount']
";
    let plan = |constraint: &str| {
        let head = format!("require = [\"{constraint}\"]\n");
        let text = format!("{head}{HEAD}{factors}")
            .replace("memory", "transfer")
            .replace("buffer = \"1MiB\"\n", "");
        crate::plan::Plan::new(&spec::parse(&text, "test", "quick").unwrap(), 1)
    };
    let kept_apart = plan("partner == 'none' or accelerator == 'tcg'").unwrap();
    let originals = kept_apart.treatments.iter().filter(|t| t.twin_of.is_none());
    assert_eq!(originals.count(), 3);
    let error = plan("partner == 'none' or accelerator == 'icount'").unwrap_err();
    assert!(error.contains("counts its own instructions"), "{error}");
}
