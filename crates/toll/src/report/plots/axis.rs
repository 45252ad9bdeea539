//! Axes whose ticks people read: powers of two for sizes, 1-2-5 for the rest.

use crate::format;

/// How values lie along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps are equal differences.
    Linear,
    /// Equal steps are equal factors.
    Log,
}

/// One axis of a plot: its range in coordinates and its ticks.
#[derive(Debug, Clone)]
pub struct Axis {
    /// How values become coordinates.
    pub scale: Scale,
    /// Lower end, as a coordinate.
    pub low: f64,
    /// Upper end, as a coordinate.
    pub high: f64,
    /// Coordinate and label of every tick.
    pub ticks: Vec<(f64, String)>,
    /// What the axis shows.
    pub title: String,
}

/// Room beside the outermost value, as a share of the axis.
const PADDING: f64 = 0.03;
/// Values that span more than this factor need a logarithmic axis.
const LOG_SPAN: f64 = 20.0;
/// Most ticks of an axis for values of trials.
const TRIAL_TICKS_MAX: usize = 8;

impl Axis {
    /// An axis that holds all `values` that are finite (and, on a logarithmic
    /// scale, positive); `None` if there are none.
    #[must_use]
    pub fn over(
        values: impl Iterator<Item = f64>,
        scale: Scale,
        unit: &str,
        title: &str,
        ticks_max: usize,
    ) -> Option<Self> {
        let mut low = f64::INFINITY;
        let mut high = f64::NEG_INFINITY;
        for value in values.filter_map(|value| scale.coordinate(value)) {
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            return None;
        }
        let span = if high > low {
            high - low
        } else {
            // A single value still needs an axis to lie on.
            (low.abs() * 0.1).max(0.1)
        };
        let axis = Self {
            scale,
            low: low - span * PADDING,
            high: high + span * PADDING,
            ticks: Vec::new(),
            title: title.to_owned(),
        };
        Some(axis.with_ticks(unit, ticks_max))
    }

    /// An axis for values of trials: logarithmic, and called so, where they span
    /// more than a factor of 20.
    #[must_use]
    pub fn of_trials(
        values: impl Iterator<Item = f64> + Clone,
        metric: &str,
        unit: &str,
    ) -> Option<Self> {
        let smallest = values.clone().fold(f64::INFINITY, f64::min);
        let largest = values.clone().fold(f64::NEG_INFINITY, f64::max);
        let (scale, title) = match smallest > 0.0 && largest / smallest > LOG_SPAN {
            true => (Scale::Log, format!("{metric} (logarithmic)")),
            false => (Scale::Linear, metric.to_owned()),
        };
        Self::over(values, scale, unit, &title, TRIAL_TICKS_MAX)
    }

    /// An axis along rows that are labelled by themselves, the first at 1.
    #[must_use]
    pub fn of_rows(count: usize) -> Self {
        Self {
            scale: Scale::Linear,
            low: 0.5,
            high: count as f64 + 0.5,
            ticks: Vec::new(),
            title: String::new(),
        }
    }

    /// Starts a linear axis at zero.
    #[must_use]
    pub fn from_zero(mut self, unit: &str, ticks_max: usize) -> Self {
        if self.scale == Scale::Linear && self.low > 0.0 {
            self.low = 0.0;
        }
        self.with_ticks(unit, ticks_max)
    }

    /// Chooses ticks for the axis's range.
    #[must_use]
    pub fn with_ticks(mut self, unit: &str, ticks_max: usize) -> Self {
        let values = match (self.scale, unit) {
            (Scale::Linear, _) => linear_ticks(self.low, self.high, ticks_max),
            (Scale::Log, "bytes") => binary_ticks(self.low, self.high, ticks_max),
            (Scale::Log, _) => log_ticks(self.low, self.high, ticks_max),
        };
        self.ticks = values
            .into_iter()
            .filter_map(|value| Some((self.scale.coordinate(value)?, tick_label(value, unit))))
            .collect();
        self
    }
}

impl Scale {
    /// The coordinate of a value, if it has one on this scale.
    #[must_use]
    pub fn coordinate(self, value: f64) -> Option<f64> {
        match self {
            Self::Linear => value.is_finite().then_some(value),
            Self::Log => (value.is_finite() && value > 0.0).then(|| value.log10()),
        }
    }
}

/// A tick's label: the value without the zeros that only a table needs.
fn tick_label(value: f64, unit: &str) -> String {
    let text = format::value(value, unit);
    let (number, unit) = text.split_once('\u{a0}').unwrap_or((&text, ""));
    let number = if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    };
    if unit.is_empty() || number == "0" {
        number.to_owned()
    } else {
        format!("{number}\u{a0}{unit}")
    }
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn linear_ticks(low: f64, high: f64, ticks_max: usize) -> Vec<f64> {
    let span = high - low;
    let rough = span / ticks_max.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| span / step <= ticks_max as f64)
        .unwrap_or(10.0 * power);
    // Counting in steps rather than adding them keeps 0.3 from being
    // 0.30000000000000004.
    let first = (low / step - 1e-9).ceil();
    (0..=ticks_max)
        .map(|index| (first + index as f64) * step)
        .filter(|value| *value <= high + step * 1e-9)
        .collect()
}

/// Powers of two, every one or every second, fourth …
fn binary_ticks(low: f64, high: f64, ticks_max: usize) -> Vec<f64> {
    let (low, high) = (low / 2f64.log10(), high / 2f64.log10());
    let first = (low - 1e-9).ceil();
    let last = (high + 1e-9).floor();
    let step = [1.0, 2.0, 4.0, 8.0, 16.0]
        .into_iter()
        .find(|step| (last - first) / step < ticks_max as f64)
        .unwrap_or(32.0);
    let count = ((last - first) / step).max(0.0);
    (0..=ticks_max)
        .take_while(|index| *index as f64 <= count)
        .map(|index| 2f64.powf(first + index as f64 * step))
        .collect()
}

/// The densest of the usual steps in a decade that fits.
fn log_ticks(low: f64, high: f64, ticks_max: usize) -> Vec<f64> {
    // Less than a factor of 2 has too few of the usual steps.
    if high - low < 2f64.log10() {
        return linear_ticks(10f64.powf(low), 10f64.powf(high), ticks_max);
    }
    let steps: [&[f64]; 4] = [
        &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0],
        &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
        &[1.0, 2.0, 5.0],
        &[1.0, 3.0],
    ];
    for mantissas in steps {
        let ticks = decade_ticks(low, high, 1.0, mantissas);
        if ticks.len() <= ticks_max {
            return ticks;
        }
    }
    (1u32..)
        .map(|stride| decade_ticks(low, high, f64::from(stride), &[1.0]))
        .find(|ticks| ticks.len() <= ticks_max.max(2))
        .unwrap_or_default()
}

fn decade_ticks(low: f64, high: f64, stride: f64, mantissas: &[f64]) -> Vec<f64> {
    let mut ticks = Vec::new();
    let mut decade = (low / stride).floor() * stride;
    while decade <= high {
        for mantissa in mantissas {
            let position = decade + mantissa.log10();
            if position >= low - 1e-9 && position <= high + 1e-9 {
                ticks.push(mantissa * 10f64.powf(decade));
            }
        }
        decade += stride;
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[f64], scale: Scale, unit: &str, ticks_max: usize) -> String {
        let axis = Axis::over(values.iter().copied(), scale, unit, "", ticks_max).unwrap();
        let labels: Vec<_> = axis
            .ticks
            .into_iter()
            .map(|(_, label)| label.replace('\u{a0}', " "))
            .collect();
        labels.join(", ")
    }

    #[test]
    fn sizes_have_ticks_at_powers_of_two() {
        assert_eq!(
            labels(&[4096.0, 4_194_304.0], Scale::Log, "bytes", 7),
            "4 KiB, 16 KiB, 64 KiB, 256 KiB, 1 MiB, 4 MiB"
        );
        assert_eq!(
            labels(&[4096.0, 67_108_864.0], Scale::Log, "bytes", 6),
            "4 KiB, 64 KiB, 1 MiB, 16 MiB"
        );
    }

    #[test]
    fn other_logarithmic_axes_have_ticks_at_round_numbers() {
        assert_eq!(
            labels(&[0.4, 3.1], Scale::Log, "", 8),
            "0.5, 0.7, 1, 1.5, 2, 3"
        );
        assert_eq!(
            labels(&[0.95, 1.05], Scale::Log, "", 6),
            "0.96, 0.98, 1, 1.02, 1.04"
        );
        assert_eq!(
            labels(&[1e6, 2e9], Scale::Log, "ns", 5),
            "1 ms, 10 ms, 100 ms, 1 s"
        );
        assert_eq!(
            labels(&[1.0, 1e12], Scale::Log, "count", 5)
                .split(", ")
                .count(),
            5
        );
    }

    #[test]
    fn linear_axes_count_in_ones_twos_and_fives() {
        let axis = Axis::over([3e9, 26.3e9].into_iter(), Scale::Linear, "bytes/s", "", 6)
            .unwrap()
            .from_zero("bytes/s", 6);
        let labels: Vec<_> = axis.ticks.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(
            labels,
            [
                "0",
                "5\u{a0}GB/s",
                "10\u{a0}GB/s",
                "15\u{a0}GB/s",
                "20\u{a0}GB/s",
                "25\u{a0}GB/s"
            ]
        );
    }

    #[test]
    fn an_axis_survives_odd_values() {
        assert!(Axis::over(std::iter::empty(), Scale::Log, "", "", 5).is_none());
        assert!(Axis::over([f64::NAN, -1.0].into_iter(), Scale::Log, "", "", 5).is_none());
        let single = Axis::over([5.0].into_iter(), Scale::Linear, "", "", 5).unwrap();
        assert!(single.low < 5.0 && single.high > 5.0 && !single.ticks.is_empty());
        let wide = Axis::over([1e-300, 1e300].into_iter(), Scale::Log, "", "", 5).unwrap();
        assert!(wide.ticks.len() <= 5);
    }
}
