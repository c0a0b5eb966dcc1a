//! Datasets from the outside: files, batches, conversions, planted data.

mod batches;
mod criteo;
mod damaged;
mod parquet;
mod planted;
mod rows;
mod written;
