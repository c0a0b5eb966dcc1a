//! The sizes of a matrix product, as typed.

use std::str::FromStr;

use steptime_bench::size;

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
