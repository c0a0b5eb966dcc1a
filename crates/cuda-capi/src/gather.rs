//! Rows of one table, kept apart.

use std::ffi::c_int;

use steptime_cuda::Device;
use steptime_cuda::embedding::{Gather as Op, GatherOrder, Ints, Tables, Wanted};
use steptime_ops::embedding::Bounds;

use crate::error::{code, free, handle};
use crate::operands::{GpuTables, alive, alive_mut, given, on, taken};

/// A gather of f32 outputs with rows D floats apart.
pub struct Gather {
    device: Device,
    tables: Tables<'static>,
    op: Op,
    grouped: bool,
}

/// Compiles a gather from the first of `tables`, for indices of 64 bits. `slice` is 0 for row order, a number of bytes
/// for columns in slices of so many, and -1 for pairs of row (upper half) and place, sorted. Null on failure. To be
/// freed with [`steptime_gpu_gather_free`].
///
/// # Safety
///
/// The handle is alive; the arrays of `tables` have as many elements; the rows live, and nobody changes them while
/// kernels read them, until the handle is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_gather_new(
    gpu: *const Device,
    tables: *const GpuTables,
    slice: i64,
) -> *mut Gather {
    handle(|| {
        // SAFETY: as the caller promises.
        let (device, tables) = unsafe { (alive(gpu)?.clone(), alive(tables)?.tables(false)?) };
        if tables.is_empty() {
            return Err("there is no table".into());
        }
        let order = match slice {
            0 => GatherOrder::Rows,
            ..0 => GatherOrder::Grouped,
            slice => GatherOrder::Columns { slice: usize::try_from(slice)? },
        };
        let table = tables.table(0);
        let op = Op::new(&device, table, order, 8, table.dim(), Bounds::Error)?;
        Ok(Gather { device, tables, op, grouped: order == GatherOrder::Grouped })
    })
}

/// Launches it: `lookups` indices or pairs at `wanted`, `lookups` x D floats at `out`. 0 for success.
///
/// # Safety
///
/// The handle is alive; the addresses are those of as many elements on the GPU, nobody else uses those of `out`; the
/// stream lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_gather(
    gather: *const Gather,
    stream: u64,
    lookups: usize,
    wanted: u64,
    out: u64,
) -> c_int {
    code(|| {
        // SAFETY: as the caller promises.
        let gather = unsafe { alive(gather) }?;
        let (table, floats) = (gather.tables.table(0), lookups.saturating_mul(gather.tables.columns()));
        // SAFETY: as above.
        let (stream, mut out) = unsafe { (on(&gather.device, stream), taken(out, floats)?) };
        // SAFETY: as above.
        let wanted = unsafe { rows(gather, lookups, wanted) }?;
        Ok(gather.op.run(&stream, table, wanted, &mut out)?)
    })
}

/// Waits for the stream and fails where an index of the lookups gathered last, which must be these, is out of range.
/// 0 for success.
///
/// # Safety
///
/// As that of [`steptime_gpu_gather`]; the handle is used by no other thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_gather_check(
    gather: *mut Gather,
    stream: u64,
    lookups: usize,
    wanted: u64,
) -> c_int {
    code(|| {
        // SAFETY: as the caller promises.
        let gather = unsafe { alive_mut(gather) }?;
        // SAFETY: as above.
        let (stream, wanted) = unsafe { (on(&gather.device, stream), rows(gather, lookups, wanted)?) };
        let Gather { op, tables, .. } = gather;
        op.check(&stream, tables.table(0), wanted)?;
        Ok(())
    })
}

/// # Safety
///
/// There are as many indices or pairs.
unsafe fn rows<'a>(
    gather: &Gather,
    lookups: usize,
    wanted: u64,
) -> Result<Wanted<'a>, crate::error::Failure> {
    // SAFETY: as the caller promises.
    Ok(unsafe {
        if gather.grouped {
            Wanted::Sorted(given(wanted, lookups)?)
        } else {
            Wanted::Indices(Ints::I64(given(wanted, lookups)?))
        }
    })
}

/// Frees a handle.
///
/// # Safety
///
/// `gather` is null, or came from [`steptime_gpu_gather_new`] and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_gather_free(gather: *mut Gather) {
    // SAFETY: as the caller promises.
    unsafe { free(gather) }
}
