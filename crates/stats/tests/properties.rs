//! Properties that hold for any data: equivariance, order, agreement of test and interval.

use proptest::collection::vec;
use proptest::prelude::*;
use toll_stats::{
    Decision, Knee, Looks, Region, Spread, decide, decision_p, fit_cost_model, hodges_lehmann,
    holm, median, median_interval, outliers, quantile, step, zero_crossing,
};

/// Multiples of a quarter. Their sums, halves and shifts are exact, so tests can require equality,
/// and ties and hits on a border are frequent.
fn quarters(length: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Vec<f64>> {
    vec((-40i32..40).prop_map(|x| f64::from(x) / 4.0), length)
}

fn quarter() -> impl Strategy<Value = f64> {
    (-48i32..48).prop_map(|x| f64::from(x) / 4.0)
}

fn region() -> impl Strategy<Value = Region> {
    prop_oneof![
        quarter().prop_map(Region::Below),
        quarter().prop_map(Region::Above),
        (quarter(), 0i32..20)
            .prop_map(|(from, width)| Region::Within(from, from + f64::from(width) / 4.0)),
    ]
}

/// Common levels, the levels of Holm's steps, and exactly the levels that 5 to 8 values can attain.
fn level() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.05),
        Just(0.01),
        Just(0.1),
        (1u32..40).prop_map(|m| 0.05 / f64::from(m)),
        (1u32..200).prop_map(|count| f64::from(count) / 256.0),
        0.001..0.9,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_verdict_is_reached_exactly_where_its_p_is_at_most_the_level(
        values in quarters(1..30),
        region in region(),
        level in level(),
    ) {
        let interval = hodges_lehmann(&values, 1.0 - level);
        let decision = decide(&interval, region);
        let p = decision_p(&values, region);
        // Too few values for the level give the widest possible interval, at another level. No
        // verdict may be drawn from it.
        if interval.reaches(1.0 - level) {
            prop_assert_eq!(decision != Decision::Inconclusive, p <= level, "p {}", p);
        } else {
            prop_assert!(p > level, "p {}", p);
            // One value has p = 1 whichever way it decides.
            if values.len() > 1 {
                let p_allows = p <= 2.0 * 0.5f64.powi(values.len() as i32);
                prop_assert_eq!(decision != Decision::Inconclusive, p_allows, "p {}", p);
            }
        }
    }

    #[test]
    fn the_three_claims_about_one_threshold_never_contradict_each_other(
        low in quarter(),
        width in 0.0..6.0f64,
        threshold in quarter(),
        margin in 0.0..4.0f64,
    ) {
        let interval = toll_stats::Interval {
            estimate: low,
            low,
            high: low + width,
            confidence: 0.95,
        };
        let (from, to) = (threshold - margin, threshold + margin);
        let all = [Region::Below(from), Region::Within(from, to), Region::Above(to)]
            .map(|region| decide(&interval, region));
        let count = |decision| all.iter().filter(|&&d| d == decision).count();
        prop_assert!(count(Decision::Supported) <= 1);
        prop_assert!(count(Decision::Refuted) <= 2);
        if count(Decision::Supported) == 1 {
            prop_assert_eq!(count(Decision::Refuted), 2);
        }
    }

    #[test]
    fn mirrored_values_have_the_mirrored_verdict(
        values in quarters(1..20),
        threshold in quarter(),
        margin in (0i32..20).prop_map(|x| f64::from(x) / 4.0),
    ) {
        let mirrored: Vec<f64> = values.iter().map(|x| -x).collect();
        let (from, to) = (threshold - margin, threshold + margin);
        for (region, mirror) in [
            (Region::Below(from), Region::Above(-from)),
            (Region::Within(from, to), Region::Within(-to, -from)),
        ] {
            prop_assert_eq!(decision_p(&values, region), decision_p(&mirrored, mirror));
        }
    }

    #[test]
    fn intervals_move_and_stretch_with_the_values(
        values in quarters(1..25),
        shift in quarter(),
        power in -3i32..4,
    ) {
        let scale = 2f64.powi(power);
        let moved: Vec<f64> = values.iter().map(|x| scale * x + shift).collect();
        for method in [hodges_lehmann, median_interval] {
            let expected = method(&values, 0.9).map(|x| scale * x + shift);
            prop_assert_eq!(method(&moved, 0.9), expected);
        }
        prop_assert_eq!(quantile(&moved, 0.25), scale * quantile(&values, 0.25) + shift);
        prop_assert_eq!(outliers(&moved), outliers(&values));
    }

    #[test]
    fn intervals_mirror_with_the_values(values in quarters(1..25)) {
        let mirrored: Vec<f64> = values.iter().map(|x| -x).collect();
        for method in [hodges_lehmann, median_interval] {
            let (interval, mirror) = (method(&values, 0.9), method(&mirrored, 0.9));
            prop_assert_eq!((interval.low, interval.high), (-mirror.high, -mirror.low));
            prop_assert_eq!(interval.estimate, -mirror.estimate);
        }
    }

    #[test]
    fn the_order_of_the_values_does_not_matter(
        (values, shuffled) in vec(-1e3..1e3f64, 1..25)
            .prop_flat_map(|v| (Just(v.clone()), Just(v).prop_shuffle())),
    ) {
        prop_assert_eq!(hodges_lehmann(&values, 0.9), hodges_lehmann(&shuffled, 0.9));
        prop_assert_eq!(median_interval(&values, 0.9), median_interval(&shuffled, 0.9));
        prop_assert_eq!(median(&values), median(&shuffled));
        let p = |values: &[f64]| decision_p(values, Region::Within(-1.0, 1.0));
        prop_assert_eq!(p(&values), p(&shuffled));
    }

    #[test]
    fn more_confidence_never_narrows_an_interval(
        values in vec(-1e3..1e3f64, 1..40),
        lower in 0.01..0.99f64,
        higher in 0.01..0.999f64,
    ) {
        let (lower, higher) = (lower.min(higher), lower.max(higher));
        for method in [hodges_lehmann, median_interval] {
            let (narrow, wide) = (method(&values, lower), method(&values, higher));
            prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high);
            prop_assert!(narrow.confidence <= wide.confidence);
            prop_assert!(narrow.contains(narrow.estimate));
            let widest = method(&values, 1.0 - 1e-15);
            prop_assert!(narrow.reaches(lower) || narrow == widest);
        }
    }

    #[test]
    fn holm_rejects_between_bonferroni_and_no_correction(
        p_values in vec(0.0..0.2f64, 1..30),
        alpha in 0.001..0.3f64,
    ) {
        let steps = holm(&p_values, alpha);
        let bonferroni = alpha / p_values.len() as f64;
        for (step, &p) in steps.iter().zip(&p_values) {
            prop_assert!(!step.rejected || p <= alpha);
            prop_assert!(step.rejected || p > bonferroni);
            prop_assert_eq!(step.rejected, p <= step.level);
            prop_assert!(step.level >= bonferroni && step.level <= alpha);
            prop_assert!(step.adjusted_p >= p);
            for (other, &other_p) in steps.iter().zip(&p_values) {
                prop_assert!(p > other_p || step.adjusted_p <= other.adjusted_p);
            }
        }
    }

    #[test]
    fn a_cost_model_is_never_negative_and_no_neighbour_fits_better(
        points in vec((1.0..1e4f64, 1.0..1e7f64, 1.0..1e6f64), 2..12),
    ) {
        let calls: Vec<f64> = points.iter().map(|p| p.0).collect();
        let bytes: Vec<f64> = points.iter().map(|p| p.1).collect();
        let time: Vec<f64> = points.iter().map(|p| p.2).collect();
        if let Some(model) = fit_cost_model(&calls, &bytes, &time) {
            prop_assert!(model.per_call >= 0.0 && model.per_byte >= 0.0);
            let rms = |per_call: f64, per_byte: f64| {
                let squares = points.iter().map(|(c, b, t)| {
                    (1.0 - (c * per_call + b * per_byte) / t).powi(2)
                });
                (squares.sum::<f64>() / points.len() as f64).sqrt()
            };
            let best = rms(model.per_call, model.per_byte);
            prop_assert!((best - model.relative_residual_rms).abs() < 1e-9);
            for (call_step, byte_step) in [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)] {
                let per_call = (model.per_call + call_step * 1e-3).max(0.0);
                let per_byte = (model.per_byte + byte_step * 1e-6).max(0.0);
                prop_assert!(rms(per_call, per_byte) >= best - 1e-9);
            }
        }
    }

    #[test]
    fn a_knee_is_the_first_level_that_is_good_enough(
        throughput in vec(0.1..100.0f64, 2..20),
        tolerance in 0.0..0.5f64,
    ) {
        let levels: Vec<f64> = (0..throughput.len()).map(|i| 2f64.powi(i as i32)).collect();
        let logs: Vec<Vec<f64>> = throughput.iter().map(|x| vec![x.ln(); 3]).collect();
        let knee = Knee::new(&levels, &logs, tolerance).interval(0.5).estimate;
        let at = levels.iter().position(|&level| level == knee).unwrap();
        let best = throughput.iter().copied().fold(0.0, f64::max);
        let enough = (1.0 - tolerance) * best;
        prop_assert!(throughput[at] >= enough * (1.0 - 1e-12));
        prop_assert!(throughput[..at].iter().all(|x| *x < enough * (1.0 + 1e-12)));
    }

    #[test]
    fn a_crossing_lies_between_the_levels_on_either_side_of_it(
        values in vec(-5.0..5.0f64, 1..12),
    ) {
        let levels: Vec<f64> = (0..values.len()).map(|i| 2f64.powi(i as i32)).collect();
        let series: Vec<Vec<f64>> = values.iter().map(|x| vec![*x; 3]).collect();
        let crossing = zero_crossing(&levels, &series, 0.5).estimate;
        match values.iter().position(|x| *x <= 0.0) {
            None => prop_assert_eq!(crossing, f64::INFINITY),
            Some(0) => prop_assert_eq!(crossing, levels[0]),
            Some(after) => {
                let slack = 1.0 + 1e-12;
                prop_assert!(crossing * slack >= levels[after - 1]);
                prop_assert!(crossing <= levels[after] * slack);
            }
        }
    }

    #[test]
    fn intervals_of_derived_quantities_hold_their_estimate_and_grow_with_confidence(
        logs in (2..9usize, 2..14usize).prop_flat_map(|(levels, blocks)| {
            vec(vec(-1.0..1.0f64, blocks..=blocks), levels..=levels)
        }),
        number in 1..3usize,
        tolerance in 0.0..0.5f64,
    ) {
        let levels: Vec<f64> = (0..logs.len()).map(|i| 2f64.powi(i as i32)).collect();
        let all = |confidence| [
            Some(Knee::new(&levels, &logs, tolerance).interval(confidence)),
            Some(zero_crossing(&levels, &logs, confidence)),
            Some(Spread::new(&logs).interval(confidence)),
            step(&levels, &logs, number, 0.1, 1, confidence),
        ];
        for (narrow, wide) in all(0.5).into_iter().zip(all(0.99)) {
            prop_assert_eq!(narrow.is_some(), wide.is_some());
            if let Some((narrow, wide)) = narrow.zip(wide) {
                prop_assert!(narrow.contains(narrow.estimate), "{narrow:?}");
                prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high);
                prop_assert_eq!(narrow.estimate, wide.estimate);
                prop_assert!((0.0..1.0).contains(&wide.confidence));
            }
        }
    }

    #[test]
    fn looks_never_make_an_error_smaller_and_more_of_them_never_make_it_less(
        first in 1usize..30,
        more in 0usize..100,
        tail in 1e-6..0.4f64,
    ) {
        let looks = Looks { first, last: first + more };
        let longer = Looks { first, last: first + more + 1 };
        for blocks in [first, first + more] {
            let error = looks.at(blocks).error(tail);
            prop_assert!(tail <= error && error <= 1.0, "{}", error);
            prop_assert!(error <= longer.at(blocks).error(tail));
        }
        prop_assert!(looks.is_look(first) && looks.is_look(looks.last));
        prop_assert!(!looks.is_look(first - 1));
    }
}
