//! The shape of a product.

use crate::Error;

/// The shape of a product: A is `[m, k]`, B is `[k, n]`, C is `[m, n]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// Whether A is stored as `[k, m]`.
    pub a_transposed: bool,
    /// Whether B is stored as `[n, k]`, like the weights of a linear layer.
    pub b_transposed: bool,
    /// Elements from row to row of A, B and C as stored.
    pub strides: [usize; 3],
}

impl Shape {
    /// A shape of matrices without padding.
    #[must_use]
    pub fn new([m, n, k]: [usize; 3], a_transposed: bool, b_transposed: bool) -> Shape {
        let strides = [if a_transposed { m } else { k }, if b_transposed { k } else { n }, n];
        Shape { m, n, k, a_transposed, b_transposed, strides }
    }

    /// The same shape with rows further apart.
    #[must_use]
    pub fn with_strides(self, strides: [usize; 3]) -> Shape {
        Shape { strides, ..self }
    }

    /// Rows and columns of A, B and C in memory.
    pub(super) fn stored(&self) -> [[usize; 2]; 3] {
        let stored =
            |transposed: bool, [rows, cols]: [usize; 2]| if transposed { [cols, rows] } else { [rows, cols] };
        [
            stored(self.a_transposed, [self.m, self.k]),
            stored(self.b_transposed, [self.k, self.n]),
            [self.m, self.n],
        ]
    }

    /// Number of elements that A, B and C span.
    pub(super) fn lengths(&self) -> [usize; 3] {
        let stored = self.stored();
        std::array::from_fn(|at| {
            (stored[at][0] - 1).saturating_mul(self.strides[at]).saturating_add(stored[at][1])
        })
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let fits = |at: usize| {
            let [_, cols] = self.stored()[at];
            self.strides[at] >= cols && i64::try_from(self.strides[at]).is_ok()
        };
        if self.m.min(self.n).min(self.k) == 0 || !(0..3).all(fits) {
            return Err(Error::Unsupported {
                what: format!("a product as {self:?}"),
                remedy: "give at least one row and column, and rows at least as far apart as they are long",
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_lie_in_memory_as_they_say() {
        let shape = Shape::new([3, 5, 7], false, true);
        assert_eq!((shape.stored(), shape.strides), ([[3, 7], [5, 7], [3, 5]], [7, 7, 5]));
        assert_eq!(shape.lengths(), [21, 35, 15]);
        let shape = Shape::new([3, 5, 7], true, false).with_strides([4, 8, 6]);
        assert_eq!((shape.stored(), shape.lengths()), ([[7, 3], [7, 5], [3, 5]], [27, 53, 17]));
        assert!(shape.check().is_ok());
        assert!(shape.with_strides([2, 8, 6]).check().unwrap_err().to_string().contains("rows at least"));
        assert!(Shape::new([3, 0, 7], false, false).check().is_err());
    }
}
