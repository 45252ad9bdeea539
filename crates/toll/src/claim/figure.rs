//! Curves and distributions.

use super::contrast::pick;
use super::data::Data;
use super::model::{
    BoxGroup, BoxPlot, Curve, CurveMark, CurvePoint, CurveSeries, DerivedEstimate, Distribution,
    DistributionGroup, Estimate, Figure, MeasuredBox, Quartiles, Staircase,
};
use super::summary::estimate;
use super::{CONFIDENCE, metric};
use crate::plan::Treatment;
use crate::spec::{Experiment, Factor, FigureKind, FigureSpec, Selector};

/// Most groups of a distribution drawn unasked; more cannot be told apart.
const GROUPS_MAX: usize = 40;

struct Canvas<'a> {
    experiment: &'a Experiment,
    treatments: &'a [Treatment],
    data: &'a Data,
    derived: &'a [DerivedEstimate],
    staircases: &'a [Staircase],
}

/// The figures that an experiment asks for, else those that fit its factors.
/// What has no data is left out.
pub(super) fn draw_all(
    experiment: &Experiment,
    treatments: &[Treatment],
    data: &Data,
    derived: &[DerivedEstimate],
    staircases: &[Staircase],
) -> Vec<Figure> {
    let canvas = Canvas {
        experiment,
        treatments,
        data,
        derived,
        staircases,
    };
    if experiment.figures.is_empty() {
        return canvas.unasked();
    }
    experiment
        .figures
        .iter()
        .filter_map(|spec| match spec.kind {
            FigureKind::Curve => canvas.curve(spec).map(Figure::Curve),
            FigureKind::Distribution => canvas.distribution(spec).map(Figure::Distribution),
            FigureKind::Box => canvas.boxes(spec).map(Figure::Box),
        })
        .collect()
}

impl Canvas<'_> {
    fn curve(&self, spec: &FigureSpec) -> Option<Curve> {
        let factor = self.experiment.factor(&spec.factor)?;
        let lines: Vec<(String, Selector)> = match spec.series.as_deref() {
            None => vec![("measured here".into(), spec.at.clone())],
            Some(name) => self
                .experiment
                .factor(name)?
                .levels
                .iter()
                .map(|level| {
                    let mut at = spec.at.clone();
                    at.insert(name.to_owned(), level.clone());
                    (
                        self.experiment
                            .factor(name)
                            .map_or_else(String::new, |f| format!("{name}={}", f.label(level))),
                        at,
                    )
                })
                .collect(),
        };
        let (mut series, selectors): (Vec<CurveSeries>, Vec<Selector>) = lines
            .into_iter()
            .map(|(label, at)| {
                let line = CurveSeries {
                    label,
                    published: false,
                    points: self.points(spec, factor, &at),
                    treads: Vec::new(),
                };
                (line, at)
            })
            .filter(|(line, _)| !line.points.is_empty())
            .unzip();
        if series.is_empty() {
            return None;
        }
        for (line, id) in self.marked_lines(spec, &selectors) {
            if let Some(staircase) = self.staircase(id) {
                series[line].treads.clone_from(&staircase.treads);
            }
        }
        if !spec.published.is_empty() {
            series.push(published_series(spec, self.experiment.report.as_deref()));
        }
        let unit = match &spec.acceleration {
            Some(_) => String::new(),
            None => metric::describe(self.experiment, &spec.metric).unit,
        };
        Some(Curve {
            title: spec.title.clone(),
            factor: spec.factor.clone(),
            factor_unit: if factor.is_size {
                "bytes".into()
            } else {
                String::new()
            },
            metric: match &spec.acceleration {
                Some(_) => "acceleration ratio".into(),
                None => spec.metric.clone(),
            },
            unit,
            log_y: spec.log_y,
            series,
            marks: self.marks(spec, &selectors),
        })
    }

    /// What the figure marks, each with the line that it was computed from.
    fn marks(&self, spec: &FigureSpec, selectors: &[Selector]) -> Vec<CurveMark> {
        let lines: Vec<(usize, &str)> = self.marked_lines(spec, selectors).collect();
        spec.marks
            .iter()
            .filter_map(|id| self.derived.iter().find(|derived| derived.id == *id))
            .filter_map(|derived| {
                let line = lines.iter().find(|(_, id)| *id == derived.id);
                Some(CurveMark {
                    label: derived.text.clone(),
                    series: line.map(|(line, _)| *line),
                    at: derived.estimate?,
                })
            })
            .collect()
    }

    /// Positions of lines with the derived quantities that are marked on them:
    /// those over the same levels of the same metric.
    fn marked_lines<'a>(
        &'a self,
        spec: &'a FigureSpec,
        selectors: &'a [Selector],
    ) -> impl Iterator<Item = (usize, &'a str)> {
        let marked = spec.marks.iter().filter(|_| spec.acceleration.is_none());
        marked.filter_map(move |id| {
            let derived = self.experiment.derived.iter().find(|one| one.id == *id)?;
            let of_line = |at: &Selector| same(at, &derived.at);
            let line = selectors.iter().position(of_line)?;
            let same_axes = derived.factor == spec.factor && derived.metric == spec.metric;
            same_axes.then_some((line, id.as_str()))
        })
    }

    /// The staircase that has a step.
    fn staircase(&self, id: &str) -> Option<&Staircase> {
        let has = |staircase: &&Staircase| staircase.steps.iter().any(|step| step.id == id);
        self.staircases.iter().find(has)
    }

    fn points(&self, spec: &FigureSpec, factor: &Factor, at: &Selector) -> Vec<CurvePoint> {
        factor
            .levels
            .iter()
            .filter_map(|level| {
                let with = |base: &Selector| {
                    let mut selector = at.clone();
                    selector.extend(base.clone());
                    selector.insert(factor.name.clone(), level.clone());
                    pick(&selector, &self.experiment.factors, self.treatments).ok()
                };
                let y = match &spec.acceleration {
                    None => self.median(&spec.metric, with(&Selector::new())?)?,
                    Some((of, to)) => self.acceleration(&spec.metric, with(of)?, with(to)?)?,
                };
                Some(CurvePoint {
                    x: level.number?,
                    y,
                })
            })
            .collect()
    }

    fn median(&self, metric: &str, treatment: usize) -> Option<Estimate> {
        let values = self.data.values(metric, treatment);
        (!values.is_empty()).then(|| estimate(&toll_stats::median_interval(&values, CONFIDENCE)))
    }

    /// `1 - of/to` with the interval of the ratio, whose ends change places.
    fn acceleration(&self, metric: &str, of: usize, to: usize) -> Option<Estimate> {
        let logs = self.data.log_ratios(metric, of, to).ok()?;
        let ratio = toll_stats::stopped_interval(&logs, CONFIDENCE).map(f64::exp);
        Some(Estimate {
            value: 1.0 - ratio.estimate,
            low: 1.0 - ratio.high,
            high: 1.0 - ratio.low,
            confidence: ratio.confidence,
        })
    }

    fn distribution(&self, spec: &FigureSpec) -> Option<Distribution> {
        let factor = self.experiment.factor(&spec.factor)?;
        let groups: Vec<DistributionGroup> = factor
            .levels
            .iter()
            .filter(|level| !spec.except.iter().any(|except| except.same(level)))
            .filter_map(|level| {
                let mut selector = spec.at.clone();
                selector.insert(factor.name.clone(), level.clone());
                let index = pick(&selector, &self.experiment.factors, self.treatments).ok()?;
                self.group(factor.label(level), &spec.metric, index)
            })
            .collect();
        self.distribution_of(spec.title.clone(), &spec.metric, groups)
    }

    fn boxes(&self, spec: &FigureSpec) -> Option<BoxPlot> {
        let groups = spec.groups.iter().map(|group| {
            let treatment = pick(&group.at, &self.experiment.factors, self.treatments).ok();
            let quartiles = |[median, lower, upper]: [f64; 3]| Quartiles {
                median,
                lower,
                upper,
            };
            BoxGroup {
                label: group.label.clone(),
                measured: treatment
                    .and_then(|index| box_of(&self.data.values(&spec.metric, index))),
                published: group.published.map(quartiles),
            }
        });
        let groups: Vec<BoxGroup> = groups.collect();
        let is_measured = groups.iter().any(|group| group.measured.is_some());
        is_measured.then(|| BoxPlot {
            title: spec.title.clone(),
            report: self.experiment.report.clone().unwrap_or_default(),
            metric: spec.metric.clone(),
            unit: metric::describe(self.experiment, &spec.metric).unit,
            groups,
        })
    }

    fn group(&self, label: String, metric: &str, treatment: usize) -> Option<DistributionGroup> {
        let values = self.data.values(metric, treatment);
        (!values.is_empty()).then_some(DistributionGroup { label, values })
    }

    fn distribution_of(
        &self,
        title: String,
        metric: &str,
        groups: Vec<DistributionGroup>,
    ) -> Option<Distribution> {
        (!groups.is_empty()).then(|| Distribution {
            title,
            metric: metric.to_owned(),
            unit: metric::describe(self.experiment, metric).unit,
            groups,
        })
    }

    /// For an experiment that asks for no figures: a curve if a single factor
    /// is numeric, and the distribution over all treatments.
    fn unasked(&self) -> Vec<Figure> {
        let metric = &self.experiment.metric;
        let mut figures = Vec::new();
        let varying: Vec<&Factor> = self
            .experiment
            .factors
            .iter()
            .filter(|factor| factor.levels.len() > 1)
            .collect();
        if let [factor] = varying.as_slice()
            && factor.levels.len() > 2
            && factor
                .levels
                .iter()
                .all(|level| level.number.is_some_and(|n| n > 0.0))
        {
            let spec = FigureSpec {
                title: format!("{metric} by {}", factor.name),
                kind: FigureKind::Curve,
                factor: factor.name.clone(),
                metric: metric.clone(),
                series: None,
                at: Selector::new(),
                except: Vec::new(),
                acceleration: None,
                log_y: false,
                marks: Vec::new(),
                published: Vec::new(),
                groups: Vec::new(),
            };
            figures.extend(self.curve(&spec).map(Figure::Curve));
        }
        let groups: Vec<DistributionGroup> = self
            .treatments
            .iter()
            .filter(|treatment| treatment.twin_of.is_none())
            .filter_map(|t| self.group(t.label.clone(), metric, t.index))
            .collect();
        if groups.len() <= GROUPS_MAX {
            let title = format!("{metric} of every trial");
            let distribution = self.distribution_of(title, metric, groups);
            figures.extend(distribution.map(Figure::Distribution));
        }
        figures
    }
}

/// The box of some values; `None` of no value.
fn box_of(values: &[f64]) -> Option<MeasuredBox> {
    if values.is_empty() {
        return None;
    }
    let outliers = toll_stats::outliers(values);
    let within = values
        .iter()
        .enumerate()
        .filter(|(index, _)| !outliers.contains(index))
        .map(|(_, value)| *value);
    Some(MeasuredBox {
        quartiles: Quartiles {
            median: toll_stats::median(values),
            lower: toll_stats::quantile(values, 0.25),
            upper: toll_stats::quantile(values, 0.75),
        },
        low: within.clone().fold(f64::INFINITY, f64::min),
        high: within.fold(f64::NEG_INFINITY, f64::max),
        outliers: outliers.iter().map(|index| values[*index]).collect(),
        trials: values.len(),
    })
}

fn published_series(spec: &FigureSpec, report: Option<&str>) -> CurveSeries {
    CurveSeries {
        label: report.unwrap_or("report").to_owned(),
        published: true,
        treads: Vec::new(),
        points: spec
            .published
            .iter()
            .map(|(x, y)| CurvePoint {
                x: *x,
                y: Estimate {
                    value: *y,
                    low: *y,
                    high: *y,
                    confidence: 0.0,
                },
            })
            .collect(),
    }
}

/// Whether two selectors pick the same levels of the same factors.
fn same(a: &Selector, b: &Selector) -> bool {
    a.len() == b.len()
        && a.iter()
            .all(|(name, level)| b.get(name).is_some_and(|other| other.same(level)))
}
