//! Dot interaction.

use std::ffi::c_int;

use steptime_ops::Cpu;
use steptime_ops::interaction::{Features, FeaturesMut, Interaction};
use steptime_tensor::{View, ViewMut};

use crate::error::{Failure, code, slice};

/// An interaction, and floats of its vectors and of its output.
fn sizes(samples: usize, features: usize, dim: usize) -> Result<(Interaction, usize, usize), Failure> {
    let of = Interaction::new(features, dim, false)?;
    let size = |columns: usize| samples.checked_mul(columns).ok_or("too many samples: give fewer at once");
    Ok((of, size(features * dim)?, size(of.columns())?))
}

/// `count` floats at a pointer, to be written; none where it is null.
///
/// # Safety
///
/// It is null, or goes to as many floats that nobody else uses.
unsafe fn slice_mut<'a>(start: *mut f32, count: usize) -> &'a mut [f32] {
    if start.is_null() {
        return &mut [];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts_mut(start, count) }
}

/// `samples` x `features` x `dim` floats at `vectors`, the dense vector of each sample first, to `samples` x (`dim` +
/// pairs) floats at `out`. 0 for success.
///
/// # Safety
///
/// The handle is alive; each pointer goes to as many floats; nobody else uses the output during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_interaction_forward(
    cpu: *const Cpu,
    samples: usize,
    features: usize,
    dim: usize,
    vectors: *const f32,
    out: *mut f32,
) -> c_int {
    code(|| {
        let (of, inputs, outputs) = sizes(samples, features, dim)?;
        // SAFETY: alive, and as many floats, by the caller's promise.
        let (cpu, vectors, out) = unsafe { (cpu.as_ref(), slice(vectors, inputs), slice_mut(out, outputs)) };
        let cpu = cpu.ok_or("the handle is null: see the error of the call that made it")?;
        let vectors = Features::Stacked(View::from_slice(vectors, &[samples, features, dim])?);
        of.forward(cpu, &vectors, ViewMut::from_mut_slice(out, &[samples, of.columns()])?)?;
        Ok(())
    })
}

/// The gradients of `vectors`, shaped alike, at `out`, from the gradient of the forward pass's output. 0 for success.
///
/// # Safety
///
/// As of [`steptime_interaction_forward`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_interaction_backward(
    cpu: *const Cpu,
    samples: usize,
    features: usize,
    dim: usize,
    vectors: *const f32,
    gradient: *const f32,
    out: *mut f32,
) -> c_int {
    code(|| {
        let (of, inputs, outputs) = sizes(samples, features, dim)?;
        // SAFETY: alive, and as many floats, by the caller's promise.
        let (cpu, vectors, gradient, out) = unsafe {
            (cpu.as_ref(), slice(vectors, inputs), slice(gradient, outputs), slice_mut(out, inputs))
        };
        let cpu = cpu.ok_or("the handle is null: see the error of the call that made it")?;
        let shape = [samples, features, dim];
        let vectors = Features::Stacked(View::from_slice(vectors, &shape)?);
        let gradient = View::from_slice(gradient, &[samples, of.columns()])?;
        of.backward(cpu, &vectors, &gradient, FeaturesMut::Stacked(ViewMut::from_mut_slice(out, &shape)?))?;
        Ok(())
    })
}
