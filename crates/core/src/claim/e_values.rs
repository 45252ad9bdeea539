//! Evidence for and against a claim, from the number of blocks on each side of the claim's border.

use std::f64::consts::{LN_2, LN_10};

use toll_stats::{Region, ln_e_value, ln_sum};

use super::model::EValues;

/// Returns the evidence of blocks from their values. A value on a border counts for the side
/// to which the border belongs, as in a verdict.
///
/// The support for a claim with two borders is the smaller of the two borders' e-values. Either
/// border can refute the claim, and which border is not fixed beforehand. So the mean of both
/// e-values counts against the claim; the mean is an e-value too.
pub(super) fn of_blocks(values: &[f64], region: Region) -> EValues {
    let blocks = values.len();
    let count =
        |is_there: &dyn Fn(f64) -> bool| values.iter().filter(|one| is_there(**one)).count();
    let ln = |beyond: usize| ln_e_value(beyond, blocks);
    let of_one_border = |inside: usize| {
        let outside = blocks - inside;
        (inside, outside, ln(inside), ln(outside))
    };
    let (inside, outside, support, refutation) = match region {
        Region::Below(border) => of_one_border(count(&|value| value < border)),
        Region::Above(border) => of_one_border(count(&|value| value > border)),
        Region::Within(low, high) => {
            let (below, above) = (count(&|value| value < low), count(&|value| value > high));
            (
                blocks - below - above,
                below.max(above),
                ln(blocks - below).min(ln(blocks - above)),
                ln_sum(ln(below), ln(above)) - LN_2,
            )
        }
    };
    EValues {
        blocks,
        inside,
        outside,
        log10_support: support / LN_10,
        log10_refutation: refutation / LN_10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(values: &[f64], region: Region) -> [f64; 2] {
        let found = of_blocks(values, region);
        [found.log10_support, found.log10_refutation].map(|log10| 10.0_f64.powf(log10))
    }

    #[test]
    fn a_claim_and_its_opposite_have_each_others_evidence() {
        let values = [-0.3, -0.2, -0.1, -0.4, 0.1];
        let [support, refutation] = evidence(&values, Region::Below(0.0));
        assert_eq!([refutation, support], evidence(&values, Region::Above(0.0)));
        assert!(support > 1.0 && refutation < 0.1, "{support} {refutation}");
        assert!((evidence(&[-0.1; 5], Region::Below(0.0))[0] - 22.0).abs() < 0.1);
    }

    #[test]
    fn a_value_on_a_border_lies_where_the_verdict_takes_it_to_lie() {
        let all_on_it = of_blocks(&[0.0; 5], Region::Within(0.0, 0.0));
        assert_eq!((all_on_it.inside, all_on_it.outside), (5, 0));
        assert!(all_on_it.log10_support > 1.3);
        for region in [Region::Below(0.0), Region::Above(0.0)] {
            let all_on_it = of_blocks(&[0.0; 5], region);
            assert_eq!((all_on_it.inside, all_on_it.outside), (0, 5));
            assert!(all_on_it.log10_refutation > 1.3);
        }
    }

    #[test]
    fn support_of_two_borders_takes_both_and_refutation_either() {
        let region = Region::Within(-1.0, 1.0);
        let [support, refutation] = evidence(&[0.0; 5], region);
        assert!(support > 21.9 && refutation < 0.1, "{support} {refutation}");
        // If half of the blocks are beyond one border, the other cannot decide.
        assert!(evidence(&[0.0, 2.0, 0.0, 2.0, 0.0, 2.0], region)[0] < 1.0);
        for outside in [-2.0, 2.0] {
            let [support, refutation] = evidence(&[outside; 5], region);
            assert!((refutation - 11.0).abs() < 0.1, "{refutation}");
            assert!(support < 0.1, "{support}");
        }
    }

    #[test]
    fn what_is_below_any_bound_is_below() {
        assert_eq!(
            of_blocks(&[f64::NEG_INFINITY], Region::Below(-5.0)).inside,
            1
        );
    }
}
