//! A tile of a transpose, which vector instructions transpose at once.

/// Number of rows and columns of a tile.
pub(super) const TILE: usize = 16;

/// A tile of a transpose: `to[i][j] = from[j][i]` for the columns `i` of inputs and the inputs `j`.
pub(super) struct Tile<'a, 'b, T> {
    /// Up to 16 inputs of `columns` elements.
    pub(super) from: &'a [&'a [T]],
    /// Up to 16 outputs, each with one element for each input.
    pub(super) to: &'a mut [&'b mut [T]],
}
