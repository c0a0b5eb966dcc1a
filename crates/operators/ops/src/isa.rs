//! Vector instruction sets of the operators.

use std::fmt;
use std::str::FromStr;

/// An instruction set that operators support, from the plainest to the widest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isa {
    /// Portable code.
    Scalar,
    /// NEON of 64-bit ARM, with fused multiply-add and half-precision conversion: 4 floats at a time.
    Neon,
    /// AVX2 with fused multiply-add and half-precision conversion: 8 floats at a time.
    Avx2,
    /// AVX-512 F, BW, DQ and VL: 16 floats at a time.
    Avx512,
}

impl Isa {
    /// All instruction sets, of any processor, the plainest first.
    pub const ALL: [Isa; 4] = [Isa::Scalar, Isa::Neon, Isa::Avx2, Isa::Avx512];

    /// Number of floats in a vector.
    #[must_use]
    pub fn lanes(self) -> usize {
        match self {
            Isa::Scalar => 1,
            Isa::Neon => 4,
            Isa::Avx2 => 8,
            Isa::Avx512 => 16,
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Isa::Scalar => "scalar",
            Isa::Neon => "neon",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        })
    }
}

/// A name that is not an instruction set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no instruction set {0:?}: choose scalar, neon, avx2 or avx512")]
pub struct UnknownIsa(pub String);

impl FromStr for Isa {
    type Err = UnknownIsa;

    fn from_str(text: &str) -> Result<Isa, UnknownIsa> {
        let named = Isa::ALL.into_iter().find(|isa| isa.to_string() == text);
        named.ok_or_else(|| UnknownIsa(text.to_owned()))
    }
}
