//! Gradients of expressions, as expressions.

use super::expr::{Binary, Expr, Unary};
use super::graph::{Graph, Value};

/// `1 / sqrt(2 pi)`.
const NORMAL_PEAK: f32 = 0.398_942_3;

impl Expr {
    /// Returns the gradients of inputs `0..inputs` from that of this expression's value: one expression each, zero for
    /// an input that it does not read.
    ///
    /// They are elementwise: the gradient of a broadcast input is still to be summed over the repeated dimensions. At a
    /// kink (of `relu` and `abs` at 0) the slope is 0.
    #[must_use]
    pub fn backward(&self, gradient: Expr, inputs: usize) -> Vec<Expr> {
        let mut graph = Graph::default();
        let root = graph.add(self);
        let exprs = as_exprs(&graph);
        let mut gradients = Gradients { values: &graph.values, of: vec![None; exprs.len()] };
        gradients.of[root] = Some(gradient);
        let mut results = vec![None; inputs];
        for (id, value) in graph.values.iter().enumerate().rev() {
            let Some(gradient) = gradients.of[id].take() else { continue };
            match *value {
                Value::Constant(_) => {}
                Value::Input(index) => {
                    if let Some(result) = results.get_mut(index) {
                        *result = Some(gradient);
                    }
                }
                Value::Unary(op, a) => gradients.add(a, through_unary(op, gradient, &exprs[a], &exprs[id])),
                Value::Binary(op, a, b) => {
                    let [left, right] = through_binary(op, gradient, [&exprs[a], &exprs[b]], &exprs[id]);
                    gradients.add(a, left);
                    gradients.add(b, right);
                }
            }
        }
        results.into_iter().map(|result| result.unwrap_or_else(|| Expr::constant(0.0))).collect()
    }
}

/// Converts the values of a graph back to expressions: repeated parts of one expression are shared.
fn as_exprs(graph: &Graph) -> Vec<Expr> {
    let mut exprs: Vec<Expr> = Vec::with_capacity(graph.values.len());
    for value in &graph.values {
        exprs.push(match *value {
            Value::Input(index) => Expr::input(index),
            Value::Constant(bits) => Expr::constant(f32::from_bits(bits)),
            Value::Unary(op, a) => exprs[a].clone().unary(op),
            Value::Binary(op, a, b) => exprs[a].clone().binary(op, exprs[b].clone()),
        });
    }
    exprs
}

/// The gradients of a graph's values, as far as computed.
struct Gradients<'a> {
    values: &'a [Value],
    /// One gradient for each value.
    of: Vec<Option<Expr>>,
}

impl Gradients<'_> {
    /// Adds a part to the gradient of a value. Constants have no gradient.
    fn add(&mut self, to: usize, part: Expr) {
        if !matches!(self.values[to], Value::Constant(_)) {
            let sum = self.of[to].take();
            self.of[to] = Some(match sum {
                Some(sum) => sum + part,
                None => part,
            });
        }
    }
}

/// Returns the gradients of `a` and `b` from that of `y = op(a, b)`.
fn through_binary(op: Binary, gradient: Expr, [a, b]: [&Expr; 2], y: &Expr) -> [Expr; 2] {
    match op {
        Binary::Add => [gradient.clone(), gradient],
        Binary::Sub => [gradient.clone(), -gradient],
        Binary::Mul => [gradient.clone() * b.clone(), gradient * a.clone()],
        Binary::Div => {
            let part = gradient / b.clone();
            [part.clone(), -(part * y.clone())]
        }
    }
}

/// Returns the gradient of `x` from that of `y = op(x)`, in terms of `x` or `y`, whichever is cheaper.
fn through_unary(op: Unary, gradient: Expr, x: &Expr, y: &Expr) -> Expr {
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
