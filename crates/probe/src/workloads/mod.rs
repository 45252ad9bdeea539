//! The workloads, each by the function that runs a trial of it.

pub(crate) mod boot;
mod chase;
pub mod command;
pub mod copy;
pub mod crossing;
mod files;
pub mod memory;
pub mod primes;
mod reclaim;
mod system_calls;
mod transfer;
pub mod write;

use toll_wire::{Failure, Request, TrialData, Workload};

use crate::interruption::Watch;

pub fn run(request: &Request) -> Result<TrialData, Failure> {
    let watch = Watch::begin();
    let data = match &request.workload {
        Workload::Copy(copy) => copy::run(request, copy),
        Workload::Write(write) => write::run(request, write),
        Workload::Command(command) => command::run(request, command),
        Workload::Memory(memory) => memory::run(request, memory),
        Workload::Chase(chase) => chase::run(request, chase),
        Workload::Reclaim(reclaim) => reclaim::run(request, reclaim),
        Workload::Primes(primes) => primes::run(request, primes),
        Workload::Crossing(crossing) => crossing::run(request, crossing),
        Workload::Transfer(transfer) => transfer::run(request, transfer),
        Workload::Files(files) => files::run(request, files),
        Workload::SystemCalls(program) => system_calls::run(request, program),
        Workload::Boot(boot) => boot::run(request, boot),
    };
    // Checked whatever the outcome: a call that the pause interrupted may have
    // failed.
    watch.end()?;
    if let Ok(data) = &data {
        debug_assert_eq!(
            unlisted(data, request),
            None,
            "experiments cannot name this metric"
        );
    }
    data
}

/// Returns a metric of the samples that experiments cannot name, if there is
/// one.
fn unlisted(data: &TrialData, request: &Request) -> Option<String> {
    let known = request.workload.kind().metrics();
    let mut names = data.samples.iter().flat_map(|sample| sample.metrics.keys());
    names.find(|name| !known.contains(name)).cloned()
}
