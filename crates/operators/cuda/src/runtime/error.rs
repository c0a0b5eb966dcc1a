//! Errors of a GPU, with their place and remedy.

use cudarc::cublaslt::result::CublasError;
use cudarc::driver::DriverError;
use steptime_ops::elementwise::ElementwiseError;
use steptime_ops::embedding::EmbeddingError;
use steptime_ops::embedding::backward::BackwardError;
use steptime_ops::loss::LossError;
use steptime_ops::rearrange::RearrangeError;

/// Reason why a call cannot be carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No CUDA driver on this machine.
    #[error("no CUDA driver: {why}: install NVIDIA's driver, or run this on a machine with an NVIDIA GPU")]
    NoDriver {
        /// The missing part.
        why: String,
    },
    /// The GPU does not exist.
    #[error(
        "there is no GPU {ordinal}: the driver shows {count}: choose another, or check CUDA_VISIBLE_DEVICES"
    )]
    NoDevice {
        /// The requested number.
        ordinal: usize,
        /// Number of GPUs.
        count: usize,
    },
    /// A driver, compiler or GPU that is older than required.
    #[error("{what} is {found}, and at least {needed} is needed: {remedy}")]
    TooOld {
        /// The outdated part.
        what: &'static str,
        /// The version found.
        found: String,
        /// The version needed.
        needed: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// No compiler for kernels.
    #[error(
        "libnvrtc, which compiles the kernels, is not found: install CUDA or `pip install nvidia-cuda-nvrtc`, and add its folder to LD_LIBRARY_PATH"
    )]
    NoCompiler,
    /// No library for matrix products.
    #[error(
        "libcublasLt, which multiplies matrices, is not found: install CUDA or `pip install nvidia-cublas`, and add its folder to LD_LIBRARY_PATH"
    )]
    NoBlas,
    /// No NCCL on this machine.
    #[error(
        "NCCL, which exchanges data between GPUs, is not found: {why}: `pip install nvidia-nccl-cu13`, and add its folder to LD_LIBRARY_PATH, or set STEPTIME_NCCL to the path of libnccl.so.2"
    )]
    NoNccl {
        /// The attempts.
        why: String,
    },
    /// NCCL refused a call, or an exchange failed.
    #[error("{what}: NCCL: {why}")]
    Nccl {
        /// The failed action.
        what: &'static str,
        /// The library's reason.
        why: String,
    },
    /// The ranks of a group no longer exchange.
    #[error("exchanging between GPUs: the group was aborted")]
    Aborted,
    /// cuBLASLt refused a call.
    #[error("{what}: {source}")]
    Blas {
        /// The failed action.
        what: String,
        /// The library's error.
        source: CublasError,
    },
    /// A kernel that does not compile.
    #[error("{name} does not compile with {options}:\n{log}")]
    Compile {
        /// The source's name.
        name: String,
        /// The compiler's options.
        options: String,
        /// The compiler's log.
        log: String,
    },
    /// A compiled source without the named kernel.
    #[error("{module} has no kernel {kernel:?}")]
    NoKernel {
        /// The source's name.
        module: String,
        /// The kernel.
        kernel: String,
    },
    /// Too little memory on the GPU, or too little pinnable memory on the host.
    #[error(
        "{what} of {bytes} bytes: not enough memory ({free} bytes are free on the GPU): make the problem smaller, or free other buffers"
    )]
    OutOfMemory {
        /// Purpose of the memory.
        what: &'static str,
        /// Bytes requested.
        bytes: usize,
        /// Bytes that are free on the GPU.
        free: usize,
    },
    /// The driver refused a call, or reports a fault of an earlier kernel.
    #[error("{what}: {source}")]
    Driver {
        /// The failed action.
        what: String,
        /// The driver's error.
        source: DriverError,
    },
    /// A buffer of the wrong size.
    #[error("{what}: {found} elements, but {needed} are needed")]
    Size {
        /// The buffer.
        what: &'static str,
        /// Number of elements found.
        found: usize,
        /// Number of elements needed.
        needed: usize,
    },
    /// An operation that these kernels do not support.
    #[error("{what}: {remedy}")]
    Unsupported {
        /// The requested operation.
        what: String,
        /// The alternative.
        remedy: &'static str,
    },
    /// A sample of a class that does not exist.
    #[error("sample {sample} has class {class}: classes are 0 to {}", classes.saturating_sub(1))]
    Class {
        /// The sample.
        sample: usize,
        /// Its class.
        class: i64,
        /// Number of classes.
        classes: usize,
    },
    /// Wrong tables, lookups or indices, with the errors of the CPU operators.
    #[error(transparent)]
    Embedding(#[from] EmbeddingError),
    /// An elementwise program with operands that do not fit, with the errors of the CPU operators.
    #[error(transparent)]
    Elementwise(#[from] ElementwiseError),
    /// Elements that cannot be moved, with the errors of the CPU operators.
    #[error(transparent)]
    Rearrange(#[from] RearrangeError),
    /// A loss that cannot be computed, with the errors of the CPU operators.
    #[error(transparent)]
    Loss(#[from] LossError),
    /// A backward pass that cannot be carried out, with the errors of the CPU operators.
    #[error(transparent)]
    Backward(#[from] BackwardError),
}

impl Error {
    /// Converts a driver error to one that names the failed action.
    pub(crate) fn driver(what: impl Into<String>) -> impl FnOnce(DriverError) -> Error {
        let what = what.into();
        move |source| Error::Driver { what, source }
    }

    /// Converts a cuBLASLt error to one that names the failed action.
    pub(crate) fn blas(what: impl Into<String>) -> impl FnOnce(CublasError) -> Error {
        let what = what.into();
        move |source| Error::Blas { what, source }
    }
}
