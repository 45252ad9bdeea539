//! Converts the durations of a guest whose clock counts instructions.

use std::collections::BTreeMap;

use toll_wire::guest::PATH_LENGTH;
use toll_wire::{Disturbance, Outcome, Sample};

/// Converts durations to instructions and drops every other time and rate.
///
/// With `-icount shift=0` the guest's clock advances by one nanosecond per
/// instruction (QEMU, docs/devel/tcg-icount.rst), so a duration is the number
/// of instructions that its CPU executed. Times that the kernel accounts in
/// ticks of that clock are too coarse to be counts, and rates over it have no
/// meaning.
pub fn in_instructions(outcome: Outcome) -> Outcome {
    let Outcome::Completed(mut data) = outcome else {
        return outcome;
    };
    for sample in &mut data.samples {
        convert(sample);
    }
    data.disturbance = Disturbance {
        steal_ns: None,
        psi_cpu_some_ns: None,
        psi_io_some_ns: None,
        psi_memory_some_ns: None,
        frequency_khz: None,
        ..data.disturbance
    };
    Outcome::Completed(data)
}

fn convert(sample: &mut Sample) {
    let metrics = std::mem::take(&mut sample.metrics);
    sample.metrics = metrics
        .into_iter()
        .filter_map(|(name, value)| Some((name_in_instructions(&name)?, value)))
        .collect::<BTreeMap<String, f64>>();
}

/// Returns a metric's name in instructions; `None` for a metric that has no meaning on a clock of
/// instructions.
fn name_in_instructions(name: &str) -> Option<String> {
    if let Some(part) = name.strip_suffix("duration_ns") {
        return Some(format!("{part}{PATH_LENGTH}"));
    }
    let is_time_or_rate = name.ends_with("_ns") || name.ends_with("_per_s");
    (!is_time_or_rate).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use toll_wire::TrialData;

    use super::*;

    #[test]
    fn durations_become_path_lengths_and_other_times_go() {
        let metrics = [
            ("duration_ns", 227.0),
            ("init_duration_ns", 3.0),
            ("user_ns", 1.0),
            ("duration_per_byte_ns", 1.0),
            ("throughput_bytes_per_s", 1.0),
            ("minor_faults", 7.0),
        ];
        let sample = Sample {
            metrics: metrics.map(|(name, value)| (name.into(), value)).into(),
            ..Sample::default()
        };
        let data = TrialData {
            samples: vec![sample],
            disturbance: Disturbance {
                steal_ns: Some(1),
                migrations: Some(2),
                ..Disturbance::default()
            },
            ..TrialData::default()
        };
        let Outcome::Completed(data) = in_instructions(Outcome::Completed(Box::new(data))) else {
            panic!("it was completed");
        };
        let expected = [
            ("init_path_length_instructions", 3.0),
            ("minor_faults", 7.0),
            ("path_length_instructions", 227.0),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(data.samples[0].metrics, expected.into());
        assert_eq!(data.disturbance.steal_ns, None);
        assert_eq!(data.disturbance.migrations, Some(2));
    }
}
