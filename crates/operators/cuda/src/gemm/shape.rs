//! The shape of a product.

use steptime_tensor::Layout;

use crate::Error;

/// The shape of a product, or of a batch of products of one shape: A is `[m, k]`, B is `[k, n]`, C is `[m, n]`.
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
    /// Number of products.
    pub batch: usize,
    /// Elements from product to product of A, B and C; 0 for one matrix in all products.
    pub batch_strides: [usize; 3],
    /// Alignment in bytes of the addresses of A, B and C.
    pub alignment: usize,
}

impl Shape {
    /// A shape of one product, of matrices without padding at multiples of 16 bytes.
    #[must_use]
    pub fn new([m, n, k]: [usize; 3], a_transposed: bool, b_transposed: bool) -> Shape {
        let strides = [if a_transposed { m } else { k }, if b_transposed { k } else { n }, n];
        let (batch, batch_strides, alignment) = (1, [0; 3], 16);
        Shape { m, n, k, a_transposed, b_transposed, strides, batch, batch_strides, alignment }
    }

    /// The same shape with rows further apart.
    #[must_use]
    pub fn with_strides(self, strides: [usize; 3]) -> Shape {
        Shape { strides, ..self }
    }

    /// `count` products of this shape, whose matrices A, B and C are these numbers of elements apart.
    #[must_use]
    pub fn with_batch(self, count: usize, strides: [usize; 3]) -> Shape {
        Shape { batch: count, batch_strides: strides, ..self }
    }

    /// The same shape with matrices that begin at multiples of `bytes` bytes: a power of two, at least the size of an
    /// element. Products of less aligned matrices may be slower.
    #[must_use]
    pub fn with_alignment(self, bytes: usize) -> Shape {
        Shape { alignment: bytes, ..self }
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

    /// Layouts of A, B and C, with the batch first; `None` where positions exceed `usize`.
    fn layouts(&self) -> Option<[Layout; 3]> {
        let layout = |at: usize| {
            let [rows, cols] = self.stored()[at];
            Layout::new(&[self.batch, rows, cols], &[self.batch_strides[at], self.strides[at], 1], 0).ok()
        };
        Some([layout(0)?, layout(1)?, layout(2)?])
    }

    /// Number of elements that A, B and C span.
    pub(super) fn lengths(&self) -> [usize; 3] {
        let length = |layout: Layout| layout.last().map_or(0, |last| last.saturating_add(1));
        self.layouts().map_or([usize::MAX; 3], |layouts| layouts.map(length))
    }

    /// Alignments in bytes of all matrices A, B and C of a batch, of elements of these sizes in bytes.
    pub(super) fn alignments(&self, sizes: [usize; 3]) -> [usize; 3] {
        let step = |bytes: usize| 1 << bytes.trailing_zeros().min(usize::BITS - 1);
        [0, 1, 2].map(|at| match self.batch {
            1 => self.alignment,
            _ => self.alignment.min(step(self.batch_strides[at] * sizes[at])),
        })
    }

    /// Fails where the library does not compute this for elements of at most `size` bytes.
    pub(super) fn check(&self, size: usize) -> Result<(), Error> {
        let wrong = |remedy| Err(Error::Unsupported { what: format!("a product as {self:?}"), remedy });
        let fits = |at: usize| {
            let [_, cols] = self.stored()[at];
            self.strides[at] >= cols
        };
        if self.m.min(self.n).min(self.k) == 0 || !(0..3).all(fits) {
            return wrong(
                "give at least one row and column, and rows at least as far apart as they are long",
            );
        }
        if self.batch == 0 || i32::try_from(self.batch).is_err() {
            return wrong("give at least one and fewer than 2^31 products");
        }
        let strides = self.strides.iter().chain(&self.batch_strides);
        let Some([_, _, c]) =
            self.layouts().filter(|_| strides.into_iter().all(|&stride| i64::try_from(stride).is_ok()))
        else {
            return wrong("give matrices whose last element is at most 2^63 elements from the first");
        };
        if c.may_overlap() {
            return wrong("give each element of the products C a place of its own");
        }
        if !self.alignment.is_power_of_two()
            || self.alignment < size
            || u32::try_from(self.alignment).is_err()
        {
            return wrong("give an alignment that is a power of two and at least the size of an element");
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
        assert!(shape.check(4).is_ok());
        let error = |shape: Shape| shape.check(4).unwrap_err().to_string();
        assert!(error(shape.with_strides([2, 8, 6])).contains("rows at least"));
        assert!(error(Shape::new([3, 0, 7], false, false)).contains("rows at least"));
    }

    #[test]
    fn batches_span_their_last_product() {
        let shape = Shape::new([3, 5, 7], false, true);
        let batch = shape.with_batch(10, [21, 0, 15]);
        assert_eq!(batch.lengths(), [210, 35, 150]);
        assert!(batch.check(4).is_ok());
        // Rows of different products between each other.
        let between = shape.with_strides([7, 7, 50]).with_batch(10, [21, 0, 5]);
        assert_eq!(between.lengths(), [210, 35, 150]);
        assert!(between.check(4).is_ok());
        let error = |shape: Shape| shape.check(4).unwrap_err().to_string();
        assert!(error(shape.with_batch(10, [21, 0, 14])).contains("place of its own"));
        for stride in [usize::MAX, usize::MAX / 2] {
            assert!(error(shape.with_batch(4, [stride, 0, 15])).contains("2^63"));
        }
        assert!(error(shape.with_batch(0, [0; 3])).contains("at least one"));
    }

    #[test]
    fn matrices_of_a_batch_are_aligned_as_the_least_of_them() {
        let shape = Shape::new([3, 5, 7], false, true).with_batch(9, [24, 0, 15]);
        assert_eq!(shape.alignments([4; 3]), [16, 16, 4]);
        assert_eq!(shape.alignments([2, 2, 4]), [16, 16, 4]);
        assert_eq!(shape.with_alignment(8).alignments([2; 3]), [8, 8, 2]);
        assert_eq!(shape.with_batch(1, [1, 2, 3]).alignments([4; 3]), [16; 3]);
    }

    #[test]
    fn alignments_are_those_of_elements_or_more() {
        let shape = Shape::new([3, 5, 7], false, true);
        assert!(shape.with_alignment(4).check(4).is_ok() && shape.with_alignment(2).check(2).is_ok());
        for bytes in [0, 2, 12] {
            assert!(shape.with_alignment(bytes).check(4).unwrap_err().to_string().contains("power of two"));
        }
    }
}
