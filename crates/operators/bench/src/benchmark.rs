//! What a benchmark of one op is, and how several are run.

use std::fmt;

use crate::sizes::Sizes;
use crate::{Error, TypedSizes};

/// The benchmark of one op. `C` is what a run has beside it: the processor or the GPU, and the rows so far.
pub struct Benchmark<C> {
    /// What it is called.
    pub name: &'static str,
    /// What it measures.
    pub about: &'static str,
    /// What its sizes are.
    pub sizes: &'static str,
    /// Its sizes by their letters, with what they are where they are left out.
    pub(crate) keys: &'static [(&'static str, usize)],
    /// Runs one size.
    pub(crate) run: fn(&mut C, &Sizes) -> Result<(), Error>,
    /// Runs the sizes that are usual.
    pub(crate) usual: fn(&mut C) -> Result<(), Error>,
}

impl<C> fmt::Debug for Benchmark<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Benchmarks, each with the size that was typed for it, if one was.
pub(crate) struct Plan<'b, C>(Vec<(&'b Benchmark<C>, Option<Sizes>)>);

impl<'b, C> Plan<'b, C> {
    /// Reads what was typed, before anything runs.
    pub fn new(chosen: &[&'b Benchmark<C>], typed: Option<&TypedSizes>) -> Result<Plan<'b, C>, Error> {
        let sizes = |of: &Benchmark<C>| typed.map(|typed| Sizes::typed(of.keys, typed)).transpose();
        chosen.iter().map(|&of| Ok((of, sizes(of)?))).collect::<Result<_, _>>().map(Plan)
    }

    /// Runs all. `progress` is told before each how many are done, and of how many.
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
