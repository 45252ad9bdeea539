//! Checks of what refers to factors, levels and quantities.

use super::validate::{Problem, problem};
use super::{
    AdviceKind, Claim, ClaimDirection, DerivedKind, Experiment, Factor, FigureKind, Selector, Test,
};

/// A statement whose references are checked.
struct Statement<'a> {
    experiment: &'a Experiment,
    /// What it is, for errors.
    what: String,
}

impl<'a> Statement<'a> {
    fn wrong(&self, name: &str, why: &str) -> Problem {
        problem(name, format!("cannot use {}: {why}", self.what))
    }

    fn factor(&self, name: &str) -> Result<&'a Factor, Problem> {
        let factor = self.experiment.factor(name);
        factor.ok_or_else(|| self.wrong(name, &format!("there is no factor {name}")))
    }

    fn numeric_factor(&self, name: &str) -> Result<(), Problem> {
        let mut levels = self.factor(name)?.levels.iter();
        match levels.all(|level| level.number.is_some()) {
            true => Ok(()),
            false => {
                let why = format!("the levels of {name} are not all numbers or sizes");
                Err(self.wrong(name, &why))
            }
        }
    }

    /// What lies between levels is found on their logarithms.
    fn positive_factor(&self, name: &str) -> Result<(), Problem> {
        let mut levels = self.factor(name)?.levels.iter();
        match levels.all(|level| level.number.is_none_or(|number| number > 0.0)) {
            true => Ok(()),
            false => Err(self.wrong(name, &format!("the levels of {name} are above 0"))),
        }
    }

    /// Selectors name factors or parameters only. A level that the profile does
    /// not have is no error: what needs it is not testable in that profile.
    fn selectors<'s>(
        &self,
        selectors: impl IntoIterator<Item = &'s Selector>,
    ) -> Result<(), Problem> {
        let is_known = |name: &str| {
            self.experiment.factor(name).is_some() || self.experiment.fixed(name).is_some()
        };
        let mut names = selectors.into_iter().flat_map(Selector::keys);
        match names.find(|name| !is_known(name)) {
            Some(name) => Err(self.wrong(name, &format!("there is no factor {name}"))),
            None => Ok(()),
        }
    }
}

/// Checks twins, claims, derived quantities, tables, figures and advice.
pub(super) fn check(experiment: &Experiment) -> Result<(), Problem> {
    let statement = |what: String| Statement { experiment, what };
    let twins = experiment.twins.iter().chain(&experiment.reference);
    statement("a twin or reference".into()).selectors(twins)?;
    check_claims(experiment)?;
    check_derived(experiment)?;
    check_figures(experiment)?;
    for advice in &experiment.advice {
        let statement = statement(format!("advice on {}", advice.topic));
        statement.factor(&advice.factor)?;
        if advice.kind == AdviceKind::Saturation {
            statement.numeric_factor(&advice.factor)?;
        }
        if let Some(over) = &advice.over {
            statement.numeric_factor(over)?;
        }
        for name in &advice.each {
            statement.factor(name)?;
        }
        statement.selectors([&advice.at])?;
    }
    for table in &experiment.tables {
        let rows = table.groups.iter().flat_map(|group| &group.rows);
        statement(format!("table {:?}", table.title)).selectors(rows.map(|row| &row.at))?;
    }
    Ok(())
}

fn check_claims(experiment: &Experiment) -> Result<(), Problem> {
    for (i, claim) in experiment.claims.iter().enumerate() {
        let id = &claim.id;
        let statement = Statement {
            experiment,
            what: format!("claim {id}"),
        };
        if experiment.claims[..i].iter().any(|other| other.id == *id) {
            return Err(statement.wrong(id, "its id stands twice"));
        }
        if let Some(original) = &claim.corrects
            && !experiment.claims.iter().any(|other| other.id == *original)
        {
            let message = format!("cannot correct {original}: there is no such claim");
            return Err(problem(id, message));
        }
        check_bounds(claim, &statement)?;
        match &claim.test {
            Test::Ratio(contrast) => {
                let pairs = contrast.per.iter().flat_map(|(of, to)| [of, to]);
                statement.selectors([&contrast.of, &contrast.to].into_iter().chain(pairs))?;
            }
            Test::Derived(derived) => {
                if !experiment.derived.iter().any(|other| other.id == *derived) {
                    let why = format!("there is no derived quantity {derived}");
                    return Err(statement.wrong(id, &why));
                }
            }
            Test::Never(_) => {}
        }
    }
    Ok(())
}

/// Claims are judged on a logarithmic scale, which has no place for 0.
fn check_bounds(claim: &Claim, statement: &Statement<'_>) -> Result<(), Problem> {
    let is_testable = !matches!(claim.test, Test::Never(_));
    let bounds = [Some(claim.threshold), claim.threshold_high, claim.published];
    if !is_testable || bounds.iter().flatten().all(|bound| *bound > 0.0) {
        return Ok(());
    }
    let advice = match claim.direction {
        ClaimDirection::Within => "; instead of between 0 and a bound say less than the bound",
        _ => "",
    };
    let why = format!("its bounds and its published value are above 0{advice}");
    Err(statement.wrong(&claim.id, &why))
}

fn check_derived(experiment: &Experiment) -> Result<(), Problem> {
    for derived in &experiment.derived {
        let statement = Statement {
            experiment,
            what: format!("derived quantity {}", derived.id),
        };
        let factor = &derived.factor;
        match &derived.kind {
            DerivedKind::Spread | DerivedKind::Quotient { .. } => {
                statement.factor(factor)?;
            }
            _ => statement.numeric_factor(factor)?,
        }
        statement.selectors([&derived.at])?;
        match &derived.kind {
            DerivedKind::Knee { tolerance } if *tolerance >= 1.0 => {
                let why = "a tolerance of 100 % or more has every level in it";
                return Err(statement.wrong(&derived.id, why));
            }
            DerivedKind::Acceleration { of, to, .. } => statement.selectors([of, to])?,
            DerivedKind::Crossing { of, to, .. } => {
                statement.positive_factor(factor)?;
                statement.selectors([of, to])?;
            }
            DerivedKind::Step { .. } => statement.positive_factor(factor)?,
            _ => {}
        }
    }
    Ok(())
}

fn check_figures(experiment: &Experiment) -> Result<(), Problem> {
    for figure in &experiment.figures {
        let statement = Statement {
            experiment,
            what: format!("figure {:?}", figure.title),
        };
        match figure.kind {
            FigureKind::Curve => statement.numeric_factor(&figure.factor)?,
            FigureKind::Distribution => {
                statement.factor(&figure.factor)?;
            }
            FigureKind::Box | FigureKind::Bar => {}
        }
        statement.selectors(figure.lines.iter().map(|line| &line.at))?;
        statement.selectors(figure.groups.iter().map(|group| &group.at))?;
        if let Some(series) = &figure.series {
            statement.factor(series)?;
        }
        statement.selectors([&figure.at])?;
        statement.selectors(
            figure
                .acceleration()
                .into_iter()
                .flat_map(|(of, to)| [of, to]),
        )?;
        let is_derived = |id: &String| experiment.derived.iter().any(|other| other.id == *id);
        if let Some(id) = figure.marks.iter().find(|id| !is_derived(id)) {
            let message = format!("cannot mark {id} in {}: nothing derives it", statement.what);
            return Err(problem(id, message));
        }
    }
    Ok(())
}
