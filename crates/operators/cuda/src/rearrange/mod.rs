//! Moving elements of 1, 2, 4 or 8 bytes on a GPU: copies of strided layouts, transposes, concatenation.
//!
//! Dimensions are reordered so that the output's neighbours are innermost, and contiguous ones are joined. Where
//! neighbours are the same on both sides, cells of up to 16 bytes are copied. Where another dimension's elements are
//! neighbours in the input, tiles are transposed, so that both sides access whole sectors: by vectors where these fit,
//! otherwise element by element in tiles that end at sector boundaries. Copies of several matrices have one launch.

mod batch;
mod concat;
mod plane;
mod rows;
mod sectors;
mod transpose;

use std::marker::PhantomData;

use bytemuck::Pod;
use steptime_ops::rearrange::RearrangeError;
use steptime_tensor::{JoinedLayouts, Layout};

pub use self::batch::CopyBatch;
pub use self::concat::Concat;
use self::plane::Plane;
use self::rows::Rows;
use self::sectors::Sectors;
use self::transpose::Transpose;
use crate::geometry::Geometry;
use crate::{Args, Device, Error, Grid, Kernel, Slice, SliceMut, Source, Stream};

/// The two layouts of a copy, the input first, with as few dimensions as possible, in the output's order.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Plan {
    joined: JoinedLayouts,
    offsets: [usize; 2],
    /// Bytes of an element.
    size: usize,
}

impl Plan {
    fn new(from: &Layout, to: &Layout, size: usize) -> Result<Plan, Error> {
        if from.shape() != to.shape() {
            let (from, to) = (from.shape().to_vec(), to.shape().to_vec());
            return Err(RearrangeError::Shapes { from, to }.into());
        }
        if ![1, 2, 4, 8].contains(&size) {
            return Err(Error::Unsupported {
                what: format!("a copy of elements of {size} bytes"),
                remedy: "give them as elements of 1, 2, 4 or 8 bytes, with one dimension more",
            });
        }
        if to.may_overlap() {
            return Err(Error::Unsupported {
                what: format!("an output of shape {:?} with strides {:?}", to.shape(), to.strides()),
                remedy: "give each element of an output a place of its own",
            });
        }
        let mut order: Vec<usize> = (0..to.rank()).collect();
        order.sort_by_key(|&axis| std::cmp::Reverse(to.strides()[axis]));
        let layouts = [from, to].map(|layout| layout.permute(&order).map_err(RearrangeError::from));
        let [from, to] = layouts;
        let (from, to) = (from?, to?);
        let offsets = [from.offset(), to.offset()];
        Ok(Plan { joined: JoinedLayouts::new(&[from, to]), offsets, size })
    }
}

/// The name of a type of `bytes` bytes in device code.
fn device_name(bytes: usize) -> &'static str {
    match bytes {
        1 => "unsigned char",
        2 => "unsigned short",
        4 => "unsigned int",
        8 => "unsigned long long",
        _ => "uint4",
    }
}

/// Method of a copy.
#[derive(Debug)]
enum Way {
    Rows(Rows),
    Sectors(Sectors),
    Transpose(Transpose),
}

impl Way {
    fn new(plan: &Plan) -> Result<Way, Error> {
        let transposed = Plane::new(plan).and_then(|plane| {
            let sectors = Sectors::new(&plane).map(Way::Sectors);
            sectors.or_else(|| Transpose::new(plane).map(Way::Transpose))
        });
        transposed.map_or_else(|| Rows::new(plan).map(Way::Rows), Ok)
    }

    fn align(&self) -> usize {
        match self {
            Way::Rows(rows) => rows.align(),
            Way::Sectors(of) => of.align(),
            Way::Transpose(of) => of.align(),
        }
    }

    fn grid(&self) -> Grid {
        match self {
            Way::Rows(rows) => rows.grid(),
            Way::Sectors(of) => of.grid(),
            Way::Transpose(of) => of.grid(),
        }
    }

    fn source(&self) -> Source {
        match self {
            Way::Rows(rows) => rows.source(),
            Way::Sectors(of) => of.source(),
            Way::Transpose(of) => of.source(),
        }
    }

    /// Name of the kernel in the source.
    fn kernel(&self) -> &'static str {
        match self {
            Way::Rows(_) => "rows",
            Way::Sectors(_) | Way::Transpose(_) => "transpose",
        }
    }

    fn geometry(&self) -> Geometry {
        match self {
            Way::Rows(rows) => rows.geometry(),
            Way::Sectors(of) => of.geometry(),
            Way::Transpose(of) => of.geometry(),
        }
    }
}

/// A copy between two layouts of one shape, compiled for them; elements have 1, 2, 4 or 8 bytes.
#[derive(Debug)]
pub struct Copy<T> {
    /// `None` where there are no elements.
    work: Option<(Way, Kernel)>,
    /// Number of elements that each operand must have.
    needed: [usize; 2],
    of: PhantomData<fn(T) -> T>,
}

impl<T: Pod> Copy<T> {
    /// Compiles a copy.
    ///
    /// # Errors
    ///
    /// Shapes that differ; an output whose elements may overlap; elements of another size; no compiler.
    pub fn new(device: &Device, from: &Layout, to: &Layout) -> Result<Copy<T>, Error> {
        let plan = Plan::new(from, to, size_of::<T>())?;
        let needed = [from, to].map(|layout| layout.last().map_or(0, |last| last + 1));
        let work = if to.is_empty() {
            None
        } else {
            let way = Way::new(&plan)?;
            let kernel = device.load(&way.source())?.kernel(way.kernel())?;
            Some((way, kernel))
        };
        Ok(Copy { work, needed, of: PhantomData })
    }

    /// Copies.
    ///
    /// # Errors
    ///
    /// Buffers that are shorter than the layouts, or whose addresses are not multiples of the vectors that the layouts
    /// allow, at most 16 bytes.
    pub fn run(&self, stream: &Stream, from: Slice<'_, T>, to: &mut SliceMut<'_, T>) -> Result<(), Error> {
        for (found, needed) in [from.len(), to.len()].into_iter().zip(self.needed) {
            if found < needed {
                return Err(Error::Size { what: "a buffer of a copy", found, needed });
            }
        }
        let Some((way, kernel)) = &self.work else {
            return Ok(());
        };
        let align = way.align() as u64;
        if let Some(address) = [from.address(), to.address()].into_iter().find(|at| at % align != 0) {
            return Err(Error::Unsupported {
                what: format!("a copy by vectors of {align} bytes with a buffer at {address:#x}"),
                remedy: "say where it begins in its layout's offset, and give all of its buffer",
            });
        }
        let args = Args::new().slice(from).slice_mut(to);
        // SAFETY: the arguments are those of the kernel, which stays within the layouts; buffers are long enough, and
        // named.
        unsafe { kernel.launch(stream, way.grid(), args) }
    }

    /// Launch geometry; `None` where there is nothing to copy.
    ///
    /// # Errors
    ///
    /// The driver does not report the number of registers.
    pub fn geometry(&self) -> Result<Option<Geometry>, Error> {
        let Some((way, kernel)) = &self.work else {
            return Ok(None);
        };
        Ok(Some(Geometry { registers: Some(kernel.registers()?), ..way.geometry() }))
    }
}

#[cfg(test)]
mod tests;
