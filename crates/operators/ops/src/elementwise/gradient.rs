//! Gradients of expressions, as expressions.

use super::expr::{Binary, Expr, Unary};
use super::graph::{Graph, Value};

/// `1 / sqrt(2 pi)`.
const NORMAL_PEAK: f32 = 0.398_942_3;

impl Expr {
    /// The gradients of inputs `0..inputs` from that of this expression's value: one expression each, zero for an
    /// input that it does not read.
    ///
    /// They are elementwise: the gradient of an input that was broadcast is still to be summed over what it was
    /// repeated along. At a kink (of `relu` and `abs` at 0) the slope is 0.
    #[must_use]
    pub fn backward(&self, gradient: Expr, inputs: usize) -> Vec<Expr> {
        let mut graph = Graph::default();
        let root = graph.add(self);
        // The values as expressions again: parts that appear twice in this expression are one here.
        let mut exprs: Vec<Expr> = Vec::with_capacity(graph.values.len());
        for value in &graph.values {
            exprs.push(match *value {
                Value::Input(index) => Expr::input(index),
                Value::Constant(bits) => Expr::constant(f32::from_bits(bits)),
                Value::Unary(op, a) => exprs[a].clone().unary(op),
                Value::Binary(op, a, b) => exprs[a].clone().binary(op, exprs[b].clone()),
            });
        }
        let mut gradients: Vec<Option<Expr>> = vec![None; exprs.len()];
        gradients[root] = Some(gradient);
        let mut results = vec![None; inputs];
        for (id, value) in graph.values.iter().enumerate().rev() {
            let Some(gradient) = gradients[id].take() else { continue };
            let mut pass = |to: usize, part: Expr| {
                // A constant has no gradient to compute.
                if !matches!(graph.values[to], Value::Constant(_)) {
                    let sum = gradients[to].take();
                    gradients[to] = Some(match sum {
                        Some(sum) => sum + part,
                        None => part,
                    });
                }
            };
            match *value {
                Value::Constant(_) => {}
                Value::Input(index) => {
                    if let Some(result) = results.get_mut(index) {
                        *result = Some(gradient);
                    }
                }
                Value::Unary(op, a) => pass(a, through(op, gradient, &exprs[a], &exprs[id])),
                Value::Binary(op, a, b) => {
                    let (left, right) = (exprs[a].clone(), exprs[b].clone());
                    match op {
                        Binary::Add => {
                            pass(a, gradient.clone());
                            pass(b, gradient);
                        }
                        Binary::Sub => {
                            pass(a, gradient.clone());
                            pass(b, -gradient);
                        }
                        Binary::Mul => {
                            pass(a, gradient.clone() * right);
                            pass(b, gradient * left);
                        }
                        Binary::Div => {
                            let part = gradient / right;
                            pass(a, part.clone());
                            pass(b, -(part * exprs[id].clone()));
                        }
                    }
                }
            }
        }
        results.into_iter().map(|result| result.unwrap_or_else(|| Expr::constant(0.0))).collect()
    }
}

/// The gradient of `x` from that of `y = op(x)`, by whichever of the two makes it cheaper.
fn through(op: Unary, gradient: Expr, x: &Expr, y: &Expr) -> Expr {
    let (x, y) = (x.clone(), y.clone());
    match op {
        Unary::Neg => -gradient,
        Unary::Abs => gradient * (x.clone().unary(Unary::Step) - (-x).unary(Unary::Step)),
        Unary::Sqrt => gradient * 0.5 / y,
        Unary::Exp => gradient * y,
        Unary::Relu => gradient * x.unary(Unary::Step),
        Unary::Step => Expr::constant(0.0),
        Unary::Sigmoid => gradient * (y.clone() - y.clone() * y),
        Unary::Tanh => gradient.clone() - gradient * (y.clone() * y),
        Unary::NormalCdf => gradient * ((x.clone() * x * -0.5).exp() * NORMAL_PEAK),
    }
}
