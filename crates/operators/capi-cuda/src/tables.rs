//! Tables on the GPU, from the addresses of their rows.

use std::ffi::c_int;

use steptime_cuda::embedding::{Table, Tables};
use steptime_ops::embedding::{Element, Pooling};

use crate::addresses::{given, taken};
use crate::error::Failure;
use crate::pointers::slice;

/// Tables of one element type, `rows[t]` rows of `dims[t]` columns, `pitches[t]` bytes from row to row.
#[repr(C)]
pub struct GpuTables {
    /// Number of tables, T.
    pub count: usize,
    /// Addresses of the rows on the GPU; this array and the others are in host memory.
    pub data: *const u64,
    /// Number of rows of each table, E.
    pub rows: *const usize,
    /// Number of columns of each table, D.
    pub dims: *const usize,
    /// Bytes from row to row of each table.
    pub pitches: *const usize,
    /// 0 for f32, 1 for f16, 2 for bf16, 3 for int8 and 4 for int4 behind an f16 scale and bias.
    pub element: c_int,
}

impl GpuTables {
    /// The tables, all with the same pooling.
    ///
    /// # Safety
    ///
    /// The arrays have as many elements as stated. The rows live as long as the result, and no other code uses them
    /// while kernels do.
    pub(crate) unsafe fn tables(&self, pooling: Pooling, train: bool) -> Result<Tables<'static>, Failure> {
        // SAFETY: as many elements, by the caller's promise.
        let (data, rows, dims, pitches) = unsafe {
            let sizes = |what, array| slice(what, array, self.count);
            let data = slice("data", self.data, self.count)?;
            (data, sizes("rows", self.rows)?, sizes("dims", self.dims)?, sizes("pitches", self.pitches)?)
        };
        let element = element_type(self.element)?;
        let mut tables = Vec::with_capacity(self.count);
        for (at, (((&address, &rows), &dim), &pitch)) in
            data.iter().zip(rows).zip(dims).zip(pitches).enumerate()
        {
            let name = format!("table {at}");
            let bytes = rows.checked_mul(pitch).ok_or_else(|| format!("{name}: too many rows"))?;
            // SAFETY: as many bytes, which live long enough, by the caller's promise.
            tables.push(unsafe {
                if train {
                    Table::borrow_mut(&name, taken(address, bytes)?, [rows, dim], element, pitch)?
                } else {
                    Table::borrow(&name, given(address, bytes)?, [rows, dim], element, pitch)?
                }
            });
        }
        if train {
            check_disjoint(data, rows.iter().zip(pitches).map(|(rows, pitch)| rows * pitch))?;
        }
        Ok(Tables::new(tables, pooling))
    }
}

/// Fails where two tables overlap, given their bytes: a step would write one row twice at once.
fn check_disjoint(data: &[u64], bytes: impl Iterator<Item = usize>) -> Result<(), Failure> {
    let mut spans: Vec<_> = data
        .iter()
        .zip(bytes)
        .enumerate()
        .map(|(at, (&start, len))| (start, start + len as u64, at))
        .collect();
    spans.sort_unstable();
    match spans.windows(2).find(|pair| pair[1].0 < pair[0].1) {
        Some(pair) => {
            let what = format!("table {} and table {} overlap", pair[0].2, pair[1].2);
            Err(format!("{what}: give each table that is trained memory of its own").into())
        }
        None => Ok(()),
    }
}

fn element_type(number: c_int) -> Result<Element, Failure> {
    use steptime_ops::embedding::Scale::F16;
    let all = [Element::F32, Element::F16, Element::Bf16, Element::Int8(F16), Element::Int4(F16)];
    let found = usize::try_from(number).ok().and_then(|number| all.get(number).copied());
    found.ok_or_else(|| format!("there is no element type {number}: choose 0 to 4").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_are_trained_share_no_rows() {
        let tables = |data: [u64; 2], train| {
            let (data, rows, dims, pitches) =
                (data.as_ptr(), [3, 3].as_ptr(), [2, 2].as_ptr(), [8, 8].as_ptr());
            let tables = GpuTables { count: 2, data, rows, dims, pitches, element: 0 };
            // SAFETY: the arrays have two elements each, and nothing is launched.
            unsafe { tables.tables(Pooling::Sum, train) }.map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(tables([280, 256], true), Ok(()));
        assert_eq!(tables([256, 256], false), Ok(()));
        for data in [[256, 256], [272, 256]] {
            assert!(tables(data, true).unwrap_err().contains("overlap"), "{data:?}");
        }
    }

    #[test]
    fn tables_that_cannot_be_are_refused() {
        let (data, one) = ([256_u64], [1_usize]);
        let table = |element, pitch: &[usize; 1]| {
            let (data, rows, dims) = (data.as_ptr(), one.as_ptr(), one.as_ptr());
            let tables = GpuTables { count: 1, data, rows, dims, pitches: pitch.as_ptr(), element };
            // SAFETY: the arrays have one element each, and nothing is launched.
            unsafe { tables.tables(Pooling::Sum, true) }
                .map(|tables| tables.columns())
                .map_err(|error| error.to_string())
        };
        assert_eq!(table(0, &[4]), Ok(1));
        assert!(table(5, &[4]).unwrap_err().contains("choose 0 to 4"));
        assert!(table(0, &[2]).is_err());
    }
}
