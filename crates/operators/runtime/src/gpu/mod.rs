//! Programs on a GPU: the work of each instruction, its memory, and the engine that runs all of them.

mod bags;
mod engine;
mod layer;
mod operand;
mod product;
mod replay;
mod row_update;
mod single_bag;
mod slices;
mod work;

pub(crate) use bags::{BagArgs, GpuBags};
pub(crate) use engine::GpuEngine;
pub use engine::GpuOptions;
pub(crate) use layer::GpuLayer;
pub(crate) use operand::RowsOf;
pub(crate) use product::GpuProduct;
pub(crate) use row_update::GpuRowUpdate;
pub(crate) use single_bag::{GpuDenseGradient, GpuSingleBag, SingleBagArgs};
pub(crate) use work::{Gpu, GpuWork, Launch, prepared};
