//! Checks of references to factors, levels and quantities.
//!
//! A statement here is an entry of an experiment file that refers to them, such as a claim, a table
//! or a figure.

use std::collections::BTreeMap;

use toll_wire::{COUNTERS, raw_counter};

use super::near::{nearest, suggestion};
use super::problem::{Problem, problem};
use super::{
    AdviceKind, AdviceSpec, Claim, Derived, DerivedKind, Experiment, Factor, FigureKind,
    FigureSpec, Level, Selector, Table, Test,
};

/// What the statements of an experiment refer to.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    /// The experiment without the statements to check.
    pub experiment: &'a Experiment,
    /// Levels of factors and parameters in any profile. If `None`, levels and metrics are not
    /// checked: a stored run may be from a newer program, and levels on the command line replace
    /// others.
    pub levels: Option<&'a BTreeMap<String, Vec<Level>>>,
}

impl<'a> Scope<'a> {
    pub fn new(experiment: &'a Experiment, levels: &'a BTreeMap<String, Vec<Level>>) -> Self {
        let levels = Some(levels);
        Self { experiment, levels }
    }
}

/// A statement of the experiment, to check what it refers to.
struct Statement<'a> {
    scope: Scope<'a>,
    /// Name of the statement in errors.
    what: String,
}

impl<'a> Statement<'a> {
    fn new(scope: Scope<'a>, what: String) -> Self {
        Self { scope, what }
    }

    fn wrong(&self, name: &str, why: &str) -> Problem {
        problem(name, format!("cannot use {}: {why}", self.what))
    }

    fn factor(&self, name: &str) -> Result<&'a Factor, Problem> {
        let factor = self.scope.experiment.factor(name);
        factor.ok_or_else(|| self.no_factor(name))
    }

    fn numeric_factor(&self, name: &str) -> Result<(), Problem> {
        let mut levels = self.factor(name)?.levels.iter();
        if levels.all(|level| level.number.is_some()) {
            Ok(())
        } else {
            let why = format!("the levels of {name} are not all numbers or sizes");
            Err(self.wrong(name, &why))
        }
    }

    /// Checks that levels are above 0, because the logarithms of levels are interpolated.
    fn positive_factor(&self, name: &str) -> Result<(), Problem> {
        let mut levels = self.factor(name)?.levels.iter();
        if levels.all(|level| level.number.is_none_or(|number| number > 0.0)) {
            Ok(())
        } else {
            Err(self.wrong(name, &format!("the levels of {name} must be above 0")))
        }
    }

    fn no_factor(&self, name: &str) -> Problem {
        let experiment = self.scope.experiment;
        let factors = experiment.factors.iter().map(|factor| &factor.name);
        let guest = experiment.guest.iter();
        let guest = guest.flat_map(|guest| guest.parameters.keys());
        let known = factors
            .chain(experiment.workload.parameters.keys())
            .chain(guest);
        let near = suggestion(name, known.map(String::as_str));
        self.wrong(name, &format!("there is no factor {name}{near}"))
    }

    /// Checks that selectors name only factors or parameters, and levels that these have in some
    /// profile. A statement that needs a level of another profile is not testable in this one.
    fn selectors<'s>(
        &self,
        selectors: impl IntoIterator<Item = &'s Selector>,
    ) -> Result<(), Problem> {
        let experiment = self.scope.experiment;
        for (name, level) in selectors.into_iter().flatten() {
            if experiment.factor(name).is_none() && experiment.fixed(name).is_none() {
                return Err(self.no_factor(name));
            }
            self.levels(name, [level])?;
        }
        Ok(())
    }

    fn levels<'s>(
        &self,
        name: &str,
        levels: impl IntoIterator<Item = &'s Level>,
    ) -> Result<(), Problem> {
        let Some(known) = self.scope.levels.and_then(|levels| levels.get(name)) else {
            return Ok(());
        };
        let is_unknown = |level: &&Level| !known.iter().any(|other| other.same(level));
        match levels.into_iter().find(is_unknown) {
            None => Ok(()),
            Some(Level { text, .. }) => {
                let near = suggestion(text, known.iter().map(|level| level.text.as_str()));
                Err(self.wrong(text, &format!("no profile has {name}={text}{near}")))
            }
        }
    }

    /// Checks that trials can have the metrics.
    fn metrics<'s>(&self, names: impl IntoIterator<Item = &'s str>) -> Result<(), Problem> {
        let mut names = names.into_iter();
        names.try_for_each(|name| self.any_metric(&[name]))
    }

    /// Checks that trials can have one of the metrics.
    fn any_metric(&self, names: &[&str]) -> Result<(), Problem> {
        let experiment = self.scope.experiment;
        let is_there = names.iter().any(|name| is_metric(experiment, name));
        if is_there || self.scope.levels.is_none() {
            return Ok(());
        }
        let name = names.join(" or ");
        Err(self.wrong(&name, &no_metric(experiment, &name)))
    }

    fn derived(&self, id: &str) -> Result<(), Problem> {
        let derived = &self.scope.experiment.derived;
        if derived.iter().any(|other| other.id == id) {
            Ok(())
        } else {
            let near = suggestion(id, derived.iter().map(|other| other.id.as_str()));
            Err(self.wrong(id, &format!("there is no derived quantity {id}{near}")))
        }
    }
}

fn is_metric(experiment: &Experiment, name: &str) -> bool {
    if let Some(counter) = name.strip_prefix("counter.") {
        let time = [".enabled_ns", ".running_ns"];
        let counter = time
            .iter()
            .find_map(|end| counter.strip_suffix(end))
            .unwrap_or(counter);
        return experiment.counters.iter().any(|known| known == counter);
    }
    let rows = experiment.rows.iter().map(|row| row.kind);
    let mut kinds = rows.chain([experiment.workload.kind]);
    experiment.parsed_metrics.contains_key(name)
        || kinds.any(|kind| kind.metrics().iter().any(|known| known == name))
}

fn no_metric(experiment: &Experiment, name: &str) -> String {
    if let Some(counter) = name.strip_prefix("counter.") {
        let near = suggestion(counter, experiment.counters.iter().map(String::as_str));
        return format!("{counter} is not among the counters{near}");
    }
    let kind = experiment.workload.kind;
    let known = kind.metrics();
    let all = known.iter().chain(experiment.parsed_metrics.keys());
    let near = suggestion(name, all.map(String::as_str));
    format!(
        "no trial of a workload of kind {} has a metric {name}{near}",
        toll_wire::word(&kind)
    )
}

impl Experiment {
    /// Refuses a compared metric that no trial of the experiment can have.
    pub fn check_metric(&self) -> Result<(), String> {
        check_metric(self).map_err(|problem| problem.message)
    }
}

pub(super) fn check_counters(experiment: &Experiment) -> Result<(), Problem> {
    let is_known = |name: &str| COUNTERS.contains(&name) || raw_counter(name).is_some();
    let Some(name) = experiment.counters.iter().find(|name| !is_known(name)) else {
        return Ok(());
    };
    let near = nearest(name, COUNTERS);
    let near = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
    let message = format!(
        "cannot use counter {name}: there is no such counter; {near}`toll run --help` lists all"
    );
    Err(problem(name, message))
}

pub(super) fn check_metric(experiment: &Experiment) -> Result<(), Problem> {
    let mut compared = experiment.compared_metrics();
    match compared.find(|name| !is_metric(experiment, name)) {
        None => Ok(()),
        Some(name) => {
            let why = no_metric(experiment, name);
            Err(problem(name, format!("cannot use metric {name}: {why}")))
        }
    }
}

/// Checks all statements that refer to something else.
pub(super) fn check(experiment: &Experiment) -> Result<(), Problem> {
    let scope = Scope {
        experiment,
        levels: None,
    };
    let each = |one: &Derived| check_derived(one, scope);
    experiment.derived.iter().try_for_each(each)?;
    let each = |one: &Claim| check_claim(one, scope);
    experiment.claims.iter().try_for_each(each)?;
    let each = |one: &Table| check_table(one, scope);
    experiment.tables.iter().try_for_each(each)?;
    let each = |one: &FigureSpec| check_figure(one, scope);
    experiment.figures.iter().try_for_each(each)?;
    let each = |one: &AdviceSpec| check_advice(one, scope);
    experiment.advice.iter().try_for_each(each)?;
    let mut platforms = experiment.platforms.iter();
    platforms.try_for_each(|one| one.check(&experiment.claims))
}

pub(super) fn check_twins(experiment: &Experiment) -> Result<(), Problem> {
    let twins = experiment.twins.iter().chain(&experiment.reference);
    let scope = Scope {
        experiment,
        levels: None,
    };
    Statement::new(scope, "a twin or reference".into()).selectors(twins)
}

pub(super) fn check_claim(claim: &Claim, scope: Scope<'_>) -> Result<(), Problem> {
    claim.check()?;
    let statement = Statement::new(scope, format!("claim {}", claim.id));
    match claim.test() {
        Test::Ratio(contrast) => {
            statement.metrics([contrast.metric])?;
            statement.selectors(contrast.sides())
        }
        Test::Derived(id) => statement.derived(id),
        Test::Never(_) => Ok(()),
    }
}

/// Checks that ids of claims are unique, and that corrected claims exist.
pub(super) fn check_ids(experiment: &Experiment) -> Result<(), Problem> {
    let claims = &experiment.claims;
    for (i, claim) in claims.iter().enumerate() {
        let id = &claim.id;
        if claims[..i].iter().any(|other| other.id == *id) {
            let message = format!("cannot use claim {id}: its id is given twice");
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

pub(super) fn check_derived(derived: &Derived, scope: Scope<'_>) -> Result<(), Problem> {
    let statement = Statement::new(scope, format!("derived quantity {}", derived.id));
    let (factor, kind) = (&derived.factor, &derived.kind);
    if kind.needs_numeric_factor() {
        statement.numeric_factor(factor)?;
    } else {
        statement.factor(factor)?;
    }
    statement.metrics([derived.metric.as_str()])?;
    statement.selectors([&derived.at])?;
    statement.levels(factor, &derived.among)?;
    let mut further = kind.further_metrics().into_iter();
    further.try_for_each(|names| statement.any_metric(&names))?;
    statement.levels(factor, kind.level())?;
    match kind {
        DerivedKind::Knee { tolerance } if *tolerance >= 1.0 => {
            let why = "a tolerance of 100 % or more includes every level";
            return Err(statement.wrong("tolerance", why));
        }
        DerivedKind::Crossing { value, .. } if *value >= 1.0 => {
            let why =
                "an acceleration ratio must be less than 1: a ratio of 1 leaves no time at all";
            return Err(statement.wrong("value", why));
        }
        DerivedKind::Step { number: 0, .. } => {
            return Err(statement.wrong("step", "step must be 1 or more"));
        }
        DerivedKind::Crossing { .. } | DerivedKind::Step { .. } => {
            statement.positive_factor(factor)?;
        }
        DerivedKind::Knee { .. }
        | DerivedKind::Acceleration { .. }
        | DerivedKind::CostPerCall {}
        | DerivedKind::CostPerByte {}
        | DerivedKind::CallShare { .. }
        | DerivedKind::Spread {}
        | DerivedKind::Quotient { .. } => {}
    }
    statement.selectors(kind.sides())
}

pub(super) fn check_table(table: &Table, scope: Scope<'_>) -> Result<(), Problem> {
    table.check()?;
    let rows = table.quantities.iter().flat_map(|one| &one.rows);
    let statement = Statement::new(scope, format!("table {:?}", table.title));
    let metrics = table.quantities.iter();
    let metrics = metrics.flat_map(|one| [&one.metric].into_iter().chain(&one.per));
    statement.metrics(metrics.map(String::as_str))?;
    statement.selectors(rows.map(|row| &row.at))
}

pub(super) fn check_figure(figure: &FigureSpec, scope: Scope<'_>) -> Result<(), Problem> {
    let statement = Statement::new(scope, format!("figure {:?}", figure.title));
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
    statement.metrics([figure.metric.as_str()])?;
    statement.levels(&figure.factor, &figure.except)?;
    if let Some(series) = &figure.series {
        statement.factor(series)?;
    }
    let mut marks = figure.marks.iter();
    marks.try_for_each(|id| statement.derived(id))
}

pub(super) fn check_advice(advice: &AdviceSpec, scope: Scope<'_>) -> Result<(), Problem> {
    let statement = Statement::new(scope, format!("advice on {}", advice.topic));
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
    statement.metrics([advice.metric.as_str()])?;
    statement.levels(&advice.factor, &advice.except)?;
    statement.selectors([&advice.at])
}
