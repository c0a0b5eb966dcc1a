//! What can go wrong on a GPU, where, and what to do about it.

use cudarc::cublaslt::result::CublasError;
use cudarc::driver::DriverError;
use steptime_ops::elementwise::ElementwiseError;
use steptime_ops::embedding::EmbeddingError;
use steptime_ops::embedding::backward::BackwardError;
use steptime_ops::rearrange::RearrangeError;

/// A call that cannot be carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No CUDA driver on this machine.
    #[error("no CUDA driver: {why}: install NVIDIA's driver, or run this on a machine with an NVIDIA GPU")]
    NoDriver {
        /// What is missing.
        why: String,
    },
    /// No such GPU.
    #[error(
        "there is no GPU {ordinal}: the driver shows {count}: choose another, or check CUDA_VISIBLE_DEVICES"
    )]
    NoDevice {
        /// The one asked for.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// A driver, compiler or GPU that is older than what it has to work with.
    #[error("{what} is {found}, and at least {needed} is needed: {remedy}")]
    TooOld {
        /// What is too old.
        what: &'static str,
        /// The version there is.
        found: String,
        /// The version there should be.
        needed: String,
        /// What to do.
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
    /// cuBLASLt refused a call.
    #[error("{what}: {source}")]
    Blas {
        /// What was being done.
        what: String,
        /// Its answer.
        source: CublasError,
    },
    /// A kernel that the compiler refuses.
    #[error("{name} does not compile with {options}:\n{log}")]
    Compile {
        /// The source's name.
        name: String,
        /// The compiler's options.
        options: String,
        /// What the compiler says.
        log: String,
    },
    /// A compiled source without that kernel.
    #[error("{module} has no kernel {kernel:?}")]
    NoKernel {
        /// The source's name.
        module: String,
        /// The kernel.
        kernel: String,
    },
    /// Too little memory on the GPU, or too little to be pinned on the host.
    #[error(
        "{what} of {bytes} bytes: not enough memory ({free} bytes are free on the GPU): make the problem smaller, or free other buffers"
    )]
    OutOfMemory {
        /// What it was for.
        what: &'static str,
        /// Bytes asked for.
        bytes: usize,
        /// Bytes the GPU has free.
        free: usize,
    },
    /// The driver refused a call, or reports a fault of an earlier kernel.
    #[error("{what}: {source}")]
    Driver {
        /// What was being done.
        what: String,
        /// The driver's answer.
        source: DriverError,
    },
    /// A buffer of the wrong size.
    #[error("{what}: {found} elements, but {needed} are needed")]
    Size {
        /// Which buffer.
        what: &'static str,
        /// Elements there are.
        found: usize,
        /// Elements there must be.
        needed: usize,
    },
    /// Something that these kernels do not do.
    #[error("{what}: {remedy}")]
    Unsupported {
        /// What was asked for.
        what: String,
        /// What to do instead.
        remedy: &'static str,
    },
    /// Wrong tables, lookups or indices, as the CPU operators would say.
    #[error(transparent)]
    Embedding(#[from] EmbeddingError),
    /// An elementwise program with operands that do not fit, as the CPU operators would say.
    #[error(transparent)]
    Elementwise(#[from] ElementwiseError),
    /// Elements that cannot be moved, as the CPU operators would say.
    #[error(transparent)]
    Rearrange(#[from] RearrangeError),
    /// A backward pass that cannot be carried out, as the CPU operators would say.
    #[error(transparent)]
    Backward(#[from] BackwardError),
}

impl Error {
    /// The driver's answer to what was being done.
    pub(crate) fn driver(what: impl Into<String>) -> impl FnOnce(DriverError) -> Error {
        let what = what.into();
        move |source| Error::Driver { what, source }
    }

    /// cuBLASLt's answer to what was being done.
    pub(crate) fn blas(what: impl Into<String>) -> impl FnOnce(CublasError) -> Error {
        let what = what.into();
        move |source| Error::Blas { what, source }
    }
}
