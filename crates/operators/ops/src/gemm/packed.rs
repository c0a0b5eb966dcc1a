//! The top rung: both operands packed into panels, registers and caches filled as the [`Plan`] says, all threads.
//!
//! ```text
//! for each n_c columns of C
//!   all threads pack                            B: k_c x n_r panels
//!   all threads, each its parts of C, then what others have not begun
//!     for each m_c rows                         stay in the second-level cache
//!       for each k_c steps                      A packed: m_r x k_c panels
//!         for each n_r columns                  a panel of B, from the first- and second-level cache
//!           for each m_r rows                   one register tile; the next panel of B and block of A on their way
//! ```
//!
//! The innermost loop is one call, a sweep. Where k is short, the two loops inside of k change places: C is then written in
//! the order of memory.
//!
//! Every element of C is one chain of multiply-adds in the order of k, cut at multiples of k_c, which depends on k alone.
//! So the result does not depend on who computes which tile.

use std::ops::Range;

use super::buffer::lend;
use super::kernel::{Ahead, FEW_STEPS, Region, Store, Strip, Sweep, Window};
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
        let (n_r, first_col) = (plan.n_r, self.cols.start);
        let width = self.cols.len().next_multiple_of(n_r);
        let k_blocks = || (0..plan.k.max(1)).step_by(plan.k_c).map(|at| at..(at + plan.k_c).min(plan.k));
        let m_c = (plan.m_c / m_r * m_r).max(m_r).min(rows.len().next_multiple_of(m_r));
        lend(m_c * plan.k_c.min(plan.k), |packed| {
            for row in rows.clone().step_by(m_c) {
                let block = row..(row + m_c).min(rows.end);
                for steps in k_blocks() {
                    let sums = sums.as_deref_mut().map(|sums| &mut sums[row - rows.start..][..block.len()]);
                    let a = self.block(&block, &steps, packed, sums);
                    let first_steps = steps.start == 0;
                    let store = Store {
                        alpha: product.alpha,
                        beta: if first_steps { product.beta } else { 1.0 },
                        bias: None,
                        relu: product.activation == Activation::Relu && steps.end == plan.k,
                    };
                    let bias = product.bias.filter(|_| first_steps).map(|bias| &bias[first_col..]);
                    let next = if steps.end < plan.k {
                        (block.clone(), steps.end..(steps.end + plan.k_c).min(plan.k))
                    } else {
                        (block.end..(block.end + m_c).min(rows.end), 0..plan.k_c.min(plan.k))
                    };
                    // Tiles of one size: from (`at`, `col`) on.
                    let sweep = |at: usize, tile_rows, col: usize, tile_cols, down, count| {
                        let b = panels.strip(n_r, width, &steps, first_col, col);
                        let (a_next, b_next) = (a.next(m_r, &steps), panels.next(n_r, &steps));
                        let (a_next, b_next) = if down { (a_next, 0) } else { (0, b_next) };
                        let (down_by, across_by) = if down { (count, 1) } else { (1, count) };
                        // SAFETY: inside of this thread's rectangle, which no other has; the tiles before are done with.
                        let c = unsafe {
                            let (row, col) = (at - rows.start, col - cols.start);
                            c.part(row, col, tile_rows * down_by, tile_cols * across_by)
                        };
                        let a = a.panel(at - block.start, m_r, &steps);
                        let store = Store { bias: bias.map(|bias| &bias[col..]), ..store };
                        let (k, rows, cols) = (steps.len(), tile_rows, tile_cols);
                        (Sweep { k, count, rows, cols, down, a, a_next, b, b_next, c }, store)
                    };
                    if plan.k <= FEW_STEPS {
                        let mut ahead = Ahead::new(Region::NONE, Region::NONE);
                        for (at, tile_rows) in tiles(&block, m_r) {
                            for (col, tile_cols, count) in runs(&cols, n_r) {
                                let (sweep, store) = sweep(at, tile_rows, col, tile_cols, false, count);
                                sweep.run(arch, &store, &mut ahead);
                            }
                        }
                    } else {
                        let of = cols.len().div_ceil(n_r);
                        for (index, (col, tile_cols)) in tiles(&cols, n_r).enumerate() {
                            // While a panel of B is used, the next one comes, and a share of the next block of A.
                            let b = panels.ahead(n_r, width, &steps, first_col, col + n_r, cols.end);
                            let a = self.rows_ahead(&next, share(next.0.len(), of, index));
                            let mut ahead = Ahead::new(b, a);
                            for (at, tile_rows, count) in runs(&block, m_r) {
                                let (sweep, store) = sweep(at, tile_rows, col, tile_cols, true, count);
                                sweep.run(arch, &store, &mut ahead);
                            }
                        }
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

    /// Some rows of the next block of A, its `share`, to be asked for before they are packed.
    fn rows_ahead(&self, (rows, steps): &(Range<usize>, Range<usize>), share: Range<usize>) -> Region {
        let view = &self.product.a.view;
        let first = rows.start + share.start;
        match A::as_f32(view.tail(first, steps.start)) {
            Some(data) if view.col_stride() == 1 && !share.is_empty() && self.plan.pack_a => Region {
                start: data.as_ptr(),
                rows: share.len(),
                len: steps.len(),
                stride: view.row_stride(),
            },
            _ => Region::NONE,
        }
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

    /// Panels from column `first + col` on, where the columns packed are `width`, the first of them `first`.
    fn strip(&self, n_r: usize, width: usize, steps: &Range<usize>, first: usize, col: usize) -> Strip<'a> {
        match *self {
            Panels::Packed(data) => {
                let data = &data[width * steps.start + col * steps.len()..width * steps.end];
                Strip { data, lane_stride: 1, step_stride: n_r }
            }
            Panels::Shared(_) => unreachable!("read before they are packed"),
            Panels::Placed { data, step_stride } => {
                let data = data.get(steps.start * step_stride + first + col..).unwrap_or(&[]);
                Strip { data, lane_stride: 1, step_stride }
            }
        }
    }

    /// Floats from a panel to the next.
    fn next(&self, n_r: usize, steps: &Range<usize>) -> usize {
        if matches!(self, Panels::Placed { .. }) { n_r } else { n_r * steps.len() }
    }

    /// What to ask for during the use of a panel: the one behind it, from column `col` on. Rows of B that lie far apart
    /// are left alone: asked for, they compete for the same few lines.
    fn ahead(
        &self,
        n_r: usize,
        width: usize,
        steps: &Range<usize>,
        first: usize,
        col: usize,
        end: usize,
    ) -> Region {
        match self {
            Panels::Placed { .. } => Region::NONE,
            _ if col >= end => Region::NONE,
            _ => Region::run(self.strip(n_r, width, steps, first, col).data.as_ptr(), n_r * steps.len()),
        }
    }
}

/// A block of A.
enum Block<'a> {
    Packed(&'a [f32]),
    Placed { data: &'a [f32], lane_stride: usize, step_stride: usize },
}

impl Block<'_> {
    /// Floats from a panel to the next.
    fn next(&self, m_r: usize, steps: &Range<usize>) -> usize {
        match *self {
            Block::Packed(_) => m_r * steps.len(),
            Block::Placed { lane_stride, .. } => m_r * lane_stride,
        }
    }

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

/// Where tiles begin, and how long they are: all `size` but the last.
fn tiles(range: &Range<usize>, size: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
    let end = range.end;
    range.clone().step_by(size).map(move |at| (at, size.min(end - at)))
}

/// The same as runs of tiles of one size: where they begin, how long a tile is, how many there are.
fn runs(range: &Range<usize>, size: usize) -> impl Iterator<Item = (usize, usize, usize)> + use<> {
    let (whole, rest) = (range.len() / size, range.len() % size);
    let last = (range.start + whole * size, rest, 1);
    [(range.start, size, whole), last].into_iter().filter(|&(_, size, count)| size * count > 0)
}
