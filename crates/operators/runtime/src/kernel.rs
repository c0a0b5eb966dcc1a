//! Implementations of ops, bound to the memory of one call.

use std::fmt;

use crate::arg::Arg;
use crate::error::Failure;
use crate::gpu::{Copies, Gpu, GpuWork, Launch, prepared};
use crate::row_update::RowUpdate;
use crate::run::Run;

/// The function of an instruction.
pub(crate) type Function = Box<dyn FnMut(&mut Run<'_, '_>) -> Result<(), Failure> + Send>;

/// The implementation of one call.
pub(crate) enum Kernel {
    /// A function without state.
    Function(Function),
    /// An update of table rows, with its own optimizer states.
    Rows(Box<RowUpdate>),
    /// Work on a GPU.
    Gpu(Box<dyn GpuWork>),
}

impl Kernel {
    pub(crate) fn new(run: impl FnMut(&mut Run<'_, '_>) -> Result<(), Failure> + Send + 'static) -> Kernel {
        Kernel::Function(Box::new(run))
    }

    /// Work on a GPU: `prepare` compiles it for its operands and returns its launch.
    pub(crate) fn on_gpu(
        prepare: impl FnOnce(&mut Gpu<'_, '_>) -> Result<Launch, Failure> + Send + 'static,
    ) -> Kernel {
        Kernel::Gpu(prepared(prepare))
    }

    /// The same kernel, which does nothing else on a GPU than these copies.
    pub(crate) fn of_copies(self, copies: Vec<(Arg, Arg)>) -> Kernel {
        match self {
            Kernel::Gpu(work) => Kernel::Gpu(Box::new(Copies { work, copies })),
            other => other,
        }
    }

    /// Whether it is an exchange on a GPU.
    pub(crate) fn is_exchange(&self) -> bool {
        matches!(self, Kernel::Gpu(work) if work.is_exchange())
    }

    pub(crate) fn run(&mut self, run: &mut Run<'_, '_>) -> Result<(), Failure> {
        match self {
            Kernel::Function(function) => function(run),
            Kernel::Rows(update) => update.run(run),
            Kernel::Gpu(_) => Err("it is compiled for a GPU".into()),
        }
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kernel::Function(_) => "Function",
            Kernel::Rows(_) => "Rows",
            Kernel::Gpu(_) => "Gpu",
        })
    }
}
