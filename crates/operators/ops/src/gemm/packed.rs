//! The top rung: both operands packed into panels, registers and caches filled by the [`Plan`], all threads.
//!
//! ```text
//! for each n_c columns of C
//!   all threads pack                            B: k_c x n_r panels
//!   all threads, each its parts of C, then parts that others have not begun
//!     for each m_c rows                         stay in the second-level cache
//!       for each k_c steps                      A packed: m_r x k_c panels
//!         for each n_r columns                  a panel of B, from the first- and second-level cache
//!           for each m_r rows                   one register tile; the next panel of B and block of A on their way
//! ```
//!
//! The innermost loop is one call, a sweep. Where k is short, the two loops inside of k are exchanged: C is then
//! written in the order of memory.
//!
//! Every element of C is a chain of multiply-adds in the order of k, or the sum of several such chains in order. The
//! boundaries of chains depend on the shape alone, so the result does not depend on which thread computes which tile or
//! chain.

use std::ops::Range;

use super::buffer::{LINE, with_buffer};
use super::chains::Chains;
use super::kernel::Window;
use super::operands::Panels;
use super::pack::Packing;
use super::part::Part;
use super::problem::{Columns, Product, Right};
use super::{Cut, Element, MatMut, Plan};
use crate::Cpu;
use crate::cpu::share;
use crate::shared::Shared;

impl<A: Element, B: Element> Product<'_, A, B> {
    /// Computes the product.
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
        let along = window.has_rows() && sums.is_none() && matches!(self.b, Right::Plain(_));
        let columns = |cols: Range<usize>| Columns {
            product: &self,
            cpu,
            plan,
            cut: plan.cut(cols.len(), cpu.threads(), along),
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
                    with_buffer(cols.len().next_multiple_of(plan.n_r) * k, |panels| {
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
    /// Computes the columns. `packing` fills `panels`, if they are to be packed.
    fn run(&self, panels: &Panels<'_>, packing: Option<&Packing<'_, B>>) {
        let (rows, along) = (self.plan.m, self.cut.along);
        if along == 1 {
            return self.stages(panels, packing, None);
        }
        with_buffer(Chains::len(along, rows, self.cols.len()), |slabs| {
            self.stages(panels, packing, Some(Chains::new(slabs, along, rows, self.cols.len())));
        });
    }

    /// Runs the stages: packing, then all parts, then the sum of chains.
    fn stages(&self, panels: &Panels<'_>, packing: Option<&Packing<'_, B>>, chains: Option<Chains<'_>>) {
        let Cut { threads, down, across, along, .. } = self.cut;
        let stages =
            [packing.map_or(0, Packing::parts), down * across * along, chains.map_or(0, |_| threads)];
        let work = |stage: usize, part: usize| match (stage, chains) {
            // SAFETY: `stages` does each part once, and the panels are read in later stages.
            (0, _) => packing.iter().for_each(|packing| unsafe { packing.part(part) }),
            // SAFETY: each part is done once, after its operands were packed.
            (1, _) => unsafe { self.part(panels, chains, part) },
            (_, Some(chains)) => self.add(chains, part),
            _ => {}
        };
        let first = usize::from(packing.is_none());
        let last = if chains.is_some() { 3 } else { 2 };
        self.cpu.stages(threads, &stages[first..last], |stage, part| work(first + stage, part));
    }

    /// Computes a part.
    ///
    /// # Safety
    ///
    /// Each part is computed once, and panels are not packed any more.
    unsafe fn part(&self, panels: &Panels<'_>, chains: Option<Chains<'_>>, part: usize) {
        let Columns { plan, cut: Cut { down, across, m_r, .. }, .. } = *self;
        let (chain, part) = (part / (down * across), part % (down * across));
        let rows = panel_share(plan.m, m_r, down, part / across);
        let cols = panel_share(self.cols.len(), plan.n_r, across, part % across);
        if rows.is_empty() || cols.is_empty() {
            return;
        }
        let terms = match chains {
            Some(_) => chain * plan.chain..((chain + 1) * plan.chain).min(plan.k),
            None => 0..plan.k,
        };
        let c = match chains.filter(|_| chain > 0) {
            // SAFETY: as for `c` below, in the slab of this chain.
            Some(chains) => unsafe { chains.window(chain, &rows, &cols) },
            // SAFETY: each part is done once, and has rows and columns by its number: `panel_share` assigns each row
            // and each column once, so that two parts of a chain differ in rows or in columns.
            None => unsafe { self.c.part(rows.start, self.cols.start + cols.start, rows.len(), cols.len()) },
        };
        // SAFETY: of the parts with the same rows, only the one with the first columns writes sums; where there are
        // sums, there is one chain.
        let sums =
            self.sums.filter(|_| cols.start == 0).map(|sums| unsafe { sums.range(rows.start, rows.len()) });
        // SAFETY: they are not packed any more.
        let panels = unsafe { panels.packed() };
        Part { columns: self, panels, rows, cols, terms, c }.run(sums);
    }

    /// Adds the chains for a thread's share of the columns.
    fn add(&self, chains: Chains<'_>, part: usize) {
        let (rows, cols) = (0..self.plan.m, panel_share(self.cols.len(), LINE, self.cut.threads, part));
        if cols.is_empty() {
            return;
        }
        // SAFETY: parts differ in columns, and the stage that computed sums is over.
        unsafe {
            let mut c = self.c.part(0, self.cols.start + cols.start, rows.len(), cols.len());
            chains.add(self.cpu.arch(), &rows, &cols, &mut c, self.product.activation);
        }
    }
}

/// The `index`-th of `shares` of `0..total`, with boundaries between panels.
fn panel_share(total: usize, panel: usize, shares: usize, index: usize) -> Range<usize> {
    let share = share(total.div_ceil(panel), shares, index);
    (share.start * panel).min(total)..(share.end * panel).min(total)
}
