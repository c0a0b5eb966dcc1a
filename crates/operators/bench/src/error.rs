//! Errors of benchmarks.

use std::io;

use steptime_ops::CpuError;
use steptime_ops::elementwise::ElementwiseError;
use steptime_ops::embedding::EmbeddingError;
use steptime_ops::embedding::backward::BackwardError;
use steptime_ops::gemm::GemmError;
use steptime_ops::interaction::InteractionError;
use steptime_ops::rearrange::RearrangeError;
use steptime_tensor::TensorError;

/// Reason why a benchmark cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A letter that is not a size of the benchmark.
    #[error("there is no size {letter} here: give some of {}", known.join(", "))]
    UnknownSize {
        /// The letter.
        letter: String,
        /// Letters of the benchmark's sizes.
        known: Vec<&'static str>,
    },
    /// Operands that memory has no room for.
    #[error(
        "this size needs {:.1} GiB of memory and {:.1} GiB are free: make it smaller",
        needed / f64::from(1 << 30),
        free / f64::from(1 << 30)
    )]
    Memory {
        /// Bytes of the operands.
        needed: f64,
        /// Bytes that are free.
        free: f64,
    },
    /// An exponent that numpy does not support.
    #[error("Zipf's law without end needs an exponent above 1, not {exponent}")]
    Exponent {
        /// The exponent.
        exponent: f64,
    },
    /// A limit of the machine that cannot be measured.
    #[error("measuring this machine's limits: {0}")]
    Limit(#[from] io::Error),
    /// Threads cannot be started.
    #[error(transparent)]
    Cpu(#[from] CpuError),
    /// An embedding operator fails.
    #[error(transparent)]
    Embedding(#[from] EmbeddingError),
    /// The backward pass of embeddings fails.
    #[error(transparent)]
    Backward(#[from] BackwardError),
    /// A matrix product fails.
    #[error(transparent)]
    Gemm(#[from] GemmError),
    /// An interaction fails.
    #[error(transparent)]
    Interaction(#[from] InteractionError),
    /// An elementwise program fails.
    #[error(transparent)]
    Elementwise(#[from] ElementwiseError),
    /// A copy fails.
    #[error(transparent)]
    Rearrange(#[from] RearrangeError),
    /// A tensor cannot be made.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// The GPU, its driver or an operator on it fails.
    #[error(transparent)]
    Cuda(#[from] steptime_cuda::Error),
}

/// A result that is too far from its reference.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{case}: {difference:.1e} from the reference: please report it")]
pub struct WrongResult {
    /// The op, its pass and its size.
    pub case: String,
    /// The largest difference.
    pub difference: f64,
}
