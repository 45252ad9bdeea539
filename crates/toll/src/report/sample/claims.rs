//! Claims of every outcome.

use super::estimate;
use crate::claim::model::*;

fn verdict(id: &str, text: &str, outcome: Outcome) -> Verdict {
    Verdict {
        id: id.into(),
        text: text.into(),
        report: Some("MeowLab".into()),
        corrects: None,
        contrast: "method=swept / method=page at sink=null".into(),
        quantity: "duration".into(),
        unit: String::new(),
        direction: ClaimDirection::Less,
        threshold: 1.0,
        threshold_high: None,
        published: None,
        measured: None,
        beyond: None,
        margin: 0.012,
        noise_margin: 0.012,
        blocks: 24,
        p_adjusted: Some(0.0004),
        outcome,
        reason: String::new(),
        accompaniment: None,
    }
}

/// id, text, published, measured, relative half-width, outcome, reason
type ClaimRow = (
    &'static str,
    &'static str,
    Option<f64>,
    Option<(f64, f64)>,
    Outcome,
    &'static str,
);

const CLAIMS: [ClaimRow; 22] = [
    (
        "cat.foreign-fs",
        "a file on a foreign (9p) file system costs about 150 times a native one",
        Some(150.0),
        None,
        Outcome::NotTestable,
        "treatment method=foreign-fs was skipped: no 9p mount was found",
    ),
    (
        "cat.byte",
        "one byte per call is at least 3,800 times slower than a page per call",
        Some(3_870.0),
        Some((340.9, 0.02)),
        Outcome::Refuted,
        "the interval lies below 3,800: here a call costs 78 ns, not 880",
    ),
    (
        "cat.align",
        "page alignment of the buffer changes little",
        Some(0.912),
        Some((0.9603, 0.008)),
        Outcome::Refuted,
        "the interval lies wholly outside the margin of 1.2 % around 1",
    ),
    (
        "cat.fs-block",
        "the page/st_blksize multiple changes nothing where the two are equal",
        Some(1.0),
        Some((1.0018, 0.004)),
        Outcome::Supported,
        "the interval lies inside the margin",
    ),
    (
        "cat.swept",
        "the swept buffer size halves the time against a page",
        Some(0.496),
        Some((0.5252, 0.013)),
        Outcome::Supported,
        "the interval lies wholly below the margin",
    ),
    (
        "cat.swept-equals-system",
        "the swept buffer size equals the system's cat",
        Some(0.97),
        Some((1.004, 0.031)),
        Outcome::Inconclusive,
        "the interval [0.973, 1.035] reaches past the margin of 1.2 % on both sides",
    ),
    (
        "cat.fadvise",
        "advising sequential access gains nothing",
        Some(1.03),
        Some((1.003, 0.006)),
        Outcome::Supported,
        "the interval lies inside the margin",
    ),
    (
        "cat.fadvise.corrected-cold-cache-read-ahead",
        "advising sequential access gains nothing with a cold cache and a real posix_fadvise",
        None,
        Some((0.871, 0.02)),
        Outcome::Refuted,
        "the interval lies wholly below the margin: read-ahead doubles",
    ),
    (
        "cat.mmap",
        "mmap is faster than read for a file in the page cache",
        None,
        Some((0.767, 0.012)),
        Outcome::Supported,
        "the interval lies wholly below the margin",
    ),
    (
        "device.small-4",
        "for 4 B mmap gains nothing",
        Some(1.05),
        Some((1.31, 0.04)),
        Outcome::Refuted,
        "mmap costs 31 % more: the interval lies above the margin",
    ),
    (
        "device.small-577",
        "for 577 B mmap gains nothing",
        Some(1.06),
        Some((1.22, 0.05)),
        Outcome::Refuted,
        "the interval lies above the margin",
    ),
    (
        "device.large-9695",
        "for 9,695 B mmap to mmap is faster",
        Some(0.83),
        Some((1.02, 0.06)),
        Outcome::Inconclusive,
        "the interval [0.959, 1.081] holds both 1 and the claimed side",
    ),
    (
        "device.large-1502860",
        "for 1.5 MB mmap to mmap is faster",
        Some(0.75),
        Some((0.918, 0.02)),
        Outcome::Supported,
        "the interval lies wholly below the margin",
    ),
    (
        "device.master-mmap",
        "at 275 MB an mmap master saves 24 % (slave fcntl)",
        Some(0.76),
        Some((0.971, 0.015)),
        Outcome::Supported,
        "the interval lies wholly below the margin, but the saving is 3 %, not 24 %",
    ),
    (
        "device.both-mmap",
        "mmap on both sides saves 40 %",
        Some(0.602),
        Some((0.97, 0.02)),
        Outcome::Refuted,
        "the interval lies wholly above 0.602 with its margin",
    ),
    (
        "device.async-fcntl",
        "async helps an fcntl master",
        Some(0.84),
        Some((1.0003, 0.003)),
        Outcome::Refuted,
        "the interval lies inside the margin: FASYNC is read by nothing on this path",
    ),
    (
        "mem.l1-random",
        "random order has 2.9 times the L1D read miss rate",
        Some(2.9),
        None,
        Outcome::NotTestable,
        "this guest exposes no L1D counters; run on bare metal or enable vPMU",
    ),
    (
        "mem.tlb-random",
        "random order has 15.6 times the dTLB read misses",
        Some(15.6),
        Some((22.7, 0.12)),
        Outcome::Supported,
        "the interval lies wholly above the margin",
    ),
    (
        "mem.time-random",
        "random order takes 1.46 times the time",
        Some(1.46),
        Some((1.83, 0.09)),
        Outcome::Supported,
        "the interval lies wholly above the margin",
    ),
    (
        "primes.floor",
        "the user program has a floor ten times the others'",
        Some(10.2),
        Some((1.06, 0.05)),
        Outcome::Refuted,
        "with one clock and no printing the floor is gone",
    ),
    (
        "primes.converge",
        "system call and module converge as n grows",
        Some(1.05),
        Some((1.0009, 0.0021)),
        Outcome::Supported,
        "the interval lies inside the margin",
    ),
    (
        "write.sync-cost",
        "writing without O_SYNC is faster",
        Some(0.11),
        Some((0.043, 0.25)),
        Outcome::Supported,
        "the interval lies wholly below the margin",
    ),
];

pub fn verdicts() -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = CLAIMS
        .iter()
        .map(|(id, text, published, measured, outcome, reason)| Verdict {
            published: *published,
            measured: measured.map(|(value, relative)| estimate(value, relative)),
            reason: (*reason).into(),
            ..verdict(id, text, *outcome)
        })
        .collect();
    verdicts[7].corrects = Some("cat.fadvise".into());
    verdicts[7].report = None;
    verdicts[4].accompaniment = Some(accompaniment());
    verdicts[3].accompaniment = Some(Accompaniment {
        differing: Vec::new(),
        same: vec!["system_ns".into(), "calls".into()],
    });
    verdicts.push(Verdict {
        unit: "bytes".into(),
        quantity: "knee.zero".into(),
        published: Some(32_768.0),
        beyond: Some(DerivedValue {
            value: Some(65_536.0),
            low: Some(32_768.0),
            high: None,
            confidence: 0.95,
        }),
        direction: ClaimDirection::Within,
        threshold: 32_768.0,
        threshold_high: Some(524_288.0),
        reason: "the interval reaches beyond the largest buffer tried".into(),
        ..verdict(
            "cat.knee",
            "throughput rises to a first peak at 32 KiB and stays near it to 512 KiB",
            Outcome::Inconclusive,
        )
    });
    verdicts
}

/// What went with a claim: more than the page's summary line holds, one metric
/// without a ratio.
fn accompaniment() -> Accompaniment {
    let sides = |metric: &str, of: f64, to: f64| SideBySide {
        metric: metric.into(),
        of,
        to,
        ratio: (to > 0.0).then(|| estimate(of / to, 0.02)),
    };
    Accompaniment {
        differing: vec![
            sides("counter.instructions", 3.1e6, 9.4e6),
            sides("system_ns", 1.6e6, 3.1e6),
            sides("minor_faults", 12.0, 4.0),
            sides("major_faults", 64.0, 0.0),
            sides("calls", 32.0, 4096.0),
        ],
        same: vec!["counter.dtlb-read-misses".into(), "max_rss_bytes".into()],
    }
}
