//! The top rung: both operands packed into panels, registers and caches filled as the [`Plan`] says, all threads.
//!
//! ```text
//! for each n_c columns of C                     B packed once, by all threads, k_c x n_r panels
//!   for each thread's rows and columns of C
//!     for each m_c rows                         stay in the second-level cache
//!       for each k_c steps                      A packed: m_r x k_c panels
//!         for each n_r columns                  a panel of B, from the first- and second-level cache
//!           for each m_r rows                   one register tile
//! ```
//!
//! Where k is short, the two loops inside of k change places: C is then written in the order of memory.
//!
//! Every element of C is one chain of multiply-adds in the order of k, cut at multiples of k_c, which depends on k alone.
//! So the result does not depend on who computes which tile.

use std::ops::Range;

use super::buffer::lend;
use super::kernel::{FEW_STEPS, Store, Strip, Window, tile};
use super::pack::Source;
use super::{Activation, Element, MatMut, Plan};
use crate::Cpu;
use crate::shared::Shared;

/// Panels of B that are packed side by side.
const MOST_PANELS: usize = 8;

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

impl<A: Element, B: Element> Product<'_, A, B> {
    /// Computes it.
    pub(crate) fn run(mut self, cpu: &Cpu, plan: &Plan, mut c: MatMut<'_>) {
        let (k, n) = (plan.k, plan.n);
        let row_sums = self.row_sums.take();
        if let Some(sums) = row_sums.as_deref() {
            debug_assert_eq!(sums.len(), plan.m);
        }
        let sums = row_sums.map(|sums| {
            sums.fill(0.0);
            Shared::new(sums)
        });
        let window = Window::new(&mut c);
        match self.b {
            Right::Packed(panels) => self.columns(cpu, plan, Panels::Packed(panels), 0..n, &window, sums),
            Right::Plain(source) => {
                let rows = source.gate.is_none() && source.view.col_stride() == 1;
                if let Some(data) = B::as_f32(source.view.tail(0, 0)).filter(|_| rows && !plan.pack_b) {
                    let panels = Panels::Placed { data, step_stride: source.view.row_stride() };
                    return self.columns(cpu, plan, panels, 0..n, &window, sums);
                }
                let source = source.t();
                for from in (0..n).step_by(plan.n_c) {
                    let cols = from..(from + plan.n_c).min(n);
                    let sums = sums.filter(|_| from == 0);
                    let width = cols.len().next_multiple_of(plan.n_r);
                    lend(width * k, |panels| {
                        pack_all(cpu, plan, &source, cols.clone(), panels);
                        self.columns(cpu, plan, Panels::Packed(panels), cols, &window, sums);
                    });
                }
            }
        }
    }

    /// The columns `cols` of C, whose panels of B are there.
    fn columns(
        &self,
        cpu: &Cpu,
        plan: &Plan,
        panels: Panels<'_>,
        cols: Range<usize>,
        c: &Window,
        sums: Option<Shared<f32>>,
    ) {
        let (down, across) = plan.parts(cols.len(), cpu.threads());
        cpu.run(down * across, |part| {
            let rows = panel_share(plan.m, plan.m_r, down, part / across);
            let part_cols = panel_share(cols.len(), plan.n_r, across, part % across);
            if rows.is_empty() || part_cols.is_empty() {
                return;
            }
            // SAFETY: each part is done once, and has rows and columns by its number: `panel_share` deals each row and
            // each column out once, so that two parts differ in rows or in columns.
            let c = unsafe { c.part(rows.start, cols.start + part_cols.start, rows.len(), part_cols.len()) };
            // SAFETY: of the parts with the same rows only the one with the first columns writes sums.
            let sums =
                sums.filter(|_| part % across == 0).map(|sums| unsafe { sums.range(rows.start, rows.len()) });
            self.part(cpu, plan, panels, &cols, rows, part_cols, c, sums);
        });
    }

    /// One thread's rectangle of C.
    #[expect(clippy::too_many_arguments, reason = "what the loops above have fixed")]
    fn part(
        &self,
        cpu: &Cpu,
        plan: &Plan,
        panels: Panels<'_>,
        cols: &Range<usize>,
        rows: Range<usize>,
        part_cols: Range<usize>,
        mut c: Window,
        mut sums: Option<&mut [f32]>,
    ) {
        let arch = cpu.arch();
        let width = cols.len().next_multiple_of(plan.n_r);
        let k_blocks = || (0..plan.k.max(1)).step_by(plan.k_c).map(|at| at..(at + plan.k_c).min(plan.k));
        let m_c = plan.m_c.min(rows.len().next_multiple_of(plan.m_r));
        lend(m_c * plan.k_c.min(plan.k), |packed| {
            for row in rows.clone().step_by(m_c) {
                let block = row..(row + m_c).min(rows.end);
                for steps in k_blocks() {
                    let a = self.block(cpu, plan, &block, &steps, packed, sums.as_deref_mut(), rows.start);
                    let store = Store {
                        alpha: self.alpha,
                        beta: if steps.start == 0 { self.beta } else { 1.0 },
                        bias: None,
                        relu: self.activation == Activation::Relu && steps.end == plan.k,
                    };
                    let one = |at: usize, col: usize| {
                        let tile_cols = (part_cols.end - col).min(plan.n_r);
                        let first = cols.start + col;
                        let bias = self
                            .bias
                            .filter(|_| steps.start == 0)
                            .map(|bias| &bias[first..first + tile_cols]);
                        let b = panels.strip(plan.n_r, width, &steps, cols.start, col);
                        let tile_rows = (block.end - at).min(plan.m_r);
                        let a = a.panel(at - block.start, plan.m_r, &steps);
                        // SAFETY: inside of this thread's rectangle, which no other has; the tile before is done with.
                        let c =
                            unsafe { c.part(at - rows.start, col - part_cols.start, tile_rows, tile_cols) };
                        tile(arch, steps.len(), a, b, &c, tile_rows, tile_cols, &Store { bias, ..store });
                    };
                    let across = || part_cols.clone().step_by(plan.n_r);
                    let down = || block.clone().step_by(plan.m_r);
                    if plan.k <= FEW_STEPS {
                        down().for_each(|at| across().for_each(|col| one(at, col)));
                    } else {
                        across().for_each(|col| down().for_each(|at| one(at, col)));
                    }
                }
                if self.activation == Activation::Sigmoid {
                    c.apply(block.start - rows.start..block.end - rows.start, |values| {
                        self.activation.apply(arch, values)
                    });
                }
            }
        });
    }

    /// The block of A as tiles read it: packed, or in place where it is read too seldom for a copy to pay.
    #[expect(clippy::too_many_arguments, reason = "what the loops above have fixed")]
    fn block<'p>(
        &'p self,
        cpu: &Cpu,
        plan: &Plan,
        rows: &Range<usize>,
        steps: &Range<usize>,
        packed: &'p mut [f32],
        sums: Option<&mut [f32]>,
        first_row: usize,
    ) -> Block<'p> {
        let view = self.a.view;
        if let Some(data) = A::as_f32(view.tail(rows.start, steps.start))
            .filter(|_| !plan.pack_a && self.a.gate.is_none() && sums.is_none())
        {
            return Block::Placed { data, lane_stride: view.row_stride(), step_stride: view.col_stride() };
        }
        self.a.pack(cpu.arch(), rows.clone(), steps.clone(), plan.m_r, packed);
        if let Some(sums) = sums.filter(|_| !steps.is_empty()) {
            let sums = &mut sums[rows.start - first_row..][..rows.len()];
            for (panel, sums) in packed.chunks(plan.m_r * steps.len()).zip(sums.chunks_mut(plan.m_r)) {
                for step in panel.chunks_exact(plan.m_r) {
                    sums.iter_mut().zip(step).for_each(|(sum, value)| *sum += value);
                }
            }
        }
        Block::Packed(packed)
    }
}

/// Columns of B as tiles read them: panels of those packed at a time, or all of it where it lies.
#[derive(Clone, Copy)]
enum Panels<'a> {
    Packed(&'a [f32]),
    Placed { data: &'a [f32], step_stride: usize },
}

impl<'a> Panels<'a> {
    /// The panel from column `first + col` on, where the columns packed are `width`, the first of them `first`.
    fn strip(&self, n_r: usize, width: usize, steps: &Range<usize>, first: usize, col: usize) -> Strip<'a> {
        match *self {
            Panels::Packed(data) => {
                let data = &data[width * steps.start + col * steps.len()..][..n_r * steps.len()];
                Strip { data, lane_stride: 1, step_stride: n_r }
            }
            Panels::Placed { data, step_stride } => {
                let data = data.get(steps.start * step_stride + first + col..).unwrap_or(&[]);
                Strip { data, lane_stride: 1, step_stride }
            }
        }
    }
}

/// A block of A.
enum Block<'a> {
    Packed(&'a [f32]),
    Placed { data: &'a [f32], lane_stride: usize, step_stride: usize },
}

impl Block<'_> {
    /// The lanes from `at` on.
    fn panel(&self, at: usize, m_r: usize, steps: &Range<usize>) -> Strip<'_> {
        match *self {
            Block::Packed(data) => {
                Strip { data: data.get(at * steps.len()..).unwrap_or(&[]), lane_stride: 1, step_stride: m_r }
            }
            Block::Placed { data, lane_stride, step_stride } => {
                Strip { data: data.get(at * lane_stride..).unwrap_or(&[]), lane_stride, step_stride }
            }
        }
    }
}

/// Packs the columns `cols` of B, given as lanes, in the order: block of k, panel, step, lane.
pub(crate) fn pack_all<T: Element>(
    cpu: &Cpu,
    plan: &Plan,
    source: &Source<T>,
    cols: Range<usize>,
    panels: &mut [f32],
) {
    let width = cols.len().next_multiple_of(plan.n_r);
    let (across, blocks) = (width / plan.n_r, plan.k.div_ceil(plan.k_c));
    // Several panels at a time, so that rows of B are read in long runs, but work enough for all threads.
    let group = (across * blocks / (2 * cpu.threads())).clamp(1, MOST_PANELS);
    let groups = across.div_ceil(group);
    let shared = Shared::new(panels);
    let arch = cpu.arch();
    cpu.run(blocks * groups, |part| {
        let (block, first) = (part / groups, part % groups * group);
        let steps = block * plan.k_c..((block + 1) * plan.k_c).min(plan.k);
        let count = group.min(across - first);
        let size = plan.n_r * steps.len();
        // SAFETY: each part is done once. Blocks of steps lie one behind the other, `width` lanes each, and groups of
        // panels in a block likewise.
        let out = unsafe { shared.range(width * steps.start + first * size, count * size) };
        let lanes = cols.start + first * plan.n_r..(cols.start + (first + count) * plan.n_r).min(cols.end);
        source.pack(arch, lanes, steps, plan.n_r, out);
    });
}

/// The `index`-th of `shares` of `0..total`, cut between panels.
fn panel_share(total: usize, panel: usize, shares: usize, index: usize) -> Range<usize> {
    let share = crate::cpu::share(total.div_ceil(panel), shares, index);
    (share.start * panel).min(total)..(share.end * panel).min(total)
}
