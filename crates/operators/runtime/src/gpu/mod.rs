//! Work of instructions on a GPU, and its memory.

mod bags;
mod copies;
mod cross_entropy;
mod dense_gradients;
mod element_function;
mod exchange;
mod layer;
mod operand;
mod pointwise;
mod product;
mod row_caches;
mod row_optimizer;
mod row_update;
mod single_bag;
mod slices;
mod slope;
mod work;

pub(crate) use bags::{BagArgs, GpuBags};
pub(crate) use copies::Copies;
pub(crate) use cross_entropy::{CrossEntropyArgs, cross_entropy, cross_entropy_backward};
pub(crate) use dense_gradients::{DenseGradientArgs, GpuDenseGradients};
pub(crate) use element_function::ElementFunction;
pub(crate) use exchange::{GpuAllReduce, GpuAllToAll, Parts, exchanged_bags};
pub(crate) use layer::GpuLayer;
pub(crate) use operand::RowsOf;
pub(crate) use pointwise::{GpuPointwise, SameFunction, element_type};
pub(crate) use product::GpuProduct;
pub(crate) use row_caches::{RowCaches, StateAccess};
pub(crate) use row_update::GpuRowUpdate;
pub(crate) use single_bag::{GpuDenseGradient, GpuSingleBag, SingleBagArgs};
pub(crate) use slices::GpuSlices;
pub(crate) use slope::GpuSlope;
pub(crate) use work::{
    FlatExchange, Gpu, GpuWork, Launch, PartSink, RowStates, StateMemory, TableUse, prepared,
};
