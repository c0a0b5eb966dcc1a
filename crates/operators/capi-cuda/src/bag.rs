//! Forward passes of embedding bags over many tables.

use std::ffi::c_int;

use steptime_cuda::Device;
use steptime_cuda::embedding::{Forward, Tables};
use steptime_ops::embedding::Bounds;

use crate::addresses::{on, taken};
use crate::batch::{GpuLookups, GpuSizes};
use crate::error::{code, free, handle};
use crate::pointers::{alive, alive_mut};
use crate::tables::GpuTables;

/// Tables for reading, and their pooling.
pub struct Bag {
    device: Device,
    tables: Tables<'static>,
    forward: Forward,
    sizes: GpuSizes,
}

/// Compiles a forward pass. Null on failure. To be freed with [`steptime_gpu_bag_free`].
///
/// # Safety
///
/// The handle is alive; `sizes` points to one; the arrays of `tables` have as many elements as stated; the rows live
/// until the handle is freed, and do not change while kernels read them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_bag_new(
    gpu: *const Device,
    tables: *const GpuTables,
    sizes: *const GpuSizes,
) -> *mut Bag {
    handle(|| {
        // SAFETY: as the caller promises.
        let (device, sizes) = unsafe { (alive(gpu)?.clone(), *alive(sizes)?) };
        // SAFETY: as above.
        let tables = unsafe { alive(tables)?.tables(sizes.pooling()?, false) }?;
        let forward = Forward::new(&device, &tables, sizes.sizes()?, Bounds::Error)?;
        Ok(Bag { device, tables, forward, sizes })
    })
}

/// Launches the forward pass: pools lookups into `out`, which has a row for each bag, at the distance that was compiled
/// for. 0 for success.
///
/// # Safety
///
/// The handle is alive; the addresses are those of as many elements on the GPU as stated; no other code uses those of
/// `out`; the stream lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_bag_forward(
    bag: *const Bag,
    stream: u64,
    lookups: *const GpuLookups,
    out: u64,
) -> c_int {
    code(|| {
        // SAFETY: as the caller promises.
        let (bag, lookups) = unsafe { (alive(bag)?, alive(lookups)?) };
        let Bag { device, tables, forward, sizes } = bag;
        // SAFETY: as above.
        let batch = unsafe { sizes.lookups(tables.len(), lookups) }?;
        // SAFETY: as above.
        let (stream, mut out) = unsafe { (on(device, stream), taken(out, sizes.floats(tables.columns()))?) };
        Ok(forward.run(&stream, tables, &batch, &mut out)?)
    })
}

/// Waits for the stream and fails where the lookups pooled last, which must be these, are wrong. 0 for success.
///
/// # Safety
///
/// As that of [`steptime_gpu_bag_forward`]; the handle is used by no other thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_bag_check(
    bag: *mut Bag,
    stream: u64,
    lookups: *const GpuLookups,
) -> c_int {
    code(|| {
        // SAFETY: as the caller promises.
        let (bag, lookups) = unsafe { (alive_mut(bag)?, alive(lookups)?) };
        let Bag { device, tables, forward, sizes } = bag;
        // SAFETY: as above.
        let (stream, batch) = unsafe { (on(device, stream), sizes.lookups(tables.len(), lookups)?) };
        forward.check(&stream, tables, &batch)?;
        Ok(())
    })
}

/// Frees a handle.
///
/// # Safety
///
/// `bag` is null, or came from [`steptime_gpu_bag_new`] and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_bag_free(bag: *mut Bag) {
    // SAFETY: as the caller promises.
    unsafe { free(bag) }
}
