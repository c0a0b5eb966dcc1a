//! Expressions over inputs.

use std::ops::{Add, Div, Mul, Neg, Sub};
use std::sync::Arc;

/// An operation on one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unary {
    /// `-x`
    Neg,
    /// `|x|`
    Abs,
    /// `sqrt(x)`
    Sqrt,
    /// `e^x`
    Exp,
    /// `max(x, 0)`, and NaN for NaN
    Relu,
    /// 1 where `x > 0`, 0 elsewhere: the slope of `Relu`
    Step,
    /// `1 / (1 + e^-x)`
    Sigmoid,
    /// `tanh(x)`
    Tanh,
    /// The normal distribution's cumulative function, `(1 + erf(x / sqrt 2)) / 2`
    NormalCdf,
}

/// An operation on two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binary {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a b`
    Mul,
    /// `a / b`
    Div,
}

/// A value for each element, computed from those of inputs. Cheap to clone; a clone used twice is computed once.
#[derive(Debug, Clone)]
pub struct Expr(pub(super) Arc<Node>);

#[derive(Debug)]
pub(super) enum Node {
    Input(usize),
    Constant(f32),
    Unary(Unary, Expr),
    Binary(Binary, Expr, Expr),
}

impl Expr {
    /// The element of the `index`-th input.
    #[must_use]
    pub fn input(index: usize) -> Expr {
        Expr(Arc::new(Node::Input(index)))
    }

    /// The same number everywhere.
    #[must_use]
    pub fn constant(value: f32) -> Expr {
        Expr(Arc::new(Node::Constant(value)))
    }

    /// An operation on this value.
    #[must_use]
    pub fn unary(self, op: Unary) -> Expr {
        Expr(Arc::new(Node::Unary(op, self)))
    }

    /// An operation on this value and another.
    #[must_use]
    pub fn binary(self, op: Binary, other: Expr) -> Expr {
        Expr(Arc::new(Node::Binary(op, self, other)))
    }

    /// `|x|`.
    #[must_use]
    pub fn abs(self) -> Expr {
        self.unary(Unary::Abs)
    }

    /// `sqrt(x)`.
    #[must_use]
    pub fn sqrt(self) -> Expr {
        self.unary(Unary::Sqrt)
    }

    /// `e^x`.
    #[must_use]
    pub fn exp(self) -> Expr {
        self.unary(Unary::Exp)
    }

    /// `max(x, 0)`.
    #[must_use]
    pub fn relu(self) -> Expr {
        self.unary(Unary::Relu)
    }

    /// `x` where positive, `slope x` elsewhere.
    #[must_use]
    pub fn leaky_relu(self, slope: f32) -> Expr {
        self.clone() * slope + self.relu() * (1.0 - slope)
    }

    /// `1 / (1 + e^-x)`.
    #[must_use]
    pub fn sigmoid(self) -> Expr {
        self.unary(Unary::Sigmoid)
    }

    /// `tanh(x)`.
    #[must_use]
    pub fn tanh(self) -> Expr {
        self.unary(Unary::Tanh)
    }

    /// `x sigmoid(x)`, also called swish.
    #[must_use]
    pub fn silu(self) -> Expr {
        self.clone() * self.sigmoid()
    }

    /// `x (1 + erf(x / sqrt 2)) / 2`: the exact form, not that with `tanh`.
    #[must_use]
    pub fn gelu(self) -> Expr {
        self.clone() * self.unary(Unary::NormalCdf)
    }
}

macro_rules! operator {
    ($($trait:ident $method:ident),*) => {$(
        impl $trait for Expr {
            type Output = Expr;

            fn $method(self, other: Expr) -> Expr {
                self.binary(Binary::$trait, other)
            }
        }

        impl $trait<f32> for Expr {
            type Output = Expr;

            fn $method(self, other: f32) -> Expr {
                self.binary(Binary::$trait, Expr::constant(other))
            }
        }
    )*};
}

operator!(Add add, Sub sub, Mul mul, Div div);

impl Neg for Expr {
    type Output = Expr;

    fn neg(self) -> Expr {
        self.unary(Unary::Neg)
    }
}
