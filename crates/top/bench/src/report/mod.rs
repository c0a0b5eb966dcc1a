//! Reports of measurements, as JSON and as tables.

pub mod cpu;
pub mod cuda;
pub mod gemm;
