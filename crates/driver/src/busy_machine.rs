//! The warning about a busy machine before a measurement.

use toll_core::format;
use toll_host::environment::other_work;
use toll_host::environment::other_work::OtherWork;
use toll_host::trial::COMPARISON;
use toll_system::output;

/// Maximum number of programs that the warning names.
const PROGRAMS: usize = 3;
/// Warns if other programs disturb measurements here, and shows the remaining precision.
pub fn warn() {
    if let Some(other) = other_work::look() {
        output::long_note(&words(&other));
    }
}

fn words(other: &OtherWork) -> String {
    let cpus = other.cpus_online;
    let mut text = format!(
        "this machine is busy: other programs use {:.1} of {cpus} CPUs",
        other.cpus_busy
    );
    let named: Vec<String> = other
        .programs
        .iter()
        .take(PROGRAMS)
        .map(|(name, cpus)| format!("{name} {cpus:.1}"))
        .collect();
    if !named.is_empty() {
        text += &format!(" ({})", named.join(", "));
    }
    if other.cpus_stolen >= 0.1 {
        text += &format!(
            ", and the hypervisor gives {:.1} to others",
            other.cpus_stolen
        );
    }
    let scatter = &other.scatter;
    let [wall, cpu] = scatter.least_visible(COMPARISON).map(format::percent);
    text + &format!(
        ". Work of {} ms takes {} here. Comparing two programs of that length for {} s shows \
         differences of at least about {wall} in time and {cpu} in CPU time.",
        scatter.piece.as_millis(),
        format::duration_ns(scatter.mean.as_nanos() as f64),
        COMPARISON.as_secs(),
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use toll_host::environment::other_work::Scatter;

    #[test]
    fn it_is_said_who_is_busy_and_what_can_be_told() {
        let mut other = OtherWork {
            cpus_busy: 1.96,
            cpus_stolen: 0.0,
            cpus_online: 2,
            programs: ["yes", "cc1", "ld", "as"]
                .map(|name| (name.into(), 0.5))
                .into(),
            scatter: Scatter {
                piece: Duration::from_millis(5),
                mean: Duration::from_millis(10),
                wall_deviation: 0.5,
                cpu_deviation: 0.01,
            },
        };
        let plain = |other: &OtherWork| words(other).replace('\u{a0}', " ");
        assert_eq!(
            plain(&other),
            "this machine is busy: other programs use 2.0 of 2 CPUs (yes 0.5, cc1 0.5, ld 0.5). \
             Work of 5 ms takes 10.0 ms here. Comparing two programs of that length for 3 s shows \
             differences of at least about 22 % in time and 0.4 % in CPU time."
        );
        other.programs.clear();
        other.cpus_stolen = 0.4;
        let message = plain(&other);
        assert!(
            message.contains("of 2 CPUs, and the hypervisor gives 0.4 to others. Work"),
            "{message}"
        );
    }
}
