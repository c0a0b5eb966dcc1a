//! Steps of all distinct rows of all tables.

use std::ops::Range;

use half::{bf16, f16};

use super::super::{EmbeddingError, TableValues, WeightsMut};
use super::round::{Dice, Weight};
use super::sum::Sums;
use super::sum::long::Partials;
use super::update::Numbers;
use super::{Rounding, State};
use crate::Cpu;
use crate::shared::Shared;
use crate::simd::{Kernel, Simd, dispatch, prefetch};

/// Number of lookups whose rows one part of the work updates.
const PART: usize = 256;

/// Rows that several threads change at the same time, each its own.
struct Rows<'a, T> {
    values: Shared<'a, T>,
    pitch: usize,
    width: usize,
}

impl<'a, T> Rows<'a, T> {
    fn new(values: &'a mut [T], pitch: usize, width: usize) -> Rows<'a, T> {
        Rows { values: Shared::new(values), pitch, width }
    }

    /// # Safety
    ///
    /// Nothing else holds this row.
    #[inline(always)]
    unsafe fn row(&self, row: usize) -> &'a mut [T] {
        // SAFETY: rows do not overlap, since tables and states have a pitch of at least their width; and nothing else
        // holds this one by the caller's promise.
        unsafe { self.values.range(row * self.pitch, self.width) }
    }

    /// Prefetches the lines of a row; of long rows only as many as start the hardware prefetcher.
    #[inline(always)]
    fn prefetch(&self, row: usize) {
        let line = 64 / size_of::<T>();
        for at in (0..self.width.min(16 * line)).step_by(line) {
            prefetch(self.values.address(row * self.pitch + at));
        }
    }
}

/// Weights of a table, of any type that can be trained.
enum Weights<'a> {
    F32(Rows<'a, f32>),
    F16(Rows<'a, f16>),
    Bf16(Rows<'a, bf16>),
}

/// The step of one table.
pub(super) struct Job<'a> {
    table: usize,
    weights: Weights<'a>,
    state: Rows<'a, f32>,
    sums: &'a Sums<'a>,
    partials: &'a Partials,
    numbers: Numbers,
    rounding: (Rounding, u64),
}

impl<'a> Job<'a> {
    /// The step of table `at`; fails where it cannot be trained. `rounding` comes with the step's number.
    pub(super) fn new(
        at: usize,
        table: TableValues<'a, '_>,
        state: &'a mut State,
        sums: &'a Sums<'a>,
        partials: &'a Partials,
        numbers: Numbers,
        rounding: (Rounding, u64),
    ) -> Result<Job<'a>, EmbeddingError> {
        let (weights, pitch) = table.weights_mut()?;
        let weights = match weights {
            WeightsMut::F32(values) => Weights::F32(Rows::new(values, pitch, sums.dim)),
            WeightsMut::F16(values) => Weights::F16(Rows::new(values, pitch, sums.dim)),
            WeightsMut::Bf16(values) => Weights::Bf16(Rows::new(values, pitch, sums.dim)),
        };
        let (width, pitch) = (state.width(), state.pitch());
        let state = Rows::new(state.values_mut(), pitch, width);
        Ok(Job { table: at, weights, state, sums, partials, numbers, rounding })
    }
}

/// Does all jobs. Each row belongs to one part, so the order does not matter.
pub(super) fn run(cpu: &Cpu, jobs: &[Job<'_>]) {
    let parts = |job: &Job<'_>| job.sums.groups.len().div_ceil(PART);
    let parts: Vec<(usize, usize)> =
        jobs.iter().enumerate().flat_map(|(at, job)| (0..parts(job)).map(move |part| (at, part))).collect();
    cpu.run(parts.len(), |part| {
        let (job, part) = parts[part];
        let job = &jobs[job];
        let groups = job.sums.groups;
        let groups = groups.group_from(part * PART)..groups.group_from((part + 1) * PART);
        match &job.weights {
            Weights::F32(rows) => dispatch(cpu.arch(), Part { job, rows, groups }),
            Weights::F16(rows) => dispatch(cpu.arch(), Part { job, rows, groups }),
            Weights::Bf16(rows) => dispatch(cpu.arch(), Part { job, rows, groups }),
        }
    });
}

/// Some consecutive distinct rows of a table.
struct Part<'a, T> {
    job: &'a Job<'a>,
    rows: &'a Rows<'a, T>,
    groups: Range<usize>,
}

impl<T: Weight> Kernel for Part<'_, T> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        if self.groups.is_empty() {
            return;
        }
        let job = self.job;
        let (sums, lookups) = (job.sums, job.sums.groups);
        let end = lookups.group(self.groups.end - 1).end;
        let mut wide = vec![0.0; sums.dim];
        let mut sum = vec![0.0; sums.dim];
        let mut fetched = lookups.group(self.groups.start).start;
        let mut fetched_row = usize::MAX;
        for group in self.groups {
            let start = lookups.group(group).start;
            fetched = fetched.max(start);
            while fetched < end.min(start + sums.ahead) {
                sums.prefetch(fetched);
                let row = lookups.row(fetched);
                if row != fetched_row {
                    self.rows.prefetch(row);
                    job.state.prefetch(row);
                    fetched_row = row;
                }
                fetched += 1;
            }
            let row = lookups.row(start);
            let (gradient, factor) = sums.gradient(s, group, job.partials, &mut sum);
            let (rounding, step) = job.rounding;
            let dice = Dice::new(rounding, step, job.table, row);
            // SAFETY: a group has one row, and no two groups have the same: keys are sorted by row, and change together
            // with the positions of their bits. A group belongs to one part, since parts divide the places at which
            // groups start, and each part is done once. Tables and states are separate memory, each borrowed mutably.
            let (weights, state) = unsafe { (self.rows.row(row), job.state.row(row)) };
            job.numbers.change(s, T::open(weights, &mut wide), state, gradient, factor);
            T::close(weights, &wide, dice);
        }
    }
}
