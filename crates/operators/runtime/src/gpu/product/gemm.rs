//! A product of the types of its operands.

use half::bf16;
use steptime_aten::Dtype;
use steptime_cuda::gemm::{Blas, Epilogue, Factor, Gemm, Math, Shape};
use steptime_cuda::{Error, Slice, SliceMut, Stream};

/// A product of one shape and its types. The bias has the type of the result.
#[derive(Debug)]
pub(super) enum TypedGemm {
    Floats(Gemm<f32>),
    Halves(Gemm<bf16>),
    /// Factors of 16 bits with a result of 32.
    HalvesToFloats(Gemm<bf16, f32>),
}

impl TypedGemm {
    /// Chooses an algorithm for the types of factors and result.
    pub(super) fn new(
        blas: &Blas,
        types: [Dtype; 2],
        shape: Shape,
        math: Math,
        epilogue: Epilogue,
    ) -> Result<TypedGemm, Error> {
        Ok(match types {
            [Dtype::Bf16, Dtype::Bf16] => TypedGemm::Halves(Gemm::new(blas, shape, math, epilogue)?),
            [Dtype::Bf16, _] => TypedGemm::HalvesToFloats(Gemm::new(blas, shape, math, epilogue)?),
            _ => TypedGemm::Floats(Gemm::new(blas, shape, math, epilogue)?),
        })
    }

    /// Multiplies matrices given as bytes.
    pub(super) fn run(
        &mut self,
        stream: &Stream,
        left: Slice<'_, u8>,
        right: Slice<'_, u8>,
        to: &mut SliceMut<'_, u8>,
        bias: Option<Slice<'_, u8>>,
    ) -> Result<(), Error> {
        match self {
            TypedGemm::Floats(gemm) => run(gemm, stream, [left, right], to, bias),
            TypedGemm::Halves(gemm) => run(gemm, stream, [left, right], to, bias),
            TypedGemm::HalvesToFloats(gemm) => run(gemm, stream, [left, right], to, bias),
        }
    }
}

fn run<T: Factor, D: Factor>(
    gemm: &mut Gemm<T, D>,
    stream: &Stream,
    [left, right]: [Slice<'_, u8>; 2],
    to: &mut SliceMut<'_, u8>,
    bias: Option<Slice<'_, u8>>,
) -> Result<(), Error> {
    let all = to.len();
    let mut to = to.slice(0..all).cast();
    gemm.run(stream, (1.0, 0.0), left.cast(), right.cast(), &mut to, bias.map(Slice::cast))
}
