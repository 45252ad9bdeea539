//! Runs fuzz cases one after another, each with a generator of its own.

use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, setrlimit};
use toll_stats::Rng;
use toll_testing::full_or;

/// Longest time for one case. It is far above what the slowest case needs, and only tells a hang
/// from a slow machine.
const CASE_S_MAX: u64 = 120;

/// Memory that all targets together may map, in bytes. An input that asks for more must be refused.
const MEMORY_BYTES_MAX: u64 = 8 << 30;

/// The default seed.
const SEED: u64 = 1;

fn from_environment<T: FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

/// Returns the file with the input of the current case, in case it ends the process.
fn input_file(target: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{target}"))
}

/// The current case, whose generator serves checks that need more than the input.
pub struct Case {
    pub number: u64,
    pub rng: Rng,
}

/// Tries a number of inputs, or as many as fit into `TOLL_FUZZ_SECONDS`. Short test runs try a
/// quarter of them.
///
/// # Panics
/// If a check panics, after printing how to repeat the case.
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
    setrlimit(Resource::As, limit).expect("a limit can be lowered");
    let cases = full_or(cases.div_ceil(4), cases);
    let seconds: Option<u64> = from_environment("TOLL_FUZZ_SECONDS");
    let seed = from_environment("TOLL_FUZZ_SEED").unwrap_or_else(|| match seconds {
        // In a PID namespace of its own, every test has the same process ID.
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
        std::fs::write(input_file(target), &input).expect("the build directory is writable");
        watched.begin();
        let began = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| check(&input, &mut this)));
        watched.end();
        slowest = slowest.max((began.elapsed(), case));
        if let Err(panic) = outcome {
            let kept = input_file(&format!("{target}-{seed}-{case}"));
            let _ = std::fs::write(&kept, &input);
            eprintln!(
                "{target}: failed on {}; repeat with TOLL_FUZZ_SEED={seed} TOLL_FUZZ_CASE={case}",
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
        "{target}: {case} cases, the slowest was {} with {:?}",
        slowest.1, slowest.0
    );
}

/// Aborts the process if a case takes too long.
struct Watch {
    /// Milliseconds from the start to the beginning of the case, plus one; 0 between cases.
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
                    eprintln!(
                        "{target}: a case hangs on {}",
                        input_file(&target).display()
                    );
                    eprintln!("the input begins with {:.1000?}", input);
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
