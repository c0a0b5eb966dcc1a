//! Moving floats on a GPU: copies of strided layouts, transposes, concatenation.
//!
//! Dimensions are reordered so that the output's neighbours are innermost, and those that lie together are joined. Rows
//! that are neighbours on both sides are copied by an elementwise kernel; where another dimension's elements are
//! neighbours in the input, tiles of 32 x 32 turn around in shared memory, so that both sides see whole sectors.

use std::fmt::Write;

use steptime_ops::elementwise::{Expr, Program};
use steptime_ops::rearrange::RearrangeError;
use steptime_tensor::Layout;

use crate::elementwise::{Elementwise, Frame, Input};
use crate::geometry::Geometry;
use crate::{Args, Device, Error, Grid, Kernel, Slice, SliceMut, Source, Stream};

/// Side of a tile.
const SIDE: usize = 32;

/// A copy between two layouts of one shape, compiled for them.
#[derive(Debug)]
pub struct Copy {
    way: Way,
    needed: [usize; 2],
}

#[derive(Debug)]
enum Way {
    Rows(Elementwise),
    Turned { kernel: Kernel, grid: Grid },
}

/// A transpose: `row` is the output's innermost dimension, `column` the one whose elements are neighbours in the input.
#[derive(Debug, PartialEq, Eq)]
struct Turn {
    frame: Frame,
    column: usize,
}

impl Turn {
    /// Of these layouts, if they need one.
    fn new(from: &Layout, to: &Layout) -> Option<Turn> {
        let frame = Frame::new(&[from.clone(), to.clone()]);
        let last = frame.shape.len() - 1;
        let (from, to) = (&frame.strides[0], &frame.strides[1]);
        let long = |axis: usize| frame.shape[axis] >= 8;
        let column = (0..last).find(|&axis| from[axis] == 1 && long(axis))?;
        let turned = from[last] > 1 && to[last] == 1 && long(last);
        turned.then_some(Turn { column, frame })
    }

    /// Tiles of all columns, rows and other dimensions.
    fn blocks(&self) -> usize {
        let last = self.frame.shape.len() - 1;
        let tiles = |(axis, &size): (usize, &usize)| {
            if axis == last || axis == self.column { size.div_ceil(SIDE) } else { size }
        };
        self.frame.shape.iter().enumerate().map(tiles).product()
    }

    fn source(&self) -> Source {
        let Frame { shape, strides, offsets, .. } = &self.frame;
        let (row, column) = (shape.len() - 1, self.column);
        let mut code = String::from(
            "extern \"C\" __global__ void __launch_bounds__(256) turn(const float *from, float *to) {\n\
             \x20   __shared__ float tile[32][33];\n    unsigned int at = blockIdx.x;\n",
        );
        let tiles = |size: usize| size.div_ceil(SIDE);
        let _ = writeln!(
            code,
            "    unsigned int x = at % {}u * 32; at /= {}u;",
            tiles(shape[column]),
            tiles(shape[column])
        );
        let _ = writeln!(
            code,
            "    unsigned int y = at % {}u * 32; at /= {}u;",
            tiles(shape[row]),
            tiles(shape[row])
        );
        let _ = writeln!(code, "    from += {}ull; to += {}ull;", offsets[0], offsets[1]);
        for axis in (0..row).rev().filter(|&axis| axis != column) {
            let (size, read, write) = (shape[axis], strides[0][axis], strides[1][axis]);
            let _ = writeln!(
                code,
                "    {{ unsigned long long i = at % {size}u; at /= {size}u; from += i * {read}ull; to += i * {write}ull; }}"
            );
        }
        let _ = write!(
            code,
            "    unsigned int lane = threadIdx.x % 32, warp = threadIdx.x / 32;\n\
             #pragma unroll\n\
             \x20   for (unsigned int k = warp; k < 32; k += 8) {{\n\
             \x20       if (x + lane < {columns}u && y + k < {rows}u) tile[k][lane] = from[x + lane + (y + k) * {read}ull];\n\
             \x20   }}\n    __syncthreads();\n\
             #pragma unroll\n\
             \x20   for (unsigned int k = warp; k < 32; k += 8) {{\n\
             \x20       if (y + lane < {rows}u && x + k < {columns}u) to[y + lane + (x + k) * {write}ull] = tile[lane][k];\n\
             \x20   }}\n}}\n",
            columns = shape[column],
            rows = shape[row],
            read = strides[0][row],
            write = strides[1][column],
        );
        Source::new("rearrange.cu", code)
    }
}

/// Both layouts with dimensions ordered by the output's strides, the largest first.
fn ordered(from: &Layout, to: &Layout) -> Result<[Layout; 2], RearrangeError> {
    let mut order: Vec<usize> = (0..to.rank()).collect();
    order.sort_by_key(|&axis| std::cmp::Reverse(to.strides()[axis]));
    Ok([from.permute(&order)?, to.permute(&order)?])
}

impl Copy {
    /// Compiles a copy.
    ///
    /// # Errors
    ///
    /// Shapes that differ; an output whose elements may overlap; no compiler.
    pub fn new(device: &Device, from: &Layout, to: &Layout) -> Result<Copy, Error> {
        if from.shape() != to.shape() {
            let (from, to) = (from.shape().to_vec(), to.shape().to_vec());
            return Err(RearrangeError::Shapes { from, to }.into());
        }
        let needed = [from, to].map(|layout| layout.last().map_or(0, |last| last + 1));
        let [from, to] = ordered(from, to)?;
        let turn = if from.is_empty() || to.may_overlap() { None } else { Turn::new(&from, &to) };
        let way = match turn.filter(|turn| turn.blocks() <= i32::MAX as usize) {
            Some(turn) => {
                let kernel = device.load(&turn.source())?.kernel("turn")?;
                Way::Turned { kernel, grid: Grid::line(turn.blocks() as u32, 256) }
            }
            None => {
                let same = Program::new(&[Expr::input(0)])?;
                Way::Rows(Elementwise::new(device, &same, &[from], &[to])?)
            }
        };
        Ok(Copy { way, needed })
    }

    /// Copies.
    ///
    /// # Errors
    ///
    /// Buffers shorter than the layouts say, or not aligned to 16 bytes.
    pub fn run(
        &self,
        stream: &Stream,
        from: Slice<'_, f32>,
        to: &mut SliceMut<'_, f32>,
    ) -> Result<(), Error> {
        for (found, needed) in [from.len(), to.len()].into_iter().zip(self.needed) {
            if found < needed {
                return Err(Error::Size { what: "a buffer of a copy", found, needed });
            }
        }
        match &self.way {
            Way::Rows(rows) => {
                let len = to.len();
                rows.run(stream, &[Input::Slice(from)], &mut [to.slice(0..len)])
            }
            Way::Turned { kernel, grid } => {
                let args = Args::new().slice(from).slice_mut(to);
                // SAFETY: the arguments are those of the kernel, which keeps to the layouts; buffers are long enough.
                unsafe { kernel.launch(stream, *grid, args) }
            }
        }
    }

    /// How it is launched.
    ///
    /// # Errors
    ///
    /// The driver refuses to say how many registers it takes.
    pub fn geometry(&self) -> Result<Geometry, Error> {
        match &self.way {
            Way::Rows(rows) => rows.geometry(),
            Way::Turned { kernel, grid } => Ok(Geometry {
                kernel: "turn",
                grid: *grid,
                axes: "x tiles of 32 x 32",
                registers: Some(kernel.registers()?),
                lanes: "one element a lane, 4 a thread, through shared memory".into(),
                busy: 1.0,
                bounds: "shapes by the host",
                divergence: "none but in tiles at the edge",
            }),
        }
    }
}

/// Several inputs one after the other along a dimension, compiled for their layouts: one launch each.
#[derive(Debug)]
pub struct Concat {
    copies: Vec<Copy>,
}

impl Concat {
    /// Compiles it.
    ///
    /// # Errors
    ///
    /// No input, no such dimension, or shapes that differ elsewhere or do not add up to the output's; no compiler.
    pub fn new(device: &Device, from: &[Layout], axis: usize, to: &Layout) -> Result<Concat, Error> {
        let pieces = pieces(from, axis, to)?;
        let copies = from.iter().zip(&pieces).map(|(from, piece)| Copy::new(device, from, piece));
        Ok(Concat { copies: copies.collect::<Result<_, _>>()? })
    }

    /// Runs it.
    ///
    /// # Errors
    ///
    /// Inputs too few or too many, or buffers that do not fit.
    pub fn run(
        &self,
        stream: &Stream,
        from: &[Slice<'_, f32>],
        to: &mut SliceMut<'_, f32>,
    ) -> Result<(), Error> {
        let (found, needed) = (from.len(), self.copies.len());
        if found != needed {
            return Err(Error::Size { what: "the inputs of a concatenation", found, needed });
        }
        self.copies.iter().zip(from).try_for_each(|(copy, from)| copy.run(stream, *from, to))
    }
}

/// The parts of the output that the inputs go to.
fn pieces(from: &[Layout], axis: usize, to: &Layout) -> Result<Vec<Layout>, RearrangeError> {
    let error = |index: usize| RearrangeError::Piece {
        index,
        axis,
        shapes: from.iter().map(|layout| layout.shape().to_vec()).collect(),
        whole: to.shape().to_vec(),
    };
    let mut start = 0;
    let mut pieces = Vec::with_capacity(from.len());
    for (index, layout) in from.iter().enumerate() {
        let size = layout.shape().get(axis).copied().ok_or_else(|| error(index))?;
        let piece = to.slice(axis, start..start + size, 1).map_err(|_| error(index))?;
        if piece.shape() != layout.shape() {
            return Err(error(index));
        }
        pieces.push(piece);
        start += size;
    }
    if to.shape().get(axis) != Some(&start) {
        return Err(error(from.len()));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Build, Capability, CubinCache, nvrtc_version};

    fn layout(shape: &[usize]) -> Layout {
        Layout::contiguous(shape).unwrap()
    }

    #[test]
    fn only_transposes_are_turned() {
        let turned = |from: &Layout, to: &Layout| {
            let [from, to] = ordered(from, to).unwrap();
            Turn::new(&from, &to).map(|turn| turn.blocks())
        };
        let swapped = layout(&[100, 70]).transpose(0, 1).unwrap();
        assert_eq!(turned(&swapped, &layout(&[70, 100])), Some(3 * 4));
        assert_eq!(turned(&layout(&[70, 100]), &swapped), Some(3 * 4));
        assert_eq!(turned(&swapped, &swapped), None);
        assert_eq!(turned(&layout(&[5, 6]), &layout(&[5, 6])), None);
        let inner = layout(&[9, 64, 40]).transpose(1, 2).unwrap();
        assert_eq!(turned(&inner, &layout(&[9, 40, 64])), Some(9 * 2 * 2));
        let outer = layout(&[64, 9, 40]).transpose(0, 1).unwrap();
        assert_eq!(turned(&outer, &layout(&[9, 64, 40])), None);
    }

    #[test]
    fn pieces_make_up_the_whole() {
        let found = pieces(&[layout(&[2, 3]), layout(&[2, 5])], 1, &layout(&[2, 8])).unwrap();
        assert_eq!(found[1].offset(), 3);
        assert!(pieces(&[layout(&[2, 3])], 1, &layout(&[2, 8])).is_err());
        assert!(pieces(&[layout(&[3, 8])], 1, &layout(&[2, 8])).is_err());
        assert!(pieces(&[layout(&[2, 8])], 2, &layout(&[2, 8])).is_err());
    }

    #[test]
    fn tiles_compile() {
        let Ok((major, _)) = nvrtc_version() else {
            return eprintln!("skipped: no libnvrtc");
        };
        let folder = tempfile::tempdir().unwrap();
        let from = layout(&[9, 64, 40]).transpose(1, 2).unwrap();
        let turn = Turn::new(&from, &layout(&[9, 40, 64])).unwrap();
        let cache = CubinCache::at(folder.path());
        let build = Build::new(&turn.source(), Capability { major: 9, minor: 0 }, major * 1000, &cache);
        assert!(build.is_ok(), "{}", build.unwrap_err());
    }
}
