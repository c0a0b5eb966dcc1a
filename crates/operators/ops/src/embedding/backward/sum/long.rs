//! Rows with very many lookups, which all threads share.

use std::ops::Range;

use super::{LONG, Sums};
use crate::Cpu;
use crate::simd::{Kernel, Simd, dispatch, update};

/// Sums over runs of [`LONG`] lookups of the rows that have more of them.
#[derive(Debug, Default)]
pub(in crate::embedding::backward) struct Partials {
    /// The distinct rows with more than [`LONG`] lookups, and the first run of each.
    groups: Vec<(u32, u32)>,
    /// The group and the first place of each run.
    runs: Vec<(u32, u32)>,
    /// `[runs, D]`.
    sums: Vec<f32>,
}

impl Partials {
    /// Finds the long rows of a table. A table with few lookups has none.
    fn find(&mut self, sums: &Sums<'_>) {
        self.groups.clear();
        self.runs.clear();
        let lookups = sums.groups;
        let mut place = 0;
        // A row with more lookups than that covers at least one of these evenly spaced places.
        while place < lookups.len() {
            let group = lookups.group_from(place + 1) - 1;
            let places = lookups.group(group);
            if places.len() > LONG {
                self.groups.push((group as u32, self.runs.len() as u32));
                self.runs.extend(places.clone().step_by(LONG).map(|first| (group as u32, first as u32)));
            }
            place = places.end.max(place + LONG);
        }
        self.sums.resize(self.runs.len() * sums.dim, 0.0);
    }

    /// Adds a long row's runs, in order.
    #[inline(always)]
    pub(super) fn add_up<S: Simd>(&self, s: S, group: usize, dim: usize, sum: &mut [f32]) {
        let Ok(at) = self.groups.binary_search_by_key(&(group as u32), |&(group, _)| group) else { return };
        let first = self.groups[at].1 as usize;
        let end = self.groups.get(at + 1).map_or(self.runs.len(), |next| next.1 as usize);
        let (head, rest) = self.sums[first * dim..end * dim].split_at(dim);
        sum.copy_from_slice(head);
        for run in rest.chunks_exact(dim) {
            update!(s, [sum], run, [s.add(sum, run)]);
        }
    }
}

/// Fills the partial sums of all tables.
pub(in crate::embedding::backward) fn fill(cpu: &Cpu, sums: &[Sums<'_>], partials: &mut [Partials]) {
    cpu.run_with(partials, |table, partials| partials.find(&sums[table]));
    let mut runs: Vec<Run<'_>> = Vec::new();
    for (sums, partials) in sums.iter().zip(partials) {
        let places = partials.runs.iter().map(|&(group, first)| {
            let (first, end) = (first as usize, sums.groups.group(group as usize).end);
            first..end.min(first + LONG)
        });
        let to = partials.sums.chunks_exact_mut(sums.dim);
        runs.extend(places.zip(to).map(|(places, sum)| Run { sums, places, sum }));
    }
    cpu.run_with(&mut runs, |_, run| dispatch(cpu.arch(), run));
}

/// One run of lookups to sum.
struct Run<'a> {
    sums: &'a Sums<'a>,
    places: Range<usize>,
    sum: &'a mut [f32],
}

impl Kernel for &mut Run<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        self.sums.add_up::<S, true>(s, self.places.clone(), self.sum);
    }
}
