//! Element types.

/// Type of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dtype {
    /// 64-bit float.
    F64,
    /// 32-bit float.
    F32,
    /// IEEE half precision.
    F16,
    /// Brain float.
    Bf16,
    /// 8-bit float, either format.
    F8,
    /// 64-bit integer.
    I64,
    /// 32-bit integer.
    I32,
    /// 16-bit integer.
    I16,
    /// 8-bit integer, signed or not.
    I8,
    /// Truth value.
    Bool,
    /// Two 32-bit floats.
    Complex64,
    /// Two 64-bit floats.
    Complex128,
}

impl Dtype {
    /// Parses a type as written by PyTorch's recorders (`float`, `c10::BFloat16`, `long int`) or by its users
    /// (`float32`, `bf16`, `int64`).
    #[must_use]
    pub fn parse(text: &str) -> Option<Dtype> {
        let name = text.trim();
        let name = name.strip_prefix("torch.").or(name.strip_prefix("c10::")).unwrap_or(name);
        Some(match name {
            "double" | "float64" | "f64" | "fp64" => Dtype::F64,
            "float" | "float32" | "f32" | "fp32" | "tf32" => Dtype::F32,
            "Half" | "half" | "float16" | "f16" | "fp16" => Dtype::F16,
            "BFloat16" | "bfloat16" | "bf16" => Dtype::Bf16,
            "Float8_e4m3fn" | "Float8_e5m2" | "float8_e4m3fn" | "float8_e5m2" | "fp8" => Dtype::F8,
            "long int" | "long" | "long long" | "int64" | "i64" => Dtype::I64,
            "int" | "int32" | "i32" | "unsigned int" => Dtype::I32,
            "short" | "int16" | "i16" | "short int" => Dtype::I16,
            "signed char" | "unsigned char" | "char" | "int8" | "uint8" | "i8" | "u8" => Dtype::I8,
            "bool" => Dtype::Bool,
            "complex<float>" | "complex64" => Dtype::Complex64,
            "complex<double>" | "complex128" => Dtype::Complex128,
            _ => return None,
        })
    }

    /// Returns the type of a number that PyTorch's recorders write for the argument `dtype` (`c10::ScalarType`).
    #[must_use]
    pub const fn from_code(code: i64) -> Option<Dtype> {
        Some(match code {
            0 | 1 => Dtype::I8,
            2 => Dtype::I16,
            3 => Dtype::I32,
            4 => Dtype::I64,
            5 => Dtype::F16,
            6 => Dtype::F32,
            7 => Dtype::F64,
            9 => Dtype::Complex64,
            10 => Dtype::Complex128,
            11 => Dtype::Bool,
            15 => Dtype::Bf16,
            23..=26 => Dtype::F8,
            _ => return None,
        })
    }

    /// Returns PyTorch's number for the type (`c10::ScalarType`), as written by its recorders; the first one if there are several.
    #[must_use]
    pub const fn code(self) -> i64 {
        match self {
            Dtype::I8 => 1,
            Dtype::I16 => 2,
            Dtype::I32 => 3,
            Dtype::I64 => 4,
            Dtype::F16 => 5,
            Dtype::F32 => 6,
            Dtype::F64 => 7,
            Dtype::Complex64 => 9,
            Dtype::Complex128 => 10,
            Dtype::Bool => 11,
            Dtype::Bf16 => 15,
            Dtype::F8 => 23,
        }
    }

    /// Returns the name that PyTorch's recorders write.
    #[must_use]
    pub const fn recorded(self) -> &'static str {
        match self {
            Dtype::F64 => "double",
            Dtype::F32 => "float",
            Dtype::F16 => "c10::Half",
            Dtype::Bf16 => "c10::BFloat16",
            Dtype::F8 => "c10::Float8_e4m3fn",
            Dtype::I64 => "long int",
            Dtype::I32 => "int",
            Dtype::I16 => "short int",
            Dtype::I8 => "signed char",
            Dtype::Bool => "bool",
            Dtype::Complex64 => "c10::complex<float>",
            Dtype::Complex128 => "c10::complex<double>",
        }
    }

    /// Returns the bytes per element.
    #[must_use]
    pub const fn size(self) -> u64 {
        match self {
            Dtype::Complex128 => 16,
            Dtype::F64 | Dtype::I64 | Dtype::Complex64 => 8,
            Dtype::F32 | Dtype::I32 => 4,
            Dtype::F16 | Dtype::Bf16 | Dtype::I16 => 2,
            Dtype::F8 | Dtype::I8 | Dtype::Bool => 1,
        }
    }

    /// Whether it is a floating-point type.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::Bf16 | Dtype::F8)
    }

    /// Returns the usual short name, `f32`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Dtype::F64 => "f64",
            Dtype::F32 => "f32",
            Dtype::F16 => "f16",
            Dtype::Bf16 => "bf16",
            Dtype::F8 => "f8",
            Dtype::I64 => "i64",
            Dtype::I32 => "i32",
            Dtype::I16 => "i16",
            Dtype::I8 => "i8",
            Dtype::Bool => "bool",
            Dtype::Complex64 => "c64",
            Dtype::Complex128 => "c128",
        }
    }
}
