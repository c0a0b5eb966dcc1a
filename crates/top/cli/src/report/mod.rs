//! Parts of reports that several commands share. The report of a command is beside it: `commands/NAME/report.rs`.

pub mod csv;
pub mod doubts;
pub mod figure;
pub mod format;
pub mod job;
pub mod memory;
pub mod sides;
pub mod table;
pub mod width;
