//! The bag of each lookup, and the number of lookups of each bag: see `bag_sizes.cu`.

use crate::{Args, Device, Error, Grid, Kernel, Slice, SliceMut, Source, Stream};

/// Threads of a block.
const THREADS: usize = 256;

/// Lookups of a thread.
const ITEMS: usize = 4;

/// The bag of each lookup of one table, and the number of lookups of each bag, from the bags' offsets.
#[derive(Debug)]
pub struct BagSizes {
    bags: Kernel,
    sizes: Kernel,
}

impl BagSizes {
    /// Compiles the kernels, which take any sizes.
    ///
    /// # Errors
    ///
    /// No compiler.
    pub fn new(device: &Device) -> Result<BagSizes, Error> {
        let module = device.load(&source())?;
        Ok(BagSizes { bags: module.kernel("fill_bags")?, sizes: module.kernel("fill_sizes")? })
    }

    /// Computes the bag of each lookup, `[N]`, and the number of lookups of each bag, `[B]`, from offsets `[B]` that
    /// increase from 0 to at most N. The last bag ends with the last lookup.
    ///
    /// The offsets are not checked here: [`Forward::check`](super::Forward::check) reports wrong ones.
    ///
    /// # Errors
    ///
    /// Another number of sizes than of offsets; lookups without bags; more than a launch has threads; the driver
    /// refuses.
    pub fn run(
        &self,
        stream: &Stream,
        offsets: Slice<'_, i64>,
        bag: &mut SliceMut<'_, i64>,
        sizes: &mut SliceMut<'_, i64>,
    ) -> Result<(), Error> {
        let (bags, lookups) = (offsets.len(), bag.len());
        if sizes.len() != bags {
            return Err(Error::Size { what: "the sizes of bags", found: sizes.len(), needed: bags });
        }
        let blocks = [lookups.div_ceil(THREADS * ITEMS), bags.div_ceil(THREADS)];
        if (bags == 0 && lookups > 0) || blocks.iter().any(|&blocks| blocks > i32::MAX as usize) {
            return Err(Error::Unsupported {
                what: format!("the sizes of {bags} bags of {lookups} lookups"),
                remedy: "give at least one bag, at most 2^39 of them, and at most 2^41 lookups",
            });
        }
        let [of_bags, of_sizes] = blocks.map(|blocks| Grid::line(blocks as u32, THREADS as u32));
        let args = || Args::new().slice(offsets).value(bags as u64).value(lookups as u64);
        // SAFETY: the arguments are those of the kernels, which read as many offsets and write as many bags and sizes
        // as they are given, whatever the offsets hold. All memory is named.
        unsafe {
            self.bags.launch(stream, of_bags, args().slice_mut(bag))?;
            self.sizes.launch(stream, of_sizes, args().slice_mut(sizes))
        }
    }
}

fn source() -> Source {
    Source::new("bag_sizes.cu", include_str!("bag_sizes.cu")).define("ITEMS", format!("{ITEMS}u"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestCompiler;

    #[test]
    fn kernels_compile() {
        let Some(compiler) = TestCompiler::new() else { return };
        compiler.build(&source());
    }
}
