//! Kernels that a compiler made.

/// Whether an op of this name is a kernel that Inductor generated, launched from Python.
#[must_use]
pub fn is_compiled(op: &str) -> bool {
    op.starts_with("triton_")
}
