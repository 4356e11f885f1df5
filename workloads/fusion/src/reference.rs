//! Computes the reference values of an expression on the CPU in f64, with the permitted error of a GPU, and compares
//! the GPU's results with them.

use std::fmt;

use anyhow::{Result, bail};

use crate::expr::{Expr, Node};

/// A value with the maximum distance from it of a correct f32 GPU's result.
///
/// The distance is the error that Vulkan's precision rules permit each operation (2^-11 for sin and cos, a few ulp for
/// most others), carried through the operations after it, so it fits any chain. It is infinite where the rules decide
/// nothing, for example for the logarithm of a value that may be negative.
#[derive(Clone, Copy, Debug)]
struct Bounded {
    value: f64,
    /// The greatest distance of a correct result.
    tolerance: f64,
}

impl Bounded {
    fn exact(value: f32) -> Self {
        Self {
            value: value.into(),
            tolerance: 0.0,
        }
    }

    /// Creates a value from the results `corners` at the ends of the operands' intervals.
    fn new(value: f64, corners: impl IntoIterator<Item = f64>, permitted: f64) -> Self {
        let carried = corners.into_iter().fold(0.0, |worst: f64, corner| {
            let distance = (corner - value).abs();
            if distance.is_nan() {
                f64::INFINITY
            } else {
                worst.max(distance)
            }
        });
        let tolerance = carried + permitted;
        let undecided = tolerance.is_nan() || value.abs() + tolerance > f64::from(f32::MAX);
        Self {
            value,
            tolerance: if undecided { f64::INFINITY } else { tolerance },
        }
    }

    /// Returns the ends of the interval in which a correct result lies.
    fn ends(self) -> [f64; 2] {
        [self.value - self.tolerance, self.value + self.tolerance]
    }
}

/// Evaluates `expr` of `x`; `values` is a buffer for the nodes' values.
fn evaluate(expr: &Expr, x: f32, values: &mut Vec<Bounded>) -> Bounded {
    values.clear();
    for node in expr.nodes() {
        values.push(match *node {
            Node::Input(_) => Bounded::exact(x),
            Node::Constant(constant) => Bounded::exact(constant),
            Node::Unary(op, a) => {
                let a = values[a];
                let value = op.apply(a.value);
                Bounded::new(
                    value,
                    a.ends().map(|a| op.apply(a)),
                    op.permitted_error(a.value, value),
                )
            }
            Node::Binary(op, a, b) => {
                let (a, b) = (values[a], values[b]);
                let value = op.apply(a.value, b.value);
                let corners = a
                    .ends()
                    .into_iter()
                    .flat_map(|a| b.ends().map(|b| op.apply(a, b)));
                Bounded::new(value, corners, op.permitted_error(a.value, b.value, value))
            }
        });
    }
    values[values.len() - 1]
}

/// The values that one mode computed.
pub struct Output {
    /// `eager` or `compiled`, for messages.
    pub mode: &'static str,
    pub values: Vec<f32>,
}

/// The comparison of outputs with the reference and with each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Comparison {
    /// The largest difference of a decided value from the reference.
    pub max_error: f64,
    /// The largest error as a fraction of its tolerance; at most 1.
    pub worst_ratio: f64,
    /// The number of values for which the precision rules decide nothing.
    pub undecided: usize,
    /// The largest difference between outputs, among the decided values.
    pub max_difference: f32,
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "max error {:.3e} against f64 on the CPU, {:.2} % of what Vulkan's precision rules permit",
            self.max_error,
            self.worst_ratio * 100.0
        )?;
        if self.undecided > 0 {
            write!(
                f,
                "; {} values are not decided by the rules",
                self.undecided
            )?;
        }
        Ok(())
    }
}

/// Compares `outputs` with `expr` of `input`, and fails at the first value outside its tolerance.
pub fn compare(expr: &Expr, input: &[f32], outputs: &[Output]) -> Result<Comparison> {
    let mut comparison = Comparison::default();
    let mut values = Vec::new();
    for (index, &x) in input.iter().enumerate() {
        let expected = evaluate(expr, x, &mut values);
        if !expected.tolerance.is_finite() {
            comparison.undecided += 1;
            continue;
        }
        for output in outputs {
            let got = output.values[index];
            let error = (f64::from(got) - expected.value).abs();
            if error.is_nan() || error > expected.tolerance {
                bail!(
                    "the {} result is wrong: value {index} is {got:e} for x = {x:e}, but should be {:e} within {:.1e}",
                    output.mode,
                    expected.value,
                    expected.tolerance
                );
            }
            comparison.max_error = comparison.max_error.max(error);
            comparison.worst_ratio = comparison.worst_ratio.max(error / expected.tolerance);
            let difference = (got - outputs[0].values[index]).abs();
            comparison.max_difference = comparison.max_difference.max(difference);
        }
    }
    Ok(comparison)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::Chain;

    fn compare_one(chain: &str, input: &[f32], output: &[f32]) -> Result<Comparison> {
        let output = Output {
            mode: "eager",
            values: output.to_vec(),
        };
        compare(chain.parse::<Chain>().unwrap().expr(), input, &[output])
    }

    #[test]
    fn a_correctly_rounded_result_passes() {
        let input = [0.1f32, 0.5, 1.0, 3.0];
        let output = input.map(|x| f64::from(x).sin().cos().exp().ln() as f32);
        let comparison = compare_one("sin,cos,exp,log", &input, &output).unwrap();
        assert!(comparison.max_error < 1e-6);
        assert_eq!(comparison.undecided, 0);
    }

    #[test]
    fn a_wrong_value_is_named() {
        let error = compare_one("square", &[2.0, 3.0], &[4.0, 9.5]).unwrap_err();
        assert!(
            error.to_string().contains(
                "the eager result is wrong: value 1 is 9.5e0 for x = 3e0, but should be 9e0"
            ),
            "{error}"
        );
        assert!(compare_one("square", &[2.0], &[f32::NAN]).is_err());
    }

    #[test]
    fn what_the_rules_leave_open_is_counted_and_not_compared() {
        for (chain, x) in [
            ("log", -1.0),
            ("neg,pow:2", 1.0),
            ("exp", 100.0),
            ("reciprocal", 0.0),
            ("sin,log", 0.0),
        ] {
            let comparison = compare_one(chain, &[x], &[42.0]).unwrap();
            assert_eq!(comparison.undecided, 1, "{chain} of {x}");
        }
    }
}
