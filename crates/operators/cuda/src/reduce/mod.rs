//! Sums over dimensions on a GPU: see `reduce.cu`.
//!
//! Elements are added in double precision and in a fixed order, which depends on the layout alone. Where there are few
//! results, the terms of each are split into parts, and a second launch adds the sums of parts.

mod plan;

use std::sync::{Mutex, PoisonError};

use steptime_tensor::Layout;

use self::plan::Plan;
use crate::{Args, Buffer, Device, Error, Kernel, Slice, SliceMut, Stream};

/// What is computed of the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Their sum.
    Sum,
    /// The square root of the sum of their squares.
    Norm,
}

/// Sums over some dimensions of a layout, compiled for it.
///
/// It has a workspace of its own, so it runs in one stream at a time: in another stream it waits for that one first.
#[derive(Debug)]
pub struct Sum {
    plan: Plan,
    kernels: Kernels,
}

#[derive(Debug)]
enum Kernels {
    /// There are no results.
    None,
    /// Each result is computed by one block.
    Whole(Kernel),
    /// Sums of parts, then their sums.
    Parts { partial: Kernel, finish: Kernel, workspace: Mutex<Buffer<f64>> },
}

impl Sum {
    /// Compiles the sums over `dims`, or over all dimensions where `dims` is empty. Sums of no elements are 0.
    ///
    /// # Errors
    ///
    /// Dimensions that the shape does not have, or one twice; too little memory for the workspace; no compiler.
    pub fn new(device: &Device, from: &Layout, dims: &[usize], kind: Kind) -> Result<Sum, Error> {
        let plan = Plan::new(from, dims)?;
        if plan.results == 0 {
            return Ok(Sum { plan, kernels: Kernels::None });
        }
        let module = device.load(&plan.source(kind))?;
        let kernels = if plan.parts == 1 {
            Kernels::Whole(module.kernel("whole")?)
        } else {
            Kernels::Parts {
                partial: module.kernel("partial")?,
                finish: module.kernel("finish")?,
                workspace: Mutex::new(Buffer::uninit(device, plan.workspace())?),
            }
        };
        Ok(Sum { plan, kernels })
    }

    /// Number of results.
    #[must_use]
    pub fn results(&self) -> usize {
        self.plan.results
    }

    /// Writes the results one after the other, in the row-major order of the remaining dimensions.
    ///
    /// # Errors
    ///
    /// Operands that are shorter than the layout or than the results.
    pub fn run(
        &self,
        stream: &Stream,
        from: Slice<'_, f32>,
        to: &mut SliceMut<'_, f32>,
    ) -> Result<(), Error> {
        let given = [("the elements of a sum", from.len()), ("the results of a sum", to.len())];
        for ((what, found), needed) in given.into_iter().zip([self.plan.end, self.plan.results]) {
            if found < needed {
                return Err(Error::Size { what, found, needed });
            }
        }
        match &self.kernels {
            Kernels::None => Ok(()),
            Kernels::Whole(whole) => {
                let args = Args::new().slice(from).slice_mut(to);
                // SAFETY: the arguments are those of the kernel, which stays within the layout and the results; both
                // operands are long enough, and named.
                unsafe { whole.launch(stream, self.plan.grid(), args) }
            }
            Kernels::Parts { partial, finish, workspace } => {
                // Held for both launches, so that no other thread's launch comes between them.
                let workspace = workspace.lock().unwrap_or_else(PoisonError::into_inner);
                let args = Args::new().slice(from).own(workspace.as_ref());
                // SAFETY: as above; the workspace has an element for each part of each result.
                unsafe { partial.launch(stream, self.plan.grid(), args) }?;
                let args = Args::new().slice(workspace.as_ref()).slice_mut(to);
                // SAFETY: as above.
                unsafe { finish.launch(stream, self.plan.finish_grid(), args) }
            }
        }
    }
}
