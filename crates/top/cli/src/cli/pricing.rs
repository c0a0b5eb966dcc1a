//! Options for pricing kernels by a device profile.

use clap::{Args, ValueEnum};
use serde::Deserialize;

/// Options for pricing kernels by a device profile.
#[derive(Debug, Args, Deserialize)]
pub struct Pricing {
    /// The profile's models to use
    #[arg(long, value_enum, default_value_t = Models::Best)]
    pub models: Models,
    /// Distribution of the indices of embedding lookups: `uniform`, `zipf:A`, `folded-zipf:A` (numpy's zipf modulo the number of rows), or a
    /// file of indices, one per line (`file:PATH` for a file with such a name) [default: as noted in the recording, else uniform]
    #[arg(long, value_name = "uniform|zipf:A|folded-zipf:A|FILE")]
    pub indices: Option<String>,
    /// Multiply matrices in TF32, as after torch.backends.cuda.matmul.allow_tf32 = True
    #[arg(long)]
    pub tf32: bool,
}

/// Models of a device profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Models {
    /// The best of each family by cross-validation
    Best,
    /// The method of arXiv 2201.07821: its formulas for embeddings, concatenations and copies; networks like its own, less
    /// well trained, for matrix products and convolutions; the roofline for all other kernels
    Paper,
    /// Formulas of the device's specification
    Analytic,
    /// Trained on the measured kernels of the profile's sweep
    Learnt,
}
