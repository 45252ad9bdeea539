//! Curves, distributions, boxes and bars.

use toll_wire::metric_words as words;

use super::CONFIDENCE;
use super::context::AnalysisContext;
use super::model::{
    Bar, BarChart, BoxGroup, BoxPlot, Curve, CurveMark, CurvePoint, CurveSeries, DerivedEstimate,
    Distribution, DistributionGroup, Estimate, Figure, FiveNumbers, MeasuredBox, Staircase,
};
use super::summary::without_extremes;
use crate::spec::{Factor, FigureKind, FigureSpec, GroupSpec, LineSpec, Selector};

/// Maximum number of groups of a distribution that is drawn by default; readers cannot distinguish
/// more.
const GROUPS_MAX: usize = 40;

struct Figures<'a> {
    context: &'a AnalysisContext<'a>,
    derived: &'a [DerivedEstimate],
    staircases: &'a [Staircase],
}

/// Draws the figures that an experiment asks for. If it asks for none, draws figures that fit its
/// factors. Figures without data are omitted.
pub(super) fn draw_all(
    context: &AnalysisContext,
    derived: &[DerivedEstimate],
    staircases: &[Staircase],
) -> Vec<Figure> {
    let figures = Figures {
        context,
        derived,
        staircases,
    };
    if context.experiment.figures.is_empty() {
        return figures.unasked();
    }
    context
        .experiment
        .figures
        .iter()
        .filter_map(|spec| match spec.kind {
            FigureKind::Curve => figures.curve(spec).map(Figure::Curve),
            FigureKind::Distribution => figures.distribution(spec).map(Figure::Distribution),
            FigureKind::Box => figures.boxes(spec).map(Figure::Box),
            FigureKind::Bar => figures.bars(spec).map(Figure::Bar),
        })
        .collect()
}

impl Figures<'_> {
    fn curve(&self, spec: &FigureSpec) -> Option<Curve> {
        let factor = self.context.experiment.factor(&spec.factor)?;
        let (mut series, selectors): (Vec<CurveSeries>, Vec<Selector>) = self
            .lines(spec)
            .into_iter()
            .flat_map(|line| {
                let points = self.points(spec, factor, &line.at);
                let published = line.published.iter().map(published_point).collect();
                [(points, false), (published, true)].map(|(points, published)| {
                    let series = CurveSeries {
                        label: line.label.clone(),
                        published,
                        points,
                        plateaus: Vec::new(),
                    };
                    (series, line.at.clone())
                })
            })
            .filter(|(series, _)| !series.points.is_empty())
            .unzip();
        if series.iter().all(|series| series.published) {
            return None;
        }
        for (line, id) in self.marked_lines(spec, &selectors) {
            if let Some(staircase) = self.staircase(id) {
                series[line].plateaus.clone_from(&staircase.plateaus);
            }
        }
        let unit = match spec.acceleration() {
            Some(_) => String::new(),
            None => self.context.metric(&spec.metric).unit,
        };
        Some(Curve {
            title: spec.title.clone(),
            factor: spec.factor.clone(),
            factor_unit: if factor.is_size {
                "bytes".into()
            } else {
                String::new()
            },
            metric: match spec.acceleration() {
                Some(_) => "acceleration ratio".into(),
                None => spec.metric.clone(),
            },
            unit,
            log_y: spec.log_y,
            series,
            marks: self.marks(spec, &selectors),
        })
    }

    /// Returns the lines of a curve: those that the file names, else one for each level of the
    /// series, else a single line.
    fn lines(&self, spec: &FigureSpec) -> Vec<LineSpec> {
        if !spec.lines.is_empty() {
            return spec.lines.clone();
        }
        let line = |label: String, at: Selector| LineSpec {
            label,
            at,
            published: Vec::new(),
        };
        let Some(name) = spec.series.as_deref() else {
            return vec![line("measured here".into(), spec.at.clone())];
        };
        let factor = self.context.experiment.factor(name).into_iter();
        let levels = factor.flat_map(|factor| {
            factor.levels.iter().map(|level| {
                let mut at = spec.at.clone();
                at.insert(name.to_owned(), level.clone());
                line(format!("{name}={}", factor.label(level)), at)
            })
        });
        levels.collect()
    }

    /// Returns the marks of the figure, each with the line that it was computed from.
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

    /// Returns the positions of lines, each with the derived quantities to mark on the line. These
    /// are the quantities over the same levels of the same metric.
    fn marked_lines<'a>(
        &'a self,
        spec: &'a FigureSpec,
        selectors: &'a [Selector],
    ) -> impl Iterator<Item = (usize, &'a str)> {
        let marked = spec.marks.iter().filter(|_| spec.acceleration().is_none());
        marked.filter_map(move |id| {
            let derived = self.context.derived(id)?;
            let of_line = |at: &Selector| same(at, &derived.at);
            let line = selectors.iter().position(of_line)?;
            let same_axes = derived.factor == spec.factor && derived.metric == spec.metric;
            same_axes.then_some((line, id.as_str()))
        })
    }

    /// Returns the staircase that contains a step.
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
                    self.context.pick(&selector).ok()
                };
                let y = match spec.acceleration() {
                    None => self.context.median(&spec.metric, with(&Selector::new())?)?,
                    Some((of, to)) => self.acceleration(&spec.metric, with(of)?, with(to)?)?,
                };
                Some(CurvePoint {
                    x: level.number?,
                    y,
                })
            })
            .collect()
    }

    /// Returns `1 - of/to` with its interval: that of the ratio `of/to`, subtracted from 1, which
    /// exchanges the ends.
    fn acceleration(&self, metric: &str, of: usize, to: usize) -> Option<Estimate> {
        let logs = self.context.accelerations(metric, of, to).ok()?;
        let ratio = toll_stats::hodges_lehmann(&logs, CONFIDENCE).map(f64::exp);
        Some(Estimate {
            value: 1.0 - ratio.estimate,
            low: 1.0 - ratio.high,
            high: 1.0 - ratio.low,
            confidence: ratio.confidence,
        })
    }

    fn distribution(&self, spec: &FigureSpec) -> Option<Distribution> {
        let factor = self.context.experiment.factor(&spec.factor)?;
        let groups: Vec<DistributionGroup> = factor
            .levels
            .iter()
            .filter(|level| !spec.except.iter().any(|except| except.same(level)))
            .filter_map(|level| {
                let mut selector = spec.at.clone();
                selector.insert(factor.name.clone(), level.clone());
                let index = self.context.pick(&selector).ok()?;
                self.group(factor.label(level), &spec.metric, index)
            })
            .collect();
        self.distribution_of(spec.title.clone(), &spec.metric, groups)
    }

    fn boxes(&self, spec: &FigureSpec) -> Option<BoxPlot> {
        let groups = spec.groups.iter().map(|group| BoxGroup {
            label: group.label.clone(),
            measured: self
                .treatment(group)
                .and_then(|index| box_of(&self.context.values(&spec.metric, index))),
            published: <[f64; 5]>::try_from(group.published.as_slice())
                .ok()
                .map(FiveNumbers::from),
        });
        let groups: Vec<BoxGroup> = groups.collect();
        let is_measured = groups.iter().any(|group| group.measured.is_some());
        is_measured.then(|| BoxPlot {
            title: spec.title.clone(),
            report: self.context.experiment.report.clone().unwrap_or_default(),
            metric: spec.metric.clone(),
            unit: self.context.metric(&spec.metric).unit,
            groups,
        })
    }

    fn bars(&self, spec: &FigureSpec) -> Option<BarChart> {
        let mut groups = spec.groups.iter();
        let reference = groups.find(|group| Some(&group.label) == spec.relative_to.as_ref());
        let bars = spec.groups.iter().map(|group| {
            let treatment = self.treatment(group);
            let median = treatment.and_then(|index| self.context.median(&spec.metric, index));
            let ratio = |reference: &GroupSpec| {
                self.context
                    .ratio(&spec.metric, treatment?, self.treatment(reference)?)
            };
            let published = group.published.first().copied();
            Bar {
                label: group.label.clone(),
                median,
                length: reference.map_or(median, ratio),
                published: match reference {
                    None => published,
                    Some(to) => published.and_then(|value| Some(value / to.published.first()?)),
                },
            }
        });
        let bars: Vec<Bar> = bars.collect();
        let is_measured = bars.iter().any(|bar| bar.length.is_some());
        is_measured.then(|| BarChart {
            title: spec.title.clone(),
            report: self.context.experiment.report.clone().unwrap_or_default(),
            metric: spec.metric.clone(),
            unit: self.context.metric(&spec.metric).unit,
            relative_to: spec.relative_to.clone(),
            bars,
        })
    }

    fn treatment(&self, group: &GroupSpec) -> Option<usize> {
        self.context.pick(&group.at).ok()
    }

    fn group(&self, label: String, metric: &str, treatment: usize) -> Option<DistributionGroup> {
        let values = self.context.values(metric, treatment);
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
            unit: self.context.metric(metric).unit,
            groups,
        })
    }

    /// Returns the default figures: a curve if the only varying factor is numeric, and the
    /// distribution over all treatments.
    fn unasked(&self) -> Vec<Figure> {
        let metric = &self.context.experiment.metric;
        let mut figures = Vec::new();
        let varying: Vec<&Factor> = self
            .context
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
                title: format!("{} by {}", words(metric), factor.name),
                factor: factor.name.clone(),
                metric: metric.clone(),
                ..FigureSpec::default()
            };
            figures.extend(self.curve(&spec).map(Figure::Curve));
        }
        let groups: Vec<DistributionGroup> = self
            .context
            .treatments
            .iter()
            .filter(|treatment| treatment.twin_of.is_none())
            .filter_map(|t| self.group(t.label.clone(), metric, t.index))
            .collect();
        if groups.len() <= GROUPS_MAX {
            let title = format!("{} of every trial", words(metric));
            let distribution = self.distribution_of(title, metric, groups);
            figures.extend(distribution.map(Figure::Distribution));
        }
        figures
    }
}

/// Returns the box of some values; `None` without values.
fn box_of(values: &[f64]) -> Option<MeasuredBox> {
    if values.is_empty() {
        return None;
    }
    let within = without_extremes(values);
    let quantile = |share| toll_stats::quantile(values, share);
    let outliers = toll_stats::outliers(values);
    Some(MeasuredBox {
        numbers: FiveNumbers::from([
            within.iter().copied().fold(f64::INFINITY, f64::min),
            quantile(0.25),
            quantile(0.5),
            quantile(0.75),
            within.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        ]),
        outliers: outliers.iter().map(|index| values[*index]).collect(),
        trials: values.len(),
    })
}

fn published_point((x, y): &(f64, f64)) -> CurvePoint {
    CurvePoint {
        x: *x,
        y: Estimate {
            value: *y,
            low: *y,
            high: *y,
            confidence: 0.0,
        },
    }
}

/// Returns whether two selectors pick the same levels of the same factors.
fn same(a: &Selector, b: &Selector) -> bool {
    a.len() == b.len()
        && a.iter()
            .all(|(name, level)| b.get(name).is_some_and(|other| other.same(level)))
}
