//! `bench-work`: does work of known length, and puts load on the machine.
//!
//! `bench-work N` does N equal pieces of work. `bench-work burst SEED` keeps every CPU busy at
//! random times, `bench-work grow SECONDS` keeps them increasingly busy, and `bench-work busy` is
//! a single process that never waits. A load runs until the process that started it ends.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::process::{Signal, set_parent_process_death_signal};
use toll_stats::Rng;

/// Number of steps in one piece of work, which takes some microseconds. Each step depends on the
/// previous one.
const STEPS: u32 = 1000;
/// Shortest and longest duration of a burst and of the pause after it, in milliseconds.
const BURST_MS: (u64, u64) = (20, 400);
/// Period in which a growing load is busy once and then idle once.
const PERIOD: Duration = Duration::from_millis(20);
/// Largest share of the time in which a growing load is busy.
const BUSY_MAX: f64 = 0.6;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().ok();
    match words[..] {
        [pieces] if number(pieces).is_some() => work(number(pieces).unwrap_or(0)),
        ["burst", seed] if number(seed).is_some() => {
            let seed = number(seed).unwrap_or(0);
            on_every_cpu(&|cpu| burst(&mut Rng::new(seed).fork(cpu)));
        }
        ["grow", seconds] if number(seconds).is_some() => {
            let over = Duration::from_secs(number(seconds).unwrap_or(1).max(1));
            on_every_cpu(&|_| grow(over));
        }
        ["busy"] => {
            end_with_parent();
            loop {
                work(1);
            }
        }
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

fn work(pieces: u64) {
    let mut state = 1_u64;
    for _ in 0..pieces {
        for _ in 0..STEPS {
            state = black_box(
                state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1),
            );
        }
    }
    black_box(state);
}

fn end_with_parent() {
    // If this fails, the process that started the load still ends it.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}

fn on_every_cpu(load: &(impl Fn(u64) + Sync)) {
    end_with_parent();
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for cpu in 0..cpus as u64 {
            scope.spawn(move || load(cpu));
        }
    });
}

fn busy(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        work(1);
    }
}

fn burst(rng: &mut Rng) {
    let (least, most) = BURST_MS;
    let mut draw = || Duration::from_millis(least + rng.below((most - least) as usize) as u64);
    loop {
        busy(draw());
        std::thread::sleep(draw());
    }
}

fn grow(over: Duration) {
    let begin = Instant::now();
    loop {
        let progress = begin.elapsed().as_secs_f64() / over.as_secs_f64();
        let active = PERIOD.mul_f64(BUSY_MAX * progress.min(1.0));
        busy(active);
        std::thread::sleep(PERIOD - active);
    }
}
