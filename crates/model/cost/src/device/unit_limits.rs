//! Limits of a GPU's units: unsupported operations, and least times.

use steptime_aten::kernel::{Attention, AttentionKind, Precision};
use steptime_aten::{Kernel, KernelCall};

use super::spec::DeviceSpec;

/// Returns the call as this GPU runs it. `None` if it runs unchanged.
#[must_use]
pub(super) fn as_run(call: &KernelCall, spec: &DeviceSpec) -> Option<KernelCall> {
    without_tf32(call, spec).or_else(|| with_own_attention(call, spec))
}

/// Replaces the kind of attention. PyTorch (2.11) uses cuDNN's attention on Hopper and Blackwell only. On other GPUs it uses FlashAttention from
/// Ampere on and without a mask, and the memory-efficient kernels otherwise.
fn with_own_attention(call: &KernelCall, spec: &DeviceSpec) -> Option<KernelCall> {
    let Kernel::Attention(attention) = &call.kernel else { return None };
    let [major, minor] = spec.compute_capability;
    let has_cudnn = matches!((major, minor), (9 | 10, 0));
    if attention.kind != AttentionKind::Cudnn || has_cudnn {
        return None;
    }
    let kind = if major >= 8 && !attention.bias { AttentionKind::Flash } else { AttentionKind::Efficient };
    let kernel = Kernel::Attention(Attention { kind, ..*attention });
    Some(KernelCall { kernel, ..call.clone() })
}

/// Returns the call as a GPU without TF32 runs it: in full precision. `None` if it runs unchanged.
fn without_tf32(call: &KernelCall, spec: &DeviceSpec) -> Option<KernelCall> {
    if spec.peak.tf32_tflop_s > 0.0 {
        return None;
    }
    let mut call = call.clone();
    let precision = match &mut call.kernel {
        Kernel::Gemm(gemm) => &mut gemm.precision,
        Kernel::Conv(conv) => &mut conv.precision,
        Kernel::Attention(attention) => &mut attention.precision,
        Kernel::Rnn(rnn) => &mut rnn.precision,
        _ => return None,
    };
    if *precision != Precision::Tf32 {
        return None;
    }
    *precision = Precision::F32;
    Some(call)
}

/// Returns the rate of a call's arithmetic, TFLOP/s.
#[must_use]
pub(super) fn tflop_s(call: &KernelCall, spec: &DeviceSpec) -> f64 {
    match &call.kernel {
        Kernel::Gemm(gemm) => spec.matrix_tflop_s(gemm.precision),
        Kernel::Conv(conv) => spec.matrix_tflop_s(conv.precision),
        Kernel::Attention(attention) => spec.matrix_tflop_s(attention.precision),
        Kernel::Rnn(rnn) => spec.matrix_tflop_s(rnn.precision),
        _ => spec.vector_tflop_s(call.dtype),
    }
}

/// Greatest factor by which transforms reduce the counted operations of products of small filters.
const BY_TRANSFORM: f64 = 2.25;

/// Greatest factor of the clock: rates are those of large products, and a short one may run at a higher clock.
const HIGHER_CLOCK: f64 = 1.25;

/// Returns the least time of a product, µs: its operations at the rate of large ones.
#[must_use]
pub(super) fn least_us(call: &KernelCall, spec: &DeviceSpec) -> f64 {
    let (precision, fewer) = match &call.kernel {
        Kernel::Gemm(gemm) => (gemm.precision, 1.0),
        Kernel::Conv(conv) => {
            let plain =
                conv.filter.iter().product::<u64>() == 1 || conv.stride.iter().any(|&stride| stride > 1);
            (conv.precision, if plain { 1.0 } else { BY_TRANSFORM })
        }
        _ => return 0.0,
    };
    call.flops as f64 / (spec.matrix_tflop_s(precision) * 1e6 * fewer * HIGHER_CLOCK)
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;
    use steptime_aten::Dtype;
    use steptime_aten::kernel::{Epilogue, Gemm, Pass};

    use super::*;
    use crate::device::families::fixture::h200;

    fn product(precision: Precision) -> KernelCall {
        let gemm = Gemm {
            batch: 1,
            m: 1024,
            n: 1024,
            k: 1024,
            a_transposed: false,
            b_transposed: false,
            lda: 1024,
            ldb: 1024,
            epilogue: Epilogue::None,
            precision,
        };
        let kernel = Kernel::Gemm(gemm);
        KernelCall { kernel, dtype: Dtype::F32, operands: smallvec![], flops: 2 << 30, launches: 1 }
    }

    #[test]
    fn a_gpu_without_tf32_multiplies_in_full_precision() {
        let mut spec = h200();
        assert_eq!(without_tf32(&product(Precision::Tf32), &spec), None);
        spec.peak.tf32_tflop_s = 0.0;
        assert_eq!(without_tf32(&product(Precision::Tf32), &spec), Some(product(Precision::F32)));
        assert_eq!(without_tf32(&product(Precision::F32), &spec), None);
    }

    #[test]
    fn cudnn_attends_where_pytorch_takes_it() {
        let of = |kind, bias| {
            let attention = Attention {
                kind,
                pass: Pass::Forward,
                batch: 8,
                heads: 8,
                queries: 128,
                keys: 128,
                dim: 64,
                value_dim: 64,
                causal: false,
                bias,
                dropout: false,
                precision: Precision::Bf16,
            };
            KernelCall { kernel: Kernel::Attention(attention), ..product(Precision::Bf16) }
        };
        let mut spec = h200();
        let cudnn = |bias| of(AttentionKind::Cudnn, bias);
        assert_eq!(as_run(&cudnn(false), &spec), None);
        spec.compute_capability = [8, 0];
        assert_eq!(as_run(&cudnn(false), &spec), Some(of(AttentionKind::Flash, false)));
        assert_eq!(as_run(&cudnn(true), &spec), Some(of(AttentionKind::Efficient, true)));
        spec.compute_capability = [7, 5];
        assert_eq!(as_run(&cudnn(false), &spec), Some(of(AttentionKind::Efficient, false)));
        assert_eq!(as_run(&of(AttentionKind::Flash, false), &spec), None);
    }

    #[test]
    fn no_product_beats_the_units() {
        let spec = h200();
        let least = least_us(&product(Precision::F32), &spec);
        let at_rate = (2u64 << 30) as f64 / (spec.peak.f32_tflop_s * 1e6);
        assert!(least < at_rate && least > 0.75 * at_rate, "{least} of {at_rate}");
    }
}
