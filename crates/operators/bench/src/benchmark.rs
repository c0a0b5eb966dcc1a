//! Benchmarks of one op each, and a plan that runs several of them.

use std::fmt;

use crate::sizes::Sizes;
use crate::{Error, TypedSizes};

/// The benchmark of one op. `C` is the context of a run: the processor or the GPU, and the rows so far.
pub struct Benchmark<C> {
    /// Name on the command line.
    pub name: &'static str,
    /// Description of the measurement.
    pub about: &'static str,
    /// Description of the sizes.
    pub sizes: &'static str,
    /// Letters of the sizes, with their defaults.
    pub(crate) keys: &'static [(&'static str, usize)],
    /// Runs one size.
    pub(crate) run: fn(&mut C, &Sizes) -> Result<(), Error>,
    /// Runs the default sizes.
    pub(crate) usual: fn(&mut C) -> Result<(), Error>,
}

impl<C> fmt::Debug for Benchmark<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Benchmarks, each with the sizes given for it, if any.
pub(crate) struct Plan<'b, C>(Vec<(&'b Benchmark<C>, Option<Sizes>)>);

impl<'b, C> Plan<'b, C> {
    /// Checks the given sizes, before anything runs.
    pub fn new(chosen: &[&'b Benchmark<C>], typed: Option<&TypedSizes>) -> Result<Plan<'b, C>, Error> {
        let sizes = |of: &Benchmark<C>| typed.map(|typed| Sizes::typed(of.keys, typed)).transpose();
        chosen.iter().map(|&of| Ok((of, sizes(of)?))).collect::<Result<_, _>>().map(Plan)
    }

    /// Runs all. `progress` is called before each one with the number done and the total.
    pub fn run(&self, context: &mut C, mut progress: impl FnMut(usize, usize)) -> Result<(), Error> {
        for (at, (benchmark, sizes)) in self.0.iter().enumerate() {
            progress(at, self.0.len());
            match sizes {
                Some(sizes) => (benchmark.run)(context, sizes)?,
                None => (benchmark.usual)(context)?,
            }
        }
        Ok(())
    }
}
