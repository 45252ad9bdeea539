//! The primes workload, from request to response. Placements that need the
//! guest's kernel or module are tested in guests.

use std::process::Command;

use toll_wire::{
    FailureKind, PRIMES_N_MAX, PrimesAllocation, PrimesClock, PrimesPlacement, PrimesRequest,
    Printing, RandomSource, Request, Sample, Workload,
};

use crate::common::{PROBE, answer_request, completed_or_skip, refused, sample_or_skip};

fn primes(placement: PrimesPlacement) -> PrimesRequest {
    PrimesRequest {
        placement,
        printing: match placement {
            PrimesPlacement::UserProcess => Printing::Inside,
            _ => Printing::None,
        },
        seed: 7,
        ..PrimesRequest::default()
    }
}

/// Returns the only sample of one iteration; `None` where this kernel does not
/// have the place.
fn sample(request: PrimesRequest) -> Option<Sample> {
    sample_or_skip(&Workload::Primes(request))
}

#[test]
fn a_seed_gives_one_count_wherever_it_is_counted() {
    for n in [2, 10, 2049, 100_000] {
        let counts: Vec<f64> = [
            PrimesPlacement::User,
            PrimesPlacement::UserProcess,
            PrimesPlacement::Bpf,
            PrimesPlacement::Syscall,
        ]
        .into_iter()
        .filter_map(|placement| {
            let sample = sample(PrimesRequest {
                n,
                ..primes(placement)
            })?;
            assert_eq!(sample.metrics["numbers"], f64::from(n));
            Some(sample.metrics["primes"])
        })
        .collect();
        assert!(counts.len() >= 2, "user space has two places");
        assert!(counts.iter().all(|c| *c == counts[0]), "{n}: {counts:?}");
    }
}

#[test]
fn every_source_of_numbers_and_clock_serves_user_space() {
    for placement in [PrimesPlacement::User, PrimesPlacement::UserProcess] {
        for random in [RandomSource::Seeded, RandomSource::Bulk, RandomSource::Each] {
            for clock in [
                PrimesClock::Monotonic,
                PrimesClock::Gettimeofday,
                PrimesClock::Inside,
            ] {
                let sample = sample(PrimesRequest {
                    random,
                    clock,
                    printing: Printing::Inside,
                    ..primes(placement)
                })
                .expect("user space supports all of them");
                let metric = |name: &str| sample.metrics.get(name).copied();
                let parts = ["allocate", "draw", "count"]
                    .map(|part| metric(&format!("{part}_duration_ns")));
                let duration = metric("duration_ns").expect("all have it");
                let way = metric("way_duration_ns").expect("user space has its own readings");
                match (parts, clock) {
                    (_, PrimesClock::Gettimeofday) => assert_eq!(duration % 1000.0, 0.0),
                    ([Some(allocate), Some(draw), Some(count)], PrimesClock::Monotonic) => {
                        assert_eq!(duration, allocate + draw + count + way);
                    }
                    ([Some(allocate), Some(draw), Some(count)], PrimesClock::Inside) => {
                        assert_eq!(duration, allocate + draw + count);
                    }
                    // A process reports only the whole, by the published clock.
                    (_, PrimesClock::Monotonic) => assert!(way < duration),
                    (_, PrimesClock::Inside) => assert_eq!(duration % 1000.0, 0.0),
                }
                assert_eq!(parts[0].is_some(), placement == PrimesPlacement::User);
            }
        }
    }
}

#[test]
fn the_smallest_and_the_largest_number_of_numbers_count() {
    for placement in [PrimesPlacement::User, PrimesPlacement::Bpf] {
        for n in [2, 1 << 20] {
            let request = PrimesRequest {
                n,
                random: RandomSource::Bulk,
                ..primes(placement)
            };
            if let Some(sample) = sample(request) {
                assert!(sample.metrics["primes"] <= f64::from(n));
            }
        }
    }
    for n in [0, 1, PRIMES_N_MAX + 1, u32::MAX] {
        let request = PrimesRequest {
            n,
            ..primes(PrimesPlacement::User)
        };
        refused(&Workload::Primes(request), FailureKind::Instrument);
    }
}

#[test]
fn iterations_of_one_trial_count_the_same_numbers() {
    for placement in [PrimesPlacement::User, PrimesPlacement::Bpf] {
        let request = Request {
            iterations: 4,
            warmup_iterations: 1,
            ..Request::new(Workload::Primes(primes(placement)))
        };
        let outcome = answer_request(&request);
        let Some(data) = completed_or_skip(outcome, "several iterations") else {
            continue;
        };
        let first = data.samples[0].metrics["primes"];
        assert_eq!(data.samples.len(), 4);
        assert!(data.samples.iter().all(|s| s.metrics["primes"] == first));
    }
}

#[test]
fn what_a_place_cannot_do_is_refused_and_not_left_out() {
    let refused =
        |request: PrimesRequest| refused(&Workload::Primes(request), FailureKind::Unsupported);
    for placement in [PrimesPlacement::User, PrimesPlacement::UserProcess] {
        refused(PrimesRequest {
            allocation: PrimesAllocation::Vmalloc,
            ..primes(placement)
        });
    }
    refused(PrimesRequest {
        printing: Printing::None,
        ..primes(PrimesPlacement::UserProcess)
    });
    refused(PrimesRequest {
        printing: Printing::Inside,
        ..primes(PrimesPlacement::Bpf)
    });
    let published = PrimesRequest {
        random: RandomSource::Bulk,
        ..primes(PrimesPlacement::SyscallPublished)
    };
    let message = refused(published);
    assert!(message.contains("and prints n"), "{message}");
    let message = refused(primes(PrimesPlacement::ModuleLoad));
    assert!(message.contains("in bulk"), "{message}");
}

#[test]
fn modules_are_for_guests_only() {
    for request in [
        primes(PrimesPlacement::Module),
        PrimesRequest {
            random: RandomSource::Bulk,
            printing: Printing::Inside,
            ..primes(PrimesPlacement::ModuleLoad)
        },
    ] {
        let message = refused(&Workload::Primes(request), FailureKind::Unsupported);
        assert!(message.contains("guest"), "{message}");
    }
}

#[test]
fn the_measured_process_prints_n_the_count_and_the_time_or_why_not() {
    let run = |arguments: &[&str]| {
        let mut command = Command::new(PROBE);
        command.arg("--count-primes").args(arguments);
        command.output().expect("the probe starts")
    };
    let output = run(&["100", "seeded", "1"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("digits");
    assert_eq!(text.lines().next(), Some("100"), "{text:?}");
    assert_eq!(text.lines().count(), 3, "{text:?}");
    for wrong in [&["1", "seeded", "1"][..], &["100", "dice", "1"], &["100"]] {
        let output = run(wrong);
        assert_eq!(output.status.code(), Some(1), "{wrong:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.starts_with("cannot count primes"), "{text}");
    }
}
