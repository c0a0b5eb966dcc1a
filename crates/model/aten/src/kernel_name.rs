//! Information from the names of kernels: for unknown kernels, the kind of work; for known ops, which of several
//! kernels a version of a library chose.

use steptime_graph::CollectiveKind;

use crate::kernel::{Kernel, KernelCall, Precision};

/// Kind of work of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Memory traffic.
    Bytes,
    /// Matrix multiplication.
    Products(Precision),
    /// Exchange with other devices, including waits for them.
    Exchange,
}

/// Words in names of kernels that multiply matrices.
const PRODUCTS: [&str; 14] = [
    "gemm",
    "cutlass",
    "xmma",
    "nvjet",
    "convolve",
    "conv2d",
    "wgrad",
    "dgrad",
    "fprop",
    "flash",
    "fmha",
    "attention",
    "winograd",
    "implicit",
];

/// Words in such names if the kernel only moves the data of a product.
const MOVES: [&str; 5] = ["splitk", "reduce", "transform", "nchwtonhwc", "nhwctonchw"];

/// Returns the kind of work of a kernel with this name.
#[must_use]
pub fn work(name: &str) -> Work {
    if CollectiveKind::from_kernel(name).is_some() {
        return Work::Exchange;
    }
    let name = name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if !has(&PRODUCTS) || has(&MOVES) {
        return Work::Bytes;
    }
    Work::Products(if has(&["tf32", "s1688"]) {
        Precision::Tf32
    } else if has(&["e4m3", "e5m2", "fp8", "f8f8", "qgmma"]) {
        Precision::F8
    } else if has(&["bf16", "bfloat16"]) {
        Precision::Bf16
    } else if has(&["hgemm", "f16", "half", "h1688", "h16816", "hmma", "_hsh_", "_hhh_"]) {
        Precision::F16
    } else if has(&["dgemm", "f64", "double"]) {
        Precision::F64
    } else {
        Precision::F32
    })
}

/// Sets parameters of a call from the names of its kernels: PyTorch reads the rows of a softmax three times, or keeps them in registers
/// or shared memory, depending on their length and its version; host memory is page-locked or not, which execution traces do not record.
pub fn choose<'n>(call: &mut KernelCall, names: impl IntoIterator<Item = &'n str>) {
    for name in names {
        match (&mut call.kernel, base(name)) {
            (Kernel::Softmax(softmax), "cunn_SoftMaxForward") => softmax.again = true,
            (Kernel::Softmax(softmax), "cunn_SoftMaxForwardReg" | "cunn_SoftMaxForwardSmem") => {
                softmax.again = false
            }
            (Kernel::Transfer(transfer), _) if name.starts_with("Memcpy") && name.contains("Pinned") => {
                transfer.pinned = true
            }
            (Kernel::Transfer(transfer), _) if name.starts_with("Memcpy") && name.contains("Pageable") => {
                transfer.pinned = false
            }
            _ => {}
        }
    }
}

/// Returns a kernel's name without return type, namespaces and template arguments.
fn base(name: &str) -> &str {
    let name = name.split('<').next().unwrap_or(name);
    name.rsplit([':', ' ']).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Arg, OpCall, Tensor};
    use crate::op_set::OpSet;

    #[test]
    fn names_say_whether_a_softmax_reads_its_rows_again() {
        let input = Arg::Tensor(Tensor::contiguous(&[80, 5185], crate::Dtype::Bf16));
        let call = OpCall::new("aten::_softmax", vec![input, Arg::Int(1), Arg::Bool(false)]);
        let mut lowered = OpSet::standard().lower(&call).kernel().cloned().unwrap();
        let again = |call: &KernelCall| matches!(&call.kernel, Kernel::Softmax(softmax) if softmax.again);
        assert!(!again(&lowered));
        choose(
            &mut lowered,
            ["memset", "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16>"],
        );
        assert!(again(&lowered));
        choose(&mut lowered, ["void at::native::cunn_SoftMaxForwardSmem<8, c10::BFloat16>(int)"]);
        assert!(!again(&lowered));
        choose(&mut lowered, ["f<cunn_SoftMaxForward>"]);
        assert!(!again(&lowered));
    }

    #[test]
    fn names_of_libraries_say_what_they_multiply_in() {
        let product = |precision| Work::Products(precision);
        for (name, expected) in [
            ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_ffma", product(Precision::F32)),
            ("void cutlass::Kernel2<cutlass_80_simt_sgemm_64x64_8x5_nt_align1>", product(Precision::F32)),
            ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn", product(Precision::Bf16)),
            ("volta_h884gemm_256x64_ldg8_tn_half", product(Precision::F16)),
            ("cutlass_tensorop_s1688gemm_tf32_256x128", product(Precision::Tf32)),
            ("void cublasLt::splitKreduce_kernel<32, 16, int, float>", Work::Bytes),
            ("void at::native::vectorized_elementwise_kernel<4>", Work::Bytes),
            ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", Work::Exchange),
        ] {
            assert_eq!(work(name), expected, "{name}");
        }
    }

    #[test]
    fn names_say_whether_a_copy_is_of_page_locked_memory() {
        let host =
            Tensor { device: crate::Device::Cpu, ..Tensor::contiguous(&[512, 300], crate::Dtype::F32) };
        let device = Tensor { device: crate::Device::Cuda, ..host.clone() };
        let call = OpCall::new("aten::copy_", vec![Arg::Tensor(device), Arg::Tensor(host), Arg::Bool(true)]);
        let mut lowered = OpSet::standard().lower(&call).kernel().cloned().unwrap();
        let mut pinned = |name: &str| {
            choose(&mut lowered, [name]);
            let Kernel::Transfer(transfer) = &lowered.kernel else { panic!("{lowered:?}") };
            transfer.pinned
        };
        assert!(pinned("Memcpy HtoD (Pinned -> Device)"));
        assert!(pinned("Memcpy HtoD"), "says nothing");
        assert!(!pinned("Memcpy HtoD (Pageable -> Device)"));
    }
}
