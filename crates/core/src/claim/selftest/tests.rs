use super::*;
use crate::plan::Plan;

fn one(delay_percent: u32, relation: Relation, low: f64, high: f64) -> Compared {
    Compared {
        delay_percent,
        relation,
        ratio: Estimate {
            value: low.midpoint(high),
            low,
            high,
            confidence: 0.95,
        },
        blocks: 10,
        reach: 0.004,
    }
}

fn identical(wrong: usize, right: usize) -> Vec<Compared> {
    let mut made = vec![one(0, Relation::Worse, 1.02, 1.04); wrong];
    made.extend(vec![one(0, Relation::Same, 0.996, 1.004); right]);
    made
}

fn delayed(found: usize, lost: usize) -> Vec<Compared> {
    let mut made = vec![one(5, Relation::Worse, 1.046, 1.054); found];
    made.extend(vec![one(5, Relation::Undecided, 0.98, 1.12); lost]);
    made
}

fn problems_of(made: &[Compared]) -> Vec<String> {
    report(1, Size::QUICK, made, 0, 0.0).problems
}

#[test]
fn each_comparison_is_of_two_treatments_and_a_twin_that_differ_by_the_share() {
    for percent in DELAYS_PERCENT {
        let experiment = experiment(percent).unwrap();
        let plan = Plan::new(&experiment, 1).unwrap();
        assert_eq!(plan.treatments.len(), 3);
        let bytes = |treatment: usize| plan.treatments[treatment].levels["size"].number.unwrap();
        let share = bytes(1) / bytes(0) - 1.0;
        let expected = f64::from(percent) / 100.0;
        assert!((share - expected).abs() < 1e-7, "{share} for {percent} %");
        let calls = |bytes: f64| (bytes / READ_BYTES as f64).ceil();
        assert_eq!(calls(bytes(1)), calls(bytes(0)) * (1.0 + expected));
        assert_eq!(plan.treatments[2].twin_of, Some(0));
    }
}

#[test]
fn a_schedule_has_what_was_asked_for_in_the_order_of_its_seed() {
    let order = Size::QUICK.schedule(7);
    let count = |percent: u32| order.iter().filter(|delay| **delay == percent).count();
    assert_eq!(DELAYS_PERCENT.map(count), [20, 10, 10, 10]);
    assert_eq!(order, Size::QUICK.schedule(7));
    assert_ne!(order, Size::QUICK.schedule(8));
    assert!(order[..20].contains(&5), "{order:?}");
}

#[test]
fn few_false_alarms_are_no_problem_and_many_are() {
    assert_eq!(problems_of(&identical(11, 80)), Vec::<String>::new());
    let problems = problems_of(&identical(12, 80));
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        problems[0].contains("identical work is wrong in 12 of 92"),
        "{problems:?}"
    );
    assert!(problems[1].contains("excludes 1"), "{problems:?}");
}

#[test]
fn each_false_alarm_asks_for_further_comparisons_until_the_rate_is_known() {
    let planned = |wrong, right| Size::QUICK.planned(&identical(wrong, right)) - 30;
    assert_eq!([planned(0, 0), planned(0, 20)], [20, 20]);
    assert_eq!([planned(1, 19), planned(2, 30)], [32, 44]);
    assert_eq!([planned(9, 60), planned(11, 100)], [125, 125]);
    // Once there are too many errors, only the scheduled comparisons are still made.
    assert_eq!([planned(12, 3), planned(12, 40)], [20, 52]);
    // An interval that misses 1 asks for more, too, although nothing is called different.
    let missed = one(0, Relation::Undecided, 1.004, 1.012);
    assert_eq!(Size::QUICK.planned(&[missed]), 62);
    assert_eq!(Size::FULL.planned(&identical(3, 90)), 350);
}

/// Returns the chance that a self-test finds a problem, and the mean number of comparisons
/// of identical work, if each of these is wrong with the chance `rate`. Both are exact: all
/// paths are summed.
fn chance_of_off(size: Size, rate: f64) -> (f64, f64) {
    let mut open = vec![1.0];
    let (mut off, mut mean) = (0.0, 0.0);
    for made in 1..=size.identical_max {
        let mut next = vec![0.0; made + 1];
        for (errors, chance) in open.iter().enumerate() {
            next[errors] += chance * (1.0 - rate);
            next[errors + 1] += chance * rate;
        }
        for (errors, chance) in next.iter_mut().enumerate() {
            if made >= size.identical_planned(made, errors) {
                mean += *chance * made as f64;
                off += f64::from(u8::from(errors >= size.errors_over)) * *chance;
                *chance = 0.0;
            }
        }
        open = next;
    }
    (off, mean)
}

#[test]
fn a_rate_is_over_5_percent_from_as_many_errors_on_as_the_exact_interval_says() {
    for size in [Size::QUICK, Size::FULL] {
        let low = |errors| clopper_pearson(errors, size.identical_max, CONFIDENCE).low;
        assert!(low(size.errors_over) > ALPHA && low(size.errors_over - 1) <= ALPHA);
    }
}

#[test]
fn the_quick_self_test_finds_a_rate_of_15_percent_in_nine_of_ten_and_is_short_on_a_sound_machine() {
    let (power, _) = chance_of_off(Size::QUICK, 0.15);
    assert!(power >= 0.9, "{power}");
    let (accused, _) = chance_of_off(Size::QUICK, 0.05);
    assert!(accused <= 0.025, "{accused}");
    let (accused, comparisons) = chance_of_off(Size::QUICK, 0.01);
    assert!(
        accused < 1e-5 && comparisons < 23.0,
        "{accused} {comparisons}"
    );
    // The full one has the same error rate, and overlooks less.
    let (power, _) = chance_of_off(Size::FULL, 0.15);
    assert!(power >= 0.99, "{power}");
    let (accused, _) = chance_of_off(Size::FULL, 0.05);
    assert!(accused <= 0.025, "{accused}");
}

#[test]
fn a_delay_that_is_not_found_is_a_problem_and_tells_the_noise() {
    assert_eq!(problems_of(&delayed(7, 3)), Vec::<String>::new());
    let problems = problems_of(&delayed(2, 8));
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("noise floor is 1"), "{problems:?}");
}

#[test]
fn longer_work_called_faster_or_the_same_is_wrong() {
    for relation in [Relation::Better, Relation::Same] {
        let made = vec![one(5, relation, 0.9, 0.95); 10];
        let report = report(1, Size::QUICK, &made, 0, 0.0);
        let arm = &report.arms[3];
        assert_eq!(
            (arm.wrong.count, arm.missed.count, arm.seen.count),
            (10, 10, 10)
        );
        assert!(!report.problems.is_empty());
    }
    // At the margin itself "the same" is right.
    let made = vec![one(1, Relation::Same, 1.009, 1.0099); 10];
    assert_eq!(report(1, Size::QUICK, &made, 0, 0.0).arms[1].wrong.count, 0);
}

#[test]
fn a_self_test_that_was_interrupted_at_once_accuses_nobody() {
    let report = report(1, Size::QUICK, &[], 0, 0.0);
    assert_eq!((report.noise_floor, report.problems.len()), (None, 0));
    assert_eq!(
        (report.arms[0].wrong.low, report.arms[0].wrong.high),
        (0.0, 1.0)
    );
}
