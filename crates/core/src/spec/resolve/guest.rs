//! The guests of an experiment file.

use toml::Spanned;

use super::Resolver;
use crate::spec::guest::{GuestSettings, Knob};
use crate::spec::raw::{RawExperiment, RawGuest, RawKnob, RawProfile};
use crate::spec::{Factor, SpecError};

impl Resolver<'_> {
    /// Settings of the file and its profile, over the defaults.
    pub(super) fn guest(
        &self,
        raw: &RawExperiment,
        overlay: &RawProfile,
        chosen: Option<&Spanned<RawProfile>>,
        factors: &[Factor],
    ) -> Result<Option<GuestSettings>, SpecError> {
        let Some(guest) = &raw.guest else {
            return match overlay.guest.keys().next() {
                None => Ok(None),
                Some(name) => Err(self.source.error(
                    chosen.map(|profile| profile.span().start),
                    format!("cannot set {name} of the guest: the experiment has no [guest]"),
                )),
            };
        };
        self.at(guest, |guest| settings(guest, overlay, factors))
            .map(Some)
    }
}

fn settings(
    raw: &RawGuest,
    overlay: &RawProfile,
    factors: &[Factor],
) -> Result<GuestSettings, String> {
    let mut settings = GuestSettings {
        knobs: raw
            .knobs
            .iter()
            .map(|(name, knob)| (name.clone(), knob_of(knob)))
            .collect(),
        ..GuestSettings::default()
    };
    for (name, value) in raw.parameters.iter().chain(&overlay.guest) {
        if !settings.has(name) || settings.knobs.contains_key(name) {
            return Err(format!(
                "cannot set {name} of the guest: it has accelerator, command_line, environment, \
                 kernel, memory, swap and vcpus, and its knobs stand under [guest.knobs]"
            ));
        }
        settings.parameters.insert(name.clone(), value.level());
    }
    for factor in factors {
        let is_given = raw.parameters.contains_key(&factor.name);
        // A default gives way to a factor; what the file says does not.
        if !is_given {
            settings.parameters.remove(&factor.name);
        }
    }
    for (name, knob) in &settings.knobs {
        let is_factor = factors.iter().any(|factor| factor.name == *name);
        if is_factor == knob.value.is_some() {
            return Err(format!(
                "cannot use knob {name}: either there is a factor of its name, or it has a value"
            ));
        }
    }
    Ok(settings)
}

fn knob_of(raw: &RawKnob) -> Knob {
    let values = raw.values.iter();
    Knob {
        path: raw.path.clone(),
        values: values
            .map(|(level, value)| (level.clone(), value.to_string()))
            .collect(),
        value: raw.value.as_ref().map(ToString::to_string),
    }
}
