//! Tests the crate against published worked examples.

use toll_stats::{Region, decision_p, hodges_lehmann, outliers};

#[test]
fn darwins_plants_have_the_p_value_of_fishers_reanalysis_by_ranks() {
    // Cross-fertilised minus self-fertilised Zea mays in eighths of an inch: Darwin (1876), in
    // Fisher, "The design of experiments" (1935), section 17. The signed ranks sum to 96,
    // two-sided p 0.041 by the exact distribution.
    let differences = [
        49.0, -67.0, 8.0, 16.0, 6.0, 23.0, 28.0, 41.0, 14.0, 29.0, 56.0, 24.0, 75.0, 60.0, -48.0,
    ];
    let p = decision_p(&differences, Region::Below(0.0));
    assert!((p - 0.0413).abs() < 1e-4, "{p}");
    let interval = hodges_lehmann(&differences, 0.95);
    assert!(interval.low > 0.0, "{interval:?}");
}

#[test]
fn newcombs_two_bad_readings_of_light_are_the_outliers() {
    // Stigler, "Do robust estimators work with real data?", Annals of
    // Statistics 5 (1977), table 5: deviations from 24800 ns.
    let deviations = [
        28.0, 26.0, 33.0, 24.0, 34.0, -44.0, 27.0, 16.0, 40.0, -2.0, 29.0, 22.0, 24.0, 21.0, 25.0,
        30.0, 23.0, 29.0, 31.0, 19.0, 24.0, 20.0, 36.0, 32.0, 36.0, 28.0, 25.0, 21.0, 28.0, 29.0,
        37.0, 25.0, 28.0, 26.0, 30.0, 32.0, 36.0, 26.0, 30.0, 22.0, 36.0, 23.0, 27.0, 27.0, 28.0,
        27.0, 31.0, 27.0, 26.0, 33.0, 26.0, 32.0, 32.0, 24.0, 39.0, 28.0, 24.0, 25.0, 32.0, 25.0,
        29.0, 27.0, 28.0, 29.0, 16.0, 23.0,
    ];
    assert_eq!(deviations.len(), 66);
    assert_eq!(outliers(&deviations), [5, 9]);
}
