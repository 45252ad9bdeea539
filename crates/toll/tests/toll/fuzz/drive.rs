//! Trying cases, one after the other, each by a generator of its own.

use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, setrlimit};
use toll_stats::Rng;

use crate::common::full_or;

/// Longest that one case may take, far above what the slowest needs: it only
/// tells a hang from a slow machine.
const CASE_S_MAX: u64 = 120;

/// Memory that all targets together may map, in bytes: an input that asks for
/// more must have been refused.
const MEMORY_BYTES_MAX: u64 = 8 << 30;

/// The seed of the tests.
const SEED: u64 = 1;

fn from_environment<T: FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

/// Where the input of the case under way stands, for one that ends the process.
fn input_file(target: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{target}"))
}

/// A case, for what a check draws besides its input.
pub struct Case {
    pub number: u64,
    pub rng: Rng,
}

/// Tries a number of inputs, or as many as there is time for. In short it is a quarter of them.
///
/// # Panics
/// If a check does, after telling how to try the case again.
pub fn fuzz(
    target: &str,
    cases: u64,
    make: impl Fn(&mut Rng) -> String,
    check: impl Fn(&str, &mut Case),
) {
    let limit = Rlimit {
        current: Some(MEMORY_BYTES_MAX),
        maximum: None,
    };
    setrlimit(Resource::As, limit).expect("a limit may be lowered");
    let cases = full_or(cases.div_ceil(4), cases);
    let seconds: Option<u64> = from_environment("TOLL_FUZZ_SECONDS");
    let seed = from_environment("TOLL_FUZZ_SEED").unwrap_or_else(|| match seconds {
        // In a namespace of their own all tests have the same number of a process.
        Some(_) => RandomState::new().hash_one(target),
        None => SEED,
    });
    let only: Option<u64> = from_environment("TOLL_FUZZ_CASE");
    eprintln!("{target}: seed {seed}");
    let watched = Watch::start(target);
    let begin = Instant::now();
    let mut case = only.unwrap_or(0);
    let mut slowest = (Duration::ZERO, 0);
    loop {
        let rng = Rng::new(seed).fork(case);
        let mut this = Case { number: case, rng };
        let input = make(&mut this.rng);
        std::fs::write(input_file(target), &input).expect("the build directory takes files");
        watched.begin();
        let began = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| check(&input, &mut this)));
        watched.end();
        slowest = slowest.max((began.elapsed(), case));
        if let Err(panic) = outcome {
            let kept = input_file(&format!("{target}-{seed}-{case}"));
            let _ = std::fs::write(&kept, &input);
            eprintln!(
                "{target}: failed on {}; again: TOLL_FUZZ_SEED={seed} TOLL_FUZZ_CASE={case}",
                kept.display()
            );
            resume_unwind(panic);
        }
        case += 1;
        let is_over = match seconds {
            Some(seconds) => begin.elapsed() >= Duration::from_secs(seconds),
            None => case >= cases,
        };
        if is_over || only.is_some() {
            break;
        }
    }
    eprintln!(
        "{target}: {case} cases, the slowest {} in {:?}",
        slowest.1, slowest.0
    );
}

/// Ends the process when a case takes too long.
struct Watch {
    /// Milliseconds from the start at which the case began, plus one; 0 between.
    began: Arc<AtomicU64>,
    start: Instant,
}

impl Watch {
    fn start(target: &str) -> Self {
        let began = Arc::new(AtomicU64::new(0));
        let start = Instant::now();
        let (seen, target) = (Arc::downgrade(&began), target.to_owned());
        std::thread::spawn(move || {
            while let Some(began) = seen.upgrade() {
                let began_ms = began.load(Ordering::Relaxed);
                drop(began);
                let now_ms = start.elapsed().as_millis() as u64;
                if began_ms > 0 && now_ms.saturating_sub(began_ms) > CASE_S_MAX * 1000 {
                    let input = std::fs::read(input_file(&target)).unwrap_or_default();
                    let input = String::from_utf8_lossy(&input);
                    eprintln!("{target}: no end on {}", input_file(&target).display());
                    eprintln!("it begins {:.1000?}", input);
                    std::process::abort();
                }
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        Self { began, start }
    }

    fn begin(&self) {
        let now_ms = self.start.elapsed().as_millis() as u64;
        self.began.store(now_ms + 1, Ordering::Relaxed);
    }

    fn end(&self) {
        self.began.store(0, Ordering::Relaxed);
    }
}
