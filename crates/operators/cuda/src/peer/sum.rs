//! The sum of buffers over all ranks: see `sum.cu`.

use crate::{Args, Device, Error, Grid, Kernel, Source, Stream};

/// Threads of a block.
const THREADS: u64 = 256;
/// Largest number of blocks: the rest of the GPU works meanwhile.
const BLOCKS: u64 = 32;
/// Largest number of ranks, whose addresses are arguments of a launch.
const MOST_RANKS: usize = 256;

/// The sum of buffers over all ranks, of which each rank adds a part.
#[derive(Debug)]
pub struct Sum {
    vectors: Kernel,
    rest: Kernel,
    ranks: usize,
}

impl Sum {
    /// Compiles the kernels for a number of ranks.
    ///
    /// # Errors
    ///
    /// No compiler; too many ranks.
    pub fn new(device: &Device, ranks: usize) -> Result<Sum, Error> {
        if ranks == 0 || ranks > MOST_RANKS {
            let (what, remedy) = (format!("sums over {ranks} ranks"), "use 1 to 256 ranks");
            return Err(Error::Unsupported { what, remedy });
        }
        let module = device.load(&source(ranks))?;
        Ok(Sum { vectors: module.kernel("sum_ranks")?, rest: module.kernel("sum_rest")?, ranks })
    }

    /// Adds the part of rank `rank` of buffers of `len` floats at these addresses, one for each rank, and writes the sums to all of them.
    ///
    /// # Errors
    ///
    /// Another number of buffers than of ranks; an address that is not a multiple of 16; the driver refuses.
    ///
    /// # Safety
    ///
    /// The buffers live until the stream has passed the launch. From when it begins until then no other work uses the part of this rank, at any rank.
    pub unsafe fn run(&self, stream: &Stream, buffers: &[u64], len: usize, rank: usize) -> Result<(), Error> {
        if buffers.len() != self.ranks || rank >= self.ranks {
            return Err(Error::Size {
                what: "the buffers of a sum",
                found: buffers.len(),
                needed: self.ranks,
            });
        }
        if buffers.iter().any(|address| !address.is_multiple_of(16)) {
            let what = "sums of buffers that do not begin with a vector".to_owned();
            return Err(Error::Unsupported { what, remedy: "begin them at multiples of 16 bytes" });
        }
        let [first, last] = part(len as u64 / 4, self.ranks as u64, rank as u64);
        let args = |first: u64, last: u64| Args::new().array(buffers).value(first).value(last);
        if last > first {
            let blocks = (last - first).div_ceil(THREADS).min(BLOCKS) as u32;
            // SAFETY: by the caller; both kernels stay within `len` elements.
            unsafe {
                self.vectors.launch(stream, Grid::line(blocks, THREADS as u32), args(first, last))?;
            }
        }
        let end = len as u64;
        if rank == 0 && !end.is_multiple_of(4) {
            // SAFETY: as above.
            unsafe { self.rest.launch(stream, Grid::line(1, 4), args(end / 4 * 4, end)) }?;
        }
        Ok(())
    }
}

/// Begin and end of a rank's part of a number of vectors.
fn part(vectors: u64, ranks: u64, rank: u64) -> [u64; 2] {
    [rank, rank + 1].map(|edge| vectors * edge / ranks)
}

fn source(ranks: usize) -> Source {
    Source::new("sum.cu", include_str!("sum.cu")).define("RANKS", ranks.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestCompiler;

    #[test]
    fn kernels_compile() {
        let Some(compiler) = TestCompiler::new() else { return };
        compiler.build(&source(2));
        compiler.build(&source(8));
    }

    #[test]
    fn parts_are_the_whole() {
        for (vectors, ranks) in [(0, 2), (1, 2), (10, 3), (1000, 8)] {
            let parts: Vec<_> = (0..ranks).map(|rank| part(vectors, ranks, rank)).collect();
            assert_eq!((parts[0][0], parts[ranks as usize - 1][1]), (0, vectors));
            assert!(parts.windows(2).all(|pair| pair[0][1] == pair[1][0]));
        }
    }
}
