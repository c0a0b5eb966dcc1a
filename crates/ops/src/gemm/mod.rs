//! gemm.
