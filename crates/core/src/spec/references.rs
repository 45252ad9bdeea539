//! Checks of what refers to factors, levels and quantities.

use super::validate::{Problem, problem};
use super::{
    AdviceKind, AdviceSpec, Claim, Derived, DerivedKind, Experiment, Factor, FigureKind,
    FigureSpec, Selector, Table, Test,
};

/// A statement whose references are checked.
struct Statement<'a> {
    experiment: &'a Experiment,
    /// What it is, for errors.
    what: String,
}

impl<'a> Statement<'a> {
    fn new(experiment: &'a Experiment, what: String) -> Self {
        Self { experiment, what }
    }

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

    fn derived(&self, id: &str) -> Result<(), Problem> {
        let mut derived = self.experiment.derived.iter();
        match derived.any(|other| other.id == id) {
            true => Ok(()),
            false => Err(self.wrong(id, &format!("there is no derived quantity {id}"))),
        }
    }
}

/// Checks all that refers to something else.
pub(super) fn check(experiment: &Experiment) -> Result<(), Problem> {
    let each = |one: &Derived| check_derived(one, experiment);
    experiment.derived.iter().try_for_each(each)?;
    let each = |one: &Claim| check_claim(one, experiment);
    experiment.claims.iter().try_for_each(each)?;
    let each = |one: &Table| check_table(one, experiment);
    experiment.tables.iter().try_for_each(each)?;
    let each = |one: &FigureSpec| check_figure(one, experiment);
    experiment.figures.iter().try_for_each(each)?;
    let each = |one: &AdviceSpec| check_advice(one, experiment);
    experiment.advice.iter().try_for_each(each)
}

pub(super) fn check_twins(experiment: &Experiment) -> Result<(), Problem> {
    let twins = experiment.twins.iter().chain(&experiment.reference);
    Statement::new(experiment, "a twin or reference".into()).selectors(twins)
}

pub(super) fn check_claim(claim: &Claim, experiment: &Experiment) -> Result<(), Problem> {
    claim.check()?;
    let statement = Statement::new(experiment, format!("claim {}", claim.id));
    match claim.test() {
        Test::Ratio(contrast) => statement.selectors(contrast.sides()),
        Test::Derived(id) => statement.derived(id),
        Test::Never(_) => Ok(()),
    }
}

/// Checks what claims say of each other.
pub(super) fn check_ids(experiment: &Experiment) -> Result<(), Problem> {
    let claims = &experiment.claims;
    for (i, claim) in claims.iter().enumerate() {
        let id = &claim.id;
        if claims[..i].iter().any(|other| other.id == *id) {
            let message = format!("cannot use claim {id}: its id stands twice");
            return Err(problem(id, message));
        }
        if let Some(original) = &claim.corrects
            && !claims.iter().any(|other| other.id == *original)
        {
            let message = format!("cannot correct {original}: there is no such claim");
            return Err(problem(id, message));
        }
    }
    Ok(())
}

pub(super) fn check_derived(derived: &Derived, experiment: &Experiment) -> Result<(), Problem> {
    let statement = Statement::new(experiment, format!("derived quantity {}", derived.id));
    let factor = &derived.factor;
    match &derived.kind {
        DerivedKind::Spread {} | DerivedKind::Quotient { .. } => {
            statement.factor(factor)?;
        }
        _ => statement.numeric_factor(factor)?,
    }
    statement.selectors([&derived.at])?;
    match &derived.kind {
        DerivedKind::Knee { tolerance } if *tolerance >= 1.0 => {
            let why = "a tolerance of 100 % or more has every level in it";
            Err(statement.wrong("tolerance", why))
        }
        DerivedKind::Acceleration { of, to, .. } => statement.selectors([of, to]),
        DerivedKind::Crossing { of, to, .. } => {
            statement.positive_factor(factor)?;
            statement.selectors([of, to])
        }
        DerivedKind::Step { number: 0, .. } => {
            Err(statement.wrong("step", "step is a number from 1"))
        }
        DerivedKind::Step { .. } => statement.positive_factor(factor),
        _ => Ok(()),
    }
}

pub(super) fn check_table(table: &Table, experiment: &Experiment) -> Result<(), Problem> {
    table.check()?;
    let rows = table.quantities.iter().flat_map(|one| &one.rows);
    let statement = Statement::new(experiment, format!("table {:?}", table.title));
    statement.selectors(rows.map(|row| &row.at))
}

pub(super) fn check_figure(figure: &FigureSpec, experiment: &Experiment) -> Result<(), Problem> {
    let statement = Statement::new(experiment, format!("figure {:?}", figure.title));
    match figure.kind {
        FigureKind::Curve => statement.numeric_factor(&figure.factor)?,
        FigureKind::Distribution => {
            statement.factor(&figure.factor)?;
        }
        FigureKind::Box | FigureKind::Bar => {}
    }
    let lines = figure.lines.iter().map(|line| &line.at);
    let groups = figure.groups.iter().map(|group| &group.at);
    let sides = figure.acceleration().into_iter();
    let sides = sides.flat_map(|(of, to)| [of, to]);
    statement.selectors(lines.chain(groups).chain(sides).chain([&figure.at]))?;
    if let Some(series) = &figure.series {
        statement.factor(series)?;
    }
    let mut marks = figure.marks.iter();
    marks.try_for_each(|id| statement.derived(id))
}

pub(super) fn check_advice(advice: &AdviceSpec, experiment: &Experiment) -> Result<(), Problem> {
    let statement = Statement::new(experiment, format!("advice on {}", advice.topic));
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
    statement.selectors([&advice.at])
}
