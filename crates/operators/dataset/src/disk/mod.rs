//! Datasets on disk: their files, mapped to be read, and written aside to be renamed whole.

mod dataset;
mod encode;
mod files;
mod gather;
mod split;
mod writer;

pub use dataset::Dataset;
pub use encode::{Block, Column, Rows};
pub use split::Split;
pub use writer::Writer;
pub(crate) use writer::is_free;
