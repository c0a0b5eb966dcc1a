//! `steptime gemm`.

use std::num::NonZeroUsize;
use std::str::FromStr;

use clap::Subcommand;
use steptime::ops::Isa;
use steptime_bench::size;

/// `steptime gemm`.
#[derive(Debug, Subcommand)]
pub enum Gemm {
    /// Show the tiles of a matrix product for registers, caches and threads, and the bytes read at each level
    #[command(after_help = "EXAMPLE
    steptime gemm plan 2048x512x512
    steptime gemm plan 4096x1024x13 --isa avx2 --json")]
    Plan {
        /// Rows of C, columns of C, and terms of each sum
        #[arg(value_name = "MxNxK")]
        size: Product,
        /// The instruction set to plan for [default: the widest of this machine]
        #[arg(long, value_name = "scalar|neon|avx2|avx512")]
        isa: Option<Isa>,
        /// Maximum number of threads [default: as many as the process may use]
        #[arg(long, value_name = "N")]
        threads: Option<NonZeroUsize>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// The sizes of a matrix product.
#[derive(Debug, Clone, Copy)]
pub struct Product {
    /// Rows of C.
    pub m: usize,
    /// Columns of C.
    pub n: usize,
    /// Terms of each sum.
    pub k: usize,
}

impl FromStr for Product {
    type Err = String;

    fn from_str(text: &str) -> Result<Product, String> {
        let sizes = text.split(['x', 'X']).map(size).collect::<Result<Vec<_>, _>>();
        match sizes.map_err(|error| error.to_string())?[..] {
            [m, n, k] => Ok(Product { m, n, k }),
            _ => Err("give rows, columns and terms, as in 2048x512x512".into()),
        }
    }
}
