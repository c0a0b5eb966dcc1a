//! Errors in the operands of a product.

/// Reason why a product cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GemmError {
    /// A view reaches past the end of its slice.
    #[error(
        "a {rows} x {cols} view with strides ({row_stride}, {col_stride}) needs {needed} elements and the slice has {len}: give a longer slice or smaller strides"
    )]
    TooShort {
        /// Number of rows of the view.
        rows: usize,
        /// Number of columns of the view.
        cols: usize,
        /// Number of elements from a row to the next.
        row_stride: usize,
        /// Number of elements from a column to the next.
        col_stride: usize,
        /// Number of elements the view spans; `usize::MAX` where the number overflows.
        needed: usize,
        /// Number of elements of the slice.
        len: usize,
    },
    /// Two elements of an output matrix share one place.
    #[error(
        "a {rows} x {cols} output with strides ({row_stride}, {col_stride}) would write one element twice: choose strides that keep rows and columns apart"
    )]
    Overlap {
        /// Number of rows of the view.
        rows: usize,
        /// Number of columns of the view.
        cols: usize,
        /// Number of elements from a row to the next.
        row_stride: usize,
        /// Number of elements from a column to the next.
        col_stride: usize,
    },
    /// The shapes do not match.
    #[error("{what} is {found_rows} x {found_cols} and should be {rows} x {cols}: transpose or reshape it")]
    Shape {
        /// Name of the operand.
        what: &'static str,
        /// Number of rows it has.
        found_rows: usize,
        /// Number of columns it has.
        found_cols: usize,
        /// Number of rows it should have.
        rows: usize,
        /// Number of columns it should have.
        cols: usize,
    },
    /// A vector has the wrong length.
    #[error("{what} has {found} elements and should have {expected}: give one for each output feature")]
    Length {
        /// Name of the vector.
        what: &'static str,
        /// Number of elements it has.
        found: usize,
        /// Number of elements it should have.
        expected: usize,
    },
    /// The rows of an operand are not contiguous, but the rung of the ladder reads them in place.
    #[error(
        "the rows of {what} are not contiguous and this rung reads them in place: use gemm, which packs them"
    )]
    Scattered {
        /// Name of the operand.
        what: &'static str,
    },
    /// The register tile of a plan does not fit these instructions.
    #[error(
        "the plan has register tiles of {m_r} x {n_r} and {isa} has {rows} x {cols}: make it for these instructions"
    )]
    Tile {
        /// Number of rows in the plan.
        m_r: usize,
        /// Number of columns in the plan.
        n_r: usize,
        /// The instruction set in use.
        isa: crate::Isa,
        /// Largest number of rows.
        rows: usize,
        /// Number of columns of that tile.
        cols: usize,
    },
    /// A packed matrix was made for another instruction set.
    #[error(
        "the matrix was packed for {packed} and the processor handle is {used}: pack it again with this handle"
    )]
    Isa {
        /// The instruction set of the packed matrix.
        packed: crate::Isa,
        /// The instruction set in use.
        used: crate::Isa,
    },
}
