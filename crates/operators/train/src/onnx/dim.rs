//! Sizes of dimensions, and rules of shapes.

use std::fmt;

/// Size of a dimension.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dim {
    /// Known.
    Fixed(u64),
    /// Known when the model runs; equal names are equal sizes.
    Symbol(String),
}

impl Dim {
    /// The size `batch`, known when the model runs.
    #[must_use]
    pub fn batch() -> Self {
        Dim::Symbol("batch".to_owned())
    }
}

impl From<u64> for Dim {
    fn from(size: u64) -> Self {
        Dim::Fixed(size)
    }
}

impl From<&str> for Dim {
    fn from(name: &str) -> Self {
        Dim::Symbol(name.to_owned())
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Fixed(size) => size.fmt(f),
            Dim::Symbol(name) => name.fmt(f),
        }
    }
}

/// The shape of an elementwise result: dimensions are aligned at the last one, and a size of 1 is repeated.
pub(super) fn broadcast(a: &[Dim], b: &[Dim]) -> Option<Vec<Dim>> {
    let rank = a.len().max(b.len());
    let one = Dim::Fixed(1);
    let at = |shape: &[Dim], axis: usize| match (axis + shape.len()).checked_sub(rank) {
        Some(own) => shape[own].clone(),
        None => one.clone(),
    };
    let joined = (0..rank).map(|axis| match (at(a, axis), at(b, axis)) {
        (a, b) if a == b || b == one => Some(a),
        (a, b) if a == one => Some(b),
        _ => None,
    });
    joined.collect()
}

/// Number of elements: the product of known sizes, and the names of the others in order. `None` beyond 64 bits.
pub(super) fn elements(shape: &[Dim]) -> Option<(u64, Vec<&str>)> {
    let mut product = 1u64;
    let mut names = Vec::new();
    for dim in shape {
        match dim {
            Dim::Fixed(size) => product = product.checked_mul(*size)?,
            Dim::Symbol(name) => names.push(name.as_str()),
        }
    }
    names.sort_unstable();
    Some((product, names))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dims: &[&str]) -> Vec<Dim> {
        dims.iter().map(|dim| dim.parse().map_or_else(|_| Dim::from(*dim), Dim::Fixed)).collect()
    }

    #[test]
    fn shapes_are_broadcast_as_numpy_does() {
        type Names<'a> = &'a [&'a str];
        let cases: [(Names<'_>, Names<'_>, Option<Names<'_>>); 7] = [
            (&["batch", "3"], &["3"], Some(&["batch", "3"])),
            (&["batch", "1"], &["batch", "8"], Some(&["batch", "8"])),
            (&[], &["2", "batch"], Some(&["2", "batch"])),
            (&["1", "4"], &["batch", "1"], Some(&["batch", "4"])),
            (&["batch", "3"], &["batch", "4"], None),
            (&["batch"], &["rows"], None),
            (&["batch"], &["7"], None),
        ];
        for (a, b, joined) in cases {
            assert_eq!(broadcast(&shape(a), &shape(b)), joined.map(shape), "{a:?} {b:?}");
            assert_eq!(broadcast(&shape(b), &shape(a)), joined.map(shape), "{b:?} {a:?}");
        }
    }
}
