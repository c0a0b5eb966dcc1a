//! Offsets of bags from their sizes: see `offsets.cu`.

use crate::{Args, Device, Error, Grid, Kernel, Slice, SliceMut, Source, Stream};

/// Threads of the block.
const THREADS: u32 = 1024;

/// Sizes of a thread in one turn.
const ITEMS: u32 = 8;

/// The offsets of bags, by adding up their sizes.
#[derive(Debug)]
pub struct OffsetsFromSizes {
    kernel: Kernel,
}

impl OffsetsFromSizes {
    /// Compiles the kernel, which takes any number of bags.
    ///
    /// # Errors
    ///
    /// No compiler.
    pub fn new(device: &Device) -> Result<OffsetsFromSizes, Error> {
        Ok(OffsetsFromSizes { kernel: device.load(&source())?.kernel("sum_sizes")? })
    }

    /// Computes the offsets `[B + 1]` of bags of these sizes, `[B]`: 0 first, and the number of lookups last. Negative
    /// sizes give offsets that decrease, which the kernels over lookups report.
    ///
    /// # Errors
    ///
    /// Another number of offsets than of sizes plus one; the driver refuses.
    pub fn run(
        &self,
        stream: &Stream,
        sizes: Slice<'_, i64>,
        offsets: &mut SliceMut<'_, i64>,
    ) -> Result<(), Error> {
        let (found, needed) = (offsets.len(), sizes.len() + 1);
        if found != needed {
            return Err(Error::Size { what: "the offsets of bags", found, needed });
        }
        let args = Args::new().slice(sizes).value(sizes.len() as u64).slice_mut(offsets);
        // SAFETY: the arguments are those of `sum_sizes`, and their sizes were checked. All memory is named.
        unsafe { self.kernel.launch(stream, Grid::line(1, THREADS), args) }
    }
}

fn source() -> Source {
    Source::new("offsets.cu", include_str!("offsets.cu"))
        .define("THREADS", format!("{THREADS}u"))
        .define("ITEMS", format!("{ITEMS}u"))
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
