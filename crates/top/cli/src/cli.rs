//! Groups of options that several commands share.

mod changes;
pub mod checked;
mod form;
mod host_choice;
mod numbers;
mod output_file;
mod part;
mod pricing;
mod shard;
mod target;

pub use changes::{Changes, Fuse, Operators, Precision, optional_blocks, selection, size};
pub use form::Form;
pub use host_choice::{HostChoice, ProcessChoice, any_host, one_host, optional_host, required_host};
pub use numbers::{positive, times_as_long};
pub use output_file::OutputFile;
pub use part::Part;
pub use pricing::{Models, Pricing};
pub use shard::{Shard, optional_shard, shard};
pub use target::Target;
