//! Charges each moment of the timed regions to code or to a wait, from a recording.
//!
//! A moment is charged to the main thread while that thread is on a CPU; otherwise, in equal parts,
//! to the other threads that are on a CPU; otherwise to a wait. Usually this is the main thread's
//! own wait. While processes that the main thread waits for are alive, it is the wait that ends
//! next.

use std::collections::{BTreeSet, HashMap};

use toll_wire::{Activity, CodeAddress, Profile, ProfiledStack};

use super::mappings::Mappings;
use super::record::{Event, Recording, What};
use super::sampling::Clocking;

/// A timed region, in times of the events' clock.
#[derive(Debug, Clone, Copy)]
pub struct Region {
    pub start_ns: u64,
    pub end_ns: u64,
}

/// What a region times.
#[derive(Debug, Clone, Copy)]
pub enum Timed {
    /// Work of a thread (process and thread), which is on a CPU when a region begins.
    Thread((u32, u32)),
    /// A command (its first process), from before the thread `starter` starts
    /// it.
    Command { process: u32, starter: u32 },
}

/// A recorded stack: its process and its number.
type RawStack = (u32, u32);

#[derive(Debug, Clone, Copy)]
struct Off {
    preempted: bool,
    at: Option<RawStack>,
}

/// Times by activity and stack, over any number of recordings.
#[derive(Debug, Default)]
pub struct Tally {
    times: HashMap<(Activity, Vec<CodeAddress>), f64>,
    mappings: Mappings,
    region_ns: u64,
    samples: u64,
    pub lost: u64,
}

/// The state of one recording's threads at the moment that has been reached.
struct Threads {
    main: u32,
    main_process: u32,
    on_cpu: BTreeSet<u32>,
    off_cpu: HashMap<u32, Off>,
    /// The stack in which a thread is about to leave its CPU.
    leaves_at: HashMap<u32, RawStack>,
    /// Processes other than the main one, with the number of their live
    /// threads.
    others: HashMap<u32, usize>,
    /// The thread that starts the command, and whether it is on a CPU.
    starter: Option<(u32, bool)>,
    /// Whether the main thread has begun to run what is timed.
    is_begun: bool,
}

/// Times of one recording, in which stacks are still numbers.
#[derive(Default)]
struct Raw {
    /// Weights of samples.
    sampled: HashMap<RawStack, f64>,
    waits: HashMap<(Activity, Option<RawStack>), f64>,
    on_cpu_ns: f64,
    /// A wait that is not attributed to a thread yet.
    pending_ns: f64,
}

impl Tally {
    pub fn new(mappings: Mappings) -> Self {
        Self {
            mappings,
            ..Self::default()
        }
    }

    /// Adds regions of a recording.
    pub fn add(
        &mut self,
        recording: &Recording,
        regions: &[Region],
        timed: Timed,
        clocking: Clocking,
    ) {
        let mut threads = Threads::new(timed);
        let mut resolver = Resolver::default();
        let mut raw = Raw::default();
        let mut events = recording.events.iter().peekable();
        for region in regions {
            if let Timed::Thread((_, thread)) = timed {
                threads.switch_in(thread);
            }
            let mut now_ns = region.start_ns;
            while let Some(event) = events.next_if(|event| event.time_ns < region.end_ns) {
                if event.time_ns > now_ns {
                    raw.charge((event.time_ns - now_ns) as f64, &threads);
                    now_ns = event.time_ns;
                }
                self.samples += u64::from(matches!(event.what, What::Sample { .. }));
                resolver.see(event, recording, &mut self.mappings);
                raw.see(event, &mut threads, event.time_ns >= region.start_ns);
            }
            raw.charge((region.end_ns.saturating_sub(now_ns)) as f64, &threads);
            raw.settle(Activity::Blocked, threads.wait_of(threads.main));
            self.region_ns += region.end_ns - region.start_ns;
        }
        self.lost += recording.lost;
        self.take(&raw, &resolver, clocking);
    }

    fn take(&mut self, raw: &Raw, resolver: &Resolver, clocking: Clocking) {
        let weights: f64 = raw.sampled.values().sum();
        let frames = |stack: &RawStack| resolver.frames.get(stack).cloned().unwrap_or_default();
        let mut add = |activity, frames, time_ns: f64| {
            if time_ns > 0.0 {
                *self.times.entry((activity, frames)).or_default() += time_ns;
            }
        };
        // Without samples of the kernel, the rest of the time is the kernel's.
        let (scale, rest) = match clocking {
            Clocking::UserTimer => (
                (raw.on_cpu_ns / weights).min(1.0),
                (raw.on_cpu_ns - weights).max(0.0),
            ),
            _ if weights > 0.0 => (raw.on_cpu_ns / weights, 0.0),
            _ => (0.0, raw.on_cpu_ns),
        };
        for (stack, weight) in &raw.sampled {
            add(Activity::OnCpu, frames(stack), weight * scale);
        }
        let unsampled = match clocking {
            Clocking::UserTimer => Activity::OnCpuInKernel,
            _ => Activity::OnCpu,
        };
        add(unsampled, Vec::new(), rest);
        for ((activity, stack), time_ns) in &raw.waits {
            let frames = stack.as_ref().map(frames).unwrap_or_default();
            add(*activity, frames, *time_ns);
        }
    }

    pub fn into_profile(self, notes: Vec<String>) -> Profile {
        let stack = |((activity, frames), time_ns): (_, f64)| ProfiledStack {
            activity,
            frames,
            time_ns,
        };
        let mut stacks: Vec<ProfiledStack> = self.times.into_iter().map(stack).collect();
        stacks.sort_by(|a, b| b.time_ns.total_cmp(&a.time_ns));
        Profile {
            region_ns: self.region_ns,
            samples: self.samples,
            files: self.mappings.into_files(),
            stacks,
            notes,
        }
    }
}

/// Frames of stacks. They are resolved while the process has their code mapped.
#[derive(Default)]
struct Resolver {
    frames: HashMap<RawStack, Vec<CodeAddress>>,
}

impl Resolver {
    fn see(&mut self, event: &Event, recording: &Recording, mappings: &mut Mappings) {
        let process = event.process;
        match &event.what {
            What::Sample { stack, .. } | What::LeavesAt { stack } => {
                let addresses = &recording.stacks[*stack as usize];
                let resolve = || mappings.resolve(process, addresses);
                self.frames.entry((process, *stack)).or_insert_with(resolve);
            }
            What::Exec => mappings.clear(process),
            What::Begins { parent_process } if *parent_process != process => {
                mappings.copy(*parent_process, process);
            }
            What::Maps(mapping) => mappings.add(process, mapping.clone()),
            _ => {}
        }
    }
}

impl Threads {
    fn new(timed: Timed) -> Self {
        let (main_process, main, starter) = match timed {
            Timed::Thread((process, thread)) => (process, thread, None),
            Timed::Command { process, starter } => (process, process, Some((starter, true))),
        };
        Self {
            main,
            main_process,
            on_cpu: BTreeSet::new(),
            off_cpu: HashMap::new(),
            leaves_at: HashMap::new(),
            others: HashMap::new(),
            starter,
            is_begun: starter.is_none(),
        }
    }

    /// Whether the timed work runs: from its `execve` until its processes have ended.
    fn has_work(&self) -> bool {
        let lives = self.on_cpu.contains(&self.main) || self.off_cpu.contains_key(&self.main);
        self.is_begun && (lives || !self.others.is_empty())
    }

    fn switch_in(&mut self, thread: u32) {
        self.on_cpu.insert(thread);
        self.off_cpu.remove(&thread);
    }

    fn wait_of(&self, thread: u32) -> Option<RawStack> {
        self.off_cpu.get(&thread)?.at
    }
}

impl Raw {
    /// Charges a span of time to its activity and stack.
    fn charge(&mut self, span_ns: f64, threads: &Threads) {
        let main = threads.off_cpu.get(&threads.main);
        if !threads.has_work() {
            // The starter, or the process before its `execve`, works or waits. Otherwise both are
            // ready to run and have no CPU.
            let is_on_cpu = !threads.on_cpu.is_empty() || threads.starter.is_some_and(|one| one.1);
            let activity = if is_on_cpu || main.is_some_and(|off| !off.preempted) {
                Activity::StartAndEnd
            } else {
                Activity::WaitsForCpu
            };
            self.wait(activity, None, span_ns);
            return;
        }
        if !threads.on_cpu.is_empty() {
            self.on_cpu_ns += span_ns;
            return;
        }
        let has_others = !threads.others.is_empty();
        match main {
            Some(off) if off.preempted => self.wait(Activity::WaitsForCpu, None, span_ns),
            Some(off) if !has_others => self.wait(Activity::Blocked, off.at, span_ns),
            _ => self.pending_ns += span_ns,
        }
    }

    fn wait(&mut self, activity: Activity, at: Option<RawStack>, span_ns: f64) {
        *self.waits.entry((activity, at)).or_default() += span_ns;
    }

    fn settle(&mut self, activity: Activity, at: Option<RawStack>) {
        let pending_ns = std::mem::take(&mut self.pending_ns);
        if pending_ns > 0.0 {
            self.wait(activity, at, pending_ns);
        }
    }

    fn see(&mut self, event: &Event, threads: &mut Threads, is_inside: bool) {
        let (process, thread) = (event.process, event.thread);
        if let Some((starter, is_on_cpu)) = &mut threads.starter
            && *starter == thread
        {
            match event.what {
                What::SwitchedIn | What::Sample { .. } => *is_on_cpu = true,
                What::SwitchedOut { .. } => *is_on_cpu = false,
                _ => {}
            }
            return;
        }
        match &event.what {
            What::Sample { stack, period } => {
                self.on_cpu_again(thread, threads);
                let is_main = thread == threads.main;
                if is_inside
                    && threads.has_work()
                    && (is_main || !threads.on_cpu.contains(&threads.main))
                {
                    let share = if is_main {
                        1.0
                    } else {
                        1.0 / threads.on_cpu.len() as f64
                    };
                    let weight = *period as f64 * share;
                    *self.sampled.entry((process, *stack)).or_default() += weight;
                }
            }
            What::LeavesAt { stack } => {
                threads.leaves_at.insert(thread, (process, *stack));
            }
            What::SwitchedOut { preempted } => {
                threads.on_cpu.remove(&thread);
                let off = Off {
                    preempted: *preempted,
                    at: threads.leaves_at.remove(&thread),
                };
                threads.off_cpu.insert(thread, off);
            }
            What::Exec => {
                threads.is_begun |= thread == threads.main;
                self.on_cpu_again(thread, threads);
            }
            What::SwitchedIn => self.on_cpu_again(thread, threads),
            What::Begins { .. } if process != threads.main_process => {
                *threads.others.entry(process).or_default() += 1;
            }
            What::Ends => {
                threads.on_cpu.remove(&thread);
                threads.off_cpu.remove(&thread);
                if let Some(living) = threads.others.get_mut(&process) {
                    *living -= 1;
                    if *living == 0 {
                        threads.others.remove(&process);
                    }
                }
            }
            What::Begins { .. } | What::Maps(_) => {}
        }
    }

    /// Notes that a thread is on a CPU. A wait that was not attributed yet was this thread's.
    fn on_cpu_again(&mut self, thread: u32, threads: &mut Threads) {
        let off = threads.off_cpu.get(&thread);
        match off {
            Some(off) if !off.preempted => self.settle(Activity::Blocked, off.at),
            _ => self.settle(Activity::WaitsForCpu, None),
        }
        threads.switch_in(thread);
    }
}

#[cfg(test)]
mod tests;
