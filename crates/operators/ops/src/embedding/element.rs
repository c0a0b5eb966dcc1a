//! Element types of tables.

use std::fmt;

use bytemuck::Pod;
use half::{bf16, f16};

/// Storage of the scale and the bias of a quantized row, at the start of that row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scale {
    /// Scale and bias take 2 bytes each, as in FBGEMM's tables for inference.
    F16,
    /// Scale and bias take 4 bytes each.
    F32,
}

impl Scale {
    /// Bytes of scale and bias together.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Scale::F16 => 4,
            Scale::F32 => 8,
        }
    }
}

/// The type of a table's elements, in the machine's byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Element {
    /// 32-bit floats.
    F32,
    /// 16-bit floats of IEEE 754.
    F16,
    /// 32-bit floats without their lower half.
    Bf16,
    /// Scale, bias, then D bytes q: the value is `scale * q + bias`. For inference.
    Int8(Scale),
    /// Scale, bias, then D / 2 bytes (rounded up), the even column in the lower half of a byte. For inference.
    Int4(Scale),
}

impl Element {
    /// All element types.
    pub const ALL: [Element; 7] = [
        Element::F32,
        Element::F16,
        Element::Bf16,
        Element::Int8(Scale::F16),
        Element::Int8(Scale::F32),
        Element::Int4(Scale::F16),
        Element::Int4(Scale::F32),
    ];

    /// Bytes of a row of `dim` columns, without padding.
    #[must_use]
    pub fn row_bytes(self, dim: usize) -> usize {
        match self {
            Element::F32 => dim * 4,
            Element::F16 | Element::Bf16 => dim * 2,
            Element::Int8(scale) => scale.bytes() + dim,
            Element::Int4(scale) => scale.bytes() + dim.div_ceil(2),
        }
    }

    /// Alignment of rows in bytes.
    #[must_use]
    pub fn align(self) -> usize {
        match self {
            Element::F32 => 4,
            Element::F16 | Element::Bf16 => 2,
            Element::Int8(_) | Element::Int4(_) => 1,
        }
    }

    /// Bytes from row to row with which a row touches as few cache lines as possible without much padding: rows of at
    /// most 64 bytes fit one line, longer ones begin a line where that costs at most an eighth more memory.
    #[must_use]
    pub fn pitch(self, dim: usize) -> usize {
        let bytes = self.row_bytes(dim);
        let lines = bytes.next_multiple_of(64);
        if bytes <= 64 {
            bytes.next_power_of_two()
        } else if lines - bytes <= bytes / 8 {
            lines
        } else {
            bytes.next_multiple_of(4)
        }
    }

    /// Whether rows hold integers with a scale, which cannot be trained.
    #[must_use]
    pub fn is_quantized(self) -> bool {
        matches!(self, Element::Int8(_) | Element::Int4(_))
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Element::F32 => "f32",
            Element::F16 => "f16",
            Element::Bf16 => "bf16",
            Element::Int8(Scale::F16) => "int8",
            Element::Int8(Scale::F32) => "int8 (f32 scale)",
            Element::Int4(Scale::F16) => "int4",
            Element::Int4(Scale::F32) => "int4 (f32 scale)",
        })
    }
}

/// A plain type of a table's elements.
pub trait Plain: Pod {
    /// The name of the type.
    const ELEMENT: Element;
}

impl Plain for f32 {
    const ELEMENT: Element = Element::F32;
}

impl Plain for f16 {
    const ELEMENT: Element = Element::F16;
}

impl Plain for bf16 {
    const ELEMENT: Element = Element::Bf16;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_rows_stay_in_one_line_and_long_ones_are_hardly_padded() {
        assert_eq!(Element::Int4(Scale::F16).pitch(64), 64);
        assert_eq!(Element::F32.pitch(16), 64);
        assert_eq!(Element::F32.pitch(1), 4);
        assert_eq!(Element::F32.pitch(33), 132);
        assert_eq!(Element::F32.pitch(31), 128);
        for element in Element::ALL {
            for dim in 1..600 {
                let (bytes, pitch) = (element.row_bytes(dim), element.pitch(dim));
                assert!(pitch >= bytes && pitch % element.align() == 0);
                assert!(bytes <= 64 || pitch <= bytes + bytes / 8 + 3, "{element} {dim}");
            }
        }
    }
}
