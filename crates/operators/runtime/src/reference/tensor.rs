//! Tensors of doubles, row by row.

/// Elements in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plain {
    pub(super) shape: Vec<usize>,
    pub(super) values: Vec<f64>,
}

impl Plain {
    pub(super) fn new(shape: &[usize], value: impl Fn(&[usize]) -> f64) -> Plain {
        let count: usize = shape.iter().product();
        let index = |at: usize| -> Vec<usize> {
            let mut rest = at;
            let mut index: Vec<usize> = shape
                .iter()
                .rev()
                .map(|&size| {
                    let own = rest % size;
                    rest /= size;
                    own
                })
                .collect();
            index.reverse();
            index
        };
        Plain { shape: shape.to_vec(), values: (0..count).map(|at| value(&index(at))).collect() }
    }

    pub(super) fn read(
        shape: &[usize],
        strides: &[usize],
        offset: usize,
        value: impl Fn(usize) -> f64,
    ) -> Plain {
        Plain::new(shape, |index| {
            value(offset + index.iter().zip(strides).map(|(at, stride)| at * stride).sum::<usize>())
        })
    }

    /// The element at an index; dimensions of size 1 repeat, leading ones may be missing.
    pub(super) fn at(&self, index: &[usize]) -> f64 {
        let index = &index[index.len() - self.shape.len()..];
        let place = index
            .iter()
            .zip(&self.shape)
            .fold(0, |place, (&at, &size)| place * size + if size == 1 { 0 } else { at });
        self.values[place]
    }

    pub(super) fn map(&self, function: impl Fn(f64) -> f64) -> Plain {
        Plain { shape: self.shape.clone(), values: self.values.iter().map(|&x| function(x)).collect() }
    }

    /// The largest difference, relative to the largest element.
    pub(super) fn error(&self, other: &Plain) -> f64 {
        assert_eq!(self.values.len(), other.values.len(), "{:?} {:?}", self.shape, other.shape);
        let largest = other.values.iter().fold(1e-30_f64, |largest, x| largest.max(x.abs()));
        let each = self.values.iter().zip(&other.values).map(|(one, other)| (one - other).abs());
        each.fold(0.0, |most, error| if error.is_nan() { f64::INFINITY } else { most.max(error) }) / largest
    }
}
