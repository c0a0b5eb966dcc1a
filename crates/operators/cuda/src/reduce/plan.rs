//! Work of the threads of a sum.

use std::fmt::Write;

use steptime_tensor::{JoinedLayouts, Layout};

use super::Kind;
use crate::{Error, Grid, Source};

/// Threads of a block.
const THREADS: usize = 256;

/// Largest number of neighbouring results of a block: a warp then reads whole lines.
const NEIGHBOURS: usize = 32;

/// Number of blocks for which terms are split into parts, the same on every GPU, so that sums are.
const BLOCKS: usize = 1024;

/// Smallest number of terms of a thread in one of several parts.
const TERMS: usize = 16;

/// The layout, split into its kept and summed dimensions, and the shares of blocks and threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    kept: JoinedLayouts,
    summed: JoinedLayouts,
    offset: usize,
    /// Position after the last element.
    pub(super) end: usize,
    /// Number of results.
    pub(super) results: usize,
    terms: usize,
    /// Whether neighbouring threads have neighbouring results, and not neighbouring terms.
    across: bool,
    /// Results of a block; all its threads share them evenly.
    tile: usize,
    /// Terms of a part.
    part: usize,
    pub(super) parts: usize,
}

impl Plan {
    /// Plans the sums over `dims`, over all dimensions where there are none.
    pub(super) fn new(from: &Layout, dims: &[usize]) -> Result<Plan, Error> {
        let rank = from.rank();
        let is_summed = |axis: &usize| dims.is_empty() || dims.contains(axis);
        let repeated = dims.iter().enumerate().any(|(at, dim)| dims[..at].contains(dim));
        if repeated || dims.iter().any(|&dim| dim >= rank) {
            return Err(Error::Unsupported {
                what: format!("a sum over the dimensions {dims:?} of {:?}", from.shape()),
                remedy: "give dimensions of the shape, each one once",
            });
        }
        let (mut inner, outer): (Vec<usize>, Vec<usize>) = (0..rank).partition(is_summed);
        // The order of terms is free: neighbours in memory come one after the other.
        inner.sort_by_key(|&axis| std::cmp::Reverse(from.strides()[axis]));
        let [kept, summed] = [outer, inner].map(|axes| joined(from, &axes));
        let [results, terms] = [&kept, &summed].map(|joined| joined.shape.iter().product::<usize>());
        let last = |joined: &JoinedLayouts| {
            let stride = joined.strides[0].last().copied().filter(|&stride| stride > 0);
            stride.unwrap_or(usize::MAX)
        };
        let across = last(&kept) < last(&summed);
        let tile = if across {
            let neighbours = kept.shape.last().map_or(1, |size| size.next_power_of_two()).min(NEIGHBOURS);
            // Where results suffice for all blocks, a thread adds more terms, and fewer threads wait for one another.
            neighbours.max(1 << (results / BLOCKS).clamp(1, THREADS).ilog2())
        } else {
            THREADS / lanes(results, terms)
        };
        let tiles = results.div_ceil(tile).max(1);
        let most = terms.div_ceil(THREADS / tile * TERMS);
        let parts = (BLOCKS / tiles).min(most).max(1);
        let part = terms.div_ceil(parts).next_multiple_of(THREADS / tile).max(1);
        let parts = terms.div_ceil(part).max(1);
        let plan = Plan {
            kept,
            summed,
            offset: from.offset(),
            end: from.last().map_or(0, |last| last + 1),
            results,
            terms,
            across,
            tile,
            part,
            parts,
        };
        if tiles > i32::MAX as usize {
            return Err(Error::Unsupported {
                what: format!("{results} sums of {:?}", from.shape()),
                remedy: "cut it into parts of fewer than 2^31 results",
            });
        }
        Ok(plan)
    }

    /// Number of sums of parts that are kept between the two launches.
    pub(super) fn workspace(&self) -> usize {
        if self.parts == 1 { 0 } else { self.parts * self.results }
    }

    /// Grid of the kernel that reads the elements.
    pub(super) fn grid(&self) -> Grid {
        Grid::plane(self.results.div_ceil(self.tile) as u32, self.parts as u32, THREADS as u32)
    }

    /// Results of a block that adds the sums of parts.
    fn finish_tile(&self) -> usize {
        self.results.next_power_of_two().min(NEIGHBOURS)
    }

    /// Grid of the kernel that adds the sums of parts.
    pub(super) fn finish_grid(&self) -> Grid {
        Grid::line(self.results.div_ceil(self.finish_tile()) as u32, THREADS as u32)
    }

    pub(super) fn source(&self, kind: Kind) -> Source {
        // Threads count past the last term and the last result.
        let largest = [self.end, self.terms + self.part + THREADS, self.results + THREADS].into_iter().max();
        let wide = largest.is_some_and(|largest| largest > u32::MAX as usize);
        let suffix = if wide { "ull" } else { "u" };
        let number = |value: usize| format!("{value}{suffix}");
        let axes = |joined: &JoinedLayouts| {
            let mut axes = String::new();
            for (&size, &stride) in joined.shape.iter().zip(&joined.strides[0]).rev() {
                let _ = write!(axes, "AXIS({size}{suffix},{stride}ull)");
            }
            axes
        };
        Source::new("reduce.cu", include_str!("reduce.cu"))
            .define("THREADS", THREADS)
            .define("TILE_RESULTS", self.tile)
            .define("LANES", THREADS / self.tile)
            .define("ACROSS", u8::from(self.across))
            .define("RESULTS", number(self.results))
            .define("TERMS", number(self.terms))
            .define("PART", number(self.part))
            .define("PARTS", self.parts)
            .define("FINISH_RESULTS", self.finish_tile())
            .define("FINISH_LANES", THREADS / self.finish_tile())
            .define("NORM", u8::from(kind == Kind::Norm))
            .define("PLACE", if wide { "u64" } else { "u32" })
            .define("FROM", number(self.offset))
            .define("KEPT", axes(&self.kept))
            .define("SUMMED", axes(&self.summed))
    }
}

/// Threads that share the terms of one result where these are neighbours: a warp, or a block for few results of many
/// terms.
fn lanes(results: usize, terms: usize) -> usize {
    let few = results.saturating_mul(NEIGHBOURS) < BLOCKS * THREADS / 4;
    let many = terms >= 4 * THREADS || (few && terms > NEIGHBOURS);
    if many { THREADS } else { terms.next_power_of_two().min(NEIGHBOURS) }
}

/// Some dimensions of a layout, in this order, joined where they can be.
fn joined(from: &Layout, axes: &[usize]) -> JoinedLayouts {
    let mut joined = JoinedLayouts { shape: Vec::new(), strides: vec![Vec::new()] };
    let strides = &mut joined.strides[0];
    for (size, stride) in axes.iter().map(|&axis| (from.shape()[axis], from.strides()[axis])) {
        match (joined.shape.last_mut(), strides.last_mut()) {
            _ if size == 1 => {}
            (Some(last), Some(step)) if Some(*step) == stride.checked_mul(size) => {
                *last *= size;
                *step = stride;
            }
            _ => {
                joined.shape.push(size);
                strides.push(stride);
            }
        }
    }
    joined
}

#[cfg(test)]
mod tests;
