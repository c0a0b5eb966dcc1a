//! The gradient of a row: the sum over its lookups, in a fixed order.
//!
//! Lookups are summed from first to last, in runs of [`LONG`]; the sums of the runs are added in order. So a row with
//! more lookups than that gets the same sum from one thread as from many.

pub(super) mod long;

use std::ops::Range;

use self::long::Partials;
use super::super::group::Groups;
use super::winners::NO_WINNER;
use crate::simd::{LANES, Simd, prefetch};

/// Number of lookups of a run.
pub(super) const LONG: usize = 256;

/// Source of a lookup's gradient.
#[derive(Clone, Copy)]
pub(super) enum GradientSource {
    /// Row `bag` of the gradients.
    Bag,
    /// Row `start + position`.
    Place(usize),
}

/// The gradients of one table's lookups.
pub(super) struct Sums<'a> {
    pub(super) groups: &'a Groups,
    pub(super) gradient: &'a [f32],
    pub(super) stride: usize,
    pub(super) column: usize,
    /// Number of columns, D.
    pub(super) dim: usize,
    pub(super) receives: GradientSource,
    /// A factor for each position.
    pub(super) weights: Option<&'a [f32]>,
    /// A factor for each bag.
    pub(super) means: Option<&'a [f32]>,
    /// `[B, D]`: the only position of a bag that gets the gradient of a column.
    pub(super) winners: Option<&'a [u32]>,
    /// Number of rows to fetch ahead.
    pub(super) ahead: usize,
}

impl<'a> Sums<'a> {
    /// Returns the gradient of the lookup at this place, before its factor.
    #[inline(always)]
    fn received(&self, place: usize) -> &'a [f32] {
        let row = match self.receives {
            GradientSource::Bag => self.groups.bag(place),
            GradientSource::Place(start) => start + self.groups.position(place),
        };
        &self.gradient[row * self.stride + self.column..][..self.dim]
    }

    /// Returns the factor of the lookup at this place.
    #[inline(always)]
    fn factor(&self, place: usize) -> f32 {
        let weight = self.weights.map_or(1.0, |weights| weights[self.groups.position(place)]);
        self.means.map_or(weight, |means| weight * means[self.groups.bag(place)])
    }

    /// Prefetches the gradient of a lookup.
    #[inline(always)]
    pub(super) fn prefetch(&self, place: usize) {
        prefetch_all(self.received(place));
    }

    /// Returns the gradient of a distinct row, and a factor still to be applied.
    #[inline(always)]
    pub(super) fn gradient<'b, S: Simd>(
        &'b self,
        s: S,
        group: usize,
        partials: &'b Partials,
        scratch: &'b mut [f32],
    ) -> (&'b [f32], f32) {
        let places = self.groups.group(group);
        if places.len() == 1 && self.winners.is_none() {
            return (self.received(places.start), self.factor(places.start));
        }
        if places.len() <= LONG {
            self.add_up::<S, false>(s, places, scratch);
        } else {
            partials.add_up(s, group, self.dim, scratch);
        }
        (scratch, 1.0)
    }

    /// Sums at most [`LONG`] lookups of a row; with `FETCH`, prefetches their gradients.
    #[inline(always)]
    pub(super) fn add_up<S: Simd, const FETCH: bool>(&self, s: S, places: Range<usize>, sum: &mut [f32]) {
        if let Some(winners) = self.winners {
            return self.add_up_won(places, winners, sum);
        }
        let mut at = 0;
        while self.dim - at >= 8 * LANES {
            self.columns::<S, 8, FETCH>(s, places.clone(), at, sum);
            at += 8 * LANES;
        }
        if self.dim - at >= 4 * LANES {
            self.columns::<S, 4, FETCH>(s, places.clone(), at, sum);
            at += 4 * LANES;
        }
        while self.dim - at >= LANES {
            self.columns::<S, 1, FETCH>(s, places.clone(), at, sum);
            at += LANES;
        }
        if at < self.dim {
            let mut total = s.splat(0.0);
            for place in places {
                let factor = s.splat(self.factor(place));
                total = s.add(total, s.mul(s.load_part(&self.received(place)[at..]), factor));
            }
            s.store_part(&mut sum[at..], total);
        }
    }

    /// Sums columns `at..at + 16 W`, in registers.
    #[inline(always)]
    fn columns<S: Simd, const W: usize, const FETCH: bool>(
        &self,
        s: S,
        places: Range<usize>,
        at: usize,
        sum: &mut [f32],
    ) {
        let mut totals = [s.splat(0.0); W];
        let end = places.end;
        for place in places {
            if FETCH && place + self.ahead < end {
                self.prefetch_part(place + self.ahead, at, W);
            }
            let factor = s.splat(self.factor(place));
            let blocks = self.received(place)[at..at + W * LANES].as_chunks::<LANES>().0;
            for (total, block) in totals.iter_mut().zip(blocks) {
                *total = s.add(*total, s.mul(s.load(block), factor));
            }
        }
        let blocks = sum[at..at + W * LANES].as_chunks_mut::<LANES>().0;
        for (block, total) in blocks.iter_mut().zip(&totals) {
            s.store(block, *total);
        }
    }

    /// Prefetches some columns of a lookup's gradient.
    #[inline(always)]
    fn prefetch_part(&self, place: usize, at: usize, blocks: usize) {
        let row = self.received(place);
        for block in 0..blocks {
            prefetch(&raw const row[at + block * LANES]);
        }
    }

    /// Sums the columns that each lookup won.
    #[inline(always)]
    fn add_up_won(&self, places: Range<usize>, winners: &[u32], sum: &mut [f32]) {
        sum.fill(0.0);
        for place in places {
            let position = self.groups.position(place) as u32;
            debug_assert_ne!(position, NO_WINNER);
            let winners = &winners[self.groups.bag(place) * self.dim..][..self.dim];
            for ((sum, gradient), winner) in sum.iter_mut().zip(self.received(place)).zip(winners) {
                *sum += if *winner == position { *gradient } else { 0.0 };
            }
        }
    }
}

/// Prefetches all lines of a row; of long rows only as many as start the hardware prefetcher.
#[inline(always)]
pub(super) fn prefetch_all<T>(row: &[T]) {
    let line = 64 / size_of::<T>();
    for at in (0..row.len().min(16 * line)).step_by(line) {
        prefetch(&raw const row[at]);
    }
}
