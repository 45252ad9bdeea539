//! The crate against worked examples in print.

use toll_stats::{
    BootstrapMethod, Region, cluster_bca, decision_p, hodges_lehmann, mean, outliers,
};

/// Test A of the spatial data: table 14.1 of Efron and Tibshirani, "An
/// introduction to the bootstrap" (1993).
const SPATIAL: [f64; 26] = [
    48.0, 36.0, 20.0, 29.0, 42.0, 42.0, 20.0, 42.0, 22.0, 41.0, 45.0, 14.0, 6.0, 0.0, 33.0, 28.0,
    34.0, 4.0, 32.0, 24.0, 47.0, 41.0, 24.0, 26.0, 30.0, 41.0,
];

fn variance(drawn: &[usize]) -> Option<f64> {
    let values: Vec<f64> = drawn.iter().map(|&i| SPATIAL[i]).collect();
    let centre = mean(&values);
    Some(values.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / values.len() as f64)
}

#[test]
fn the_variance_of_the_spatial_data_has_the_interval_of_efron_and_tibshirani() {
    // Table 14.2: 90 % BCa (115.8, 259.6) from 2000 replicates, ABC, its limit
    // without random draws, (116.7, 260.9). Percentiles give (100.8, 233.9).
    // The ends of 2000 replicates have standard errors of 1.9 and 3.6.
    let result = cluster_bca(SPATIAL.len(), variance, 0.9, 50_000, 1).unwrap();
    assert_eq!(result.method, BootstrapMethod::Bca);
    let interval = result.interval;
    assert!((interval.estimate - 171.5).abs() < 0.05, "{interval:?}");
    assert!((interval.low - 115.8).abs() < 1.9, "{interval:?}");
    assert!((interval.high - 259.6).abs() < 3.6, "{interval:?}");
}

#[test]
fn darwins_plants_have_the_p_value_of_fishers_reanalysis_by_ranks() {
    // Cross- less self-fertilised Zea mays in eighths of an inch: Darwin
    // (1876), in Fisher, "The design of experiments" (1935), section 17. The
    // signed ranks sum to 96, two-sided p 0.041 by the exact distribution.
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
