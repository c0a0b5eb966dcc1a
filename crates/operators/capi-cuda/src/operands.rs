//! Operands on the GPU, from addresses.

use std::ffi::c_int;

use steptime_cuda::embedding::{Ints, Lookups, Sizes, Table, Tables};
use steptime_cuda::{Device, Slice, SliceMut, Stream};
use steptime_ops::embedding::{Element, Pooling};

use crate::error::Failure;
use crate::pointers::slice;

/// The stream of another library.
///
/// # Safety
///
/// It is a stream of the device's primary context that outlives the call.
pub(crate) unsafe fn on(device: &Device, stream: u64) -> Stream {
    // SAFETY: as the caller promises; no clone is kept.
    unsafe { Stream::from_raw(device, stream) }
}

/// `count` elements at an address.
///
/// # Safety
///
/// As that of [`Slice::from_raw`].
pub(crate) unsafe fn given<'a, T: bytemuck::Pod>(
    address: u64,
    count: usize,
) -> Result<Slice<'a, T>, Failure> {
    check::<T>(address, count)?;
    // SAFETY: as the caller promises.
    Ok(unsafe { Slice::from_raw(address, count) })
}

/// As [`given`], to be written.
///
/// # Safety
///
/// As that of [`SliceMut::from_raw`].
pub(crate) unsafe fn taken<'a, T: bytemuck::Pod>(
    address: u64,
    count: usize,
) -> Result<SliceMut<'a, T>, Failure> {
    check::<T>(address, count)?;
    // SAFETY: as the caller promises.
    Ok(unsafe { SliceMut::from_raw(address, count) })
}

/// Fails where an address cannot be that of so many elements.
fn check<T>(address: u64, count: usize) -> Result<(), Failure> {
    let (bytes, align) = (count.checked_mul(size_of::<T>()), align_of::<T>());
    if count == 0 {
        return Ok(());
    }
    if address == 0 {
        return Err(format!("{count} elements at a null address: give the tensor's").into());
    }
    if !address.is_multiple_of(align as u64) {
        let what = format!("the address {address:#x} is no multiple of {align}");
        return Err(format!("{what}: give a tensor that is aligned for its elements").into());
    }
    if bytes.and_then(|bytes| address.checked_add(bytes as u64)).is_none() {
        return Err(format!("{count} elements are more than memory holds: check the sizes").into());
    }
    Ok(())
}

/// Whole numbers of 32 or 64 bits.
///
/// # Safety
///
/// As that of [`given`].
unsafe fn ints<'a>(address: u64, count: usize, bits: c_int) -> Result<Ints<'a>, Failure> {
    // SAFETY: as the caller promises.
    unsafe {
        match bits {
            32 => Ok(Ints::I32(given(address, count)?)),
            64 => Ok(Ints::I64(given(address, count)?)),
            other => Err(no_width(other)),
        }
    }
}

fn no_width(bits: c_int) -> Failure {
    format!("there are no indices of {bits} bits: choose 32 or 64").into()
}

/// Where lookups are: `lookups` indices, `offsets` for every bag and one more, each of `bits` bits, and a weight for
/// each lookup or none.
#[repr(C)]
pub struct GpuLookups {
    /// N.
    pub lookups: usize,
    /// The address of N indices.
    pub indices: u64,
    /// The address of T x B + 1 offsets.
    pub offsets: u64,
    /// The address of N floats, or 0.
    pub weights: u64,
}

/// Sizes that an op is compiled for.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct GpuSizes {
    /// B.
    pub bags: usize,
    /// N of all tables, about as many as there will be; a backward pass takes no more.
    pub lookups: usize,
    /// Floats from row to row of the output, or of its gradient.
    pub stride: usize,
    /// Bits of indices and offsets, 32 or 64.
    pub bits: c_int,
    /// Whether lookups have weights: 0 or 1.
    pub weighted: c_int,
    /// How a bag's rows are pooled, by PyTorch's numbers: 0 for their sum, 1 for their mean, 2 for their maximum.
    pub mode: c_int,
}

impl GpuSizes {
    /// As the operators take them.
    pub(crate) fn sizes(&self) -> Result<Sizes, Failure> {
        if self.bits != 32 && self.bits != 64 {
            return Err(no_width(self.bits));
        }
        let width = self.bits as usize / 8;
        Ok(Sizes {
            bags: self.bags,
            lookups: self.lookups,
            index_width: width,
            offset_width: width,
            weighted: self.weighted != 0,
            stride: self.stride,
        })
    }

    /// How bags are pooled.
    pub(crate) fn pooling(&self) -> Result<Pooling, Failure> {
        match self.mode {
            0 => Ok(Pooling::Sum),
            1 => Ok(Pooling::Mean),
            2 => Ok(Pooling::Max),
            other => {
                Err(format!("there is no pooling {other}: choose 0 (sum), 1 (mean) or 2 (maximum)").into())
            }
        }
    }

    /// The lookups of a call.
    ///
    /// # Safety
    ///
    /// The addresses are those of as many elements, which nobody changes while kernels read them.
    pub(crate) unsafe fn lookups<'a>(&self, tables: usize, of: &GpuLookups) -> Result<Lookups<'a>, Failure> {
        let offsets = steptime_ops::embedding::Lookups::offset_count(tables, self.bags)?;
        // SAFETY: as the caller promises.
        let (indices, offsets) =
            unsafe { (ints(of.indices, of.lookups, self.bits)?, ints(of.offsets, offsets, self.bits)?) };
        let batch = Lookups::new(self.bags, indices, offsets)?;
        if of.weights == 0 {
            return Ok(batch);
        }
        // SAFETY: as above.
        Ok(batch.with_weights(unsafe { given(of.weights, of.lookups) }?)?)
    }

    /// Floats that an output of so many columns, or its gradient, spans.
    pub(crate) fn floats(&self, columns: usize) -> usize {
        self.bags.checked_sub(1).map_or(0, |rows| rows.saturating_mul(self.stride).saturating_add(columns))
    }
}

/// Tables of one element type, `rows[t]` rows of `dims[t]` columns, `pitches[t]` bytes from row to row.
#[repr(C)]
pub struct GpuTables {
    /// T.
    pub count: usize,
    /// The addresses of the rows on the GPU; this array and the others are the host's.
    pub data: *const u64,
    /// E of each.
    pub rows: *const usize,
    /// D of each.
    pub dims: *const usize,
    /// Bytes from row to row.
    pub pitches: *const usize,
    /// 0 for f32, 1 for f16, 2 for bf16, 3 for int8 and 4 for int4 behind an f16 scale and bias.
    pub element: c_int,
}

impl GpuTables {
    /// The tables, which all pool alike.
    ///
    /// # Safety
    ///
    /// The arrays have as many elements, and the rows live, and are used by nobody else while kernels use them, as long
    /// as the result does.
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
            apart(data, rows.iter().zip(pitches).map(|(rows, pitch)| rows * pitch))?;
        }
        Ok(Tables::new(tables, pooling))
    }
}

/// Fails where two tables, each of so many bytes, have a place in common: a step would write one row twice at once.
fn apart(data: &[u64], bytes: impl Iterator<Item = usize>) -> Result<(), Failure> {
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
    fn what_cannot_be_is_refused() {
        let sizes = GpuSizes { bags: 3, lookups: 8, stride: 10, bits: 32, weighted: 0, mode: 2 };
        assert_eq!((sizes.floats(8), sizes.sizes().unwrap().index_width), (28, 4));
        assert!(GpuSizes { bits: 16, ..sizes }.sizes().is_err());
        assert_eq!(sizes.pooling().unwrap(), Pooling::Max);
        assert!(GpuSizes { mode: 3, ..sizes }.pooling().unwrap_err().to_string().contains("choose 0"));
        let of = GpuLookups { lookups: 8, indices: 0, offsets: 256, weights: 0 };
        // SAFETY: nothing is launched.
        let error = unsafe { sizes.lookups(2, &of) }.unwrap_err().to_string();
        assert!(error.contains("null address"), "{error}");
        let of = GpuLookups { lookups: 8, indices: 258, offsets: 256, weights: 0 };
        // SAFETY: nothing is launched.
        let error = unsafe { sizes.lookups(2, &of) }.unwrap_err().to_string();
        assert!(error.contains("no multiple of 4"), "{error}");
        let of = GpuLookups { lookups: usize::MAX, indices: 256, offsets: 256, weights: 0 };
        // SAFETY: nothing is launched.
        let error = unsafe { sizes.lookups(2, &of) }.unwrap_err().to_string();
        assert!(error.contains("more than memory"), "{error}");
        let of = GpuLookups { lookups: 8, indices: 256, offsets: 256, weights: 0 };
        // SAFETY: nothing is launched.
        let error = unsafe { GpuSizes { bags: 1 << 63, ..sizes }.lookups(2, &of) }.unwrap_err().to_string();
        assert!(error.contains("2 tables x 9223372036854775808 bags"), "{error}");
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
