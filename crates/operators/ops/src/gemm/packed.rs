//! The top rung: both operands packed into panels, registers and caches filled as the [`Plan`] says, all threads.
//!
//! ```text
//! for each n_c columns of C
//!   all threads pack                            B: k_c x n_r panels
//!   all threads, each its parts of C, then what others have not begun
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
use super::kernel::{Ahead, FEW_STEPS, Store, Strip, Window, tile};
use super::pack::{Packing, Source};
use super::{Activation, Cut, Element, MatMut, Plan};
use crate::Cpu;
use crate::cpu::share;
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
struct Columns<'p, 'a, A, B> {
    product: &'p Product<'a, A, B>,
    cpu: &'p Cpu,
    plan: &'p Plan,
    cut: Cut,
    cols: Range<usize>,
    c: &'p Window<'p>,
    sums: Option<Shared<'p, f32>>,
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
        let pack_b = plan.packs_b(cpu.threads());
        let columns = |cols: Range<usize>| Columns {
            product: &self,
            cpu,
            plan,
            cut: plan.cut(cols.len(), cpu.threads()),
            sums: sums.filter(|_| cols.start == 0),
            cols,
            c: &window,
        };
        match self.b {
            Right::Packed(panels) => columns(0..n).run(&Panels::Packed(panels), None::<&Packing<B>>),
            Right::Plain(source) => {
                let rows = source.gate.is_none() && source.view.col_stride() == 1;
                if let Some(data) = B::as_f32(source.view.tail(0, 0)).filter(|_| rows && !pack_b) {
                    let panels = Panels::Placed { data, step_stride: source.view.row_stride() };
                    return columns(0..n).run(&panels, None::<&Packing<B>>);
                }
                let source = source.t();
                for from in (0..n).step_by(plan.n_c) {
                    let cols = from..(from + plan.n_c).min(n);
                    let columns = columns(cols.clone());
                    lend(cols.len().next_multiple_of(plan.n_r) * k, |panels| {
                        let steps = (k, plan.k_c);
                        let packing = Packing::new(
                            cpu.arch(),
                            source,
                            cols,
                            plan.n_r,
                            steps,
                            columns.cut.threads,
                            panels,
                        );
                        columns.run(&Panels::Shared(packing.out()), Some(&packing));
                    });
                }
            }
        }
    }
}

impl<A: Element, B: Element> Columns<'_, '_, A, B> {
    /// Computes them: what is to be packed, then all parts. `packing` is the way to `panels` where there is one.
    fn run(&self, panels: &Panels<'_>, packing: Option<&Packing<'_, B>>) {
        let Cut { threads, down, across, m_r, .. } = self.cut;
        let (m, packs) = (self.plan.m, packing.map_or(0, Packing::parts));
        let work = |stage: usize, part: usize| {
            if stage == 0 {
                // SAFETY: `stages` does each part once, and what reads them comes after.
                packing.iter().for_each(|packing| unsafe { packing.part(part) });
                return;
            }
            let rows = panel_share(m, m_r, down, part / across);
            let cols = panel_share(self.cols.len(), self.plan.n_r, across, part % across);
            if rows.is_empty() || cols.is_empty() {
                return;
            }
            // SAFETY: each part is done once, and has rows and columns by its number: `panel_share` deals each row and
            // each column out once, so that two parts differ in rows or in columns.
            let c = unsafe { self.c.part(rows.start, self.cols.start + cols.start, rows.len(), cols.len()) };
            // SAFETY: of the parts with the same rows only the one with the first columns writes sums.
            let sums = self
                .sums
                .filter(|_| cols.start == 0)
                .map(|sums| unsafe { sums.range(rows.start, rows.len()) });
            // SAFETY: the stage before, which packed them, is over.
            let panels = unsafe { panels.packed() };
            self.part(panels, rows, cols, c, sums);
        };
        match packing {
            Some(_) => self.cpu.stages(threads, &[packs, down * across], work),
            None => self.cpu.stages(threads, &[down * across], |_, part| work(1, part)),
        }
    }

    /// One thread's rectangle of C.
    fn part(
        &self,
        panels: Panels<'_>,
        rows: Range<usize>,
        cols: Range<usize>,
        mut c: Window<'_>,
        mut sums: Option<&mut [f32]>,
    ) {
        let (product, plan, arch, m_r) = (self.product, self.plan, self.cpu.arch(), self.cut.m_r);
        let (n_r, first_col, all_bias) = (plan.n_r, self.cols.start, product.bias);
        let width = self.cols.len().next_multiple_of(n_r);
        let k_blocks = || (0..plan.k.max(1)).step_by(plan.k_c).map(|at| at..(at + plan.k_c).min(plan.k));
        let m_c = (plan.m_c / m_r * m_r).max(m_r).min(rows.len().next_multiple_of(m_r));
        lend(m_c * plan.k_c.min(plan.k), |packed| {
            for row in rows.clone().step_by(m_c) {
                let block = row..(row + m_c).min(rows.end);
                for steps in k_blocks() {
                    let sums = sums.as_deref_mut().map(|sums| &mut sums[row - rows.start..][..block.len()]);
                    let a = self.block(&block, &steps, packed, sums);
                    let store = Store {
                        alpha: product.alpha,
                        beta: if steps.start == 0 { product.beta } else { 1.0 },
                        bias: None,
                        relu: product.activation == Activation::Relu && steps.end == plan.k,
                        ahead: None,
                    };
                    let bias_now = all_bias.filter(|_| steps.start == 0);
                    let one = |at: usize, col: usize| {
                        let tile_cols = (cols.end - col).min(n_r);
                        let first = first_col + col;
                        let bias = bias_now.map(|bias| &bias[first..first + tile_cols]);
                        let b = panels.strip(n_r, width, &steps, first_col, col);
                        // While the first tile of a panel of B is computed, the next panel comes.
                        let ahead = if at == block.start { panels.ahead(b, n_r * steps.len()) } else { None };
                        let tile_rows = (block.end - at).min(m_r);
                        let a = a.panel(at - block.start, m_r, &steps);
                        // SAFETY: inside of this thread's rectangle, which no other has; the tile before is done with.
                        let c = unsafe { c.part(at - rows.start, col - cols.start, tile_rows, tile_cols) };
                        tile(
                            arch,
                            steps.len(),
                            a,
                            b,
                            &c,
                            tile_rows,
                            tile_cols,
                            &Store { bias, ahead, ..store },
                        );
                    };
                    let across = || cols.clone().step_by(n_r);
                    let down = || block.clone().step_by(m_r);
                    if plan.k <= FEW_STEPS {
                        down().for_each(|at| across().for_each(|col| one(at, col)));
                    } else {
                        across().for_each(|col| down().for_each(|at| one(at, col)));
                    }
                }
                if product.activation == Activation::Sigmoid {
                    c.apply(block.start - rows.start..block.end - rows.start, |values| {
                        product.activation.apply(arch, values)
                    });
                }
            }
        });
    }

    /// The block of A as tiles read it: packed, or in place where it is read too seldom for a copy to pay.
    fn block<'p>(
        &'p self,
        rows: &Range<usize>,
        steps: &Range<usize>,
        packed: &'p mut [f32],
        sums: Option<&mut [f32]>,
    ) -> Block<'p> {
        let (a, m_r) = (&self.product.a, self.cut.m_r);
        let in_place = !self.plan.pack_a
            || (self.cut.in_place && keeps_apart(a.view.row_stride(), m_r, self.plan.machine.caches[0].ways));
        if let Some(data) = A::as_f32(a.view.tail(rows.start, steps.start))
            .filter(|_| in_place && a.gate.is_none() && sums.is_none())
        {
            let (lane_stride, step_stride) = (a.view.row_stride(), a.view.col_stride());
            return Block::Placed { data, lane_stride, step_stride };
        }
        a.pack(self.cpu.arch(), rows.clone(), steps.clone(), m_r, packed);
        let used = &packed[..rows.len().next_multiple_of(m_r) * steps.len()];
        add_rows(used, m_r, steps.len(), sums);
        Block::Packed(packed)
    }
}

/// Adds to the sums of some rows their elements, step by step, from panels of A.
fn add_rows(packed: &[f32], m_r: usize, steps: usize, sums: Option<&mut [f32]>) {
    let Some(sums) = sums.filter(|_| steps > 0) else { return };
    for (panel, sums) in packed.chunks(m_r * steps).zip(sums.chunks_mut(m_r)) {
        for step in panel.chunks_exact(m_r) {
            sums.iter_mut().zip(step).for_each(|(sum, value)| *sum += value);
        }
    }
}

/// Whether as many rows, that many floats apart, leave room where they compete for the lines of a first-level cache of as
/// many ways: those whose addresses are the same but for multiples of 4 KiB.
pub(super) fn keeps_apart(row_stride: usize, rows: usize, ways: usize) -> bool {
    const PERIOD: usize = 4096 / size_of::<f32>();
    let together = 1 << row_stride.trailing_zeros().min(PERIOD.trailing_zeros());
    rows.div_ceil(PERIOD / together) <= ways / 3
}

/// Columns of B as tiles read them: panels of those packed at a time, or all of it where it lies.
#[derive(Clone, Copy)]
enum Panels<'a> {
    Packed(&'a [f32]),
    /// To be packed in the stage before.
    Shared(Shared<'a, f32>),
    Placed {
        data: &'a [f32],
        step_stride: usize,
    },
}

impl<'a> Panels<'a> {
    /// The same, to be read.
    ///
    /// # Safety
    ///
    /// Nobody packs them any more.
    unsafe fn packed(&self) -> Panels<'a> {
        match *self {
            // SAFETY: nobody writes them, by the caller's promise.
            Panels::Shared(shared) => Panels::Packed(unsafe { shared.all() }),
            other => other,
        }
    }

    /// The panel from column `first + col` on, where the columns packed are `width`, the first of them `first`.
    fn strip(&self, n_r: usize, width: usize, steps: &Range<usize>, first: usize, col: usize) -> Strip<'a> {
        match *self {
            Panels::Packed(data) => {
                let data = &data[width * steps.start + col * steps.len()..][..n_r * steps.len()];
                Strip { data, lane_stride: 1, step_stride: n_r }
            }
            Panels::Shared(_) => unreachable!("read before they are packed"),
            Panels::Placed { data, step_stride } => {
                let data = data.get(steps.start * step_stride + first + col..).unwrap_or(&[]);
                Strip { data, lane_stride: 1, step_stride }
            }
        }
    }

    /// What to ask for during the use of a strip of that many floats: the panel behind it. Rows of B that lie far apart
    /// are left alone: asked for, they compete for the same few lines.
    fn ahead(&self, strip: Strip<'_>, len: usize) -> Option<Ahead> {
        match self {
            Panels::Placed { .. } => None,
            _ => Some(Ahead { start: strip.data.as_ptr().wrapping_add(len), step: strip.step_stride }),
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

/// The `index`-th of `shares` of `0..total`, cut between panels.
fn panel_share(total: usize, panel: usize, shares: usize, index: usize) -> Range<usize> {
    let share = share(total.div_ceil(panel), shares, index);
    (share.start * panel).min(total)..(share.end * panel).min(total)
}
