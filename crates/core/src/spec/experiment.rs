//! An experiment, and what it asks and measures.

mod guest;
mod row;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::trees::Trees;
use super::{
    AdviceSpec, Claim, ComparisonGoal, Derived, Factor, FigureSpec, GuestSettings, Level,
    ParsedMetric, Platform, ReportPart, Row, RunSettings, Selector, Table, WorkloadSpec,
};

/// An experiment with its profile applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Short name, used on the command line.
    pub name: String,
    /// Heading.
    pub title: String,
    /// The question that the experiment asks.
    pub question: String,
    /// Short name of the publication that the experiment re-examines.
    pub report: Option<String>,
    /// Profile that was applied.
    pub profile: String,
    /// Main metric.
    pub metric: String,
    /// Further metrics in which treatments are compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_metrics: Vec<String>,
    /// What each trial does.
    pub workload: WorkloadSpec,
    /// Workloads that differ between treatments: the levels of the factor `row`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<Row>,
    /// The guests that trials run in; `None` if all trials run on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestSettings>,
    /// Factors, in order.
    pub factors: Vec<Factor>,
    /// Constraints that every treatment must meet.
    pub constraints: Vec<String>,
    /// Metrics parsed from a command's output, by name.
    pub parsed_metrics: BTreeMap<String, ParsedMetric>,
    /// Performance counters to read.
    pub counters: Vec<String>,
    /// How long and how often to measure.
    pub run: RunSettings,
    /// Treatments that run twice in each block; empty means the first treatment.
    pub twins: Vec<Selector>,
    /// Whether no treatment runs twice, because the run is a step of a search. The search has its
    /// own check.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_twin: bool,
    /// Treatment with which all others are compared.
    pub reference: Option<Selector>,
    /// The work trees of two commits, if the experiment compares commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trees: Option<Trees>,
    /// Claims to judge.
    pub claims: Vec<Claim>,
    /// Claims whose levels this profile leaves out, each with the first profile that has them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_to: BTreeMap<String, String>,
    /// Quantities computed from several treatments.
    pub derived: Vec<Derived>,
    /// Parts of the publication, with their counterparts in the experiment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ReportPart>,
    /// Published tables.
    pub tables: Vec<Table>,
    /// Figures to draw.
    pub figures: Vec<FigureSpec>,
    /// Topics to advise on.
    pub advice: Vec<AdviceSpec>,
    /// Machines that the publication describes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub platforms: Vec<Platform>,
}

impl Experiment {
    /// Drops an experiment's own questions, tables and figures.
    pub(crate) fn ask_nothing(&mut self) {
        self.claims.clear();
        self.derived.clear();
        self.tables.clear();
        self.figures.clear();
        self.advice.clear();
        self.platforms.clear();
        self.report = None;
        self.twins.clear();
        self.reference = None;
    }

    /// Makes the run continue until its comparisons are decided against a limit (a share)
    /// or its time ends. An experiment with claims keeps its number of blocks.
    pub fn decide_against(&mut self, limit: f64) {
        /// At least a minute for commands of 20 ms, each in three copies.
        const BLOCKS: u32 = 1000;
        self.run.regression_limit = Some(limit);
        if self.claims.is_empty() {
            self.run.max_blocks = match self.run.comparison_goal {
                // The user did not say how long the run may take.
                ComparisonGoal::QuickAnswer => BLOCKS,
                _ => self.run.max_blocks.max(BLOCKS),
            };
        }
    }

    /// Returns the claims that are judged together.
    pub fn claim_family(&self) -> impl Iterator<Item = &Claim> {
        self.claims.iter().filter(|claim| !claim.is_check)
    }

    /// Returns the checks of the machine and the instrument, each judged on its own.
    pub fn checks(&self) -> impl Iterator<Item = &Claim> {
        self.claims.iter().filter(|claim| claim.is_check)
    }

    /// Returns the metrics in which treatments are compared, the main one first.
    pub fn compared_metrics(&self) -> impl Iterator<Item = &str> {
        let further = self.further_metrics.iter();
        std::iter::once(&self.metric)
            .chain(further)
            .map(String::as_str)
    }

    /// Sets the metrics in which treatments are compared; the first is the main one.
    pub fn compare_in(&mut self, metrics: &[String]) {
        let Some((main, further)) = metrics.split_first() else {
            return;
        };
        self.metric.clone_from(main);
        self.further_metrics.clear();
        for metric in further {
            if !self.compared_metrics().any(|known| known == metric) {
                self.further_metrics.push(metric.clone());
            }
        }
    }

    /// Unit of a factor's numeric levels.
    pub fn level_unit(&self, factor: &str) -> &'static str {
        match self.factor(factor) {
            Some(factor) if factor.is_size => "bytes",
            _ => "",
        }
    }

    /// Returns the factor with a name.
    pub fn factor(&self, name: &str) -> Option<&Factor> {
        self.factors.iter().find(|factor| factor.name == name)
    }

    /// Returns the value of a fixed parameter of the workload or the guest.
    pub fn fixed(&self, name: &str) -> Option<&Level> {
        let of_workload = self.workload.parameters.get(name);
        of_workload.or_else(|| self.guest.as_ref()?.parameters.get(name))
    }

    /// Returns all combinations of the levels of some factors, each added to `at`.
    pub(crate) fn combinations(&self, names: &[String], at: &Selector) -> Vec<Selector> {
        let mut all = vec![at.clone()];
        for factor in names.iter().filter_map(|name| self.factor(name)) {
            let with = |at: &Selector, level: &Level| {
                let mut at = at.clone();
                at.insert(factor.name.clone(), level.clone());
                at
            };
            let levels = |at| factor.levels.iter().map(move |level| with(at, level));
            all = all.iter().flat_map(levels).collect();
        }
        all
    }

    /// Returns all levels of all factors, each with the factor's name.
    pub fn varied(&self) -> impl Iterator<Item = (&String, &Level)> {
        self.factors
            .iter()
            .flat_map(|factor| factor.levels.iter().map(move |level| (&factor.name, level)))
    }
}
