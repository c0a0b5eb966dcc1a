//! What is to be computed: a product, and some columns of it.

use std::ops::Range;

use super::kernel::Window;
use super::pack::Source;
use super::{Activation, Cut, Plan};
use crate::Cpu;
use crate::shared::Shared;

/// The right-hand side: still to be packed, or packed before.
#[derive(Clone, Copy)]
pub(crate) enum Right<'a, T> {
    /// `[k, n]`.
    Plain(Source<'a, T>),
    /// All panels of it.
    Packed(&'a [f32]),
}

/// `c = activation(alpha * a b + beta * c + bias)`.
pub(crate) struct Product<'a, A, B> {
    /// `[m, k]`.
    pub(crate) a: Source<'a, A>,
    pub(crate) b: Right<'a, B>,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    /// One for each column.
    pub(crate) bias: Option<&'a [f32]>,
    pub(crate) activation: Activation,
    /// Receives the sum of each row of A.
    pub(crate) row_sums: Option<&'a mut [f32]>,
}

/// Some columns of a product: what its parts have in common.
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
