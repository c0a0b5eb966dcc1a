//! Launch geometry of embedding operators on a GPU, and device-memory reads of their lookups.
//!
//! Two kinds of code use it: the operators that launch kernels, and the models that predict their durations. Both share
//! the definitions here.
//!
//! ```text
//! Lanes, Streams, BagGrid   rows over the lanes of a warp, bags over warps, warps over blocks
//! UpdateLanes, RowSort      the backward pass: updates of rows, lookups sorted by row
//! Indices -> Popularity     access counts of rows
//!         -> Sampler        random draws of rows
//! cache::dram_reads         misses in the second-level cache, in closed form
//! row_cache::misses         misses in a cache of the rows of earlier batches
//! gather_plan               the launch order of a gather that reads least
//! ```
//!
//! No particular GPU appears here: multiprocessors, cache and rates are passed in a [`Gpu`].
#![forbid(unsafe_code)]

mod bag_distribution;
pub mod cache;
mod counts;
pub mod gather_plan;
mod gpu;
mod indices;
mod lanes;
mod popularity;
pub mod row_cache;
mod row_sort;
mod sampler;
mod share_of_rows;
mod split_mix;
mod update_lanes;
mod zipf;

pub use bag_distribution::{BAG_THREADS, Streams, WARPS_WANTED, bag_blocks, bags_of_block};
pub use counts::{Counts, RowGroup};
pub use gpu::{GatherRates, Gpu};
pub use indices::{Indices, IndicesError};
pub use lanes::{Lanes, MOST_PASSES, RowLayout, WARP};
pub use popularity::Popularity;
pub use row_sort::{RowSort, SortWay, WINDOW};
pub use sampler::Sampler;
pub use split_mix::{SplitMix, mix};
pub use update_lanes::{SPANS_FROM, UpdateLanes};
