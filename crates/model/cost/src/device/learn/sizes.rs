//! Inputs of the published networks: only the logarithms of the sizes that define a call.

use steptime_aten::kernel::{Epilogue, Layout, Precision};
use steptime_aten::{Kernel, KernelCall};

use crate::device::variant::is_permutation;

/// Number of inputs.
pub const SIZES: usize = 12;

/// Returns the inputs of a call for which the publication used a network: matrix products, convolutions, transposes, and
/// extraction by index. `None` for others.
#[must_use]
pub fn sizes(call: &KernelCall) -> Option<[f32; SIZES]> {
    let mut out = [0.0; SIZES];
    match &call.kernel {
        Kernel::Gemm(g) => {
            fill(&mut out, &[g.batch, g.m, g.n, g.k]);
            out[4] = flag(g.a_transposed);
            out[5] = flag(g.b_transposed);
            out[6] = flag(g.epilogue != Epilogue::None);
            out[7..10].copy_from_slice(&precision(g.precision));
        }
        Kernel::Conv(c) => {
            let filter = c.filter.iter().product::<u64>();
            let stride = c.stride.iter().product::<u64>();
            let output = c.output.iter().product::<u64>();
            fill(&mut out, &[c.batch, c.channels_in, c.channels_out, c.groups, filter, stride, output]);
            let [input, weight, _] = c.gradients.unwrap_or_default();
            out[7] = flag(input);
            out[8] = flag(weight);
            out[9..12].copy_from_slice(&precision(c.precision));
        }
        Kernel::Elementwise(e) if is_permutation(&call.kernel) => {
            if let Layout::Strided { run_in, run_out, .. } = e.layout {
                fill(&mut out, &[e.numel, run_in, run_out, call.dtype.size()]);
            }
        }
        Kernel::Gather(g) => fill(&mut out, &[g.rows, g.lookups, g.row_bytes, g.index_bytes]),
        _ => return None,
    }
    Some(out)
}

fn fill(out: &mut [f32], sizes: &[u64]) {
    for (to, &size) in out.iter_mut().zip(sizes) {
        *to = (size.max(1) as f32).ln();
    }
}

fn flag(value: bool) -> f32 {
    f32::from(u8::from(value))
}

/// One input for each faster precision than 32 bits.
fn precision(precision: Precision) -> [f32; 3] {
    [Precision::Tf32, Precision::Bf16, Precision::F16].map(|one| flag(one == precision))
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;
    use steptime_aten::Dtype;
    use steptime_aten::kernel::Gemm;

    use super::*;

    #[test]
    fn a_matrix_product_is_its_sizes() {
        let gemm = Gemm {
            batch: 1,
            m: 64,
            n: 32,
            k: 0,
            a_transposed: true,
            b_transposed: false,
            lda: 64,
            ldb: 32,
            epilogue: Epilogue::Bias,
            precision: Precision::Bf16,
        };
        let kernel = Kernel::Gemm(gemm);
        let call = KernelCall { kernel, dtype: Dtype::Bf16, operands: smallvec![], flops: 0, launches: 1 };
        let expected = [0.0, 64f32.ln(), 32f32.ln(), 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0];
        assert_eq!(sizes(&call), Some(expected));
        assert_eq!(sizes(&KernelCall { kernel: Kernel::Memset, ..call }), None);
    }
}
