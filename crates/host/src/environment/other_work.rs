//! Measures how much of this machine's CPUs other programs use. Also measures how much the times of
//! equal work vary meanwhile.

use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use toll_system::process_stat::{ProcessStat, all_processes};

/// Time between the two snapshots: about ten of the kernel's ticks.
const LOOK: Duration = Duration::from_millis(100);
/// Number of busy CPUs from which other work is worth a message.
const BUSY_CPUS: f64 = 0.3;
/// How long equal work is repeated beside other programs, and how long one piece of it takes alone.
/// A piece is longer than the scheduler's time slice of about 3 ms.
const REPEATED: Duration = Duration::from_millis(500);
const PIECE: Duration = Duration::from_millis(5);

/// Work of other programs, observed for a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherWork {
    /// How many CPUs the other programs keep busy.
    pub cpus_busy: f64,
    /// How many CPUs the hypervisor gives to other guests.
    pub cpus_stolen: f64,
    pub cpus_online: usize,
    /// CPUs that each program keeps busy, by its name, the busiest first.
    pub programs: Vec<(String, f64)>,
    /// How much the times of equal work vary while the other programs run.
    pub scatter: Scatter,
}

/// Variation of the times of equal work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scatter {
    /// Time that a piece of work takes on a machine without other work.
    pub piece: Duration,
    /// Average wall time of a piece while other programs run.
    pub mean: Duration,
    /// Standard deviation of the logarithm of the wall time, and of the CPU time.
    pub wall_deviation: f64,
    pub cpu_deviation: f64,
}

/// Observes other work; `None` if there is too little to be worth a message.
pub fn look() -> Option<OtherWork> {
    let before = Snapshot::take()?;
    thread::sleep(LOOK);
    let seen = Snapshot::take()?.since(&before);
    let is_busy = seen.cpus_busy + seen.cpus_stolen >= BUSY_CPUS;
    is_busy.then(|| OtherWork {
        cpus_busy: seen.cpus_busy,
        cpus_stolen: seen.cpus_stolen,
        cpus_online: thread::available_parallelism().map_or(1, usize::from),
        programs: seen.programs,
        scatter: Scatter::measure(),
    })
}

/// CPU time of all CPUs and processes since boot.
struct Snapshot {
    at: Instant,
    busy_ticks: u64,
    stolen_ticks: u64,
    processes: BTreeMap<u32, ProcessStat>,
}

/// Numbers of CPUs that were busy between two snapshots.
struct Seen {
    cpus_busy: f64,
    cpus_stolen: f64,
    programs: Vec<(String, f64)>,
}

impl Snapshot {
    fn take() -> Option<Self> {
        let [busy_ticks, stolen_ticks] = busy_and_stolen(&read_to_string("/proc/stat").ok()?)?;
        let own = std::process::id();
        let others = all_processes().filter(|pid| *pid != own);
        Some(Self {
            at: Instant::now(),
            busy_ticks,
            stolen_ticks,
            processes: others
                .filter_map(|pid| Some((pid, ProcessStat::read(pid)?)))
                .collect(),
        })
    }

    fn since(&self, before: &Self) -> Seen {
        let ticks_per_s = rustix::param::clock_ticks_per_second() as f64;
        let ticks = ticks_per_s * (self.at - before.at).as_secs_f64();
        let cpus = |now: u64, then: u64| now.saturating_sub(then) as f64 / ticks;
        let mut by_name: BTreeMap<&str, f64> = BTreeMap::new();
        for (pid, stat) in &self.processes {
            let then = before.processes.get(pid);
            let is_same = |one: &&ProcessStat| one.start_ticks == stat.start_ticks;
            let then = then.filter(is_same).map_or(0, |one| one.cpu_ticks);
            *by_name.entry(&stat.name).or_default() += cpus(stat.cpu_ticks, then);
        }
        let mut programs: Vec<(String, f64)> = by_name
            .into_iter()
            .filter(|(_, cpus)| *cpus >= BUSY_CPUS / 3.0)
            .map(|(name, cpus)| (name.to_owned(), cpus))
            .collect();
        programs.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        Seen {
            cpus_busy: cpus(self.busy_ticks, before.busy_ticks),
            cpus_stolen: cpus(self.stolen_ticks, before.stolen_ticks),
            programs,
        }
    }
}

/// Returns the ticks in which CPUs were busy, and those in which the hypervisor took them
/// (proc_stat(5)).
fn busy_and_stolen(stat: &str) -> Option<[u64; 2]> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = line
        .split_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    // The fields are user, nice, system, idle, iowait, irq, softirq and steal.
    let [user, nice, system, _, _, hard, soft, stolen, ..] = fields[..] else {
        return None;
    };
    Some([user + nice + system + hard + soft, stolen])
}

impl Scatter {
    fn measure() -> Self {
        let rounds = rounds_of(PIECE);
        let begin = Instant::now();
        let (mut wall_s, mut cpu_s) = (Vec::new(), Vec::new());
        while begin.elapsed() < REPEATED || wall_s.len() < 2 {
            let (start, cpu_start_s) = (Instant::now(), cpu_time_s());
            spin(rounds);
            cpu_s.push(cpu_time_s() - cpu_start_s);
            wall_s.push(start.elapsed().as_secs_f64());
        }
        let mean_s = wall_s.iter().sum::<f64>() / wall_s.len() as f64;
        Self {
            piece: PIECE,
            mean: Duration::from_secs_f64(mean_s),
            wall_deviation: deviation_of_logarithm(&wall_s),
            cpu_deviation: deviation_of_logarithm(&cpu_s),
        }
    }

    /// Returns the smallest relative differences that a comparison of this length finds, by wall
    /// time and by CPU time. The power is 80 % at an error of 5 %. Each block has two pieces of
    /// work and a twin.
    pub fn least_visible(&self, within: Duration) -> [f64; 2] {
        // The 0.975 and 0.8 quantiles of the normal distribution.
        const DEVIATIONS: f64 = 1.96 + 0.84;
        let blocks = (within.as_secs_f64() / (3.0 * self.mean.as_secs_f64())).max(1.0);
        [self.wall_deviation, self.cpu_deviation].map(|deviation| {
            (DEVIATIONS * deviation * std::f64::consts::SQRT_2 / blocks.sqrt()).exp_m1()
        })
    }
}

fn deviation_of_logarithm(values: &[f64]) -> f64 {
    let logarithms: Vec<f64> = values.iter().map(|value| value.max(1e-9).ln()).collect();
    let count = logarithms.len() as f64;
    let mean = logarithms.iter().sum::<f64>() / count;
    let squares: f64 = logarithms.iter().map(|one| (one - mean).powi(2)).sum();
    (squares / (count - 1.0)).sqrt()
}

/// CPU time of this thread, in seconds.
fn cpu_time_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Returns how many rounds take this much CPU time. The fastest try counts, since nothing
/// interrupted it.
fn rounds_of(time: Duration) -> u64 {
    const TRIED: u64 = 100_000;
    let tries = (0..8).map(|_| {
        let begin_s = cpu_time_s();
        spin(TRIED);
        cpu_time_s() - begin_s
    });
    let least_s = tries.fold(f64::INFINITY, f64::min).max(1e-7);
    (TRIED as f64 * time.as_secs_f64() / least_s).ceil() as u64
}

fn spin(rounds: u64) {
    let mut state = 1_u64;
    for _ in 0..rounds {
        state = black_box(
            state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(at: Instant, busy_ticks: u64, processes: &[(u32, &str, u64, u64)]) -> Snapshot {
        let stat = |(pid, name, cpu_ticks, start_ticks): &(u32, &str, u64, u64)| {
            let stat = ProcessStat {
                name: (*name).to_owned(),
                state: "R".into(),
                parent: 1,
                cpu_ticks: *cpu_ticks,
                start_ticks: *start_ticks,
            };
            (*pid, stat)
        };
        Snapshot {
            at,
            busy_ticks,
            stolen_ticks: 0,
            processes: processes.iter().map(stat).collect(),
        }
    }

    #[test]
    fn programs_are_named_by_what_they_used_between_two_looks() {
        let begin = Instant::now();
        let before = [(7, "yes", 500, 1), (8, "idle", 900, 1), (9, "gone", 100, 1)];
        // Process 9 has ended, and another has its PID.
        let after = [(7, "yes", 600, 1), (8, "idle", 900, 1), (9, "yes", 50, 2)];
        let before = snapshot(begin, 1000, &before);
        let after = snapshot(begin + Duration::from_secs(1), 1150, &after);
        let seen = after.since(&before);
        let ticks_per_s = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(seen.programs, [("yes".to_owned(), 150.0 / ticks_per_s)]);
        assert_eq!(seen.cpus_busy, 150.0 / ticks_per_s);
    }

    #[test]
    fn waiting_is_no_work_and_stolen_time_is_none_of_ours() {
        let line = "cpu  10 1 20 1000 400 2 3 7 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(busy_and_stolen(line), Some([36, 7]));
        assert_eq!(busy_and_stolen("cpu 1 2 3\n"), None);
    }

    #[test]
    fn what_is_seen_shrinks_with_time_and_grows_with_scatter() {
        let scatter = Scatter {
            piece: PIECE,
            mean: Duration::from_millis(10),
            wall_deviation: 0.5,
            cpu_deviation: 0.01,
        };
        let [wall, cpu] = scatter.least_visible(Duration::from_secs(3));
        // 2.8 · 0.5 · √2 / √100
        assert!((wall - 0.198_f64.exp_m1()).abs() < 0.001, "{wall}");
        assert!((cpu - 0.00397).abs() < 1e-4, "{cpu}");
        let [longer, _] = scatter.least_visible(Duration::from_secs(300));
        assert!((longer - 0.0198_f64.exp_m1()).abs() < 0.001, "{longer}");
    }
}
