//! Copies of matrices in another type: many in one launch, such as the weights of all layers of a model, each as it is or
//! transposed, with padded rows. See `cast.cu`.

mod matrix;

use std::marker::PhantomData;

use half::bf16;

use self::matrix::Entry;
pub use self::matrix::Matrix;
use crate::float::FLOATS;
use crate::{Args, Device, Error, Float, Grid, Kernel, Slice, SliceMut, Source, Stream};

/// Largest number of matrices of a launch, whose addresses are arguments of the kernel.
const MOST: usize = 500;

/// Matrix, from which, and to which it is copied.
pub type Operands<'a, T = f32, D = bf16> = (Slice<'a, T>, SliceMut<'a, D>);

/// Copies of matrices with elements `T` as elements `D`, rounded to nearest, in one launch.
#[derive(Debug)]
pub struct Cast<T = f32, D = bf16> {
    matrices: Vec<Matrix>,
    /// Number of the first tile of each matrix.
    firsts: Vec<u32>,
    /// `None` where there are no elements.
    work: Option<(Kernel, Grid)>,
    of: PhantomData<fn(T) -> D>,
}

impl<T: Float, D: Float> Cast<T, D> {
    /// Compiles the copies of these matrices, at most 500.
    ///
    /// # Errors
    ///
    /// Rows that overlap; more matrices or elements than a launch takes; no compiler.
    pub fn new(device: &Device, matrices: &[Matrix]) -> Result<Cast<T, D>, Error> {
        matrices.iter().try_for_each(Matrix::check)?;
        let mut firsts = Vec::with_capacity(matrices.len());
        let mut tiles = 0_usize;
        for matrix in matrices {
            firsts.push(tiles as u32);
            tiles = tiles.saturating_add(matrix.tiles());
        }
        if matrices.len() > MOST || i32::try_from(tiles).is_err() {
            return Err(Error::Unsupported {
                what: format!("a cast of {} matrices with {tiles} tiles", matrices.len()),
                remedy: "give at most 500 matrices, and fewer than 2^42 elements",
            });
        }
        let work = if tiles == 0 {
            None
        } else {
            let kernel = device.load(&source::<T, D>(matrices.len()))?.kernel("cast")?;
            Some((kernel, Grid::line(tiles as u32, 256)))
        };
        Ok(Cast { matrices: matrices.to_vec(), firsts, work, of: PhantomData })
    }

    /// Copies each matrix to its result. Neither waits, within one stream, nor allocates on the device, so that it can be
    /// captured.
    ///
    /// # Errors
    ///
    /// Another number of matrices, or an operand that is too short.
    pub fn run(&self, stream: &Stream, operands: Vec<Operands<'_, T, D>>) -> Result<(), Error> {
        let (found, needed) = (operands.len(), self.matrices.len());
        if found != needed {
            return Err(Error::Size { what: "the matrices of a cast", found, needed });
        }
        let places = self.matrices.iter().zip(&self.firsts);
        let entries = places
            .zip(operands.iter())
            .map(|((matrix, &first), (from, to))| matrix.entry(first, *from, to))
            .collect::<Result<Vec<Entry>, Error>>()?;
        let Some((kernel, grid)) = &self.work else { return Ok(()) };
        let args = operands
            .iter()
            .fold(Args::new().array(&entries), |args, (from, to)| args.reads(*from).writes(to.as_ref()));
        // SAFETY: the argument is that of `cast`, which stays within the matrices; operands are long enough, as was
        // checked. All memory is named.
        unsafe { kernel.launch(stream, *grid, args) }
    }
}

/// The kernel's source for this number of matrices.
fn source<T: Float, D: Float>(count: usize) -> Source {
    Source::new("cast.cu", [FLOATS, include_str!("cast.cu")].concat())
        .define("COUNT", count)
        .define("FROM", T::DEVICE_NAME)
        .define("TO", D::DEVICE_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestCompiler;

    #[test]
    fn kernels_compile() {
        let Some(compiler) = TestCompiler::new() else { return };
        compiler.build(&source::<f32, bf16>(MOST));
        compiler.build(&source::<bf16, f32>(1));
        compiler.build(&source::<bf16, bf16>(3));
    }
}
