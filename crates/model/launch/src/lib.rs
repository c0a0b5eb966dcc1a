//! How embedding operators are launched on a GPU, and what their lookups read from device memory.
//!
//! Two sides ask: the operators that launch kernels, and the models that predict how long these take. What both need
//! stands here once.
//!
//! ```text
//! Lanes, Streams, BagGrid   rows over the lanes of a warp, bags over warps, warps over blocks
//! UpdateLanes, RowSort      the backward pass: rows that are stepped, lookups sorted by row
//! Indices -> Popularity     which rows are looked up, and how often
//!         -> Sampler        the same, drawn
//! cache::dram_reads         what lookups miss in the second-level cache, in closed form
//! row_cache::misses         what lookups miss in a cache of rows that earlier batches wanted
//! gather_plan               the order of a gather that reads least
//! ```
//!
//! Nothing here knows a particular GPU: multiprocessors, cache and rates come with a [`Gpu`].
#![forbid(unsafe_code)]

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
mod slice;
mod streams;
mod update_lanes;
mod zipf;

pub use counts::{Counts, RowGroup};
pub use gpu::{GatherRates, Gpu};
pub use indices::{Indices, IndicesError};
pub use lanes::{Lanes, MOST_PASSES, RowLayout, WARP};
pub use popularity::Popularity;
pub use row_sort::{RowSort, SortWay, WINDOW};
pub use sampler::Sampler;
pub use streams::{BAG_THREADS, Streams, WARPS_WANTED, bag_blocks, bags_of_block};
pub use update_lanes::{SPANS_FROM, UpdateLanes};
