//! A product to compute, and some columns of it.

use std::ops::Range;

use super::kernel::Window;
use super::pack::Source;
use super::{Activation, Cut, Plan};
use crate::Cpu;
use crate::shared::Shared;

/// The right-hand side: to be packed, or already packed.
#[derive(Clone, Copy)]
pub(crate) enum Right<'a, T> {
    /// A matrix `[k, n]` to pack.
    Plain(Source<'a, T>),
    /// All its panels.
    Packed(&'a [f32]),
}

/// `c = activation(alpha * a b + beta * c + bias)`.
pub(crate) struct Product<'a, A, B> {
    /// The left-hand side, `[m, k]`.
    pub(crate) a: Source<'a, A>,
    pub(crate) b: Right<'a, B>,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    /// One element for each column.
    pub(crate) bias: Option<&'a [f32]>,
    pub(crate) activation: Activation,
    /// Receives the sum of each row of A.
    pub(crate) row_sums: Option<&'a mut [f32]>,
}

/// Some columns of a product: common data of its parts.
pub(super) struct Columns<'p, 'a, A, B> {
    pub(super) product: &'p Product<'a, A, B>,
    pub(super) cpu: &'p Cpu,
    pub(super) plan: &'p Plan,
    pub(super) cut: Cut,
    pub(super) cols: Range<usize>,
    pub(super) c: &'p Window<'p>,
    /// Receives the sum of each row of A, from the part with the first columns.
    pub(super) sums: Option<Shared<'p, f32>>,
}
