//! Selection of growing dimensions.

/// Dimensions of the step's inputs that grow with the batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum BatchDims {
    /// The first dimension of each input that is a multiple of the batch.
    #[default]
    Inferred,
    /// A dimension of every input, where its size is a multiple of the batch: 1 for inputs whose first dimension is time.
    At(usize),
}
