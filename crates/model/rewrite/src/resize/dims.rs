//! Which dimensions grow.

/// Which dimensions of the step's inputs grow with the batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum BatchDims {
    /// Those that a multiple of the batch says: the first of a tensor's.
    #[default]
    Inferred,
    /// A dimension of every input, where its size is a multiple of the batch: 1 of inputs whose first dimension is time.
    At(usize),
}
