//! The normal distribution: probabilities and quantiles.

/// Probability that a standard normal value lies above `z`.
///
/// The complementary error function by Numerical Recipes' Chebyshev fit (`erfcc`), relative error below 1.2e-7.
pub fn above(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * x);
    let terms = [
        0.170_872_77,
        -0.822_152_23,
        1.488_515_87,
        -1.135_203_98,
        0.278_868_07,
        -0.186_288_06,
        0.096_784_18,
        0.374_091_96,
        1.000_023_68,
    ];
    let polynomial = terms.iter().fold(0.0, |sum, term| sum * t + term);
    let tail = 0.5 * t * (-x * x - 1.265_512_23 + t * polynomial).exp();
    if z >= 0.0 { tail } else { 1.0 - tail }
}

/// Probability that a standard normal value lies further from 0 than `z`.
pub fn two_sided(z: f64) -> f64 {
    (2.0 * above(z.abs())).min(1.0)
}

/// The value below which a standard normal value lies with probability `p`, by bisection of [`above`]; infinite
/// outside (0, 1).
pub fn quantile(p: f64) -> f64 {
    if p <= 0.0 || p.is_nan() {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if 1.0 - above(middle) < p { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// The quantile of Student's t with `freedom` degrees of freedom, by the expansion of Cornish and Fisher
/// (Abramowitz and Stegun 26.7.5): good to 1 % from 5 degrees on.
pub fn student_quantile(p: f64, freedom: f64) -> f64 {
    let z = quantile(p);
    let v = freedom.max(1.0);
    let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
    z + (z3 + z) / (4.0 * v)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * v * v)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * v.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert!((above(1.959_964) - 0.025).abs() < 1e-7);
        assert!((above(-1.0) - 0.841_344_746).abs() < 1e-6);
        assert!((two_sided(2.575_829) - 0.01).abs() < 1e-7);
        assert!((quantile(0.975) - 1.959_964).abs() < 1e-4);
        assert!((quantile(0.5)).abs() < 1e-6);
        assert_eq!(quantile(0.0), f64::NEG_INFINITY);
        // Tables of Student's t.
        assert!((student_quantile(0.975, 10.0) - 2.228).abs() < 0.01);
        assert!((student_quantile(0.975, 20.0) - 2.086).abs() < 0.005);
    }
}
