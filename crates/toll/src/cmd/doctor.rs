//! `toll doctor`: examines the machine, and clears what killed runs left behind.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use serde::Serialize;
use toll_driver::measuring_lock;
use toll_driver::{Launch, Purpose, WorkDirectories, launch, nearest};
use toll_host::environment::guest;
use toll_host::environment::guest::GuestFailure;
use toll_host::environment::kernel;
use toll_host::environment::{Leftover, capabilities, inspect, restore};
use toll_host::store::Store;
use toll_host::trial::{Probe, SessionEnd, TimeLimit, chosen_lock};
use toll_system::interrupt::Interrupt;
use toll_system::{Failure, output, paths};

use super::empty_region::{self, EmptyRegion};
use super::store_health;
use crate::claim::Run;
use crate::format;
use crate::run::Machine;
use crate::spec::adhoc::{self, AdhocCommands};

#[derive(Debug, Args)]
pub(super) struct DoctorArguments {
    /// Only clear what killed runs left behind, and list it
    #[arg(long)]
    restore: bool,
    /// Leave out the noise measurement, which takes a few seconds
    #[arg(long, conflicts_with = "restore")]
    no_noise: bool,
    /// Boot a guest to check again whether KVM works; if it does not, this takes up to
    /// 10 s longer than booting a guest
    #[arg(long, conflicts_with = "restore")]
    retry_kvm: bool,
    /// Only copy the readable runs of a damaged store to a new one, FILE; the damaged
    /// store stays unchanged
    #[arg(long, value_name = "FILE", conflicts_with_all = ["restore", "no_noise", "retry_kvm", "work_dir"])]
    salvage: Option<PathBuf>,
    /// Directory for work files
    #[arg(long, value_name = "DIR", conflicts_with = "restore")]
    work_dir: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Examination {
    machine: Machine,
    capabilities: Vec<Finding>,
    /// Largest relative difference between two runs of one command; absent if it
    /// was not measured.
    noise_band: Option<f64>,
    /// What the probe's own readings add to a trial; absent if not measured.
    empty_region: Option<EmptyRegion>,
    restored: Vec<Finding>,
}

#[derive(Debug, Serialize)]
struct Finding {
    what: String,
    ok: bool,
    detail: String,
}

impl Finding {
    fn new(what: &str, state: Result<String, String>) -> Self {
        Self {
            what: what.to_owned(),
            ok: state.is_ok(),
            detail: state.unwrap_or_else(|reason| reason),
        }
    }

    fn from_leftover(left: Leftover) -> Self {
        match left {
            Leftover::Cleared(done) => Self::new("left by a killed run", Ok(done)),
            Leftover::Failed(why) => Self::new("left by a killed run", Err(why)),
            Leftover::LeftAlone(whose) => Self::new("foreign journal", Ok(whose)),
        }
    }
}

/// Directories that are refused, each with the remedy.
fn directories(work_dir: Option<&Path>) -> Vec<Finding> {
    let mut places = paths::all();
    places.push(("directory for work files", paths::work(work_dir)));
    let refused = places.into_iter().filter_map(|(what, place)| {
        let why = place.and_then(|place| place.open()).err()?;
        Some(Finding::new(what, Err(why)))
    });
    let mut findings: Vec<Finding> = refused.collect();
    if findings.is_empty() {
        let all = "all existing directories belong to this user alone";
        findings.push(Finding::new("directories", Ok(all.into())));
    }
    findings
}

/// Says which runs cannot measure at the same time.
fn measuring_lock_finding() -> Finding {
    let detail = match chosen_lock() {
        None => "one for all users and containers of this machine".to_owned(),
        Some(path) => format!(
            "{}, as TOLL_RUN_LOCK says; runs that use another lock can disturb those here",
            path.display()
        ),
    };
    Finding::new("measuring lock", Ok(detail))
}

/// Command that is timed for the noise measurement: short, and mostly kernel work,
/// like the trials of the experiments.
const NOISE_COMMAND: &str = "dd if=/dev/zero of=/dev/null bs=64k count=4096";
/// Blocks of the noise measurement.
const NOISE_BLOCKS: u32 = 30;

pub(super) fn run(arguments: &DoctorArguments, store: &Path) -> anyhow::Result<ExitCode> {
    if let Some(new) = &arguments.salvage {
        return store_health::salvage(store, new, arguments.json);
    }
    let restored: Vec<Finding> = restore().into_iter().map(Finding::from_leftover).collect();
    if arguments.restore {
        return tell_restored(arguments, &restored);
    }
    if arguments.retry_kvm
        && let Some(signal) = retry_kvm()?
    {
        return Ok(toll_system::exit_code_of(signal));
    }
    let work = paths::work(arguments.work_dir.as_deref()).map_err(anyhow::Error::msg)?;
    let work = work.unchecked_path();
    let machine = inspect(&nearest(&work));
    let mut findings: Vec<Finding> = capabilities()
        .into_iter()
        .map(|capability| Finding::new(&capability.name, capability.state))
        .collect();
    findings.push(Finding::new("store", store_health::state(store, &work)));
    findings.extend(directories(arguments.work_dir.as_deref()));
    findings.push(measuring_lock_finding());
    let probe = Probe::find();
    let found = probe.as_ref().map(|_| "found".to_owned());
    findings.push(Finding::new("probe", found.map_err(Clone::clone)));
    let measured = match (arguments.no_noise, probe) {
        (false, Ok(probe)) => match measure(arguments, &probe) {
            Ok(Ok(measured)) => Some(measured),
            Ok(Err(signal)) => return Ok(toll_system::exit_code_of(signal)),
            // The rest of the examination is shown, too, since it may say what to repair.
            Err(error) => {
                findings.push(Finding::new("noise", Err(format!("{error:#}"))));
                None
            }
        },
        _ => None,
    };
    let (noise_band, empty_region) = measured.unzip();
    let examination = Examination {
        machine,
        capabilities: findings,
        noise_band,
        empty_region,
        restored,
    };
    if arguments.json {
        output::json(&examination)?
    } else {
        output::listing(&lines(&examination))?
    }
    Ok(ExitCode::SUCCESS)
}

/// Boots a guest to try KVM. Returns the signal that interrupted the boot, if one did.
fn retry_kvm() -> anyhow::Result<Option<i32>> {
    let kernel = ["toll", "stock"]
        .into_iter()
        .find_map(|name| kernel::find(name).ok());
    let Some(kernel) = kernel else {
        bail!(Failure::Prerequisite(
            "cannot try KVM: no kernel is built; run toll kernel build".into(),
        ));
    };
    let probe = Probe::find().map_err(Failure::Prerequisite)?;
    let interrupt = Interrupt::listen().context("cannot listen for signals")?;
    output::note("booting a guest to try KVM …");
    let interrupted = || interrupt.signal().is_some();
    match guest::retry_kvm(kernel, probe.path().to_owned(), &interrupted) {
        Ok(()) => Ok(None),
        Err(GuestFailure::Interrupted) => Ok(interrupt.signal()),
        Err(GuestFailure::Missing(message)) => Err(Failure::Prerequisite(message).into()),
        Err(GuestFailure::Failed(message)) => Err(anyhow::Error::msg(message)),
    }
}

fn tell_restored(arguments: &DoctorArguments, restored: &[Finding]) -> anyhow::Result<ExitCode> {
    if arguments.json {
        output::json(&restored)?;
    } else if restored.is_empty() {
        output::line("nothing was left behind")?;
    }
    for finding in restored.iter().filter(|_| !arguments.json) {
        output::line(&finding.detail)?;
    }
    Ok(if restored.iter().all(|finding| finding.ok) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Measures noise and the cost of an empty region. The inner error is the signal that interrupted
/// the measurement.
fn measure(
    arguments: &DoctorArguments,
    probe: &Probe,
) -> anyhow::Result<Result<(f64, EmptyRegion), i32>> {
    let band = match noise(arguments)? {
        Ok(band) => band,
        Err(signal) => return Ok(Err(signal)),
    };
    let region = empty_region::measure(probe)?;
    Ok(region.map(|region| (band, region)))
}

/// Runs one command against its twin, with a store in memory. The inner error is the signal that
/// interrupted the run.
fn noise(arguments: &DoctorArguments) -> anyhow::Result<Result<f64, i32>> {
    output::note("measuring how noisy this machine is …");
    let request = AdhocCommands {
        commands: vec![NOISE_COMMAND.into()],
        ..AdhocCommands::default()
    };
    let mut experiment = adhoc::experiment(&request, "quick")?;
    experiment.run.min_blocks = NOISE_BLOCKS;
    experiment.run.max_blocks = NOISE_BLOCKS;
    let _lock = measuring_lock::take()?;
    let mut store = Store::in_memory()?;
    let outcome = launch(
        &mut store,
        Launch {
            experiment,
            seed: toll_driver::random_seed()?,
            directories: WorkDirectories::at(arguments.work_dir.clone()),
            command_line: "toll doctor".into(),
            purpose: Purpose::Aside,
            time_limit: TimeLimit::Fixed,
        },
    )?;
    if let SessionEnd::Interrupted(signal) = outcome.end? {
        return Ok(Err(signal));
    }
    let run = Run::from(store.load(outcome.run_id)?);
    let twin = run.analysis.twins.first();
    let missing = || anyhow!("cannot measure noise: no trial completed");
    twin.map(|twin| Ok(twin.ratio.reach())).ok_or_else(missing)
}

fn lines(examination: &Examination) -> Vec<String> {
    let mut lines = Vec::new();
    let machine = &examination.machine;
    let mut line = |name: &str, value: String| lines.push(format!("{name:<34} {value}"));
    line(
        "CPU",
        format!("{} × {}", machine.cpus_online, machine.cpu_model),
    );
    line("memory", format::bytes(machine.memory_bytes as f64));
    line("kernel", machine.kernel_release.clone());
    line("virtualisation", machine.virtualization.clone());
    line(
        "work directory",
        format!(
            "{} on {}",
            machine.work_file_system.kind, machine.work_file_system.source
        ),
    );
    line(
        "clock",
        format!(
            "{}, {} per read",
            machine.clock_source.as_deref().unwrap_or("unknown"),
            format::duration_ns(machine.clock_read_ns)
        ),
    );
    for finding in examination.capabilities.iter().chain(&examination.restored) {
        let mark = if finding.ok { "" } else { "no: " };
        line(&finding.what, format!("{mark}{}", finding.detail));
    }
    if let Some(band) = examination.noise_band {
        let meaning = match band {
            band if band < 0.01 => "quiet: differences of 1 % can be detected",
            band if band < 0.05 => "usual: small differences need many blocks",
            _ => "noisy: smaller differences cannot be detected; close other programs",
        };
        line(
            "noise",
            format!(
                "±{} between two runs of one command; {meaning}",
                format::percent(band)
            ),
        );
    }
    if let Some(region) = &examination.empty_region {
        line("empty timed region", region.text());
    }
    lines
}
