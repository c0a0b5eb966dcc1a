//! Which vector instructions the operators may use.

use std::fmt;
use std::str::FromStr;

/// An instruction set that operators have versions for, from the plainest to the widest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isa {
    /// Portable code.
    Scalar,
    /// AVX2 with fused multiply-add and half-precision conversion: 8 floats at a time.
    Avx2,
    /// AVX-512 F, BW, DQ and VL: 16 floats at a time.
    Avx512,
}

impl Isa {
    /// All there are, plainest first.
    pub const ALL: [Isa; 3] = [Isa::Scalar, Isa::Avx2, Isa::Avx512];

    /// Whether this machine has it.
    #[must_use]
    pub fn is_available(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        if !cfg!(miri) {
            let avx2 = || {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            };
            return match self {
                Isa::Scalar => true,
                Isa::Avx2 => avx2(),
                Isa::Avx512 => {
                    avx2()
                        && is_x86_feature_detected!("avx512f")
                        && is_x86_feature_detected!("avx512bw")
                        && is_x86_feature_detected!("avx512dq")
                        && is_x86_feature_detected!("avx512vl")
                }
            };
        }
        self == Isa::Scalar
    }

    /// The widest that this machine has.
    #[must_use]
    pub fn best() -> Isa {
        Isa::ALL.into_iter().rev().find(|isa| isa.is_available()).unwrap_or(Isa::Scalar)
    }

    /// Floats in a vector.
    #[must_use]
    pub fn lanes(self) -> usize {
        match self {
            Isa::Scalar => 1,
            Isa::Avx2 => 8,
            Isa::Avx512 => 16,
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Isa::Scalar => "scalar",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        })
    }
}

impl FromStr for Isa {
    type Err = String;

    fn from_str(text: &str) -> Result<Isa, String> {
        let named = Isa::ALL.into_iter().find(|isa| isa.to_string() == text);
        named.ok_or_else(|| format!("there is no instruction set {text:?}: choose scalar, avx2 or avx512"))
    }
}
