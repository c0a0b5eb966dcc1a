//! Values of Arrow's arrays: numbers of dense columns, tokens of categories.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use steptime_launch::mix;

use crate::convert::table::MISSING;

/// Calls `$each` with a primitive array of the first of the types that `$array` has.
macro_rules! primitive {
    ($array:expr, [$($type:ty),*], $convert:expr) => {
        $(if let Some(array) = $array.as_primitive_opt::<$type>() {
            return array.iter().map(|value| value.map($convert)).collect();
        })*
    };
}

/// Numbers of a label or a dense column.
pub(super) fn numbers(array: &ArrayRef) -> Vec<Option<f64>> {
    primitive!(array, [Float32Type, Float16Type, Int8Type, Int16Type, Int32Type], f64::from);
    primitive!(array, [UInt8Type, UInt16Type, UInt32Type, Float64Type], f64::from);
    primitive!(array, [Int64Type, UInt64Type], |value| value as f64);
    let booleans = array.as_boolean_opt().map(|array| {
        array.iter().map(|value| value.map(|value| f64::from(u8::from(value)))).collect::<Vec<_>>()
    });
    booleans.unwrap_or_else(|| vec![None; array.len()])
}

/// Tokens of categories. Whole numbers are their own tokens, modulo 2^64.
pub(super) fn tokens(array: &ArrayRef) -> Vec<u64> {
    fn whole(array: &ArrayRef) -> Vec<Option<u64>> {
        primitive!(array, [Int8Type, Int16Type, Int32Type], |value| i64::from(value).cast_unsigned());
        primitive!(array, [UInt8Type, UInt16Type, UInt32Type], u64::from);
        primitive!(array, [Int64Type], i64::cast_unsigned);
        primitive!(array, [UInt64Type], |value| value);
        let booleans =
            array.as_boolean_opt().map(|array| array.iter().map(|v| v.map(u64::from)).collect::<Vec<_>>());
        booleans.unwrap_or_else(|| texts(array))
    }
    whole(array).into_iter().map(|token| token.unwrap_or(MISSING)).collect()
}

fn texts(array: &ArrayRef) -> Vec<Option<u64>> {
    if let Some(array) = array.as_string_opt::<i32>() {
        array.iter().map(|text| text.map(|text| hash(text.as_bytes()))).collect()
    } else if let Some(array) = array.as_string_opt::<i64>() {
        array.iter().map(|text| text.map(|text| hash(text.as_bytes()))).collect()
    } else if let Some(array) = array.as_binary_opt::<i32>() {
        array.iter().map(|bytes| bytes.map(hash)).collect()
    } else if let Some(array) = array.as_binary_opt::<i64>() {
        array.iter().map(|bytes| bytes.map(hash)).collect()
    } else if let Some(array) = array.as_fixed_size_binary_opt() {
        array.iter().map(|bytes| bytes.map(hash)).collect()
    } else {
        // Other types were refused when the file was opened.
        vec![None; array.len()]
    }
}

/// The elements of lists, and the range of them of each row. A null has no elements. An array without lists has one
/// element a row.
pub(super) fn lists(array: &ArrayRef) -> (ArrayRef, Vec<std::ops::Range<usize>>) {
    let some = |row: usize, range: std::ops::Range<usize>| if array.is_null(row) { 0..0 } else { range };
    if let Some(lists) = array.as_list_opt::<i32>() {
        let ends = lists.value_offsets();
        let range = |row: usize| some(row, ends[row] as usize..ends[row + 1] as usize);
        (lists.values().clone(), (0..array.len()).map(range).collect())
    } else if let Some(lists) = array.as_list_opt::<i64>() {
        let ends = lists.value_offsets();
        let range = |row: usize| some(row, ends[row] as usize..ends[row + 1] as usize);
        (lists.values().clone(), (0..array.len()).map(range).collect())
    } else if let Some(lists) = array.as_fixed_size_list_opt() {
        let length = usize::try_from(lists.value_length()).unwrap_or(0);
        let range = |row: usize| some(row, row * length..(row + 1) * length);
        (lists.values().clone(), (0..array.len()).map(range).collect())
    } else {
        (array.clone(), (0..array.len()).map(|row| row..row + 1).collect())
    }
}

/// 64 bits of hash of a text; the same in each version and on each machine, because datasets have it in them.
fn hash(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain(std::iter::once(&last));
    let state = words.fold(mix(bytes.len() as u64 + 1), |state, word| {
        mix(state.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_add(state)
    });
    if state == MISSING { 0 } else { state }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn texts_have_different_tokens() {
        let mut seen = HashSet::new();
        for number in 0..200_000_u32 {
            assert!(seen.insert(hash(format!("category {number}").as_bytes())), "{number}");
        }
        for length in 0..64 {
            assert!(seen.insert(hash(&vec![0; length])), "{length} zeros");
        }
        assert_eq!(hash(b"abc"), hash(b"abc"));
    }
}
