//! What is shown beside the verdicts: published tables, figures, advice.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::published::{self, Printed, Published, Several};
use super::selector::join;
use super::{Level, Selector};

/// A published table. An experiment file has rows of one quantity, or several
/// quantities under the same conditions; `finished` turns both into quantities
/// with rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    pub title: String,
    /// Short name of the publication.
    #[serde(default)]
    pub report: String,
    /// Label of the row that is the denominator of ratios, in each quantity.
    pub relative_to: Option<String>,
    /// Which mean and standard deviation to show beside the median, if any.
    pub mean: Option<TableMean>,
    /// Note for the reader.
    pub note: Option<String>,
    /// Quantities of the table. A single quantity without a label is the whole table.
    #[serde(default)]
    pub quantities: Vec<TableQuantity>,
    #[serde(default, skip_serializing)]
    metric: Option<String>,
    #[serde(default, skip_serializing)]
    unit: Option<String>,
    #[serde(default, skip_serializing)]
    scale: Option<f64>,
    #[serde(default, skip_serializing)]
    at: Selector,
    #[serde(default, skip_serializing)]
    rows: Vec<TableRow>,
    #[serde(default, skip_serializing)]
    conditions: Vec<TableCondition>,
}

/// The trials that a table's mean is taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableMean {
    All,
    /// The trials within 1.5 interquartile ranges of the quartiles.
    WithoutExtremes,
}

/// One quantity of a published table, under several conditions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableQuantity {
    /// Name of the quantity.
    pub label: Option<String>,
    /// Metric of the measured column.
    pub metric: String,
    /// Metric of the same trial to divide by.
    pub per: Option<String>,
    /// Unit of the published column.
    #[serde(default)]
    pub unit: String,
    /// Base units of the metric in one published unit, such as 512 bytes in a
    /// block; `None` if the two cannot be converted, or need not be.
    pub scale: Option<f64>,
    #[serde(default)]
    pub rows: Vec<TableRow>,
    /// Values of the rows, by condition of the table. A value that is `nan` or an empty text was
    /// not published, or cannot be read.
    #[serde(default, skip_serializing)]
    published: Several,
    #[serde(default, skip_serializing)]
    deviation: Vec<f64>,
    #[serde(default, skip_serializing)]
    text: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableCondition {
    label: String,
    at: Selector,
    /// Column of the report's table that has the numbers of quantities for this condition.
    #[serde(default)]
    column: String,
}

/// A row of a published table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "WrittenRow")]
#[schemars(!from)]
pub struct TableRow {
    /// Row heading.
    pub label: String,
    /// Levels of the corresponding treatment; empty if there is none.
    pub at: Selector,
    /// Published value in the group's published unit.
    pub published: Option<f64>,
    /// Published standard deviation of the value.
    pub deviation: Option<f64>,
    /// Words that replace a published number, or are shown beside it.
    pub text: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRow {
    label: String,
    #[serde(default)]
    at: Selector,
    published: Option<Published>,
    deviation: Option<f64>,
    text: Option<String>,
}

impl From<WrittenRow> for TableRow {
    fn from(written: WrittenRow) -> Self {
        let printed = written.published.map(|Published(printed)| printed);
        Self {
            label: written.label,
            at: written.at,
            published: printed.map(|printed| printed.value),
            deviation: written
                .deviation
                .or(printed.and_then(|printed| printed.deviation)),
            text: written.text,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureSpec {
    pub title: String,
    pub kind: FigureKind,
    /// Factor of the horizontal axis, or the factor whose levels are the groups; empty for boxes
    /// and bars.
    #[serde(default)]
    pub factor: String,
    #[serde(default)]
    pub metric: String,
    /// Factor whose levels make the lines of a curve.
    pub series: Option<String>,
    /// Levels of the other factors.
    #[serde(default)]
    pub at: Selector,
    /// Levels of a distribution's factor that are left out.
    #[serde(default)]
    pub except: Vec<Level>,
    pub(crate) acceleration_of: Option<Selector>,
    pub(crate) acceleration_to: Option<Selector>,
    #[serde(default)]
    pub log_y: bool,
    #[serde(default)]
    pub marks: Vec<String>,
    /// Lines of a curve, given one by one.
    #[serde(default)]
    pub lines: Vec<LineSpec>,
    /// Groups of a box plot, or bars.
    #[serde(default)]
    pub groups: Vec<GroupSpec>,
    /// Base units in one unit of the published values of groups or lines.
    pub(crate) scale: Option<f64>,
    /// Label of the bar that is the denominator if bars are drawn as ratios.
    pub relative_to: Option<String>,
}

/// A line of a curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineSpec {
    pub label: String,
    /// Levels of the treatments that the line shows, except those of the factor.
    #[serde(default)]
    pub at: Selector,
    /// Published points in base units.
    #[serde(default, deserialize_with = "published::points")]
    pub published: Vec<(f64, f64)>,
}

/// One group of a box plot, or one bar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSpec {
    pub label: String,
    /// The treatment that the group or bar shows.
    pub at: Selector,
    /// For a box: lower whisker, lower quartile, median, upper quartile and upper whisker. For a
    /// bar: the bar's length.
    #[serde(default, deserialize_with = "published::values")]
    pub published: Vec<f64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// A metric against a numeric factor.
    #[default]
    Curve,
    Distribution,
    /// Quartiles and whiskers of treatments beside published ones.
    Box,
    /// Medians of treatments beside published values.
    Bar,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdviceSpec {
    pub topic: String,
    pub kind: AdviceKind,
    /// Factor whose levels are the choices.
    pub factor: String,
    #[serde(default)]
    pub metric: String,
    /// Factors; separate advice is given for each combination of their levels.
    #[serde(default)]
    pub each: Vec<String>,
    /// Levels of the other factors.
    #[serde(default)]
    pub at: Selector,
    /// Levels that are measured but never advised.
    #[serde(default)]
    pub except: Vec<Level>,
    /// For a cost: the factor that varies the number of calls.
    pub over: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdviceKind {
    /// The best level, and all levels that are not distinguishable from it.
    Best,
    /// The smallest level beyond which nothing is gained.
    Saturation,
    /// Cost per call and per byte of each level, over another factor.
    Cost,
}

fn is_scale(scale: f64) -> bool {
    scale.is_finite() && scale > 0.0
}

impl Table {
    /// Turns what an experiment file says into quantities with rows, and checks them.
    pub(super) fn finished(mut self, metric: &str, report: Option<&str>) -> Result<Self, String> {
        let cannot = |why: &str| format!("cannot use table {:?}: {why}", self.title);
        let is_matrix = !(self.conditions.is_empty() && self.quantities.is_empty());
        let of_one = self.metric.is_some() || self.unit.is_some() || self.scale.is_some();
        match (self.rows.is_empty(), is_matrix) {
            (false, false) if self.unit.is_none() => {
                return Err(cannot("it needs the unit of the published values"));
            }
            (true, true) if of_one => {
                return Err(cannot("give each quantity its own metric, unit and scale"));
            }
            (false, false) | (true, true) => {}
            _ => return Err(cannot("it needs either rows, or conditions and quantities")),
        }
        let conditions = std::mem::take(&mut self.conditions);
        for quantity in &mut self.quantities {
            let filled = quantity.fill_rows(&conditions);
            filled.map_err(|why| format!("cannot use table {:?}: {why}", self.title))?;
        }
        if !is_matrix {
            self.quantities.push(TableQuantity {
                metric: self.metric.take().unwrap_or_else(|| metric.to_owned()),
                unit: self.unit.take().unwrap_or_default(),
                scale: self.scale.take(),
                rows: std::mem::take(&mut self.rows),
                ..TableQuantity::default()
            });
        }
        let at = std::mem::take(&mut self.at);
        let rows = self.quantities.iter_mut().flat_map(|one| &mut one.rows);
        for row in rows.filter(|row| is_matrix || !row.at.is_empty()) {
            join(&mut row.at, &at);
        }
        if self.report.is_empty() {
            report.unwrap_or_default().clone_into(&mut self.report);
        }
        self.check()?;
        Ok(self)
    }

    /// Checks what does not depend on other parts of the experiment.
    pub(super) fn check(&self) -> Result<(), String> {
        for quantity in &self.quantities {
            let checked = quantity.check();
            checked.map_err(|why| format!("cannot use table {:?}: {why}", self.title))?;
        }
        let has = |label: &str| {
            let mut quantities = self.quantities.iter();
            quantities.all(|one| one.rows.iter().any(|row| row.label == label))
        };
        match &self.relative_to {
            Some(label) if !has(label) => Err(format!(
                "cannot relate table to row {label:?}: there is no such row"
            )),
            _ => Ok(()),
        }
    }
}

impl TableQuantity {
    /// Makes a row for each condition.
    fn fill_rows(&mut self, conditions: &[TableCondition]) -> Result<(), String> {
        let count = conditions.len();
        let fits = |length: usize| length == 0 || length == count;
        let published = self.by_condition(conditions)?;
        if count == 0
            || published.len() != count
            || !fits(self.deviation.len())
            || !fits(self.text.len())
            || !self.rows.is_empty()
        {
            return Err(format!(
                "{:?} needs one published number per condition ({count} in all), and as many \
                 deviations and texts if there are any",
                self.label.as_deref().unwrap_or_default()
            ));
        }
        let deviation = std::mem::take(&mut self.deviation);
        let text = std::mem::take(&mut self.text);
        let typed = |index: usize| deviation.get(index).copied().filter(|one| !one.is_nan());
        let rows = conditions.iter().zip(published).enumerate();
        let rows = rows.map(|(index, (condition, published))| TableRow {
            label: condition.label.clone(),
            at: condition.at.clone(),
            published: published.map(|printed| printed.value),
            deviation: typed(index).or(published.and_then(|printed| printed.deviation)),
            text: text.get(index).filter(|text| !text.is_empty()).cloned(),
        });
        self.rows = rows.collect();
        Ok(())
    }

    /// Returns what was published for each condition.
    fn by_condition(
        &mut self,
        conditions: &[TableCondition],
    ) -> Result<Vec<Option<Printed>>, String> {
        match std::mem::take(&mut self.published) {
            Several::Named(name) => {
                let columns = conditions.iter().map(|one| one.column.as_str());
                published::by_column(&name, &columns.collect::<Vec<_>>())
            }
            Several::One(value) => Ok(vec![Some(value.into())]),
            // The rows of a quantity may have texts and no numbers.
            Several::Typed(values) if values.is_empty() && !self.text.is_empty() => {
                Ok(vec![None; conditions.len()])
            }
            Several::Typed(values) => {
                let printed = values.into_iter();
                Ok(printed
                    .map(|one| (!one.is_nan()).then(|| one.into()))
                    .collect())
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.scale.is_some_and(|scale| !is_scale(scale)) {
            return Err("scale must be a number above 0".into());
        }
        let is_spread = |deviation: f64| deviation.is_finite() && deviation >= 0.0;
        let wrong = self.rows.iter().find(|row| {
            row.deviation
                .is_some_and(|deviation| row.published.is_none() || !is_spread(deviation))
        });
        match wrong {
            Some(row) => Err(format!(
                "the deviation of row {:?} must be a number of 0 or more, and needs a published value",
                row.label
            )),
            None => Ok(()),
        }
    }
}

impl FigureSpec {
    /// Returns the two sides whose acceleration is drawn instead of the metric.
    pub fn acceleration(&self) -> Option<(&Selector, &Selector)> {
        self.acceleration_of
            .as_ref()
            .zip(self.acceleration_to.as_ref())
    }

    /// Checks what only some kinds of figures have, and fills in what all parts share.
    pub(super) fn finished(mut self, metric: &str) -> Result<Self, String> {
        self.check()
            .map_err(|why| format!("cannot draw {:?}: {why}", self.title))?;
        if self.metric.is_empty() {
            self.metric = metric.to_owned();
        }
        let sides = [&mut self.acceleration_of, &mut self.acceleration_to];
        let lines = self.lines.iter_mut().map(|line| &mut line.at);
        let groups = self.groups.iter_mut().map(|group| &mut group.at);
        for at in lines.chain(groups).chain(sides.into_iter().flatten()) {
            join(at, &self.at);
        }
        let scale = self.scale.take().unwrap_or(1.0);
        let groups = self.groups.iter_mut();
        let of_groups = groups.flat_map(|group| &mut group.published);
        let lines = self.lines.iter_mut();
        let of_lines = lines.flat_map(|line| &mut line.published).map(|(_, y)| y);
        of_groups.chain(of_lines).for_each(|value| *value *= scale);
        Ok(self)
    }

    fn check(&self) -> Result<(), String> {
        let has_groups = matches!(self.kind, FigureKind::Box | FigureKind::Bar);
        let why = match (has_groups, self.groups.is_empty(), self.factor.is_empty()) {
            _ if !self.lines.is_empty()
                && (self.kind != FigureKind::Curve || self.series.is_some()) =>
            {
                "`lines` needs kind = \"curve\"; with `lines`, leave out `series`"
            }
            _ if self.relative_to.is_some() && self.kind != FigureKind::Bar => {
                "`relative_to` needs kind = \"bar\"; leave it out"
            }
            _ if self.acceleration_of.is_some() != self.acceleration_to.is_some() => {
                "give both acceleration_of and acceleration_to, or neither"
            }
            (true, false, true) => return self.check_groups(),
            (true, ..) => "boxes and bars need groups and take no factor",
            (false, true, false)
                if self
                    .scale
                    .is_none_or(|scale| is_scale(scale) && !self.lines.is_empty()) =>
            {
                return Ok(());
            }
            (false, ..) => {
                "a curve or distribution needs a factor and takes no groups; `scale` needs \
                 `lines`, and must be above 0"
            }
        };
        Err(why.to_owned())
    }

    fn check_groups(&self) -> Result<(), String> {
        let has = |label: &String| self.groups.iter().any(|group| group.label == *label);
        if let Some(label) = self.relative_to.as_ref().filter(|label| !has(label)) {
            return Err(format!(
                "there is no bar {label:?}, which relative_to names"
            ));
        }
        if self.scale.is_some_and(|scale| !is_scale(scale)) {
            return Err("scale must be a number above 0".into());
        }
        for published in self.groups.iter().map(|group| &group.published) {
            let is_right = match self.kind {
                FigureKind::Bar => published.len() <= 1,
                _ => matches!(published.len(), 0 | 5),
            };
            if !is_right {
                return Err(
                    "published is one number for a bar, and for a box lower whisker, lower \
                     quartile, median, upper quartile and upper whisker"
                        .into(),
                );
            }
            if !(published.iter().all(|value| value.is_finite()) && published.is_sorted()) {
                return Err(
                    "published numbers must be finite, and those of a box must ascend".into(),
                );
            }
        }
        Ok(())
    }
}

impl AdviceSpec {
    pub(super) fn finished(mut self, metric: &str) -> Result<Self, String> {
        if self.metric.is_empty() {
            self.metric = metric.to_owned();
        }
        match (self.kind, &self.over) {
            (AdviceKind::Cost, None) => {
                Err("cannot advise on cost: over must name the factor that varies the calls".into())
            }
            (AdviceKind::Best | AdviceKind::Saturation, Some(_)) => Err(
                "cannot use `over` here: only advice with `kind = \"cost\"` takes it; remove it"
                    .into(),
            ),
            _ => Ok(self),
        }
    }
}
