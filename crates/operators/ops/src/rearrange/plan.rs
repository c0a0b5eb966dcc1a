//! Reduction of a copy between two layouts to as few loops as possible.

use steptime_tensor::Layout;

/// A dimension, with the strides of both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dim {
    pub(super) size: usize,
    /// Elements between neighbours in the input.
    pub(super) from: usize,
    /// Elements between neighbours in the output.
    pub(super) to: usize,
}

/// Copy of the innermost elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inner {
    /// A run of this many neighbours on both sides.
    Run(usize),
    /// A transpose: `rows.from` and `columns.to` are 1.
    Transpose { rows: Dim, columns: Dim },
    /// Elements without usable neighbours on either side.
    Each(Dim),
}

/// Loops over `outer`, slowest first, around `inner`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) outer: Vec<Dim>,
    pub(super) inner: Inner,
    pub(super) from: usize,
    pub(super) to: usize,
}

impl Plan {
    /// A plan between layouts of one shape; `None` where there is nothing to copy.
    pub(super) fn new(from: &Layout, to: &Layout) -> Option<Plan> {
        if to.is_empty() {
            return None;
        }
        let sizes = to.shape().iter().zip(from.strides()).zip(to.strides());
        let mut dims: Vec<Dim> =
            sizes.map(|((&size, &from), &to)| Dim { size, from, to }).filter(|dim| dim.size > 1).collect();
        dims.sort_by_key(|dim| std::cmp::Reverse(dim.to));
        let mut outer: Vec<Dim> = Vec::with_capacity(dims.len());
        for dim in dims {
            match outer.last_mut() {
                Some(last)
                    if dim.from.checked_mul(dim.size) == Some(last.from)
                        && dim.to.checked_mul(dim.size) == Some(last.to) =>
                {
                    *last = Dim { size: last.size * dim.size, ..dim };
                }
                _ => outer.push(dim),
            }
        }
        let inner = match outer.pop() {
            None => Inner::Run(1),
            Some(dim) if dim.from == 1 && dim.to == 1 => Inner::Run(dim.size),
            Some(columns) if columns.to == 1 => match outer.iter().position(|dim| dim.from == 1) {
                Some(at) => Inner::Transpose { rows: outer.remove(at), columns },
                None => Inner::Each(columns),
            },
            Some(dim) => Inner::Each(dim),
        };
        Some(Plan { outer, inner, from: from.offset(), to: to.offset() })
    }

    /// Number of inner copies.
    pub(super) fn count(&self) -> usize {
        self.outer.iter().map(|dim| dim.size).product()
    }

    /// Number of elements of one inner copy.
    pub(super) fn inner_len(&self) -> usize {
        match self.inner {
            Inner::Run(len) => len,
            Inner::Transpose { rows, columns } => rows.size * columns.size,
            Inner::Each(dim) => dim.size,
        }
    }

    /// Number of runs ahead at which to prefetch the input's lines. The hardware prefetcher covers the lines within a
    /// run, and those of the next run if it is adjacent.
    pub(super) fn ahead(&self, element_bytes: usize) -> usize {
        /// Bytes between prefetch and copy.
        const BYTES: usize = 4096;
        match (self.inner, self.outer.last()) {
            (Inner::Run(len), Some(dim)) if dim.from > 2 * len && len * element_bytes <= BYTES => {
                BYTES / (len * element_bytes)
            }
            _ => 0,
        }
    }

    /// Position at which the `index`-th inner copy starts, on both sides.
    pub(super) fn start(&self, mut index: usize) -> (usize, usize) {
        let (mut from, mut to) = (self.from, self.to);
        for dim in self.outer.iter().rev() {
            from += index % dim.size * dim.from;
            to += index % dim.size * dim.to;
            index /= dim.size;
        }
        (from, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(shape: &[usize], from: &[usize], to: &[usize]) -> Plan {
        Plan::new(&Layout::new(shape, from, 0).unwrap(), &Layout::new(shape, to, 0).unwrap()).unwrap()
    }

    #[test]
    fn dimensions_are_joined_and_ordered_by_the_output() {
        assert_eq!(plan(&[2, 3, 4], &[12, 4, 1], &[12, 4, 1]).inner, Inner::Run(24));
        assert_eq!(plan(&[4, 3, 2], &[1, 4, 12], &[1, 4, 12]).inner, Inner::Run(24));
        let rows = plan(&[2, 3, 4], &[12, 4, 1], &[30, 10, 1]);
        assert_eq!((rows.inner, rows.count()), (Inner::Run(4), 6));
        assert_eq!(rows.start(5), (20, 50));
        let transpose = plan(&[5, 3, 4], &[12, 1, 3], &[12, 4, 1]);
        let (rows, columns) = (Dim { size: 3, from: 1, to: 4 }, Dim { size: 4, from: 3, to: 1 });
        assert_eq!((transpose.inner, transpose.count()), (Inner::Transpose { rows, columns }, 5));
        assert_eq!(plan(&[4], &[0], &[1]).inner, Inner::Each(Dim { size: 4, from: 0, to: 1 }));
        assert_eq!(plan(&[], &[], &[]).inner, Inner::Run(1));
    }
}
