//! Dot interaction.

use std::ffi::c_int;

use steptime_cuda::Device;
use steptime_cuda::interaction::{Features, FeaturesMut, Interaction as Op, Strides};
use steptime_ops::interaction::Interaction as Shape;

use crate::addresses::{given, on, taken};
use crate::error::{Failure, code, free, handle};
use crate::pointers::alive;

/// An interaction of stacked vectors, the dense one of each sample first.
pub struct Interaction {
    device: Device,
    shape: Shape,
    op: Op,
}

impl Interaction {
    /// Number of floats of the vectors and of the output for `samples` samples.
    fn floats(&self, samples: usize) -> Result<[usize; 2], Failure> {
        let [vectors, columns] = [self.shape.features() * self.shape.dim(), self.shape.columns()];
        let size =
            |columns: usize| samples.checked_mul(columns).ok_or("too many samples: give fewer at once");
        Ok([size(vectors)?, size(columns)?])
    }

    fn strides(&self) -> Strides {
        let dim = self.shape.dim();
        Strides { sample: self.shape.features() * dim, vector: dim }
    }

    /// Vectors at an address.
    ///
    /// # Safety
    ///
    /// There are as many floats.
    unsafe fn features<'a>(&self, floats: usize, vectors: u64) -> Result<Features<'a>, Failure> {
        let (strides, dim) = (self.strides(), self.shape.dim());
        // SAFETY: as the caller promises.
        let all = unsafe { given(vectors, floats) }?;
        Ok(Features::split(all, strides.sample, all.slice(dim.min(floats)..floats), strides))
    }
}

/// Compiles an interaction of `features` vectors of `dim` floats, which begin at multiples of 16 bytes. Null on
/// failure. To be freed with [`steptime_gpu_interaction_free`].
///
/// # Safety
///
/// The handle is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_interaction_new(
    gpu: *const Device,
    features: usize,
    dim: usize,
) -> *mut Interaction {
    handle(|| {
        // SAFETY: as the caller promises.
        let device = unsafe { alive(gpu) }?.clone();
        let shape = Shape::new(features, dim, false)?;
        let op = Op::new(&device, shape, dim.is_multiple_of(4))?;
        Ok(Interaction { device, shape, op })
    })
}

/// Launches the forward pass: `samples` x `features` x `dim` floats at `vectors`, `samples` x (`dim` + pairs) floats at
/// `out`. 0 for success.
///
/// # Safety
///
/// The handle is alive; the addresses are those of as many floats on the GPU as stated; no other code uses those of
/// `out`; the stream lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_interaction_forward(
    interaction: *const Interaction,
    stream: u64,
    samples: usize,
    vectors: u64,
    out: u64,
) -> c_int {
    code(|| {
        // SAFETY: as the caller promises.
        let of = unsafe { alive(interaction) }?;
        let [inputs, outputs] = of.floats(samples)?;
        // SAFETY: as above.
        let (stream, features, mut out) =
            unsafe { (on(&of.device, stream), of.features(inputs, vectors)?, taken(out, outputs)?) };
        Ok(of.op.forward(&stream, samples, &features, &mut out, of.shape.columns())?)
    })
}

/// Launches the backward pass: writes the gradients of `vectors`, in their shape, to `out`, from the gradient of the
/// forward pass's output. 0 for success.
///
/// # Safety
///
/// As of [`steptime_gpu_interaction_forward`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_interaction_backward(
    interaction: *const Interaction,
    stream: u64,
    samples: usize,
    vectors: u64,
    gradient: u64,
    out: u64,
) -> c_int {
    code(|| {
        // SAFETY: as the caller promises.
        let of = unsafe { alive(interaction) }?;
        let [inputs, outputs] = of.floats(samples)?;
        // SAFETY: as above.
        let (stream, features, gradient) =
            unsafe { (on(&of.device, stream), of.features(inputs, vectors)?, given(gradient, outputs)?) };
        let (strides, dim) = (of.strides(), of.shape.dim().min(inputs));
        // SAFETY: as above; the two parts are written at different addresses, vector by vector.
        let (dense, others) = unsafe { (taken(out, inputs)?, taken(out + 4 * dim as u64, inputs - dim)?) };
        let mut to = FeaturesMut::split(dense, strides.sample, others, strides);
        Ok(of.op.backward(&stream, samples, &features, gradient, of.shape.columns(), &mut to)?)
    })
}

/// Frees a handle.
///
/// # Safety
///
/// `interaction` is null, or came from [`steptime_gpu_interaction_new`] and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_interaction_free(interaction: *mut Interaction) {
    // SAFETY: as the caller promises.
    unsafe { free(interaction) }
}
