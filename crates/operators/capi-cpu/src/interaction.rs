//! Dot interaction.

use std::ffi::c_int;

use steptime_ops::Cpu;
use steptime_ops::interaction::{Features, FeaturesMut, Interaction};
use steptime_tensor::{View, ViewMut};

use crate::apart::{self, Span, slice_mut};
use crate::error::{Failure, code};
use crate::pointers::{alive, slice};

/// An interaction, and the number of floats of its vectors and of its output.
fn sizes(samples: usize, features: usize, dim: usize) -> Result<(Interaction, usize, usize), Failure> {
    let of = Interaction::new(features, dim, false)?;
    let size = |columns: usize| samples.checked_mul(columns).ok_or("too many samples: give fewer at once");
    Ok((of, size(features * dim)?, size(of.columns())?))
}

/// Interacts `samples` x `features` x `dim` floats at `vectors`, the dense vector of each sample first, into `samples`
/// x (`dim` + pairs) floats at `out`. 0 for success.
///
/// # Safety
///
/// The handle is alive; each pointer points to as many floats as stated; no other code uses the output during the call.
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
        apart::check(vec![Span::read("vectors", vectors, inputs), Span::written("out", out, outputs)])?;
        // SAFETY: alive, by the caller's promise.
        let cpu = unsafe { alive(cpu)? };
        // SAFETY: as many floats, and no other code uses the output, by the caller's promise.
        let (vectors, out) = unsafe { (slice("vectors", vectors, inputs)?, slice_mut("out", out, outputs)?) };
        let vectors = Features::Stacked(View::from_slice(vectors, &[samples, features, dim])?);
        of.forward(cpu, &vectors, ViewMut::from_mut_slice(out, &[samples, of.columns()])?)?;
        Ok(())
    })
}

/// Writes the gradients of `vectors`, in their shape, to `out`, from the gradient of the forward pass's output. 0 for
/// success.
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
        apart::check(vec![
            Span::read("vectors", vectors, inputs),
            Span::read("gradient", gradient, outputs),
            Span::written("out", out, inputs),
        ])?;
        // SAFETY: alive, by the caller's promise.
        let cpu = unsafe { alive(cpu)? };
        // SAFETY: as many floats, by the caller's promise.
        let (vectors, gradient) =
            unsafe { (slice("vectors", vectors, inputs)?, slice("gradient", gradient, outputs)?) };
        // SAFETY: as many floats, and no other code uses them, by the caller's promise.
        let out = unsafe { slice_mut("out", out, inputs)? };
        let shape = [samples, features, dim];
        let vectors = Features::Stacked(View::from_slice(vectors, &shape)?);
        let gradient = View::from_slice(gradient, &[samples, of.columns()])?;
        of.backward(cpu, &vectors, &gradient, FeaturesMut::Stacked(ViewMut::from_mut_slice(out, &shape)?))?;
        Ok(())
    })
}
