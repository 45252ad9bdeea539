//! Checks of what an experiment says of its guests.

use std::path::{Component, Path};

use super::{Problem, is_parameter, problem};
use crate::spec::guest::{
    ACCELERATORS, GuestSettings, IN_GUEST, KERNELS, NO_COMMON_CLOCK, NOT_TWO_ENDS, ON_HOST,
    PARTNER, PARTNER_GUEST, PARTNER_NONE, PLACE,
};
use crate::spec::resolve::size_of;
use crate::spec::{Experiment, Level, WorkloadKind};

/// Least memory of a guest: below it a kernel with its first process does not
/// come up.
const MEMORY_BYTES_MIN: u64 = 64 << 20;
/// Most memory or swap of a guest.
const MEMORY_BYTES_MAX: u64 = 1 << 40;
/// Most CPUs of a guest: what the pinned kernel is configured for.
const VCPUS_MAX: f64 = 8.0;
/// Longest command line appended, in bytes: x86 takes 2048 in all.
const COMMAND_LINE_BYTES_MAX: usize = 1024;

pub(super) fn check(experiment: &Experiment) -> Result<(), Problem> {
    let Some(guest) = &experiment.guest else {
        return Ok(());
    };
    check_knobs(experiment, guest)?;
    check_commands(experiment)?;
    let fixed = guest.parameters.iter();
    let varied = experiment
        .factors
        .iter()
        .flat_map(|factor| factor.levels.iter().map(move |level| (&factor.name, level)));
    for (name, level) in fixed.chain(varied) {
        check_value(guest, name, level).map_err(|message| problem(&level.text, message))?;
    }
    check_partner(experiment)
}

/// A partner needs work of two ends, and a clock that goes on while a guest
/// waits. Constraints may keep levels of two factors apart; what they leave is
/// for the plan to check.
fn check_partner(experiment: &Experiment) -> Result<(), Problem> {
    let has = |name: &str, wanted: &str| {
        let varied = experiment.factor(name).map(|factor| &factor.levels);
        let fixed = experiment.fixed(name);
        let mut levels = varied.into_iter().flatten().chain(fixed);
        levels.any(|level| level.text == wanted)
    };
    if !has(PARTNER, PARTNER_GUEST) {
        return Ok(());
    }
    if experiment.workload.kind != WorkloadKind::Transfer {
        return Err(problem(PARTNER, NOT_TWO_ENDS.into()));
    }
    match has("accelerator", "icount") && experiment.constraints.is_empty() {
        true => Err(problem("icount", NO_COMMON_CLOCK.into())),
        false => Ok(()),
    }
}

fn check_value(guest: &GuestSettings, name: &str, level: &Level) -> Result<(), String> {
    let text = level.text.as_str();
    let one_of = |words: &[&str]| match words.contains(&text) {
        true => Ok(()),
        false => Err(format!(
            "cannot set {name} to {text:?}: it is one of {}",
            words.join(", ")
        )),
    };
    if let Some(knob) = guest.knobs.get(name) {
        let known: Vec<&str> = knob.values.keys().map(String::as_str).collect();
        return match knob.written_for(text) {
            Some(_) => Ok(()),
            None => one_of(&known),
        };
    }
    match name {
        PLACE => one_of(&[ON_HOST, IN_GUEST]),
        "kernel" => one_of(KERNELS),
        "accelerator" => one_of(ACCELERATORS),
        PARTNER => one_of(&[PARTNER_NONE, PARTNER_GUEST]),
        "memory" => size_within(name, level, MEMORY_BYTES_MIN, "64 MiB"),
        "swap" => size_within(name, level, 0, "0"),
        "vcpus" => match level.number {
            Some(count) if count.fract() == 0.0 && (1.0..=VCPUS_MAX).contains(&count) => Ok(()),
            _ => Err(format!(
                "cannot set vcpus to {text:?}: it is a whole number from 1 to {VCPUS_MAX}"
            )),
        },
        "command_line" => {
            let fits = text.len() <= COMMAND_LINE_BYTES_MAX
                && text.chars().all(|c| c.is_ascii_graphic() || c == ' ');
            match fits {
                true => Ok(()),
                false => Err(format!(
                    "cannot use command_line {text:?}: it is at most {COMMAND_LINE_BYTES_MAX} \
                     printable ASCII characters"
                )),
            }
        }
        _ => Ok(()),
    }
}

fn size_within(name: &str, level: &Level, least: u64, words: &str) -> Result<(), String> {
    let bytes = size_of(level)?;
    match (least..=MEMORY_BYTES_MAX).contains(&bytes) {
        true => Ok(()),
        false => Err(format!(
            "cannot set {name} to {}: it is {words} to 1 TiB",
            level.text
        )),
    }
}

/// Commands around the trials would run on this machine, and find nothing of
/// the guest's.
fn check_commands(experiment: &Experiment) -> Result<(), Problem> {
    let workload = &experiment.workload;
    let given = [
        ("setup", workload.setup.is_some()),
        ("cleanup", workload.cleanup.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((name, _)) => Err(problem(
            name,
            format!(
                "cannot use {name} with guests, which are booted afresh in every block: use \
                 prepare, which runs in them before every timed run"
            ),
        )),
    }
}

/// A knob's path stays below /proc/sys or /sys, where settings live; whatever
/// is written elsewhere is no setting.
fn check_knobs(experiment: &Experiment, guest: &GuestSettings) -> Result<(), Problem> {
    for (name, knob) in &guest.knobs {
        let path = Path::new(&knob.path);
        let is_plain = path
            .components()
            .all(|part| !matches!(part, Component::ParentDir));
        let is_setting = path.starts_with("/proc/sys") || path.starts_with("/sys");
        if !is_plain || !is_setting {
            return Err(problem(
                &knob.path,
                format!(
                    "cannot use knob {name}: {:?} is no path below /proc/sys or /sys",
                    knob.path
                ),
            ));
        }
        let kind = experiment.workload.kind;
        // A command has any parameter.
        let is_of_workload = kind != WorkloadKind::Command && is_parameter(kind, name);
        let is_taken = is_of_workload || GuestSettings::default().has(name);
        if is_taken {
            return Err(problem(
                name,
                format!("cannot use knob {name}: the name is a parameter's"),
            ));
        }
    }
    Ok(())
}
