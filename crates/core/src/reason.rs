//! Why something was not measured, or not judged.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Note that is shown with every time of an emulated guest.
pub const EMULATED: &str =
    "emulated, not judged: times under TCG are those of QEMU's translator, not of a CPU";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Reason {
    /// The plan lacks a level or a treatment: another profile has it, or `-L` left it out.
    LeftOut { what: String },
    /// The times are those of QEMU's translator.
    Emulated,
    /// A counter could not be opened; the message is that of the probe.
    NoCounter { message: String },
    /// No trial of the run has the metric.
    NotRecorded { metric: String },
    /// No block has a trial of each of the sides.
    NoCommonBlock { sides: String },
    /// The claim says that machines differ by a fact, such as their kernel. A single run has only
    /// one machine.
    OneMachine { fact: String },
    /// Trials of the treatment failed one after another; the message is the last one's.
    GivenUp { failures: usize, message: String },
    /// Any other reason, in the words of the code that found it.
    Other { message: String },
}

impl Reason {
    /// Returns the message, of a trial or of a part of the machine, that the reason repeats.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::NoCounter { message }
            | Self::GivenUp { message, .. }
            | Self::Other { message } => Some(message),
            _ => None,
        }
    }

    /// The reason without the details of a single claim, so that claims can be counted by it.
    pub fn cause(&self) -> String {
        match self {
            Self::LeftOut { .. } => "not in this profile, or excluded by -L".into(),
            Self::Emulated => "no KVM: times of an emulated CPU are not judged".into(),
            Self::NoCounter { .. } => "no hardware counters of this kind".into(),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeftOut { what } => write!(f, "this run has no {what}"),
            Self::Emulated => f.write_str(EMULATED),
            Self::NotRecorded { metric } => write!(f, "no trial recorded {metric}"),
            Self::NoCommonBlock { sides } => write!(f, "no block has a trial of {sides}"),
            Self::OneMachine { fact } => write!(
                f,
                "one machine cannot show whether machines differ by {fact}; \
                 toll fleet report judges the claim"
            ),
            Self::GivenUp { failures, message } => {
                write!(f, "given up after {failures} failures: {message}")
            }
            Self::NoCounter { message } | Self::Other { message } => f.write_str(message),
        }
    }
}

impl From<String> for Reason {
    fn from(message: String) -> Self {
        Self::Other { message }
    }
}

impl From<&str> for Reason {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_details_of_a_claim_are_not_part_of_the_cause() {
        let level = |text: &str| Reason::LeftOut { what: text.into() };
        assert_eq!(level("size=4KiB").cause(), level("size=8KiB").cause());
        assert_eq!(
            Reason::from("bindfs is missing").cause(),
            "bindfs is missing"
        );
    }

    #[test]
    fn a_reason_is_kept_as_it_is() {
        for reason in [
            Reason::Emulated,
            Reason::LeftOut { what: "a=1".into() },
            Reason::GivenUp {
                failures: 3,
                message: "cannot open it".into(),
            },
            Reason::from("bindfs is missing"),
        ] {
            let text = serde_json::to_string(&reason).unwrap();
            assert_eq!(serde_json::from_str::<Reason>(&text).unwrap(), reason);
        }
    }
}
