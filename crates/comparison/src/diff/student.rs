//! Computes Student's distribution, which tells how far the mean of few samples may be off. Fewer degrees of freedom
//! (about the number of samples less one) make it wider.

/// Returns the chance that a value of Student's distribution with `freedom` degrees is at least `t` away from 0, on either side.
///
/// It is computed by the incomplete beta function, as a continued fraction: Abramowitz and Stegun, *Handbook of Mathematical Functions*, 26.5.8
/// and 26.7.1.
pub(super) fn two_sided(t: f64, freedom: f64) -> f64 {
    if t.is_nan() || freedom.is_nan() || freedom <= 0.0 {
        return 1.0;
    }
    if t.is_infinite() {
        return 0.0;
    }
    let freedom = freedom.min(MAX_FREEDOM);
    let x = freedom / (freedom + t * t);
    incomplete_beta(x, freedom / 2.0, 0.5).clamp(0.0, 1.0)
}

/// Returns the value `t` for which [`two_sided`] returns `chance`.
pub(super) fn limit(chance: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided(high, freedom) > chance && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        match two_sided(middle, freedom) > chance {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// The degrees of freedom from which on the distribution is normal to six digits.
const MAX_FREEDOM: f64 = 1e6;

/// Returns the regularised incomplete beta function.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front =
        (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    match x < (a + 1.0) / (a + b + 2.0) {
        true => front * fraction(x, a, b) / a,
        false => 1.0 - front * fraction(1.0 - x, b, a) / b,
    }
}

/// Evaluates the continued fraction by Lentz's method.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let apart = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / apart(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for step in 1..5000 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut factor = 1.0;
        for term in [even, odd] {
            d = 1.0 / apart(1.0 + term * d);
            c = apart(1.0 + term / c);
            factor = d * c;
            value *= factor;
        }
        if (factor - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// Returns the logarithm of the gamma function above 0, by Lanczos's approximation with g = 7 and nine terms.
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        return (std::f64::consts::PI / (std::f64::consts::PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let t = x + 7.5;
    let mut sum = TERMS[0];
    for (at, term) in TERMS.iter().enumerate().skip(1) {
        sum += term / (x + at as f64);
    }
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of printed tables of Student's distribution.
    #[test]
    fn limits_are_those_of_the_tables() {
        let table = [
            (0.05, 1.0, 12.706),
            (0.05, 4.0, 2.776),
            (0.05, 8.0, 2.306),
            (0.01, 8.0, 3.355),
            (0.001, 8.0, 5.041),
            (0.01, 30.0, 2.750),
            (0.05, 1e9, 1.960),
            (0.01, 1e9, 2.576),
        ];
        for (chance, freedom, expected) in table {
            let found = limit(chance, freedom);
            assert!(
                (found - expected).abs() < 6e-4,
                "{chance} {freedom}: {found}"
            );
            assert!((two_sided(found, freedom) - chance).abs() < 1e-9);
        }
    }

    #[test]
    fn what_is_no_number_is_noise() {
        assert_eq!(two_sided(f64::NAN, 5.0), 1.0);
        assert_eq!(two_sided(f64::INFINITY, 5.0), 0.0);
        assert_eq!(two_sided(0.0, 5.0), 1.0);
    }
}
