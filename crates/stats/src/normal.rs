//! The standard normal distribution.

/// Returns Φ(x). The relative error is below 4e-13 down to x = -37.4, where the result approaches
/// the smallest normal number; from -38 down, the result is 0. For |x| < 3, the method is Hart,
/// "Computer approximations" (1968), algorithm 5666, in the form of West, "Better approximations
/// to cumulative normal functions", Wilmott (2005).
pub fn normal_cdf(x: f64) -> f64 {
    const NUMERATOR: [f64; 7] = [
        3.526_249_659_989_11e-2,
        0.700_383_064_443_688,
        6.373_962_203_531_65,
        33.912_866_078_383,
        112.079_291_497_871,
        221.213_596_169_931,
        220.206_867_912_376,
    ];
    const DENOMINATOR: [f64; 8] = [
        8.838_834_764_831_84e-2,
        1.755_667_163_182_64,
        16.064_177_579_207,
        86.780_732_202_946_1,
        296.564_248_779_674,
        637.333_633_378_831,
        793.826_512_519_948,
        440.413_735_824_752,
    ];
    let z = x.abs();
    let density = (-z * z / 2.0).exp();
    let tail = if z >= 38.0 {
        // Keeps infinity / infinity out of the polynomials.
        0.0
    } else if z < 3.0 {
        density * horner(&NUMERATOR, z) / horner(&DENOMINATOR, z)
    } else {
        // Laplace's continued fraction. Hart's form has an absolute error of 1e-16, which is large
        // in a tail; from 3 on, 40 terms exhaust the precision of a double.
        let fraction = (1..=40)
            .rev()
            .fold(z, |fraction, k| z + f64::from(k) / fraction);
        density / fraction / (2.0 * std::f64::consts::PI).sqrt()
    };
    if x > 0.0 { 1.0 - tail } else { tail }
}

/// Returns Φ⁻¹(p) for p from 0 (negative infinity) to 1 (infinity), with a relative error near
/// 1e-16 (Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied
/// Statistics 37 (1988), PPND16).
///
/// # Panics
/// If `p` is outside 0 to 1.
pub fn normal_quantile(p: f64) -> f64 {
    assert!(
        (0.0..=1.0).contains(&p),
        "probability {p} is outside 0 to 1"
    );
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * horner(&CENTRE.0, r) / horner(&CENTRE.1, r);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    if tail == 0.0 {
        return f64::INFINITY.copysign(q);
    }
    let r = (-tail.ln()).sqrt();
    let magnitude = if r <= 5.0 {
        horner(&SHOULDER.0, r - 1.6) / horner(&SHOULDER.1, r - 1.6)
    } else {
        horner(&TAIL.0, r - 5.0) / horner(&TAIL.1, r - 5.0)
    };
    magnitude.copysign(q)
}

/// Numerator and denominator, highest power first.
type Rational = ([f64; 8], [f64; 8]);

const CENTRE: Rational = (
    [
        2.509_080_928_730_122_7e3,
        3.343_057_558_358_813e4,
        6.726_577_092_700_87e4,
        4.592_195_393_154_987e4,
        1.373_169_376_550_946e4,
        1.971_590_950_306_551_3e3,
        1.331_416_678_917_843_8e2,
        3.387_132_872_796_366_5,
    ],
    [
        5.226_495_278_852_854e3,
        2.872_908_573_572_194_3e4,
        3.930_789_580_009_271e4,
        2.121_379_430_158_659_7e4,
        5.394_196_021_424_751e3,
        6.871_870_074_920_579e2,
        4.231_333_070_160_091e1,
        1.0,
    ],
);

const SHOULDER: Rational = (
    [
        7.745_450_142_783_414e-4,
        2.272_384_498_926_918_4e-2,
        2.417_807_251_774_506e-1,
        1.270_458_252_452_368_4,
        3.647_848_324_763_204_5,
        5.769_497_221_460_691,
        4.630_337_846_156_546,
        1.423_437_110_749_683_5,
    ],
    [
        1.050_750_071_644_416_9e-9,
        5.475_938_084_995_345e-4,
        1.519_866_656_361_645_7e-2,
        1.481_039_764_274_800_8e-1,
        6.897_673_349_851e-1,
        1.676_384_830_183_803_8,
        2.053_191_626_637_759,
        1.0,
    ],
);

const TAIL: Rational = (
    [
        2.010_334_399_292_288_1e-7,
        2.711_555_568_743_487_6e-5,
        1.242_660_947_388_078_4e-3,
        2.653_218_952_657_612_3e-2,
        2.965_605_718_285_048_7e-1,
        1.784_826_539_917_291_3,
        5.463_784_911_164_114,
        6.657_904_643_501_103,
    ],
    [
        2.044_263_103_389_939_8e-15,
        1.421_511_758_316_446e-7,
        1.846_318_317_510_054_8e-5,
        7.868_691_311_456_133e-4,
        1.487_536_129_085_061_5e-2,
        1.369_298_809_227_358e-1,
        5.998_322_065_558_88e-1,
        1.0,
    ],
);

fn horner(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().fold(0.0, |sum, c| sum * x + c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_infinite() {
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
        assert_eq!(normal_cdf(f64::NEG_INFINITY), 0.0);
        assert_eq!(normal_cdf(f64::INFINITY), 1.0);
        assert!(normal_cdf(f64::NAN).is_nan());
    }

    #[test]
    fn the_quantile_undoes_the_distribution() {
        for step in -80..=50 {
            let x = f64::from(step) / 10.0;
            let back = normal_quantile(normal_cdf(x));
            assert!((back - x).abs() < 1e-9, "{x} came back as {back}");
        }
    }
}
