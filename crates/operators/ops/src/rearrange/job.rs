//! Runs copies, several at a time, divided into parts for threads.

use steptime_tensor::{Element, Layout, View};

use super::dispatch;
use super::plan::{Inner, Plan};
use super::transpose::transpose;
use crate::Cpu;
use crate::arch::Arch;
use crate::shared::Shared;
use crate::simd::fence;

/// Bytes of a part of the work: enough that the cost of starting it does not matter.
const PART_BYTES: usize = 256 << 10;

/// Rows of a part of a transpose; columns are a few of the blocks of [`transpose`].
const TURN: (usize, usize) = (64, 1024);

/// Bytes of output from which it is written as whole lines that bypass the caches, which avoids reading each line
/// before it is written. Smaller outputs are likely to be read from a cache. See the `rearrange` benchmark.
const STREAM_BYTES: usize = 8 << 20;

/// A copy from one slice to another, by a plan.
pub(super) struct Job<'a, T> {
    from: &'a [T],
    to: Shared<'a, T>,
    plan: Option<Plan>,
}

impl<'a, T: Element> Job<'a, T> {
    /// A copy from a view to a layout of the same shape; the layout is of a mutable view, so its elements do not
    /// overlap.
    pub(super) fn new(from: &View<'a, T>, to: Shared<'a, T>, layout: &Layout) -> Job<'a, T> {
        Job { plan: Plan::new(from.layout(), layout), from: from.clone().into_elements(), to }
    }

    /// Number of bytes written.
    fn bytes(&self) -> usize {
        self.plan.as_ref().map_or(0, |plan| plan.count() * plan.inner_len() * size_of::<T>())
    }
}

/// Number of inner copies of a part, and the parts into which one inner copy of a transpose is divided: rows, columns.
#[derive(Clone, Copy)]
struct Cut {
    copies: usize,
    blocks: (usize, usize),
}

impl Cut {
    fn choose<T>(plan: &Plan) -> Cut {
        if let Inner::Transpose { rows, columns } = plan.inner
            && plan.inner_len() * size_of::<T>() > PART_BYTES
        {
            let blocks = (rows.size.div_ceil(TURN.0), columns.size.div_ceil(TURN.1));
            return Cut { copies: 1, blocks };
        }
        let copies = (PART_BYTES / size_of::<T>()).div_ceil(plan.inner_len());
        Cut { copies, blocks: (1, 1) }
    }

    fn parts(&self, plan: &Plan) -> usize {
        plan.count().div_ceil(self.copies) * self.blocks.0 * self.blocks.1
    }
}

/// Does all jobs. Their outputs do not overlap.
pub(super) fn run<T: Element>(cpu: &Cpu, jobs: &[Job<'_, T>]) {
    let stream = jobs.iter().map(Job::bytes).sum::<usize>() >= STREAM_BYTES;
    let cut: Vec<_> = jobs
        .iter()
        .filter_map(|job| job.plan.as_ref().map(|plan| (job, plan, Cut::choose::<T>(plan))))
        .scan(0, |next, (job, plan, cut)| {
            let first = *next;
            *next += cut.parts(plan);
            Some((first, job, plan, cut))
        })
        .collect();
    let parts = cut.last().map_or(0, |(first, _, plan, cut)| first + cut.parts(plan));
    cpu.run(parts, |part| {
        let (first, job, plan, cut) = &cut[cut.partition_point(|(first, ..)| *first <= part) - 1];
        job.part(cpu.arch(), plan, *cut, part - first, stream);
        if stream {
            fence();
        }
    });
}

impl<T: Element> Job<'_, T> {
    fn part(&self, arch: Arch, plan: &Plan, cut: Cut, part: usize, stream: bool) {
        let (block_rows, block_columns) = cut.blocks;
        let first = part / (block_rows * block_columns) * cut.copies;
        let ahead = plan.ahead(size_of::<T>());
        for copy in first..plan.count().min(first + cut.copies) {
            let (from, to) = plan.start(copy);
            match plan.inner {
                Inner::Run(len) => {
                    if ahead > 0 && copy + ahead < plan.count() {
                        let next = plan.start(copy + ahead).0;
                        dispatch::prefetch(&self.from[next..next + len]);
                    }
                    // SAFETY: a mutable view has no two elements in one place, or it would not have been made; a plan
                    // visits each once, and each copy or block of it belongs to one part.
                    let to = unsafe { self.to.range(to, len) };
                    dispatch::copy_run(arch, &self.from[from..from + len], to, stream);
                }
                Inner::Each(dim) => {
                    for at in 0..dim.size {
                        // SAFETY: as above.
                        unsafe { self.to.range(to + at * dim.to, 1)[0] = self.from[from + at * dim.from] };
                    }
                }
                Inner::Transpose { mut rows, mut columns } => {
                    let mut start = (from, to);
                    if (block_rows, block_columns) != (1, 1) {
                        let row = part / block_columns % block_rows * TURN.0;
                        let column = part % block_columns * TURN.1;
                        start.0 += row * rows.from + column * columns.from;
                        start.1 += row * rows.to + column * columns.to;
                        rows.size = TURN.0.min(rows.size - row);
                        columns.size = TURN.1.min(columns.size - column);
                    }
                    // SAFETY: as above.
                    unsafe { transpose(arch, self.from, self.to, start, rows, columns, stream) };
                }
            }
        }
    }
}
