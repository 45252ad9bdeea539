use super::*;
use crate::plan::Plan;

fn one(delay_percent: u32, relation: Relation, low: f64, high: f64) -> Compared {
    Compared {
        delay_percent,
        relation,
        ratio: low.midpoint(high),
        low,
        high,
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
    report(1, made.len(), made, 0, 0.0).problems
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
    let order = schedule(20, 10, 7);
    let count = |percent: u32| order.iter().filter(|delay| **delay == percent).count();
    assert_eq!(DELAYS_PERCENT.map(count), [20, 10, 10, 10]);
    assert_eq!(order, schedule(20, 10, 7));
    assert_ne!(order, schedule(20, 10, 8));
    assert!(order[..20].contains(&5), "{order:?}");
}

#[test]
fn few_false_alarms_are_no_problem_and_many_are() {
    assert_eq!(problems_of(&identical(1, 19)), Vec::<String>::new());
    let problems = problems_of(&identical(6, 14));
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        problems[0].contains("identical work is wrong in 6 of 20"),
        "{problems:?}"
    );
    assert!(problems[1].contains("does not hold 1"), "{problems:?}");
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
        let report = report(1, 10, &vec![one(5, relation, 0.9, 0.95); 10], 0, 0.0);
        let arm = &report.arms[3];
        assert_eq!(
            (arm.wrong.count, arm.missed.count, arm.seen.count),
            (10, 10, 10)
        );
        assert!(!report.problems.is_empty());
    }
    // At the margin itself "the same" is right.
    let made = vec![one(1, Relation::Same, 1.009, 1.0099); 10];
    assert_eq!(report(1, 10, &made, 0, 0.0).arms[1].wrong.count, 0);
}

#[test]
fn a_self_test_that_was_interrupted_at_once_accuses_nobody() {
    let report = report(1, 50, &[], 0, 0.0);
    assert_eq!((report.noise_floor, report.problems.len()), (None, 0));
    assert_eq!(
        (report.arms[0].wrong.low, report.arms[0].wrong.high),
        (0.0, 1.0)
    );
}
