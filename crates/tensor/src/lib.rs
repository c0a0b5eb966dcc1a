//! Strided n-dimensional views over shared storage.
