//! Why claims cannot be tested, so that they can be counted by cause.

use super::emulation;

/// The cause of a claim's not being testable: its reason without what is
/// particular to the claim.
pub fn cause(reason: &str) -> String {
    if reason.contains(emulation::NOTE) {
        return "no KVM: times of an emulated CPU are not judged".into();
    }
    if reason.starts_with("this run has no ") {
        return "not in this profile, or excluded by -L".into();
    }
    if reason.starts_with("cannot open perf counter ") {
        return "no hardware counters of this kind".into();
    }
    reason.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_particular_to_a_claim_is_no_part_of_its_cause() {
        let ratio = |text| format!("{}; the ratio was {text}", emulation::NOTE);
        assert_eq!(cause(&ratio("1.2")), cause(&ratio("3.4")));
        let level = |text| format!("this run has no size={text}");
        assert_eq!(cause(&level("4KiB")), cause(&level("8KiB")));
        assert_eq!(cause("bindfs is missing"), "bindfs is missing");
    }
}
