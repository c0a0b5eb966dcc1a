//! What can be wrong with the operands of a product.

/// Why a product cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GemmError {
    /// A view reaches past the end of its slice.
    #[error(
        "a {rows} x {cols} view with strides ({row_stride}, {col_stride}) needs {needed} elements and the slice has {len}: give a longer slice or smaller strides"
    )]
    TooShort {
        /// Rows of the view.
        rows: usize,
        /// Columns of the view.
        cols: usize,
        /// Elements from a row to the next.
        row_stride: usize,
        /// Elements from a column to the next.
        col_stride: usize,
        /// Elements the view spans; `usize::MAX` where it cannot be counted.
        needed: usize,
        /// Elements there are.
        len: usize,
    },
    /// Two elements of a matrix to be written share one place.
    #[error(
        "a {rows} x {cols} output with strides ({row_stride}, {col_stride}) would write one element twice: choose strides that keep rows and columns apart"
    )]
    Overlap {
        /// Rows of the view.
        rows: usize,
        /// Columns of the view.
        cols: usize,
        /// Elements from a row to the next.
        row_stride: usize,
        /// Elements from a column to the next.
        col_stride: usize,
    },
    /// The shapes do not fit together.
    #[error("{what} is {found_rows} x {found_cols} and should be {rows} x {cols}: transpose or reshape it")]
    Shape {
        /// Which operand.
        what: &'static str,
        /// Rows it has.
        found_rows: usize,
        /// Columns it has.
        found_cols: usize,
        /// Rows it should have.
        rows: usize,
        /// Columns it should have.
        cols: usize,
    },
    /// A vector has the wrong length.
    #[error("{what} has {found} elements and should have {expected}: give one for each output feature")]
    Length {
        /// Which vector.
        what: &'static str,
        /// Elements it has.
        found: usize,
        /// Elements it should have.
        expected: usize,
    },
    /// A rung of the ladder reads rows in place and they are not contiguous.
    #[error(
        "the rows of {what} are not contiguous and this rung reads them in place: use gemm, which packs them"
    )]
    Scattered {
        /// Which operand.
        what: &'static str,
    },
    /// A plan has a register tile that these instructions cannot hold.
    #[error(
        "the plan has register tiles of {m_r} x {n_r} and {isa} has {rows} x {cols}: make it for these instructions"
    )]
    Tile {
        /// Rows in the plan.
        m_r: usize,
        /// Columns in the plan.
        n_r: usize,
        /// What is in use.
        isa: crate::Isa,
        /// Rows it holds.
        rows: usize,
        /// Columns it holds.
        cols: usize,
    },
    /// A packed matrix was made for another instruction set.
    #[error(
        "the matrix was packed for {packed} and the processor handle is {used}: pack it again with this handle"
    )]
    Isa {
        /// What it was packed for.
        packed: crate::Isa,
        /// What is in use.
        used: crate::Isa,
    },
}
