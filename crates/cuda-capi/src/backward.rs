//! Backward passes of embedding tables, fused with the optimizer.

use std::ffi::c_int;

use steptime_cuda::Device;
use steptime_cuda::embedding::{Grouping, Payload, RowOptimizer, RowSettings, Tables};
use steptime_ops::embedding::Bounds;
use steptime_ops::embedding::backward::RowRule;

use crate::error::{code, free, handle};
use crate::operands::{GpuLookups, GpuSizes, GpuTables, alive, alive_mut, given, on};

/// Tables with sum pooling, their optimizer and its state.
pub struct Backward {
    device: Device,
    tables: Tables<'static>,
    grouping: Grouping,
    optimizer: RowOptimizer,
    sizes: GpuSizes,
}

/// Compiles an optimizer; `longest` is the most lookups of one table. `rule` is 0 for SGD, 1 for Adagrad, 2 for
/// row-wise Adagrad, 3 for Adam, 4 for partial row-wise Adam, with their usual settings. Null on failure. To be freed
/// with [`steptime_gpu_backward_free`].
///
/// # Safety
///
/// The handle is alive; `sizes` points to one; the arrays of `tables` have as many elements; the rows live, and nobody
/// else uses them during a step, until the handle is freed; the stream lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_backward_new(
    gpu: *const Device,
    stream: u64,
    tables: *const GpuTables,
    sizes: *const GpuSizes,
    longest: usize,
    rule: c_int,
    learning_rate: f32,
) -> *mut Backward {
    handle(|| {
        // SAFETY: as the caller promises.
        let (device, sizes) = unsafe { (alive(gpu)?.clone(), *alive(sizes)?) };
        // SAFETY: as above.
        let (tables, stream) = unsafe { (alive(tables)?.tables(true)?, on(&device, stream)) };
        let rule = match rule {
            0 => RowRule::SGD,
            1 => RowRule::Adagrad { eps: 1e-8 },
            2 => RowRule::ROW_WISE_ADAGRAD,
            3 => RowRule::ADAM,
            4 => RowRule::PartialRowWiseAdam { beta1: 0.9, beta2: 0.999, eps: 1e-8 },
            other => return Err(format!("there is no optimizer {other}: choose 0 to 4").into()),
        };
        let of = sizes.sizes()?;
        let payload = Payload::needed(&tables, of.weighted);
        let grouping = Grouping::new(&stream, &tables, of, longest, payload)?;
        let settings = RowSettings::new(rule, learning_rate);
        let optimizer = RowOptimizer::new(&stream, &tables, &grouping, of, settings)?;
        // What was set up in the stream may be used from others.
        stream.synchronize()?;
        Ok(Backward { device, tables, grouping, optimizer, sizes })
    })
}

/// Launches the grouping of these lookups. 0 for success.
///
/// # Safety
///
/// The handle is alive and used by no other thread; the addresses are those of as many elements on the GPU; the stream
/// lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_backward_group(
    backward: *mut Backward,
    stream: u64,
    lookups: *const GpuLookups,
) -> c_int {
    code(|| {
        // SAFETY: as the caller promises.
        let (backward, lookups) = unsafe { (alive_mut(backward)?, alive(lookups)?) };
        let Backward { device, tables, grouping, sizes, .. } = backward;
        // SAFETY: as above.
        let (stream, batch) = unsafe { (on(device, stream), sizes.lookups(tables.len(), lookups)?) };
        Ok(grouping.run(&stream, &batch)?)
    })
}

/// Launches the step of every row that was looked up, over the lookups grouped last, which must be these. `gradient`
/// has a row for each bag, as far apart as compiled for. 0 for success.
///
/// # Safety
///
/// As that of [`steptime_gpu_backward_group`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_backward_step(
    backward: *mut Backward,
    stream: u64,
    lookups: *const GpuLookups,
    gradient: u64,
) -> c_int {
    code(|| {
        // SAFETY: as the caller promises.
        let (backward, lookups) = unsafe { (alive_mut(backward)?, alive(lookups)?) };
        let Backward { device, tables, grouping, optimizer, sizes } = backward;
        // SAFETY: as above.
        let batch = unsafe { sizes.lookups(tables.len(), lookups) }?;
        // SAFETY: as above.
        let (stream, gradient) =
            unsafe { (on(device, stream), given(gradient, sizes.floats(tables.columns()))?) };
        Ok(optimizer.step(&stream, tables, &batch, grouping, Bounds::Error, gradient)?)
    })
}

/// Waits for the stream and fails where the lookups grouped last, which must be these, are wrong. 0 for success.
///
/// # Safety
///
/// As that of [`steptime_gpu_backward_group`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_backward_check(
    backward: *mut Backward,
    stream: u64,
    lookups: *const GpuLookups,
) -> c_int {
    code(|| {
        // SAFETY: as the caller promises.
        let (backward, lookups) = unsafe { (alive_mut(backward)?, alive(lookups)?) };
        let Backward { device, tables, grouping, sizes, .. } = backward;
        // SAFETY: as above.
        let (stream, batch) = unsafe { (on(device, stream), sizes.lookups(tables.len(), lookups)?) };
        grouping.check(&stream, tables, &batch, Bounds::Error)?;
        Ok(())
    })
}

/// Frees an optimizer and its state.
///
/// # Safety
///
/// `backward` is null, or came from [`steptime_gpu_backward_new`] and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_backward_free(backward: *mut Backward) {
    // SAFETY: as the caller promises.
    unsafe { free(backward) }
}
