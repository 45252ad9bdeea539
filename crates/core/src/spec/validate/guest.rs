//! Checks of an experiment's guests.

use std::path::{Component, Path};

use toll_wire::from_levels;

use crate::spec::guest::{
    GuestParameters, IN_GUEST, NO_COMMON_CLOCK, NOT_TWO_ENDS, ON_HOST, PARTNER, PARTNER_GUEST,
    PLACE,
};
use crate::spec::problem::{Problem, problem};
use crate::spec::{Experiment, GuestSettings, WorkloadKind};

/// Checks an experiment's guest settings.
pub(super) fn check(experiment: &Experiment) -> Result<(), Problem> {
    let Some(guest) = &experiment.guest else {
        return Ok(());
    };
    check_knobs(experiment, guest)?;
    // Commands around the trials would run on this machine, where nothing of the guest
    // exists.
    let workload = &experiment.workload;
    for (name, command) in [("setup", &workload.setup), ("cleanup", &workload.cleanup)] {
        if command.is_some() {
            return Err(problem(
                name,
                format!(
                    "cannot use {name} with guests, which are booted afresh in every block: use \
                     prepare, which runs in them before every timed run"
                ),
            ));
        }
    }
    for (name, level) in guest.parameters.iter().chain(experiment.varied()) {
        check_value(guest, name, &level.text).map_err(|message| problem(&level.text, message))?;
    }
    check_partner(experiment)
}

fn check_value(guest: &GuestSettings, name: &str, text: &str) -> Result<(), String> {
    let one_of = |words: &[&str]| {
        if words.contains(&text) {
            Ok(())
        } else {
            Err(format!(
                "cannot set {name} to {text:?}: it must be one of {}",
                words.join(", ")
            ))
        }
    };
    match guest.knobs.get(name) {
        Some(knob) if knob.written_for(text).is_some() => Ok(()),
        Some(knob) => one_of(&knob.values.keys().map(String::as_str).collect::<Vec<_>>()),
        None if name == PLACE => one_of(&[ON_HOST, IN_GUEST]),
        None if guest.has(name) => from_levels::<GuestParameters>([(name, text)]).map(drop),
        None => Ok(()),
    }
}

/// Checks that guests with partners have a workload with two ends, and a clock that advances while
/// a guest waits. Constraints may keep levels of two factors apart; the plan checks the
/// combinations that remain.
fn check_partner(experiment: &Experiment) -> Result<(), Problem> {
    let has = |name: &str, wanted: &str| {
        let fixed = experiment.fixed(name).map(|level| (name, level));
        let varied = experiment
            .varied()
            .map(|(name, level)| (name.as_str(), level));
        let mut all = varied.chain(fixed);
        all.any(|(other, level)| other == name && level.text == wanted)
    };
    if !has(PARTNER, PARTNER_GUEST) {
        return Ok(());
    }
    if experiment.workload.kind != WorkloadKind::Transfer {
        return Err(problem(PARTNER, NOT_TWO_ENDS.into()));
    }
    if has("accelerator", "icount") && experiment.constraints.is_empty() {
        Err(problem("icount", NO_COMMON_CLOCK.into()))
    } else {
        Ok(())
    }
}

/// Checks that a knob's path stays below /proc/sys or /sys, since files elsewhere are not settings.
/// Also checks that no parameter has the knob's name.
fn check_knobs(experiment: &Experiment, guest: &GuestSettings) -> Result<(), Problem> {
    for (name, knob) in &guest.knobs {
        let path = Path::new(&knob.path);
        let mut parts = path.components();
        let is_plain = parts.all(|part| !matches!(part, Component::ParentDir));
        let is_setting = path.starts_with("/proc/sys") || path.starts_with("/sys");
        if !is_plain || !is_setting {
            return Err(problem(
                &knob.path,
                format!(
                    "cannot use knob {name}: {:?} is not a path below /proc/sys or /sys",
                    knob.path
                ),
            ));
        }
        let kind = experiment.workload.kind;
        // A command may have any parameter.
        let is_of_workload = kind != WorkloadKind::Command && kind.has(name);
        if is_of_workload || GuestSettings::default().has(name) {
            return Err(problem(
                name,
                format!("cannot use knob {name}: it is the name of a parameter"),
            ));
        }
    }
    Ok(())
}
