//! Expressions evaluated for one element in double precision.

use super::expr::{Binary, Expr, Node, Unary};

/// The value of an expression where input `i` is `inputs[i]`; NaN where an input is missing.
#[must_use]
pub fn evaluate(expr: &Expr, inputs: &[f64]) -> f64 {
    match &*expr.0 {
        Node::Input(index) => inputs.get(*index).copied().unwrap_or(f64::NAN),
        Node::Constant(value) => f64::from(*value),
        Node::Unary(op, a) => {
            let x = evaluate(a, inputs);
            match op {
                Unary::Neg => -x,
                Unary::Abs => x.abs(),
                Unary::Sqrt => x.sqrt(),
                Unary::Exp => x.exp(),
                Unary::Relu => {
                    if x < 0.0 {
                        0.0
                    } else {
                        x
                    }
                }
                Unary::Step => f64::from(u8::from(x > 0.0)),
                Unary::Sigmoid => 1.0 / (1.0 + (-x).exp()),
                Unary::Tanh => x.tanh(),
                Unary::NormalCdf => normal_cdf(x),
            }
        }
        Node::Binary(op, a, b) => {
            let (a, b) = (evaluate(a, inputs), evaluate(b, inputs));
            match op {
                Binary::Add => a + b,
                Binary::Sub => a - b,
                Binary::Mul => a * b,
                Binary::Div => a / b,
            }
        }
    }
}

/// The normal distribution's cumulative function by its power series (Marsaglia 2004): `1/2 + phi(x) (x + x^3/3 +
/// x^5/15 + ...)`, to about 1e-15 for `x` within -7..7, and 0 or 1 outside of it.
fn normal_cdf(x: f64) -> f64 {
    if x.abs() > 7.0 {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut sum, mut term, mut odd) = (x, x, 1.0);
    while term.abs() > 1e-17 {
        odd += 2.0;
        term *= x * x / odd;
        sum += term;
    }
    0.5 + sum * (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt()
}
