//! A right-hand side packed once and used many times: the weights of a layer that does not change.

use super::buffer::Buffer;
use super::pack::{Packing, Source};
use super::problem::{Product, Right};
use super::{Activation, Element, GemmError, MatMut, MatRef, Plan};
use crate::{Cpu, Isa};

/// A matrix `[k, n]` in packed panels, in `f32`.
#[derive(Debug)]
pub struct PackedMatrix {
    panels: Buffer,
    len: usize,
    rows: usize,
    cols: usize,
    isa: Isa,
}

impl PackedMatrix {
    /// Packs `b`, `[k, n]`, for the instructions of `cpu`.
    #[must_use]
    pub fn new<T: Element>(cpu: &Cpu, b: MatRef<'_, T>) -> PackedMatrix {
        let plan = Plan::prepacked(cpu.isa(), 1, b.cols(), b.rows());
        let len = b.cols().next_multiple_of(plan.n_r) * b.rows();
        let mut panels = Buffer::default();
        let (source, steps) = (Source::plain(b).t(), (plan.k, plan.k_c));
        let out = panels.floats(len);
        let packing = Packing::new(cpu.arch(), source, 0..b.cols(), plan.n_r, steps, cpu.threads(), out);
        // SAFETY: `run` does each part once.
        cpu.run(packing.parts(), |part| unsafe { packing.part(part) });
        PackedMatrix { panels, len, rows: b.rows(), cols: b.cols(), isa: cpu.isa() }
    }

    /// Number of rows, k.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns, n.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.cols
    }

    pub(crate) fn panels(&self) -> &[f32] {
        self.panels.written(self.len)
    }

    pub(crate) fn check(&self, cpu: &Cpu) -> Result<(), GemmError> {
        if self.isa == cpu.isa() { Ok(()) } else { Err(GemmError::Isa { packed: self.isa, used: cpu.isa() }) }
    }
}

/// Computes [`gemm`](super::gemm) with a packed `b`; the result is bit-identical.
///
/// # Errors
///
/// The shapes do not fit, or `b` was packed for other instructions.
pub fn gemm_packed<A: Element>(
    cpu: &Cpu,
    alpha: f32,
    a: MatRef<'_, A>,
    b: &PackedMatrix,
    beta: f32,
    c: MatMut<'_>,
) -> Result<(), GemmError> {
    b.check(cpu)?;
    a.expect("A", a.rows(), b.rows())?;
    c.expect("C", a.rows(), b.cols())?;
    let plan = Plan::prepacked(cpu.isa(), a.rows(), b.cols(), b.rows());
    let (a, b) = (Source::plain(a), Right::<f32>::Packed(b.panels()));
    let activation = Activation::Identity;
    Product { a, b, alpha, beta, bias: None, activation, row_sums: None }.run(cpu, &plan, c);
    Ok(())
}
