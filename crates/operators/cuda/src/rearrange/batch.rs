//! Several copies to one output, in one launch where all of them are copies of matrices: see `batch.cu`.

use bytemuck::{Pod, Zeroable};
use steptime_tensor::Layout;

use super::{Copy, Plan};
use crate::{Args, Device, Error, Grid, Kernel, Slice, SliceMut, Source, Stream};

/// Threads of a block.
const THREADS: usize = 256;

/// Cells of a thread.
const CELLS: usize = 4;

/// Largest number of matrices of a launch, whose addresses are arguments of the kernel.
const MOST: usize = 500;

/// Largest number of bytes of a cell.
const BYTES: usize = 16;

/// Copies of several layouts to parts of one output, compiled for them; elements have 1, 2, 4 or 8 bytes.
#[derive(Debug)]
pub struct CopyBatch<T> {
    work: Work<T>,
    /// Number of copies.
    count: usize,
}

#[derive(Debug)]
enum Work<T> {
    /// One launch, whose copies have elements.
    Together(Kernel, Vec<(usize, Matrix)>),
    /// One launch a copy.
    Alone(Vec<Copy<T>>),
}

/// A copy of rows whose elements are neighbours on both sides. Numbers are bytes, except of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Matrix {
    rows: usize,
    width: usize,
    /// Distances of rows.
    strides: [usize; 2],
    offsets: [usize; 2],
}

/// Layout of `Matrix` in `batch.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
struct Entry {
    from: u64,
    to: u64,
    from_stride: u64,
    to_stride: u64,
    columns: u32,
    count: u32,
    first: u32,
    bytes: u32,
}

impl Matrix {
    /// The matrix of a plan; `None` where elements are no neighbours, there are more dimensions, or more elements than a launch counts.
    fn new(plan: &Plan) -> Option<Matrix> {
        let [from, to] = [&plan.joined.strides[0][..], &plan.joined.strides[1][..]];
        let (rows, columns, strides) = match (&plan.joined.shape[..], from, to) {
            ([], ..) => (1, 1, [0, 0]),
            (&[columns], [1], [1]) => (1, columns, [0, 0]),
            (&[rows, columns], &[down, 1], &[below, 1]) => (rows, columns, [down, below]),
            _ => return None,
        };
        let bytes = |elements: usize| elements.checked_mul(plan.size);
        let [down, below] = strides.map(bytes);
        let matrix = Matrix {
            rows,
            width: bytes(columns)?,
            strides: [down?, below?],
            offsets: plan.offsets.map(|offset| offset * plan.size),
        };
        let all = matrix.rows.checked_mul(matrix.width)?;
        (all < i32::MAX as usize).then_some(matrix)
    }

    /// Positions after the last bytes of both sides.
    fn ends(&self) -> [usize; 2] {
        let end = |side: usize| self.offsets[side] + (self.rows - 1) * self.strides[side] + self.width;
        [end(0), end(1)]
    }

    /// The entry for operands at these addresses, whose first tile has this number, and the number of its tiles.
    fn entry(&self, addresses: [u64; 2], first: u32) -> (Entry, u32) {
        let [from, to] = [0, 1].map(|side| addresses[side] + self.offsets[side] as u64);
        let together = from | to | (self.width | self.strides[0] | self.strides[1]) as u64;
        let bytes = BYTES.min(1 << together.trailing_zeros().min(4));
        let columns = self.width / bytes;
        let count = self.rows * columns;
        let entry = Entry {
            from,
            to,
            from_stride: self.strides[0] as u64,
            to_stride: self.strides[1] as u64,
            columns: columns as u32,
            count: count as u32,
            first,
            bytes: bytes as u32,
        };
        (entry, count.div_ceil(THREADS * CELLS) as u32)
    }
}

impl<T: Pod> CopyBatch<T> {
    /// Compiles copies, each between two layouts of one shape; the second ones are parts of one output, which do not overlap.
    ///
    /// # Errors
    ///
    /// As [`Copy::new`], of each.
    pub fn new(device: &Device, copies: &[(Layout, Layout)]) -> Result<CopyBatch<T>, Error> {
        let matrices = matrices(copies, size_of::<T>())?.filter(|all| (2..=MOST).contains(&all.len()));
        let work = match matrices {
            Some(all) => Work::Together(device.load(&source(all.len()))?.kernel("copies")?, all),
            None => {
                let alone = copies.iter().map(|(from, to)| Copy::new(device, from, to));
                Work::Alone(alone.collect::<Result<_, _>>()?)
            }
        };
        Ok(CopyBatch { work, count: copies.len() })
    }

    /// Copies each input to its part of the output.
    ///
    /// # Errors
    ///
    /// Too few or too many inputs, or buffers that do not fit.
    pub fn run(&self, stream: &Stream, from: &[Slice<'_, T>], to: &mut SliceMut<'_, T>) -> Result<(), Error> {
        let (found, needed) = (from.len(), self.count);
        if found != needed {
            return Err(Error::Size { what: "the inputs of several copies", found, needed });
        }
        let (kernel, matrices) = match &self.work {
            Work::Together(kernel, matrices) => (kernel, matrices),
            Work::Alone(copies) => {
                return copies.iter().zip(from).try_for_each(|(copy, from)| copy.run(stream, *from, to));
            }
        };
        let (mut entries, mut tiles) = (Vec::with_capacity(matrices.len()), 0);
        for (at, matrix) in matrices {
            let from = from[*at];
            for (found, end) in [from.len(), to.len()].into_iter().zip(matrix.ends()) {
                let needed = end / size_of::<T>();
                if found < needed {
                    return Err(Error::Size { what: "a buffer of a copy", found, needed });
                }
            }
            let (entry, own) = matrix.entry([from.address(), to.address()], tiles);
            entries.push(entry);
            tiles += own;
        }
        let args = from.iter().fold(Args::new().array(&entries), |args, from| args.reads(*from));
        // SAFETY: the argument is that of `copies`, which stays within the matrices; buffers are long enough, as was
        // checked, and cells begin at multiples of their size. All memory is named.
        unsafe { kernel.launch(stream, Grid::line(tiles, THREADS as u32), args.writes(to.as_ref())) }
    }
}

/// The matrices of copies that have elements, with their numbers; `None` where one is no matrix.
fn matrices(copies: &[(Layout, Layout)], size: usize) -> Result<Option<Vec<(usize, Matrix)>>, Error> {
    let mut all = Vec::with_capacity(copies.len());
    let mut cells = 0;
    for (at, (from, to)) in copies.iter().enumerate() {
        let plan = Plan::new(from, to, size)?;
        if to.is_empty() {
            continue;
        }
        let Some(matrix) = Matrix::new(&plan) else { return Ok(None) };
        cells += matrix.rows * matrix.width;
        all.push((at, matrix));
    }
    // Tiles are counted in 32 bits.
    Ok((cells / (THREADS * CELLS) + all.len() < i32::MAX as usize).then_some(all))
}

/// The kernel's source for this number of matrices.
fn source(count: usize) -> Source {
    Source::new("batch.cu", include_str!("batch.cu"))
        .define("COUNT", count)
        .define("THREADS", THREADS)
        .define("CELLS", CELLS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestCompiler;

    fn layout(shape: &[usize]) -> Layout {
        Layout::contiguous(shape).unwrap()
    }

    fn columns(first: usize, last: usize) -> (Layout, Layout) {
        (layout(&[64, last - first]), layout(&[64, 32]).slice(1, first..last, 1).unwrap())
    }

    #[test]
    fn cells_are_as_wide_as_addresses_and_rows_allow() {
        let all = matrices(&[columns(0, 8), columns(8, 21), columns(22, 32)], 4).unwrap().unwrap();
        let entries: Vec<_> = all.iter().map(|(_, matrix)| matrix.entry([256, 512], 7)).collect();
        let found: Vec<_> = entries.iter().map(|(one, tiles)| (one.bytes, one.columns, *tiles)).collect();
        assert_eq!(found, [(16, 2, 1), (4, 13, 1), (8, 5, 1)]);
        assert_eq!((entries[1].0.to, entries[1].0.to_stride), (512 + 32, 128));
        assert_eq!(all[2].1.entry([256, 516], 0).0.bytes, 4, "an output that begins elsewhere");
        assert_eq!(all[2].1.ends(), [64 * 40, 64 * 128]);
    }

    #[test]
    fn copies_of_other_shapes_have_launches_of_their_own() {
        let turned = (layout(&[32, 64]).transpose(0, 1).unwrap(), layout(&[64, 32]));
        assert_eq!(matrices(&[columns(0, 8), turned], 4).unwrap(), None);
        let empty = (layout(&[0, 8]), layout(&[0, 8]));
        let all = matrices(&[empty, columns(0, 8)], 4).unwrap().unwrap();
        assert_eq!(all.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1]);
        let single = matrices(&[(layout(&[1]), layout(&[1])), (layout(&[9, 5]), layout(&[9, 5]))], 8);
        let shapes: Vec<_> = single.unwrap().unwrap().iter().map(|(_, one)| (one.rows, one.width)).collect();
        assert_eq!(shapes, [(1, 8), (1, 360)]);
    }

    #[test]
    fn kernels_compile() {
        let Some(compiler) = TestCompiler::new() else { return };
        compiler.build(&source(2));
        compiler.build(&source(MOST));
    }
}
