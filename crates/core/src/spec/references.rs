//! Checks of what refers to factors, levels and quantities.

use super::validate::{Problem, problem};
use super::{
    AdviceKind, Claim, ClaimDirection, DerivedKind, Experiment, FigureKind, Level, Selector, Test,
};

/// Checks twins, claims, derived quantities, tables, figures and advice.
pub(super) fn check(experiment: &Experiment) -> Result<(), Problem> {
    for twin in experiment.twins.iter().chain(&experiment.reference) {
        check_selector(experiment, twin, "a twin or reference")?;
    }
    check_claims(experiment)?;
    check_derived(experiment)?;
    check_shown(experiment)
}

/// A selector names factors or parameters only. A level that the profile does
/// not have is no error: what needs it is not testable in that profile.
fn check_selector(experiment: &Experiment, selector: &Selector, what: &str) -> Result<(), Problem> {
    for name in selector.keys() {
        if experiment.factor(name).is_none() && experiment.fixed(name).is_none() {
            return Err(problem(
                name,
                format!("cannot use {what}: there is no factor {name}"),
            ));
        }
    }
    Ok(())
}

fn check_claims(experiment: &Experiment) -> Result<(), Problem> {
    for (i, claim) in experiment.claims.iter().enumerate() {
        let id = &claim.id;
        if experiment.claims[..i].iter().any(|other| other.id == *id) {
            return Err(problem(
                id,
                format!("cannot use claim {id}: its id stands twice"),
            ));
        }
        if let Some(original) = &claim.corrects
            && !experiment.claims.iter().any(|other| other.id == *original)
        {
            return Err(problem(
                id,
                format!("cannot correct {original}: there is no such claim"),
            ));
        }
        check_bounds(claim)?;
        match &claim.test {
            Test::Ratio(contrast) => {
                let what = format!("claim {id}");
                let pairs = contrast.per.iter().flat_map(|(of, to)| [of, to]);
                for selector in [&contrast.of, &contrast.to].into_iter().chain(pairs) {
                    check_selector(experiment, selector, &what)?;
                }
            }
            Test::Derived(derived) => {
                if !experiment.derived.iter().any(|other| other.id == *derived) {
                    return Err(problem(
                        id,
                        format!("cannot use claim {id}: there is no derived quantity {derived}"),
                    ));
                }
            }
            Test::Never(_) => {}
        }
    }
    Ok(())
}

/// Claims are judged on a logarithmic scale, which has no place for 0.
fn check_bounds(claim: &Claim) -> Result<(), Problem> {
    let is_testable = !matches!(claim.test, Test::Never(_));
    let bounds = [Some(claim.threshold), claim.threshold_high, claim.published];
    if is_testable && bounds.iter().flatten().any(|bound| *bound <= 0.0) {
        let advice = match claim.direction {
            ClaimDirection::Within => "; instead of between 0 and a bound say less than the bound",
            _ => "",
        };
        return Err(problem(
            &claim.id,
            format!(
                "cannot use claim {}: its bounds and its published value are above 0{advice}",
                claim.id
            ),
        ));
    }
    Ok(())
}

fn numeric_factor(experiment: &Experiment, name: &str, what: &str) -> Result<(), Problem> {
    let factor = experiment.factor(name).ok_or_else(|| {
        problem(
            name,
            format!("cannot use {what}: there is no factor {name}"),
        )
    })?;
    if factor.levels.iter().any(|level| level.number.is_none()) {
        return Err(problem(
            name,
            format!("cannot use {what}: the levels of {name} are not all numbers or sizes"),
        ));
    }
    Ok(())
}

fn any_factor(experiment: &Experiment, name: &str, what: &str) -> Result<(), Problem> {
    match experiment.factor(name) {
        Some(_) => Ok(()),
        None => Err(problem(
            name,
            format!("cannot use {what}: there is no factor {name}"),
        )),
    }
}

fn check_derived(experiment: &Experiment) -> Result<(), Problem> {
    for derived in &experiment.derived {
        let what = format!("derived quantity {}", derived.id);
        let takes_words = matches!(
            derived.kind,
            DerivedKind::Spread | DerivedKind::Quotient { .. }
        );
        if takes_words {
            any_factor(experiment, &derived.factor, &what)?;
        } else {
            numeric_factor(experiment, &derived.factor, &what)?;
        }
        check_selector(experiment, &derived.at, &what)?;
        if let DerivedKind::Knee { tolerance } = derived.kind
            && tolerance >= 1.0
        {
            return Err(problem(
                &derived.id,
                format!("cannot use {what}: a tolerance of 100 % or more has every level in it"),
            ));
        }
        if let DerivedKind::Acceleration { of, to, .. } = &derived.kind {
            check_selector(experiment, of, &what)?;
            check_selector(experiment, to, &what)?;
        }
        if let DerivedKind::Crossing { of, to, .. } = &derived.kind {
            positive_factor(experiment, &derived.factor, &what)?;
            check_selector(experiment, of, &what)?;
            check_selector(experiment, to, &what)?;
        }
        if let DerivedKind::Step { .. } = &derived.kind {
            positive_factor(experiment, &derived.factor, &what)?;
        }
    }
    Ok(())
}

/// What lies between levels is found on their logarithms.
fn positive_factor(experiment: &Experiment, name: &str, what: &str) -> Result<(), Problem> {
    let levels = experiment.factor(name).map(|factor| &factor.levels);
    let is_positive = |level: &Level| level.number.is_none_or(|number| number > 0.0);
    if levels.is_some_and(|levels| levels.iter().all(is_positive)) {
        return Ok(());
    }
    Err(problem(
        name,
        format!("cannot use {what}: the levels of {name} are above 0"),
    ))
}

fn check_shown(experiment: &Experiment) -> Result<(), Problem> {
    for figure in &experiment.figures {
        let what = format!("figure {:?}", figure.title);
        match figure.kind {
            FigureKind::Curve => numeric_factor(experiment, &figure.factor, &what)?,
            FigureKind::Distribution => any_factor(experiment, &figure.factor, &what)?,
            FigureKind::Box | FigureKind::Bar => {}
        }
        for line in &figure.lines {
            check_selector(experiment, &line.at, &what)?;
        }
        for group in &figure.groups {
            check_selector(experiment, &group.at, &what)?;
        }
        if let Some(series) = &figure.series {
            any_factor(experiment, series, &what)?;
        }
        check_selector(experiment, &figure.at, &what)?;
        for selector in figure
            .acceleration()
            .into_iter()
            .flat_map(|(of, to)| [of, to])
        {
            check_selector(experiment, selector, &what)?;
        }
        for id in &figure.marks {
            if !experiment.derived.iter().any(|derived| derived.id == *id) {
                return Err(problem(
                    id,
                    format!("cannot mark {id} in {what}: nothing derives it"),
                ));
            }
        }
    }
    for advice in &experiment.advice {
        let what = format!("advice on {}", advice.topic);
        any_factor(experiment, &advice.factor, &what)?;
        if advice.kind == AdviceKind::Saturation {
            numeric_factor(experiment, &advice.factor, &what)?;
        }
        if let Some(over) = &advice.over {
            numeric_factor(experiment, over, &what)?;
        }
        for name in &advice.each {
            any_factor(experiment, name, &what)?;
        }
        check_selector(experiment, &advice.at, &what)?;
    }
    for table in &experiment.tables {
        for row in table.groups.iter().flat_map(|group| &group.rows) {
            check_selector(experiment, &row.at, &format!("table {:?}", table.title))?;
        }
    }
    Ok(())
}
