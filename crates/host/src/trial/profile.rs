//! Trials that record where the time of two treatments goes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use toll_stats::{Rng, median};
use toll_wire::{
    Activity, Failure, FailureKind, Outcome, Profile, Recording, Request, Role, Sample, TrialData,
    Workload, metrics_with,
};

use super::probe::ProbeOptions;
use super::{Event, Observer, Session, SessionError};
use crate::environment::symbols::Symbols;
use crate::run::{ProfileRecord, ProfiledTrial};
use crate::store::{TrialRecord, TrialState};

/// Maximum number of blocks, and the time after which only needed blocks run.
const BLOCKS_MAX: u32 = 20;
const BUDGET: Duration = Duration::from_secs(10);

/// Minimum total time of a profiled trial's regions, which gives about 200 samples. Short work is
/// repeated within the trial.
const REGION_NS: f64 = 50e6;
const ITERATIONS_MAX: f64 = 200.0;

/// How profiling ended.
#[derive(Debug)]
pub enum ProfileEnd {
    Made(Box<ProfileRecord>),
    Interrupted(i32),
    /// A trial failed; the text is its message.
    Failed(String),
}

/// The signal that interrupted a trial.
#[derive(Debug)]
pub(super) struct Interrupted(pub i32);

pub(super) type TrialResult = Result<Box<TrialData>, Failure>;

impl Session<'_> {
    /// Profiles two treatments in blocks of both, in random order.
    pub fn profile(
        &mut self,
        pair: [usize; 2],
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<ProfileEnd, SessionError> {
        // The set-up runs only for these two treatments.
        for treatment in &mut self.plan.treatments {
            if !pair.contains(&treatment.index) {
                treatment.skipped = Some("it is not profiled".into());
            }
        }
        let mut set_up = BTreeSet::new();
        let outcome = match self.set_up(&mut set_up) {
            Ok(None) => {
                self.interrupt.defer_pauses();
                let end = self.profile_blocks(pair, seed, observer);
                self.interrupt.let_pauses();
                Ok(end)
            }
            Ok(Some(signal)) => Ok(ProfileEnd::Interrupted(signal)),
            Err(error) => Err(error),
        };
        let cleaned = self.clean_up(&set_up);
        self.end_servers();
        let end = outcome?;
        Ok(match cleaned? {
            Some(signal) => ProfileEnd::Interrupted(signal),
            None => end,
        })
    }

    fn profile_blocks(
        &mut self,
        pair: [usize; 2],
        seed: u64,
        observer: &mut dyn Observer,
    ) -> ProfileEnd {
        let mut record = ProfileRecord {
            treatment: pair[0],
            reference: pair[1],
            started_at: jiff::Timestamp::now().to_string(),
            ..ProfileRecord::default()
        };
        let mut symbols = match Symbols::new() {
            Ok(symbols) => symbols,
            Err(why) => return ProfileEnd::Failed(why),
        };
        let mut rng = Rng::new(seed);
        let begin = Instant::now();
        let needed = u32::try_from(toll_core::explain::blocks_needed()).unwrap_or(u32::MAX);
        let mut block = 0;
        while block < needed || (block < BLOCKS_MAX && begin.elapsed() < BUDGET) {
            let mut order = pair;
            if rng.below(2) == 1 {
                order.reverse();
            }
            for (done, treatment) in order.into_iter().enumerate() {
                let label = format!("profile: {}", self.plan.treatments[treatment].label);
                let (label, of) = (label.as_str(), pair.len());
                observer.notice(&Event::TrialStarts { done, of, label });
                let trial =
                    self.unpaused(observer, |session| session.profiled_trial(block, treatment));
                let trial = match trial {
                    Ok(trial) => trial,
                    Err(Interrupted(signal)) => return ProfileEnd::Interrupted(signal),
                };
                let data = trial.map(|mut data| Some((data.profile.take()?, data.samples)));
                match data {
                    Ok(Some((profile, samples))) => {
                        keep(
                            &mut record,
                            &mut symbols,
                            block,
                            treatment,
                            &profile,
                            &samples,
                        );
                    }
                    Ok(None) => {
                        let kind = "work of this kind cannot be profiled; profile another method";
                        return ProfileEnd::Failed(kind.to_owned());
                    }
                    Err(failure) if failure.kind == FailureKind::Instrument => {
                        self.add_accounts(&mut record, &failure.message);
                        return self.with_calls(record, observer);
                    }
                    Err(failure) => return ProfileEnd::Failed(failure.message),
                }
            }
            block += 1;
            observer.notice(&Event::BlockEnds { blocks: block });
        }
        self.with_calls(record, observer)
    }

    fn with_calls(&mut self, mut record: ProfileRecord, observer: &mut dyn Observer) -> ProfileEnd {
        match self.count_calls(&mut record, observer) {
            Ok(()) => ProfileEnd::Made(Box::new(record)),
            Err(Interrupted(signal)) => ProfileEnd::Interrupted(signal),
        }
    }

    /// Runs a trial, and repeats it if a pause ended it.
    pub(super) fn unpaused(
        &mut self,
        observer: &mut dyn Observer,
        mut run: impl FnMut(&mut Self) -> Option<TrialResult>,
    ) -> Result<TrialResult, Interrupted> {
        loop {
            self.pause_if_asked(observer);
            if let Some(trial) = run(self) {
                return Ok(trial);
            }
            if let Some(signal) = self.interrupt.signal() {
                return Err(Interrupted(signal));
            }
        }
    }

    fn profiled_trial(&mut self, block: u32, treatment: usize) -> Option<TrialResult> {
        let mut request = match self.recording_request(block, treatment) {
            Ok(request) => request,
            Err(failure) => return Some(Err(failure)),
        };
        request.recording = Recording::Profile;
        request.iterations = request.iterations.max(self.profiled_iterations(treatment));
        self.run_recording(block, treatment, &request, &|_| Ok(()))
    }

    /// Builds the request of a treatment's trial that is not timed.
    pub(super) fn recording_request(
        &self,
        block: u32,
        treatment: usize,
    ) -> Result<Request, Failure> {
        let seed = self.plan.trial_seed(block, treatment);
        let mut request = self.request(treatment, seed).map_err(|message| Failure {
            kind: FailureKind::Unsupported,
            message,
        })?;
        request.counters.clear();
        if let Workload::Command(command) = &mut request.workload {
            command.capture_bytes_max = 0;
        }
        Ok(request)
    }

    /// Runs a trial that is not timed; `None` if an interrupt ended it.
    pub(super) fn run_recording(
        &mut self,
        block: u32,
        treatment: usize,
        request: &Request,
        admit: &dyn Fn(u32) -> Result<(), String>,
    ) -> Option<TrialResult> {
        let limit = self.memory_limit(treatment);
        let options = ProbeOptions {
            admit: &|probe| {
                limit.map_or(Ok(()), |limit| limit.admit(probe))?;
                admit(probe)
            },
            padding_bytes: self.plan.padding_bytes(block, treatment),
            next_padding_bytes: None,
            timeout: self.experiment.run.trial_timeout(false),
        };
        let outcome = self
            .probe
            .run(request, &options, &mut self.prestarted, self.interrupt)?;
        Some(match outcome {
            Outcome::Completed(data) => Ok(data),
            Outcome::Failed(failure) => Err(failure),
        })
    }

    /// Adds what the timed trials show by themselves if sampling is not permitted: the time in
    /// programs, in the kernel, and in waits.
    fn add_accounts(&self, record: &mut ProfileRecord, why: &str) {
        record.notes = vec![
            format!("{why}; otherwise functions have no names"),
            "times come from the timed trials (getrusage): timer ticks separate the kernel's time \
             from that of programs, and waits include waits for a CPU"
                .to_owned(),
        ];
        record.stacks = vec![Vec::new()];
        let pair = [record.treatment, record.reference];
        let trials = self.trials.iter();
        let trials = trials.filter(|one| pair.contains(&one.treatment));
        record.trials = trials.filter_map(accounted).collect();
    }

    /// Number of iterations of a treatment that together last long enough for its samples.
    fn profiled_iterations(&self, treatment: usize) -> u32 {
        let is_timed = |trial: &&TrialRecord| {
            trial.treatment == treatment && trial.state == TrialState::Completed
        };
        let trials = self.trials.iter().filter(is_timed);
        let durations = trials.filter_map(|trial| Some(median(trial.samples.get("duration_ns")?)));
        let durations: Vec<f64> = durations.collect();
        if durations.is_empty() {
            1
        } else {
            (REGION_NS / median(&durations))
                .ceil()
                .clamp(1.0, ITERATIONS_MAX) as u32
        }
    }
}

/// Returns the times of a timed trial; `None` if it failed.
fn accounted(trial: &TrialRecord) -> Option<ProfiledTrial> {
    let values = |metric: &str| trial.samples.get(metric).filter(|all| !all.is_empty());
    let sum_ns = |metric: &str| Some(values(metric)?.iter().sum::<f64>());
    let (wall_ns, programs_ns, kernel_ns) = (
        sum_ns("duration_ns")?,
        sum_ns("user_ns")?,
        sum_ns("system_ns")?,
    );
    // Parallel threads use more CPU time than wall time.
    let scale = (wall_ns / (programs_ns + kernel_ns).max(1.0)).min(1.0);
    let waits_ns = wall_ns - (programs_ns + kernel_ns) * scale;
    // The machine's pressure (PSI) does not help to distinguish waits. Next to busy programs, it
    // showed a sleep as a wait for a CPU.
    let times = [
        (Activity::OnCpuInPrograms, programs_ns * scale),
        (Activity::OnCpuInKernel, kernel_ns * scale),
        (Activity::Blocked, waits_ns),
    ];
    Some(ProfiledTrial {
        block: trial.block,
        treatment: trial.treatment,
        iterations: u32::try_from(values("duration_ns")?.len()).unwrap_or(u32::MAX),
        samples: 0,
        times: times
            .map(|(activity, ns)| (activity, 0, ns as u64))
            .to_vec(),
        counts: counts(|metric| values(metric).cloned()),
    })
}

/// Adds a trial to a record, with the names of the functions.
fn keep(
    record: &mut ProfileRecord,
    symbols: &mut Symbols,
    block: u32,
    treatment: usize,
    profile: &Profile,
    samples: &[Sample],
) {
    let times = symbols.add(profile, record);
    for note in &profile.notes {
        if !record.notes.contains(note) {
            record.notes.push(note.clone());
        }
    }
    record.trials.push(ProfiledTrial {
        block,
        treatment,
        iterations: u32::try_from(samples.len()).unwrap_or(u32::MAX),
        samples: profile.samples,
        times,
        counts: counts(|metric| {
            let values = samples.iter();
            values.map(|one| one.metrics.get(metric).copied()).collect()
        }),
    });
}

/// Counts per iteration: all metrics except times and metrics that are derived from times.
fn counts(values: impl Fn(&str) -> Option<Vec<f64>>) -> BTreeMap<String, f64> {
    let counted = metrics_with(Role::Counter).filter_map(|metric| {
        let values = values(metric.name).filter(|values| !values.is_empty())?;
        Some((
            metric.name.to_owned(),
            values.iter().sum::<f64>() / values.len() as f64,
        ))
    });
    counted.collect()
}
