//! Sums, differences, products and quotients, in place or not; sparse gradients added to tables.

use steptime_ops::elementwise::{Binary, Expr};

use super::elementwise::{computes, of_one};
use super::rows;
use crate::binder::{Binder, Built, Refusal};
use crate::row::{Row, runs};

pub(super) const ROWS: &[Row] = &[
    runs("aten::add", add),
    runs("aten::add_", add),
    runs("aten::sub", sub),
    runs("aten::sub_", sub),
    runs("aten::mul", mul),
    runs("aten::mul_", mul),
    runs("aten::div", div),
    runs("aten::div_", div),
    runs("aten::neg", neg),
];

/// `add(self, other, alpha)`.
fn add(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    if b.id(1).is_ok_and(|other| b.value(other).is_sparse()) {
        return rows::add(b);
    }
    scaled(b, Binary::Add)
}

fn sub(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    scaled(b, Binary::Sub)
}

/// A sum or a difference, whose second operand is multiplied by `alpha`.
fn scaled(b: &mut Binder<'_, '_>, op: Binary) -> Result<Built, Refusal> {
    let alpha = if b.is_none(2) { 1.0 } else { b.number(2)? };
    with_other(b, |a, other| match alpha {
        1.0 => a.binary(op, other),
        _ => a.binary(op, other * alpha as f32),
    })
}

fn mul(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    with_other(b, |a, other| a * other)
}

fn div(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    if !b.is_none(2) {
        return Err("its quotient is rounded".to_owned());
    }
    with_other(b, |a, other| a / other)
}

fn neg(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    of_one(b, |x| -x)
}

/// A function of the first argument and the second, which is a tensor or a number.
fn with_other(b: &mut Binder<'_, '_>, function: impl Fn(Expr, Expr) -> Expr) -> Result<Built, Refusal> {
    let tensor = b.id(1).ok().filter(|&other| !b.is_on_host(other));
    b.takes_halves = true;
    let first = b.reads(0)?;
    let (expr, inputs) = match tensor {
        Some(_) => (function(Expr::input(0), Expr::input(1)), vec![first, b.reads(1)?]),
        None => (function(Expr::input(0), Expr::constant(b.number(1)? as f32)), vec![first]),
    };
    let output = b.writes(0)?;
    computes(b.target, &[expr], inputs, vec![output])
}
