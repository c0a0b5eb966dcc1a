//! A part of a product: a rectangle of C for one thread, as sweeps of register tiles.

use std::ops::Range;

use super::buffer::{LINE, with_buffer};
use super::kernel::{FEW_STEPS, PrefetchRegions, Region, Store, Strip, Sweep, Window, sweep};
use super::operands::{Block, Panels, keeps_apart};
use super::problem::Columns;
use super::{Activation, Element, MatMut, Plan};
use crate::Isa;
use crate::cpu::share;

/// Number of steps in which B is read row by row: about as many rows as the hardware prefetcher follows.
const STEPS_BY_ROWS: usize = 32;

/// Storing of partial sums.
const PLAIN: Store<'static> = Store { alpha: 1.0, beta: 0.0, bias: None, relu: false };

/// A rectangle of C.
pub(super) struct Part<'p, 'a, A, B> {
    pub(super) columns: &'p Columns<'p, 'a, A, B>,
    pub(super) panels: Panels<'p>,
    /// Rows of the product.
    pub(super) rows: Range<usize>,
    /// Columns among those of `columns`.
    pub(super) cols: Range<usize>,
    /// The terms of its sums: all of them, or those of a chain.
    pub(super) terms: Range<usize>,
    pub(super) c: Window<'p>,
}

/// A block of rows and some steps of a part.
struct Stage<'s> {
    a: Block<'s>,
    block: Range<usize>,
    steps: Range<usize>,
    store: Store<'s>,
}

impl<A: Element, B: Element> Part<'_, '_, A, B> {
    /// Computes the part, and adds the sums of A's rows to `sums` if given.
    pub(super) fn run(mut self, mut sums: Option<&mut [f32]>) {
        let Columns { product, plan, cpu, cut, .. } = *self.columns;
        let (k, chain, m_r, rows) = (plan.k, plan.chain, cut.m_r, self.rows.clone());
        let m_c = (plan.m_c / m_r * m_r).max(m_r).min(rows.len().next_multiple_of(m_r));
        let Range { start: first, end } = self.terms;
        let whole = self.terms == (0..k);
        let chain_from = |from: usize| from..(from + chain).min(end);
        with_buffer(m_c * chain.min(k), |packed| {
            for row in rows.clone().step_by(m_c) {
                let block = row..(row + m_c).min(rows.end);
                for from in (first..end.max(first + 1)).step_by(chain) {
                    let steps = chain_from(from);
                    let sums = sums.as_deref_mut().map(|sums| &mut sums[row - rows.start..][..block.len()]);
                    let store = Store {
                        alpha: product.alpha,
                        beta: if from == 0 { product.beta } else { f32::from(from > first) },
                        bias: product.bias.filter(|_| from == 0).map(|bias| &bias[self.columns.cols.start..]),
                        relu: whole && product.activation == Activation::Relu && steps.end == k,
                    };
                    let a = self.block(&block, &steps, packed, sums);
                    let next = if steps.end < end {
                        (block.clone(), chain_from(steps.end))
                    } else {
                        (block.end..(block.end + m_c).min(rows.end), chain_from(first))
                    };
                    let stage = Stage { a, block: block.clone(), steps, store };
                    if k <= FEW_STEPS {
                        self.across(&stage);
                    } else if self.takes_rows(&stage) {
                        self.by_rows(&stage);
                    } else {
                        self.down(&stage, &next);
                    }
                }
                if whole && product.activation == Activation::Sigmoid {
                    self.c.apply(block.start - rows.start..block.end - rows.start, |values| {
                        product.activation.apply(cpu.arch(), values);
                    });
                }
            }
        });
    }

    /// Computes rows of tiles, one after the other: C in the order of memory.
    fn across(&self, stage: &Stage) {
        for (row, rows) in tiles(&stage.block, self.columns.cut.m_r) {
            for (col, cols, count) in runs(&self.cols, self.columns.plan.n_r) {
                let (tiles, store) = self.tiles_from(stage, (row, rows), (col, cols), false, count);
                sweep(
                    self.columns.cpu.arch(),
                    &tiles,
                    &store,
                    &mut PrefetchRegions::new(Region::NONE, Region::NONE),
                );
            }
        }
    }

    /// Computes columns of tiles: all rows use a panel of B, while the next panel and a share of the next block of A
    /// are prefetched.
    fn down(&self, stage: &Stage, next: &(Range<usize>, Range<usize>)) {
        let Columns { plan, cpu, cut, .. } = *self.columns;
        let of = self.cols.len().div_ceil(plan.n_r);
        for (index, (col, cols)) in tiles(&self.cols, plan.n_r).enumerate() {
            let b = match self.panels {
                // Rows of B that are far apart are not prefetched: they would compete for the same few lines.
                Panels::Packed(_) if col + cols < self.cols.end => {
                    let panel = self.strip(&stage.steps, col + cols);
                    Region::run(panel.data.as_ptr(), plan.n_r * stage.steps.len())
                }
                _ => Region::NONE,
            };
            let mut ahead = PrefetchRegions::new(b, self.rows_ahead(next, share(next.0.len(), of, index)));
            for (row, rows, count) in runs(&stage.block, cut.m_r) {
                let (tiles, store) = self.tiles_from(stage, (row, rows), (col, cols), true, count);
                sweep(cpu.arch(), &tiles, &store, &mut ahead);
            }
        }
    }

    /// Computes with B row by row, some rows at a time, for all columns: the order of memory, which the hardware
    /// prefetcher follows. Sums are kept in a buffer, since rows of C would be prefetched too, and other threads write
    /// the rest of them.
    fn by_rows(&self, stage: &Stage) {
        let Columns { plan, cpu, .. } = *self.columns;
        let rows = stage.block.len();
        // One cache line more, so that rows do not compete for the same lines.
        let stride = self.cols.len().next_multiple_of(LINE) + LINE;
        with_buffer(rows * stride, |buffer| {
            let mut buffer = MatMut::with_strides(buffer, rows, self.cols.len(), stride, 1)
                .expect("a buffer of as many rows, which do not meet");
            let buffer = Window::new(&mut buffer);
            for from in (0..stage.steps.len()).step_by(STEPS_BY_ROWS) {
                let k = STEPS_BY_ROWS.min(stage.steps.len() - from);
                let last = from + k == stage.steps.len();
                for (col, cols, count) in runs(&self.cols, plan.n_r) {
                    let tile_rows = (stage.block.start, rows);
                    let (mut tiles, store) = self.tiles_from(stage, tile_rows, (col, cols), false, count);
                    tiles.k = k;
                    tiles.a.data = &tiles.a.data[from * tiles.a.step_stride..];
                    tiles.b.data = &tiles.b.data[from * tiles.b.step_stride..];
                    // SAFETY: the sums of the tiles of this sweep; no other window is in use.
                    let sums = unsafe { buffer.part(0, col - self.cols.start, rows, cols * count) };
                    tiles.sums = Some(sums).filter(|_| from > 0);
                    let store = if last { store } else { PLAIN };
                    if !last {
                        tiles.c = sums;
                    }
                    sweep(cpu.arch(), &tiles, &store, &mut PrefetchRegions::new(Region::NONE, Region::NONE));
                }
            }
        });
    }

    /// Whether B is read row by row: in place, for a single row of tiles, and too large for the second level.
    fn takes_rows(&self, stage: &Stage) -> bool {
        let Columns { plan, cpu, cut, .. } = *self.columns;
        let large = self.cols.len() * plan.k > plan.machine.caches[1].bytes / 4 / size_of::<f32>();
        let placed = matches!(self.panels, Panels::Placed { .. });
        cpu.isa() == Isa::Avx512 && placed && large && stage.block.len() <= cut.m_r
    }

    /// Returns `count` tiles of one size from a row and a column on, below each other or across.
    fn tiles_from<'s>(
        &'s self,
        stage: &'s Stage,
        (row, rows): (usize, usize),
        (col, cols): (usize, usize),
        down: bool,
        count: usize,
    ) -> (Sweep<'s, 's>, Store<'s>) {
        let (n_r, m_r, steps) = (self.columns.plan.n_r, self.columns.cut.m_r, &stage.steps);
        let (down_by, across_by) = if down { (count, 1) } else { (1, count) };
        let (row_at, col_at) = (row - self.rows.start, col - self.cols.start);
        // SAFETY: inside of this thread's own rectangle; the tiles before are done.
        let c = unsafe { self.c.part(row_at, col_at, rows * down_by, cols * across_by) };
        let tiles = Sweep {
            k: steps.len(),
            count,
            rows,
            cols,
            down,
            a: stage.a.panel(row - stage.block.start, m_r, steps),
            a_next: if down { stage.a.next(m_r, steps) } else { 0 },
            b: self.strip(steps, col),
            b_next: if down { 0 } else { self.panels.next(n_r, self.packed_with(steps).len()) },
            c,
            sums: None,
        };
        (tiles, Store { bias: stage.store.bias.map(|bias| &bias[col..]), ..stage.store })
    }

    /// Returns B for some steps, from a column on.
    fn strip(&self, steps: &Range<usize>, col: usize) -> Strip<'_> {
        let (n_r, cols) = (self.columns.plan.n_r, &self.columns.cols);
        self.panels.strip(n_r, cols, &self.packed_with(steps), steps.start, col)
    }

    /// Returns the steps that were packed together with these.
    fn packed_with(&self, steps: &Range<usize>) -> Range<usize> {
        let Plan { k, k_c, .. } = *self.columns.plan;
        let start = steps.start / k_c * k_c;
        start..(start + k_c).min(k)
    }

    /// Returns some rows of the next block of A, its `share`, to prefetch before they are packed.
    fn rows_ahead(&self, (rows, steps): &(Range<usize>, Range<usize>), share: Range<usize>) -> Region {
        let view = &self.columns.product.a.view;
        let first = rows.start + share.start;
        match A::as_f32(view.tail(first, steps.start)) {
            Some(data) if view.col_stride() == 1 && !share.is_empty() && self.columns.plan.pack_a => Region {
                start: data.as_ptr(),
                rows: share.len(),
                len: steps.len(),
                stride: view.row_stride(),
            },
            _ => Region::NONE,
        }
    }

    /// Returns the block of A for tiles: packed, or in place where it is read too rarely for a copy to pay.
    fn block<'s>(
        &'s self,
        rows: &Range<usize>,
        steps: &Range<usize>,
        packed: &'s mut [f32],
        sums: Option<&mut [f32]>,
    ) -> Block<'s> {
        let Columns { product, plan, cpu, cut, .. } = *self.columns;
        let (a, m_r) = (&product.a, cut.m_r);
        let apart = keeps_apart(a.view.row_stride(), m_r, plan.machine.caches[0].ways);
        let in_place = !plan.pack_a || (cut.in_place && apart);
        if let Some(data) = A::as_f32(a.view.tail(rows.start, steps.start))
            .filter(|_| in_place && a.gate.is_none() && sums.is_none())
        {
            let (lane_stride, step_stride) = (a.view.row_stride(), a.view.col_stride());
            return Block::Placed { data, lane_stride, step_stride };
        }
        a.pack(cpu.arch(), rows.clone(), steps.clone(), m_r, packed);
        let used = &packed[..rows.len().next_multiple_of(m_r) * steps.len()];
        add_rows(used, m_r, steps.len(), sums);
        Block::Packed(packed)
    }
}

/// Adds the elements of some rows to their sums, step by step, from panels of A.
fn add_rows(packed: &[f32], m_r: usize, steps: usize, sums: Option<&mut [f32]>) {
    let Some(sums) = sums.filter(|_| steps > 0) else { return };
    for (panel, sums) in packed.chunks(m_r * steps).zip(sums.chunks_mut(m_r)) {
        for step in panel.chunks_exact(m_r) {
            sums.iter_mut().zip(step).for_each(|(sum, value)| *sum += value);
        }
    }
}

/// Beginning and length of each tile: all `size` but the last.
fn tiles(range: &Range<usize>, size: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
    let end = range.end;
    range.clone().step_by(size).map(move |at| (at, size.min(end - at)))
}

/// The same as runs of tiles of one size: beginning, length of a tile, number of tiles.
fn runs(range: &Range<usize>, size: usize) -> impl Iterator<Item = (usize, usize, usize)> + use<> {
    let (whole, rest) = (range.len() / size, range.len() % size);
    let last = (range.start + whole * size, rest, 1);
    [(range.start, size, whole), last].into_iter().filter(|&(_, size, count)| size * count > 0)
}
