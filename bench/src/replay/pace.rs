//! Right verdicts a minute: of one document, and of another one beside it.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::simulate::{Case, Truth};
use super::table::{number, percent};
use super::{Document, Planned};

/// What a run of an experiment gives in the world of published, else recorded values.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Pace {
    /// Claims with a verdict that would be right; checks are none.
    pub claims: usize,
    /// Time of a run, the median; absent where the time of a block is not known.
    pub run_s: Option<f64>,
    /// Verdicts of a run, the mean.
    pub right: f64,
    pub wrong: f64,
    pub open: f64,
    pub right_per_minute: Option<f64>,
}

/// The case of each claim of a plan at its published, else recorded value, if a verdict
/// would be right there. Checks have none.
fn own_cases<'a>(document: &'a Document, plan: &Planned) -> Vec<&'a Case> {
    let claims = plan.claims.iter().filter(|claim| !claim.is_check);
    let own = claims.filter_map(|claim| {
        let mut cases = document.cases.iter().filter(|case| {
            (&case.experiment, &case.profile, &case.claim)
                == (&plan.experiment, &plan.profile, &claim.id)
        });
        cases.find(|case| matches!(case.truth, Truth::Published | Truth::Recorded))
    });
    own.filter(|case| case.power().is_some()).collect()
}

impl Pace {
    pub fn of(document: &Document, plan: &Planned) -> Self {
        let own = own_cases(document, plan);
        Self::of_cases(&own, plan, &own)
    }

    /// Of some of a plan's cases; `own`, all of them, tell how long a run took.
    fn of_cases(cases: &[&Case], plan: &Planned, own: &[&Case]) -> Self {
        let share = |count: usize, case: &Case| count as f64 / case.runs as f64;
        let right: f64 = cases.iter().filter_map(|case| case.power()).sum();
        let wrong: f64 = cases.iter().map(|case| share(case.wrong(), case)).sum();
        // Rules that let no treatment rest took whole blocks and recorded no time.
        let run_s = |case: &&Case| case.run_s.or(Some(case.blocks * plan.block_s?));
        let seconds: Vec<f64> = own.iter().filter_map(run_s).collect();
        let run_s = (!seconds.is_empty()).then(|| toll_stats::median(&seconds));
        Self {
            claims: cases.len(),
            run_s,
            right,
            wrong,
            open: cases.len() as f64 - right - wrong,
            right_per_minute: run_s.map(|run_s| 60.0 * right / run_s),
        }
    }

    /// Of several experiments, run one after the other.
    fn total(all: &[Self]) -> Self {
        let sum = |of: fn(&Self) -> f64| -> f64 { all.iter().map(of).sum() };
        let run_s: Option<f64> = all.iter().map(|one| one.run_s).sum();
        Self {
            claims: all.iter().map(|one| one.claims).sum(),
            run_s,
            right: sum(|one| one.right),
            wrong: sum(|one| one.wrong),
            open: sum(|one| one.open),
            right_per_minute: run_s.map(|run_s| 60.0 * sum(|one| one.right) / run_s),
        }
    }
}

/// The table of one document.
pub fn section(document: &Document) -> String {
    let mut text = String::from(
        "\n## Right verdicts a minute\n\nOf a run with published, else recorded values: its median time, and its verdicts on claims (not on \
         checks), the mean.\n\n| experiment | profile | claims | s | right | wrong | open | right a minute |\n\
         |---|---|--:|--:|--:|--:|--:|--:|\n",
    );
    for plan in &document.plans {
        let pace = plan.pace.unwrap_or_else(|| Pace::of(document, plan));
        writeln!(
            text,
            "| {} | {} | {} | {} | {:.1} | {:.1} | {:.1} | {} |",
            plan.experiment,
            plan.profile,
            pace.claims,
            optional(pace.run_s),
            pace.right,
            pace.wrong,
            pace.open,
            optional(pace.right_per_minute),
        )
        .expect("a String takes everything");
    }
    text
}

fn optional(value: Option<f64>) -> String {
    value.map_or("–".into(), |value| number(Some(value)))
}

/// An experiment in a profile by two sets of rules.
struct Pair<'a> {
    plan: &'a Planned,
    /// Old and new, all claims.
    all: [Pace; 2],
    /// Old and new, claims that both have with the same truth.
    common: [Pace; 2],
    /// Shares of open verdicts at published values, old, new, and new where the file does
    /// not say why.
    open: [Vec<f64>; 3],
    runs_min: usize,
}

impl<'a> Pair<'a> {
    fn new(documents: [&'a Document; 2], plan: &'a Planned) -> Option<Self> {
        let [old, new] = documents;
        let of = |document: &'a Document| {
            let mut plans = document.plans.iter();
            plans.find(|one| (&one.experiment, &one.profile) == (&plan.experiment, &plan.profile))
        };
        let plans = [of(old)?, of(new)?];
        let own = [own_cases(old, plans[0]), own_cases(new, plans[1])];
        let has_same = |case: &Case, others: &[&Case]| {
            others.iter().any(|other| {
                (&other.claim, other.truth, other.right) == (&case.claim, case.truth, case.right)
                    && is_near(other.value, case.value)
            })
        };
        let common = [0, 1].map(|side: usize| -> Vec<&Case> {
            let cases = own[side].iter().copied();
            cases
                .filter(|case| has_same(case, &own[1 - side]))
                .collect()
        });
        let pace = |cases: &[Vec<&Case>; 2]| {
            [0, 1].map(|side| Pace::of_cases(&cases[side], plans[side], &own[side]))
        };
        let open = |side: usize, counts: &dyn Fn(&Case) -> bool| -> Vec<f64> {
            let published = own[side]
                .iter()
                .filter(|case| case.truth == Truth::Published);
            let counted = published.filter(|case| counts(case));
            let shares = counted.map(|case| case.inconclusive as f64 / case.runs as f64);
            shares.collect()
        };
        let is_unexplained = |case: &Case| {
            let mut claims = plans[1].claims.iter();
            claims.any(|claim| claim.id == case.claim && claim.underpowered.is_none())
        };
        Some(Self {
            plan,
            all: pace(&own),
            common: pace(&common),
            open: [
                open(0, &|_| true),
                open(1, &|_| true),
                open(1, &is_unexplained),
            ],
            runs_min: own.iter().flatten().map(|case| case.runs).min()?,
        })
    }
}

/// Whether two values are the same but for rounding.
fn is_near(one: Option<f64>, other: Option<f64>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => (one - other).abs() <= 1e-3 * one.abs().max(other.abs()),
        (one, other) => one == other,
    }
}

const METHOD: &str = "\
1. Both sides simulate whole runs (`bench-replay`): the experiment files, plans, stopping rules and judging code of their time, the
   same recorded noise. Every run has a seed of its own. A verdict is right if a run without noise gives it.
2. The world has the published values, and the recorded ones where nothing was published or values contradict each other. A claim
   whose value contradicts another one is judged in runs of its own.
3. Time is that of the trials as recorded, with what lies between them. Old runs took whole blocks; new ones let treatments of
   settled claims rest. What comes before and after the trials is left out on both sides.
4. *All claims* are those of each side's files, without checks. *Common claims* have the same name, truth and right verdict on both
   sides; their share of the time is not known, so they are counted against the time of the whole run.
5. A total adds up times and verdicts of all experiments: the longest runs weigh most. The median is over the experiments' ratios.
";

/// How many right verdicts a minute new rules give beside old ones.
///
/// # Errors
/// If the documents have no experiment in common.
pub fn render_against(old: &Document, new: &Document) -> Result<String, String> {
    let pairs = new.plans.iter();
    let pairs: Vec<Pair> = pairs
        .filter_map(|plan| Pair::new([old, new], plan))
        .collect();
    let runs_min = pairs.iter().map(|pair| pair.runs_min).min();
    let runs_min = runs_min.ok_or("cannot compare: no experiment is in both documents")?;
    let mut text = String::from("# Right verdicts a minute by the old and the new rules\n\n");
    for (name, document) in [("Old", old), ("New", new)] {
        text += &format!(
            "- {name}: {}, `{}`, seed {}\n",
            document.date, document.command_line, document.seed
        );
    }
    text += &format!(
        "- Noise: {}; at least {runs_min} simulated runs a claim\n",
        new.machine
    );
    let tables: [(&str, Paces); 2] = [
        ("All claims", |pair| pair.all),
        ("Common claims", |pair| pair.common),
    ];
    for (title, paces) in tables {
        text += &format!("\n## {title}\n\nOld → new.\n\n{HEAD}");
        for profile in profiles(&pairs) {
            text += &rows(&pairs, profile, paces);
        }
    }
    text += &undecided(&pairs);
    Ok(text + "\n## Method\n\n" + METHOD)
}

fn profiles<'a>(pairs: &[Pair<'a>]) -> Vec<&'a str> {
    let mut profiles: Vec<&str> = Vec::new();
    for pair in pairs {
        if !profiles.contains(&pair.plan.profile.as_str()) {
            profiles.push(&pair.plan.profile);
        }
    }
    profiles
}

const HEAD: &str = "\
| experiment | profile | claims | s a run | right a run | wrong a run | right a minute | ratio |
|---|---|--:|--:|--:|--:|--:|--:|
";

/// Which old and new pace of a pair is shown.
type Paces = fn(&Pair) -> [Pace; 2];

/// The rows of a profile, and its total.
fn rows(pairs: &[Pair], profile: &str, paces: Paces) -> String {
    let of_profile = pairs.iter().filter(|pair| pair.plan.profile == profile);
    let mut text = String::new();
    let (mut sides, mut ratios) = ([Vec::new(), Vec::new()], Vec::new());
    for pair in of_profile {
        let [old, new] = paces(pair);
        text += &row(&pair.plan.experiment, profile, [old, new]);
        ratios.extend(ratio([old, new]));
        sides[0].push(old);
        sides[1].push(new);
    }
    text += &row("**total**", profile, sides.map(|side| Pace::total(&side)));
    let median = (!ratios.is_empty()).then(|| toll_stats::median(&ratios));
    text + &format!(
        "| **median** | {profile} | | | | | | {} |\n",
        optional(median)
    )
}

fn row(name: &str, profile: &str, paces: [Pace; 2]) -> String {
    let two = |of: fn(&Pace) -> String| paces.each_ref().map(of).join(" → ");
    format!(
        "| {name} | {profile} | {} | {} | {} | {} | {} | {} |\n",
        two(|pace| pace.claims.to_string()),
        two(|pace| optional(pace.run_s)),
        two(|pace| format!("{:.1}", pace.right)),
        two(|pace| format!("{:.1}", pace.wrong)),
        two(|pace| optional(pace.right_per_minute)),
        optional(ratio(paces)),
    )
}

/// New over old; none where the old rules gave no right verdict.
fn ratio([old, new]: [Pace; 2]) -> Option<f64> {
    let (old, new) = (old.right_per_minute?, new.right_per_minute?);
    (old > 0.0).then_some(new / old)
}

/// How many verdicts stay open at published values.
fn undecided(pairs: &[Pair]) -> String {
    let mut text = String::from(
        "\n## Open verdicts at published values\n\nThe mean share, and of how many claims. *Unexplained*: the file does not say that the claim is \
         underpowered.\n\n| profile | old | new | new, unexplained |\n|---|--:|--:|--:|\n",
    );
    for profile in profiles(pairs) {
        let of_profile = || pairs.iter().filter(|pair| pair.plan.profile == profile);
        let cells = [0, 1, 2].map(|side: usize| {
            let shares: Vec<f64> = of_profile()
                .flat_map(|pair| pair.open[side].clone())
                .collect();
            match shares.is_empty() {
                true => "–".into(),
                false => format!(
                    "{} % of {}",
                    percent(toll_stats::mean(&shares)),
                    shares.len()
                ),
            }
        });
        text += &format!("| {profile} | {} |\n", cells.join(" | "));
    }
    text
}
