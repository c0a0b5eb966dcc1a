//! The division of tensors into shards.

use std::collections::HashSet;
use std::ops::Range;

use steptime_tensor::DType;

use super::header::{self, Part};
use super::{CheckpointError, Piece, Tensor};

/// Name of a safetensors header's own entry.
const RESERVED: &str = "__metadata__";
/// Bytes of a header that hold no tensor: its length, braces, padding.
const FRAME: u64 = 32;

/// Consecutive rows of a tensor, to be written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rows {
    /// Index of the tensor.
    pub tensor: usize,
    pub rows: Range<u64>,
}

/// Divides tensors into shards of at most `limit` bytes, in their order, and fills in their pieces. Only a tensor that
/// exceeds a shard is cut, between rows.
pub(super) fn divide(tensors: &mut [Tensor], limit: u64) -> Result<Vec<Vec<Rows>>, CheckpointError> {
    let mut shards: Vec<Vec<Rows>> = Vec::new();
    let mut room = Room { bytes: 0, header: 0 };
    for (index, tensor) in tensors.iter_mut().enumerate() {
        let rows = tensor.rows();
        let row =
            tensor.row_bytes().filter(|_| tensor.bytes().is_some()).ok_or_else(|| shape_error(tensor))?;
        let bound = header::bound(&piece_name(tensor, &(u64::MAX - 1..u64::MAX)), tensor.shape.len());
        let most = Room::new(limit).rows(row, bound).filter(|&most| most > 0 || rows == 0);
        let most = most.ok_or_else(|| {
            let (name, bytes) = (tensor.name.clone(), row.saturating_add(bound + FRAME));
            CheckpointError::Row { name, bytes, limit }
        })?;
        let mut first = 0;
        while first < rows || tensor.pieces.is_empty() {
            let left = rows - first;
            let fits = |&count: &u64| count >= left || count > 0 && most < rows;
            let Some(count) = room.rows(row, bound).filter(fits) else {
                shards.push(Vec::new());
                room = Room::new(limit);
                continue;
            };
            let (shard, count) = (shards.len() - 1, count.min(left));
            shards[shard].push(Rows { tensor: index, rows: first..first + count });
            tensor.pieces.push(Piece { shard: shard as u32, rows: count });
            room.bytes -= bound + count * row;
            room.header -= bound;
            first += count;
        }
    }
    check_names(tensors)?;
    // The widest elements first, so that all are aligned.
    let width = |rows: &Rows| std::cmp::Reverse(tensors[rows.tensor].dtype.bytes());
    shards.iter_mut().for_each(|shard| shard.sort_by_key(width));
    Ok(shards)
}

/// Free bytes of a shard, and of its header.
struct Room {
    bytes: u64,
    header: u64,
}

impl Room {
    /// An empty shard.
    fn new(limit: u64) -> Self {
        Room { bytes: limit.saturating_sub(FRAME), header: header::LARGEST - FRAME }
    }

    /// Number of rows of `row` bytes that fit beside a header entry of `bound` bytes; `None` if the entry does not.
    fn rows(&self, row: u64, bound: u64) -> Option<u64> {
        self.header.checked_sub(bound)?;
        let free = self.bytes.checked_sub(bound)?;
        Some(free.checked_div(row).unwrap_or(u64::MAX))
    }
}

/// The safetensors entry of a piece.
pub(super) fn part(tensor: &Tensor, rows: &Range<u64>) -> Part {
    let mut shape = tensor.shape.clone();
    if let Some(first) = shape.first_mut() {
        *first = rows.end - rows.start;
    }
    let bytes = tensor.row_bytes().unwrap_or(u64::MAX).saturating_mul(rows.end - rows.start);
    Part { name: piece_name(tensor, rows), dtype: tensor.dtype, shape, bytes }
}

/// The tensor's name, with the rows if they are not all.
fn piece_name(tensor: &Tensor, rows: &Range<u64>) -> String {
    match *rows == (0..tensor.rows()) {
        true => tensor.name.clone(),
        false => format!("{}[{}..{}]", tensor.name, rows.start, rows.end),
    }
}

/// Row ranges of a tensor's pieces, each with its shard.
pub(super) fn pieces(tensor: &Tensor) -> impl Iterator<Item = (u32, Range<u64>)> {
    let mut first = 0u64;
    tensor.pieces.iter().map(move |piece| {
        let rows = first..first.saturating_add(piece.rows);
        first = rows.end;
        (piece.shard, rows)
    })
}

fn check_names(tensors: &[Tensor]) -> Result<(), CheckpointError> {
    let mut names = HashSet::new();
    for tensor in tensors {
        let error = |reason| CheckpointError::Name { name: tensor.name.clone(), reason };
        if tensor.name.is_empty() {
            return Err(error("empty"));
        }
        if tensor.name == RESERVED {
            return Err(error("reserved"));
        }
        let pieces = pieces(tensor).map(|(_, rows)| piece_name(tensor, &rows));
        // A cut tensor has its own name too, for those that look it up.
        let own = (tensor.pieces.len() > 1).then(|| tensor.name.clone());
        if !pieces.chain(own).all(|name| names.insert(name)) {
            return Err(error("given twice"));
        }
    }
    Ok(())
}

fn shape_error(tensor: &Tensor) -> CheckpointError {
    CheckpointError::Shape { name: tensor.name.clone(), shape: tensor.shape.clone(), elements: u64::MAX }
}

/// A tensor without pieces.
pub(super) fn uncut(name: &str, dtype: DType, shape: &[u64]) -> Tensor {
    Tensor { name: name.to_owned(), dtype, shape: shape.to_vec(), pieces: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(shapes: &[&[u64]], limit: u64) -> Result<Vec<Vec<Rows>>, CheckpointError> {
        let mut tensors: Vec<Tensor> =
            shapes.iter().enumerate().map(|(i, shape)| uncut(&format!("t{i}"), DType::F32, shape)).collect();
        divide(&mut tensors, limit)
    }

    #[test]
    fn small_tensors_stay_whole_and_large_ones_are_cut() {
        let shards = divided(&[&[10], &[1000, 16], &[3, 3], &[0, 5], &[]], 20_000).unwrap();
        let all: Vec<&Rows> = shards.iter().flatten().collect();
        for tensor in [0, 2, 3, 4] {
            assert_eq!(all.iter().filter(|rows| rows.tensor == tensor).count(), 1);
        }
        let table: Vec<&Range<u64>> =
            all.iter().filter(|rows| rows.tensor == 1).map(|rows| &rows.rows).collect();
        assert!(table.len() == 4 && table[0].start == 0 && table[3].end == 1000);
        assert!(table.windows(2).all(|pair| pair[0].end == pair[1].start));
    }

    #[test]
    fn a_row_that_exceeds_a_shard_is_refused() {
        assert!(matches!(divided(&[&[2, 1000]], 2000), Err(CheckpointError::Row { .. })));
        assert!(matches!(divided(&[&[]], 10), Err(CheckpointError::Row { .. })));
    }

    #[test]
    fn sizes_beyond_64_bits_are_refused() {
        assert!(matches!(divided(&[&[1 << 40, 1 << 40]], 1 << 30), Err(CheckpointError::Shape { .. })));
        assert!(matches!(divided(&[&[2, 1 << 40, 1 << 40]], 1 << 30), Err(CheckpointError::Shape { .. })));
    }

    #[test]
    fn names_are_unique() {
        let refused = |names: &[&str]| {
            let mut tensors: Vec<Tensor> = names.iter().map(|name| uncut(name, DType::F32, &[1])).collect();
            matches!(divide(&mut tensors, 1 << 20), Err(CheckpointError::Name { .. }))
        };
        assert!(refused(&["a", "b", "a"]) && refused(&[""]) && refused(&["__metadata__"]));
        assert!(!refused(&["a", "b"]));
    }
}
