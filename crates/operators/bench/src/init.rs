//! Distribution of indices, as given on the command line.

use std::fmt;
use std::str::FromStr;

/// Distribution of indices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Init {
    /// Uniform: every row equally often.
    Uniform,
    /// The n-th most frequent row `n^-A` as often as the first.
    Zipf(f64),
}

/// A text that is not a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("give uniform, or zipf: with an exponent between 0 and 8, as in zipf:1.05")]
pub struct InitError;

impl FromStr for Init {
    type Err = InitError;

    fn from_str(text: &str) -> Result<Init, InitError> {
        if text == "uniform" {
            return Ok(Init::Uniform);
        }
        let exponent = text.strip_prefix("zipf:").and_then(|number| number.parse::<f64>().ok());
        let exponent = exponent.filter(|exponent| (0.0..=8.0).contains(exponent));
        exponent.map(Init::Zipf).ok_or(InitError)
    }
}

impl fmt::Display for Init {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Init::Uniform => f.write_str("uniform"),
            Init::Zipf(exponent) => write!(f, "zipf:{exponent}"),
        }
    }
}
