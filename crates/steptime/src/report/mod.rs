//! What comes out: `json_*` hold the answers as they go over the wire, their namesakes print them on a terminal.

pub mod device;
mod format;
pub mod host;
pub mod inspect;
mod inspect_execution;
pub mod inspection;
mod json;
pub mod json_coverage;
pub mod json_device;
pub mod json_execution;
pub mod json_inspect;
pub mod json_kernels;
pub mod json_overheads;
pub mod json_predict;
pub mod json_validate;
mod measured;
mod overheads;
pub mod path;
mod place;
pub mod predict;
pub mod roofline;
mod slack;
mod table;
pub mod timeline;
pub mod validate;
mod warnings;
