//! Walsh averages.

/// All n(n+1)/2 averages of two values, including a value with itself, in no particular order. The
/// signed-rank statistic for a centre is the number of averages above that centre (Tukey 1949;
/// Hollander, Wolfe and Chicken, "Nonparametric statistical methods" (2014), section 3.2).
pub(crate) struct WalshAverages(Vec<f64>);

impl WalshAverages {
    pub(crate) fn new(values: &[f64]) -> WalshAverages {
        assert!(!values.is_empty(), "no values");
        assert!(
            values.iter().all(|x| x.is_finite()),
            "a value is not finite"
        );
        let mut averages = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
        for (i, x) in values.iter().enumerate() {
            // Halved first, so that two huge values do not overflow.
            averages.extend(values[..=i].iter().map(|y| x * 0.5 + y * 0.5));
        }
        WalshAverages(averages)
    }

    pub(crate) fn into_averages(self) -> Vec<f64> {
        self.0
    }

    // Neither counting nor selecting a few by rank needs the averages in order.
    fn count(&self, is_counted: impl Fn(f64) -> bool) -> usize {
        self.0.iter().filter(|w| is_counted(**w)).count()
    }

    pub(crate) fn count_below(&self, x: f64) -> usize {
        self.count(|w| w < x)
    }

    pub(crate) fn count_at_most(&self, x: f64) -> usize {
        self.count(|w| w <= x)
    }

    pub(crate) fn count_above(&self, x: f64) -> usize {
        self.0.len() - self.count_at_most(x)
    }

    pub(crate) fn count_at_least(&self, x: f64) -> usize {
        self.0.len() - self.count_below(x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_strict_or_not_as_their_names_say() {
        let walsh = WalshAverages::new(&[2.0, 0.0, 4.0]);
        assert_eq!(walsh.count_below(2.0), 2);
        assert_eq!(walsh.count_at_most(2.0), 4);
        assert_eq!(walsh.count_above(2.0), 2);
        assert_eq!(walsh.count_at_least(2.0), 4);
        let mut averages = walsh.into_averages();
        averages.sort_by(f64::total_cmp);
        assert_eq!(averages, [0.0, 1.0, 2.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn huge_values_do_not_overflow() {
        let walsh = WalshAverages::new(&[f64::MAX, f64::MAX]);
        assert_eq!(walsh.into_averages(), [f64::MAX; 3]);
    }
}
