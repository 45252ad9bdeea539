//! Renders the table of results in Markdown.

use std::fmt::Write;

use toll_core::claim::model::Outcome;
use toll_stats::clopper_pearson;

use super::nodes::Origin;
use super::pace::Pace;
use super::simulate::{Case, Truth};
use super::{Claimed, Document, Planned};

/// Smallest acceptable power of a claim's plan at the published value.
pub const POWER_MIN: f64 = 0.8;
/// Largest acceptable share of wrong verdicts on a border.
pub const WRONG_MAX: f64 = 0.05;
/// Confidence needed to say that a share exceeds its limit.
const CONFIDENCE: f64 = 0.99;

const METHOD: &str = "\
1. Each run is planned, stopped and judged by the code of `toll run`: its experiment file and profile, looks, blocks and time
   budget, and its procedures for families of claims. Only the trials are drawn. A block that runs only some of the treatments takes
   the share of a block's time that their recorded trials took.
2. The values of a block are the levels of its treatments times the deviations of one recorded block, for all treatments together. So
   whatever the trials of a block have in common is kept. Deviations are from the median, and widened by √(n/(n − 1)). Normal noise of
   a tenth of their scatter is added, since few blocks would otherwise repeat themselves.
3. Noise is *measured* (this treatment in a stored run), *borrowed* (the most similar treatment, such as one of the quick profile), *published*
   (for a metric that no run here records: the largest standard deviation in the report's tables, independent), or *assumed* (5 %,
   independent). The table shows the worst kind among a claim's treatments.
4. Levels are as recorded, but moved so that as many published values as possible hold together. In this one world each claim with a
   published value is judged at that value, and each other claim at its recorded value. A published value that contradicts another one,
   and any other truth, is given to one claim alone, by moving its numerator; claims that share the numerator move along.
5. A border is where a verdict on a run without noise changes, found by bisection. The table shows how often the verdict that begins there
   is given there; if a claim has two borders, it shows the worse one. In an experiment with a knee, a crossing or a call share, the claim is
   then the only one, as in the last step of Holm's procedure, where errors are most frequent; and all of its cases have a fifth of the runs.
6. The truth of a ratio is the pseudo-median of its noise, also for the ratios in a knee, a spread or a crossing. The truth of a quotient, and of a
   call share, is the median. A knee's border is half way between two levels, where the first of them loses exactly the tolerance.
7. Times of guests count as under KVM, so times recorded under emulation are not used. A treatment that is skipped here
   because a file system or a server is missing counts as if it ran.

Not simulated: drift over blocks, failed trials, carry-over from one trial to the next.
";

/// Returns the whole table of a document, in Markdown.
#[must_use]
pub fn render(document: &Document) -> String {
    let mut text = String::from("# What the plans of the built-in claims can decide\n\n");
    let runs = || document.cases.iter().map(|case| case.runs);
    put(
        &mut text,
        format_args!(
            "- Date: {}\n- Noise: {}\n- Command: `{}`, seed {}, {} to {} simulated runs per case, {} s\n",
            document.date,
            document.machine,
            document.command_line,
            document.seed,
            runs().min().unwrap_or(document.runs),
            runs().max().unwrap_or(document.runs),
            document.seconds
        ),
    );
    text += "\nShares are in percent: supported / refuted / inconclusive. **Bold**: a power below 80 %, or more than 5 % \
             wrong beyond chance (99 %).\n";
    text += &summary(document);
    text += &paces(document);
    text += &weak(document);
    for plan in &document.plans {
        text += &section(plan, document);
    }
    text += "\n## Method\n\n";
    text + METHOD
}

fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("a String takes everything");
}

fn summary(document: &Document) -> String {
    let mut text = String::from(
        "\n## Summary\n\n| profile | claims | published values | power ≥ 80 % | recorded values | power ≥ 80 % | mean power, published | \
         worst at a border of *supported* | of *refuted* | borders over 5 % |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    let mut profiles: Vec<&str> = Vec::new();
    for plan in &document.plans {
        if !profiles.contains(&plan.profile.as_str()) {
            profiles.push(&plan.profile);
        }
    }
    for profile in profiles {
        let cases: Vec<&Case> = document.cases.iter().collect();
        let cases: Vec<&Case> = cases
            .into_iter()
            .filter(|one| one.profile == profile)
            .collect();
        let plans = document.plans.iter().filter(|one| one.profile == profile);
        let claims: usize = plans.map(|plan| plan.claims.len()).sum();
        let powers = |truth: Truth| -> Vec<f64> {
            let of_truth = cases.iter().filter(|one| one.truth == truth);
            of_truth.filter_map(|one| one.power()).collect()
        };
        let reached = |powers: &[f64]| powers.iter().filter(|one| **one >= POWER_MIN).count();
        let (published, recorded) = (powers(Truth::Published), powers(Truth::Recorded));
        let worst = |truth: Truth| {
            let of_truth = cases.iter().filter(|one| one.truth == truth);
            let worst = of_truth.max_by(|a, b| share(a).total_cmp(&share(b)));
            worst.map_or("–".into(), |one| {
                format!("{} ({})", percent(share(one)), one.claim)
            })
        };
        let over = cases.iter().filter(|one| is_border(one) && is_over(one));
        put(
            &mut text,
            format_args!(
                "| {profile} | {claims} | {} | {} | {} | {} | {} | {} | {} | {} of {} |\n",
                published.len(),
                reached(&published),
                recorded.len(),
                reached(&recorded),
                percent(mean(&published)),
                worst(Truth::SupportedBorder),
                worst(Truth::RefutedBorder),
                over.count(),
                cases.iter().filter(|one| is_border(one)).count(),
            ),
        );
    }
    text
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        f64::NAN
    } else {
        toll_stats::mean(values)
    }
}

/// Returns the table of right verdicts per minute, in Markdown.
fn paces(document: &Document) -> String {
    let mut text = String::from(
        "\n## Right verdicts per minute\n\nThe median time of a run, and its mean number of verdicts on claims (not on checks), if the published values \
         hold, or\nthe recorded ones where none are published.\n\n| experiment | profile | claims | s | right | wrong | open | right per minute |\n\
         |---|---|--:|--:|--:|--:|--:|--:|\n",
    );
    for plan in &document.plans {
        let pace = Pace::from_cases(document, plan);
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

/// Returns the table of published values that a plan decides too rarely, in Markdown.
fn weak(document: &Document) -> String {
    let mut text = String::from("\n## Power below 80 % at the published value\n\n");
    text += "| claim | profile | value | right | S / R / I | reason in the experiment file |\n|---|---|--:|---|--:|---|\n";
    let published = document
        .cases
        .iter()
        .filter(|one| one.truth == Truth::Published);
    for case in published.filter(|one| one.power().is_some_and(|power| power < POWER_MIN)) {
        let plans = document.plans.iter();
        let claims = plans.flat_map(|plan| &plan.claims);
        let why = claims
            .filter(|one| one.id == case.claim)
            .find_map(|one| one.underpowered.clone());
        put(
            &mut text,
            format_args!(
                "| {} | {} | {} | {} | {} | {} |\n",
                case.claim,
                case.profile,
                number(case.value),
                verdict(case.right),
                shares(case),
                why.unwrap_or("–".into())
            ),
        );
    }
    text
}

fn section(plan: &Planned, document: &Document) -> String {
    let mut text = format!(
        "\n## {}, {}\n\n{} to {} blocks, at most {} s, {}.\n\n",
        plan.experiment,
        plan.profile,
        plan.min_blocks,
        plan.max_blocks,
        plan.time_budget_s,
        match plan.block_s {
            Some(block_s) => format!("{block_s:.2} s per block"),
            None => "the time of a block is unknown, so time limits no run".into(),
        }
    );
    if !plan.claims.is_empty() {
        text += "| claim | noise | value | right | S / R / I | blocks | no effect | wrong at a border of *supported* | of *refuted* |\n\
                 |---|---|--:|---|--:|--:|--:|--:|--:|\n";
    }
    for claim in &plan.claims {
        let is_own = |one: &&Case| {
            one.experiment == plan.experiment
                && one.profile == plan.profile
                && one.claim == claim.id
        };
        let cases: Vec<&Case> = document.cases.iter().filter(is_own).collect();
        text += &row(claim, &cases);
    }
    if !plan.left_out.is_empty() {
        text += "\nNot simulated:\n\n";
    }
    for (claim, why) in &plan.left_out {
        put(&mut text, format_args!("- {claim}: {why}\n"));
    }
    text
}

fn row(claim: &Claimed, cases: &[&Case]) -> String {
    let of = |truth: Truth| cases.iter().filter(move |one| one.truth == truth);
    let own = of(Truth::Published).chain(of(Truth::Recorded)).next();
    let noise = match claim.origin {
        Origin::Measured => "measured",
        Origin::Borrowed => "borrowed",
        Origin::Published => "published",
        Origin::Assumed => "assumed",
    };
    let source = match own.map(|one| one.truth) {
        Some(Truth::Recorded) => " recorded",
        _ => "",
    };
    let worst = |truth: Truth| {
        let worst = of(truth).max_by(|a, b| share(a).total_cmp(&share(b)));
        worst.map_or("–".into(), |one| bold(percent(share(one)), is_over(one)))
    };
    let note = match (&claim.underpowered, own.and_then(|one| one.power())) {
        (Some(_), Some(power)) if power >= POWER_MIN => " (file says underpowered)",
        _ => "",
    };
    format!(
        "| {} | {noise} | {}{source} | {} | {}{note} | {} | {} | {} | {} |\n",
        claim.id,
        own.map_or("–".into(), |one| number(one.value)),
        own.map_or("–".into(), |one| verdict(one.right)),
        own.map_or("–".into(), |one| bold(
            shares(one),
            one.power().is_some_and(|power| power < POWER_MIN)
        )),
        own.map_or("–".into(), |one| one.blocks.to_string()),
        of(Truth::NoEffect)
            .next()
            .map_or("–".into(), |one| shares(one)),
        worst(Truth::SupportedBorder),
        worst(Truth::RefutedBorder),
    )
}

fn is_border(case: &Case) -> bool {
    matches!(case.truth, Truth::SupportedBorder | Truth::RefutedBorder)
}

fn share(case: &Case) -> f64 {
    case.wrong() as f64 / case.runs as f64
}

/// Returns whether the share of wrong verdicts is too large, by more than chance explains.
#[must_use]
pub fn is_over(case: &Case) -> bool {
    clopper_pearson(case.wrong(), case.runs, CONFIDENCE).low > WRONG_MAX
}

fn bold(text: String, is_bold: bool) -> String {
    if is_bold { format!("**{text}**") } else { text }
}

fn shares(case: &Case) -> String {
    let of = |count: usize| percent(count as f64 / case.runs as f64);
    let parts = [case.supported, case.refuted, case.inconclusive].map(of);
    let rest = match case.not_testable {
        0 => String::new(),
        count => format!(", {} not testable", of(count)),
    };
    parts.join(" / ") + &rest
}

fn percent(share: f64) -> String {
    if share.is_nan() {
        "–".into()
    } else {
        format!("{:.0}", 100.0 * share)
    }
}

fn number(value: Option<f64>) -> String {
    match value {
        None => "∞".into(),
        Some(0.0) => "0".into(),
        Some(value) if value.abs() >= 1000.0 => format!("{value:.0}"),
        Some(value) => {
            let places = (2.0 - value.abs().log10().floor()).clamp(0.0, 8.0) as usize;
            format!("{value:.places$}")
        }
    }
}

fn optional(value: Option<f64>) -> String {
    value.map_or("–".into(), |value| number(Some(value)))
}

fn verdict(outcome: Option<Outcome>) -> String {
    match outcome {
        Some(Outcome::Supported) => "supported",
        Some(Outcome::Refuted) => "refuted",
        _ => "–",
    }
    .into()
}
