//! Backward passes of embedding tables, fused with the optimizer.

use std::ffi::c_int;

use steptime_cuda::Device;
use steptime_cuda::embedding::{Grouping, Payload, RowOptimizer, RowSettings, Tables};
use steptime_ops::embedding::Bounds;
use steptime_ops::embedding::backward::{Decay, RowRule};

use crate::addresses::{given, on};
use crate::batch::{GpuLookups, GpuSizes};
use crate::error::{code, free, handle};
use crate::pointers::{alive, alive_mut};
use crate::states::GpuStates;
use crate::tables::GpuTables;

/// Tables, their pooling, their optimizer and its state.
pub struct Backward {
    device: Device,
    tables: Tables<'static>,
    grouping: Grouping,
    optimizer: RowOptimizer,
    sizes: GpuSizes,
}

/// Compiles an optimizer; `longest` is the largest number of lookups of one table. `rule` is 0 for SGD, 1 for Adagrad,
/// 2 for row-wise Adagrad, 3 for Adam, 4 for partial row-wise Adam, with their usual settings. Where `states` is null,
/// the state begins as zeros. Otherwise it gives the address of each table's state, which is continued; several handles
/// may share a state if they do not use it at once. Null on failure. To be freed with [`steptime_gpu_backward_free`].
///
/// # Safety
///
/// The handle is alive; `sizes` points to one; the arrays of `tables` and `states` have as many elements as stated; the
/// rows and states live until the handle is freed, and no other code uses them during a step; the stream lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_backward_new(
    gpu: *const Device,
    stream: u64,
    tables: *const GpuTables,
    sizes: *const GpuSizes,
    longest: usize,
    rule: c_int,
    learning_rate: f32,
    states: *const GpuStates,
) -> *mut Backward {
    handle(|| {
        // SAFETY: as the caller promises.
        let (device, sizes) = unsafe { (alive(gpu)?.clone(), *alive(sizes)?) };
        // SAFETY: as above.
        let (tables, stream) =
            unsafe { (alive(tables)?.tables(sizes.pooling()?, true)?, on(&device, stream)) };
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
        // SAFETY: as above; null is allowed.
        let optimizer = match unsafe { states.as_ref() } {
            None => RowOptimizer::new(&stream, &tables, &grouping, of, settings)?,
            Some(states) => {
                // SAFETY: as above.
                let states = unsafe { states.buffers(&device, tables.len()) }?;
                RowOptimizer::with_states(&stream, &tables, &grouping, of, settings, states)?
            }
        };
        // The initialised memory may be used from other streams.
        stream.synchronize()?;
        Ok(Backward { device, tables, grouping, optimizer, sizes })
    })
}

/// Sets the learning rate of later steps in the stream. Does not block. 0 for success.
///
/// # Safety
///
/// The handle is alive and used by no other thread; the stream lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_backward_set_learning_rate(
    backward: *mut Backward,
    stream: u64,
    learning_rate: f32,
) -> c_int {
    code(|| {
        // SAFETY: as the caller promises.
        let backward = unsafe { alive_mut(backward) }?;
        // SAFETY: as above.
        let stream = unsafe { on(&backward.device, stream) };
        Ok(backward.optimizer.set_learning_rate(&stream, learning_rate)?)
    })
}

/// Sets the weight decay of later steps in the stream: of the gradient (`g += decay p`) or, if `decoupled`, of the
/// weights (`p *= 1 - lr decay`). Does not block. 0 for success.
///
/// # Safety
///
/// The handle is alive and used by no other thread; the stream lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_backward_set_decay(
    backward: *mut Backward,
    stream: u64,
    decay: f32,
    decoupled: c_int,
) -> c_int {
    code(|| {
        // SAFETY: as the caller promises.
        let backward = unsafe { alive_mut(backward) }?;
        // SAFETY: as above.
        let stream = unsafe { on(&backward.device, stream) };
        let decay = if decoupled == 0 { Decay::Gradient(decay) } else { Decay::Weights(decay) };
        Ok(backward.optimizer.set_decay(&stream, decay)?)
    })
}

/// Writes the number of steps taken to `steps`; 0 where the optimizer does not count them. Waits for the stream. 0 for
/// success.
///
/// # Safety
///
/// The handle is alive; `steps` points to a number; the stream lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_backward_steps(
    backward: *const Backward,
    stream: u64,
    steps: *mut u64,
) -> c_int {
    code(|| {
        // SAFETY: as the caller promises.
        let (backward, steps) = unsafe { (alive(backward)?, alive_mut(steps)?) };
        // SAFETY: as above.
        let stream = unsafe { on(&backward.device, stream) };
        *steps = backward.optimizer.steps(&stream)?;
        Ok(())
    })
}

/// Sets the number of steps taken, from a checkpoint or another handle. Waits for the stream. 0 for success.
///
/// # Safety
///
/// The handle is alive and used by no other thread; the stream lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_backward_set_steps(
    backward: *mut Backward,
    stream: u64,
    steps: u64,
) -> c_int {
    code(|| {
        // SAFETY: as the caller promises.
        let backward = unsafe { alive_mut(backward) }?;
        // SAFETY: as above.
        let stream = unsafe { on(&backward.device, stream) };
        Ok(backward.optimizer.set_steps(&stream, steps)?)
    })
}

/// Launches the grouping of these lookups. 0 for success.
///
/// # Safety
///
/// The handle is alive and used by no other thread; the addresses are those of as many elements on the GPU as stated;
/// the stream lives.
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
/// has a row for each bag, at the distance that was compiled for. 0 for success.
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
