//! Random values on the device for measurements: zeros would be faster than real data.

use super::{Args, Error, Grid, SliceMut, Source, Stream};

const TEXT: &str = "
// out[i] is in -1..1. Any grid: each thread takes every gridDim.x * blockDim.x-th value.
extern \"C\" __global__ void randomize(float* out, unsigned long long count, unsigned long long seed) {
    unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        unsigned long long bits = (i + seed) * 0x9e3779b97f4a7c15ull;
        bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ull;
        bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebull;
        out[i] = (float)(int)(bits >> 32) * (1.0f / 2147483648.0f);
    }
}";

/// Fills with values in -1..1 that depend on position and seed only.
///
/// # Errors
///
/// No compiler; the driver refuses.
pub fn randomize(stream: &Stream, out: &mut SliceMut<'_, f32>, seed: u64) -> Result<(), Error> {
    let kernel = stream.device().load(&Source::new("random.cu", TEXT))?.kernel("randomize")?;
    let blocks = stream.device().multiprocessors() * 8;
    let count = out.len() as u64;
    let args = Args::new().slice_mut(out).value(count).value(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    // SAFETY: the arguments are those of the kernel, which writes `count` floats; `out` has as many, and is named.
    unsafe { kernel.launch(stream, Grid::line(blocks, 256), args) }?;
    // The code is unloaded with the kernel, which waits for all streams. Waiting here waits for this one alone.
    stream.synchronize()
}
