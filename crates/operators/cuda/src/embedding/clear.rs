//! Zeros in several tensors at once: see `clear.cu`.

use bytemuck::{Pod, Zeroable};

use crate::{Args, Device, Error, Grid, Kernel, SliceMut, Source, Stream};

/// Threads of a block.
const THREADS: u32 = 256;
/// Floats of a block.
const CHUNK: usize = 16 << 10;
/// Ranges of a launch.
const COUNT: usize = 64;

/// Layout of a range in `clear.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Range {
    start: u64,
    len: u64,
    end: u32,
    unused: u32,
}

/// Zeros in several tensors, 64 of them a launch.
#[derive(Debug)]
pub(super) struct Clear {
    kernel: Kernel,
}

impl Clear {
    /// Compiles the kernel, which takes any sizes.
    ///
    /// # Errors
    ///
    /// No compiler.
    pub(super) fn new(device: &Device) -> Result<Clear, Error> {
        Ok(Clear { kernel: device.load(&source())?.kernel("clear_ranges")? })
    }

    /// Sets all elements to zero.
    ///
    /// # Errors
    ///
    /// A tensor that does not begin at a multiple of 16 bytes; more floats than a launch has blocks for; the driver refuses.
    pub(super) fn run(&self, stream: &Stream, all: &[SliceMut<'_, f32>]) -> Result<(), Error> {
        let used: Vec<&SliceMut<'_, f32>> = all.iter().filter(|one| !one.is_empty()).collect();
        for some in used.chunks(COUNT) {
            let mut ranges = Vec::with_capacity(COUNT);
            let mut end = 0_usize;
            for one in some {
                end = end.saturating_add(one.len().div_ceil(CHUNK));
                let (start, blocks) = (one.address(), u32::try_from(end).unwrap_or(u32::MAX));
                if !start.is_multiple_of(16) || end > i32::MAX as usize {
                    return Err(Error::Unsupported {
                        what: format!("zeros in {} floats at address {start:#x}", one.len()),
                        remedy: "begin tensors at multiples of 16 bytes, of fewer than 2^44 floats in all",
                    });
                }
                ranges.push(Range { start, len: one.len() as u64, end: blocks, unused: 0 });
            }
            // Ranges after the last are never reached: blocks end with it.
            ranges.resize(COUNT, Range { end: end as u32, ..Range::zeroed() });
            let args = some.iter().fold(Args::new().array(&ranges), |args, one| args.writes(one.as_ref()));
            // SAFETY: the arguments are those of the kernel, which stays within the length of each range; their alignment was checked. All
            // memory is named.
            unsafe { self.kernel.launch(stream, Grid::line(end as u32, THREADS), args)? };
        }
        Ok(())
    }
}

fn source() -> Source {
    Source::new("clear.cu", include_str!("clear.cu"))
        .define("COUNT", COUNT)
        .define("CHUNK", format!("{CHUNK}u"))
        .define("THREADS", format!("{THREADS}u"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestCompiler;

    #[test]
    fn the_kernel_compiles() {
        let Some(compiler) = TestCompiler::new() else { return };
        compiler.build(&source());
    }
}
