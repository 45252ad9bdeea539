//! Power cuts while a program works through `toll mount` in a guest. After the next start,
//! everything that was acknowledged as durable is there, and every other file has its old or its
//! new content (docs/MOUNT.md, "Durability").
//!
//! A cut kills QEMU at a random moment, and loses the guest's memory and the volatile cache of its
//! disk. `TOLL_POWER_CUTS` sets the number of cuts for each mode, `TOLL_POWER_CUTS_OUT` sets a
//! directory for the result (`make power-cuts`), and `TOLL_TEST_SEED` repeats the operations and
//! moments of a seed. On a busy machine the moments hit other operations.
mod chain;
mod disk;
mod model;
mod result;
mod workload;

use std::path::Path;
use std::sync::Mutex;

use toll_host::environment::guest::guest_obstacle;
use toll_host::environment::kernel::{self, Kernel};
use toll_testing::{any_kernel, build_kernel, full_or, skip};

use self::chain::{Chain, Outcome, Subject};

/// Number of cuts for each subject.
const CUTS: usize = 30;
const CUTS_IN_SHORT: usize = 2;

/// After this many cuts, the losses of a mount that never synchronises must have been found. The
/// first cut usually finds one. On a busy machine a guest acknowledges little before a cut: 13
/// acknowledgements in ten cuts were once all kept.
const CUTS_TO_FIND_A_LOSS: usize = 50;

const ALONE: Subject = Subject {
    name: "ext4 alone",
    mode: None,
    is_without_fsync: false,
};

const MOUNTS: [Subject; 3] = [
    mount("none", "mount, cache none", false),
    mount("whole", "mount, cache whole", false),
    mount("blocks", "mount, cache blocks", false),
];

const UNSOUND: [Subject; 3] = [
    mount("none", "mount without fsync, cache none", true),
    mount("whole", "mount without fsync, cache whole", true),
    mount("blocks", "mount without fsync, cache blocks", true),
];

const fn mount(mode: &'static str, name: &'static str, is_without_fsync: bool) -> Subject {
    Subject {
        name,
        mode: Some(mode),
        is_without_fsync,
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Returns a kernel to boot; `None`, with a skip line, if guests are not available.
fn kernel(name: &str) -> Option<Kernel> {
    let built = guest_obstacle().map_or_else(|| build_kernel(name), Err);
    let found = built.and_then(|()| kernel::find(name));
    found.map_err(|reason| skip(&reason)).ok()
}

/// Runs a chain of cuts for each subject, one chain per CPU at a time.
fn outcomes(
    kernel: &Kernel,
    subjects: &[Subject],
    cuts: impl Fn(&Subject) -> usize + Sync,
) -> Vec<Outcome> {
    let seed = number("TOLL_TEST_SEED").unwrap_or_else(|| std::process::id().into());
    eprintln!("TOLL_TEST_SEED={seed}");
    let only = std::env::var("TOLL_POWER_CUTS_ONLY").unwrap_or_default();
    let is_wanted = |subject: &&Subject| subject.name.contains(&only);
    let mut left: Vec<&Subject> = subjects.iter().filter(is_wanted).rev().collect();
    left.reverse();
    let order: Vec<&str> = left.iter().map(|subject| subject.name).collect();
    left.reverse();
    let left = Mutex::new(left);
    let done = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let next = left.lock().expect("no holder panics").pop();
                    let Some(subject) = next else { return };
                    let enough = |outcome: &Outcome| subject.is_without_fsync && outcome.losses > 0;
                    let outcome = Chain::new(kernel, *subject, seed).run(cuts(subject), enough);
                    eprintln!("{}", result::line(&outcome));
                    done.lock().expect("no holder panics").push(outcome);
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no holder panics");
    done.sort_by_key(|outcome| order.iter().position(|name| *name == outcome.subject));
    done
}

#[test]
fn what_was_acknowledged_is_there_and_nothing_is_torn() {
    let Some(kernel) = kernel(any_kernel()) else {
        return;
    };
    let cuts = number("TOLL_POWER_CUTS").map_or(full_or(CUTS_IN_SHORT, CUTS), |cuts| cuts as usize);
    let subjects = [&[ALONE][..], &MOUNTS].concat();
    let mut outcomes = outcomes(&kernel, &subjects, |_| cuts);
    let actual: Vec<String> = outcomes.iter().flat_map(result::losses).collect();
    if let Some(directory) = std::env::var_os("TOLL_POWER_CUTS_OUT") {
        outcomes.extend(self::outcomes(&kernel, &UNSOUND, |_| CUTS_TO_FIND_A_LOSS));
        result::write(Path::new(&directory), &kernel, &outcomes);
    }
    assert!(actual.is_empty(), "{}", actual.join("\n"));
}

#[test]
fn a_mount_that_does_not_synchronise_is_found() {
    let Some(kernel) = kernel("toll") else { return };
    for outcome in outcomes(&kernel, &UNSOUND, |_| CUTS_TO_FIND_A_LOSS) {
        assert!(outcome.losses > 0, "{}", result::line(&outcome));
    }
}
