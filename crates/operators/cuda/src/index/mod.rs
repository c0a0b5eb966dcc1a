//! Elements of each sample's matrix at given rows and columns, and their gradient: see `index.cu`.
//!
//! Additions are in single precision, in the order of the pairs, so that results are those of a loop over them.

mod plan;

use std::sync::{Mutex, PoisonError};

use steptime_ops::rearrange::RearrangeError;
use steptime_tensor::Layout;

use self::plan::Plan;
use crate::{Args, Buffer, Device, Error, Kernel, Slice, SliceMut, Stream};

/// Pairs of a row and a column in a batch of matrices, compiled for their sizes.
///
/// Rows and columns are read by the GPU in each run. Pairs outside of the matrix are skipped: where it matters, the
/// caller checks them.
#[derive(Debug)]
pub struct Pairs {
    plan: Plan,
    /// `None` where there are no pairs, no samples or no elements.
    kernels: Option<Kernels>,
}

#[derive(Debug)]
struct Kernels {
    gather: Kernel,
    link: Kernel,
    add: Kernel,
    /// For each pair: whether it is the first of its position, and the next one.
    chains: Mutex<[Buffer<u32>; 2]>,
}

impl Pairs {
    /// Compiles for `pairs` pairs in each of `batch` matrices of `[rows, columns]`. The element of a sample at a row and
    /// a column is at `offset + sample * strides[0] + row * strides[1] + column * strides[2]` of its buffer.
    ///
    /// # Errors
    ///
    /// Sizes that exceed the GPU's numbers; too little memory; no compiler.
    pub fn new(
        device: &Device,
        batch: usize,
        [rows, columns]: [usize; 2],
        strides: [usize; 3],
        offset: usize,
        pairs: usize,
    ) -> Result<Pairs, Error> {
        let matrices = Layout::new(&[batch, rows, columns], &strides, offset);
        let plan = Plan::new(matrices.map_err(RearrangeError::from)?, pairs)?;
        let kernels = if plan.count() == 0 || plan.matrices.is_empty() {
            None
        } else {
            let module = device.load(&plan.source())?;
            let [gather, link, add] =
                [module.kernel("gather")?, module.kernel("link")?, module.kernel("add")?];
            let chains = Mutex::new([Buffer::uninit(device, pairs)?, Buffer::uninit(device, pairs)?]);
            Some(Kernels { gather, link, add, chains })
        };
        Ok(Pairs { plan, kernels })
    }

    /// Writes `[batch, pairs]`, contiguous: `to[sample, p] = from[sample, rows[p], columns[p]]`.
    ///
    /// # Errors
    ///
    /// Operands that are too short.
    pub fn gather(
        &self,
        stream: &Stream,
        from: Slice<'_, f32>,
        rows: Slice<'_, i64>,
        columns: Slice<'_, i64>,
        to: &mut SliceMut<'_, f32>,
    ) -> Result<(), Error> {
        self.check(from.len(), [rows, columns])?;
        at_least("the gathered elements", to.len(), self.plan.count())?;
        let Some(kernels) = &self.kernels else {
            return Ok(());
        };
        let args = Args::new().slice(from).slice(rows).slice(columns).slice_mut(to);
        // SAFETY: the arguments are those of the kernel, and are long enough and named. It reads matrices within their
        // shape only.
        unsafe { kernels.gather.launch(stream, self.plan.grid(), args) }
    }

    /// Adds `to[sample, rows[p], columns[p]] += values[sample, p]`, pair by pair in their order, where the value is at
    /// `sample * strides[0] + p * strides[1]`. Pairs may repeat.
    ///
    /// # Errors
    ///
    /// Operands that are too short; matrices whose elements may overlap.
    pub fn add(
        &self,
        stream: &Stream,
        values: Slice<'_, f32>,
        strides: [usize; 2],
        rows: Slice<'_, i64>,
        columns: Slice<'_, i64>,
        to: &mut SliceMut<'_, f32>,
    ) -> Result<(), Error> {
        let Plan { matrices, pairs } = &self.plan;
        self.check(to.len(), [rows, columns])?;
        let given = Layout::new(&[self.plan.batch(), *pairs], &strides, 0).map_err(RearrangeError::from)?;
        at_least("the added values", values.len(), given.last().map_or(0, |last| last + 1))?;
        if matrices.may_overlap() {
            return Err(Error::Unsupported {
                what: format!(
                    "an addition to matrices {:?} with strides {:?}",
                    matrices.shape(),
                    matrices.strides()
                ),
                remedy: "give each element of an output a place of its own",
            });
        }
        let Some(Kernels { link, add, chains, .. }) = &self.kernels else {
            return Ok(());
        };
        // Held for both launches, so that no other thread's launch comes between them.
        let chains = chains.lock().unwrap_or_else(PoisonError::into_inner);
        let [first, next] = [chains[0].as_ref(), chains[1].as_ref()];
        let args = Args::new().slice(rows).slice(columns).own(first).own(next);
        // SAFETY: the arguments are those of the kernel, and are long enough and named.
        unsafe { link.launch(stream, self.plan.pair_grid(), args) }?;
        let [row, column] = strides.map(|stride| stride as u64);
        let args = Args::new().slice(values).value(row).value(column).slice(rows).slice(columns);
        let args = args.slice(first).slice(next).slice_mut(to);
        // SAFETY: as above. No two threads add to one element: matrices do not overlap, and one thread adds all values
        // of a position.
        unsafe { add.launch(stream, self.plan.grid(), args) }
    }

    /// Fails where the matrices or the pairs are too short.
    fn check(&self, matrices: usize, pairs: [Slice<'_, i64>; 2]) -> Result<(), Error> {
        at_least("the matrices of pairs", matrices, self.plan.needed())?;
        at_least("the rows of pairs", pairs[0].len(), self.plan.pairs)?;
        at_least("the columns of pairs", pairs[1].len(), self.plan.pairs)
    }
}

/// Fails where a buffer is shorter than needed.
fn at_least(what: &'static str, found: usize, needed: usize) -> Result<(), Error> {
    if found < needed { Err(Error::Size { what, found, needed }) } else { Ok(()) }
}
