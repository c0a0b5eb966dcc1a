//! Optimizers of dense parameters: one launch for many of them.
//!
//! The numbers of a step are read from the device's memory, so that a captured step follows a schedule of the learning rate.

use bytemuck::{Pod, Zeroable};

use crate::{Args, Device, Error, Grid, Kernel, Slice, SliceMut, Source, Stream};

/// Threads of a block.
const THREADS: u32 = 256;
/// Elements of a block.
const CHUNK: usize = 4096;
/// Parameters of a launch.
const COUNT: usize = 64;

/// Floats from number to number in the device's memory.
pub const PITCH: usize = 4;

/// Update rule, with the numbers that it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// `p -= rate g`. Numbers: rate.
    Sgd,
    /// `h += g^2; p -= rate g / (sqrt h + eps)`. Numbers: rate, eps.
    Adagrad,
    /// `m += take1 (g - m); v = keep2 v + take2 g^2; p = p keep - rate m / (sqrt v / root + eps)`. Numbers: take1, keep2, take2, rate, root,
    /// eps, keep.
    Adam,
}

impl Rule {
    /// Number of states of each element.
    #[must_use]
    pub fn states(self) -> usize {
        match self {
            Rule::Sgd => 0,
            Rule::Adagrad => 1,
            Rule::Adam => 2,
        }
    }

    /// Number of numbers.
    #[must_use]
    pub fn numbers(self) -> usize {
        match self {
            Rule::Sgd => 1,
            Rule::Adagrad => 2,
            Rule::Adam => 7,
        }
    }
}

/// A parameter with its gradient and its states, contiguous and of one length.
#[derive(Debug)]
pub struct Parameter<'a> {
    /// Elements that are updated.
    pub weights: SliceMut<'a, f32>,
    /// Their gradient.
    pub gradient: Slice<'a, f32>,
    /// States: as many as the rule has.
    pub states: Vec<SliceMut<'a, f32>>,
}

/// Layout of a parameter in `dense.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Entry {
    weights: u64,
    gradient: u64,
    first: u64,
    second: u64,
    len: u32,
    end: u32,
}

/// An optimizer's step over dense parameters.
#[derive(Debug)]
pub struct DenseStep {
    kernel: Kernel,
    rule: Rule,
}

impl DenseStep {
    /// Compiles a rule.
    ///
    /// # Errors
    ///
    /// No compiler.
    pub fn new(device: &Device, rule: Rule) -> Result<DenseStep, Error> {
        Ok(DenseStep { kernel: device.load(&source(rule))?.kernel("dense_step")?, rule })
    }

    /// Updates all parameters. `numbers` are those of the rule, [`PITCH`] floats apart.
    ///
    /// # Errors
    ///
    /// Lengths that differ, exceed 32 bits, or addresses that are not multiples of 16 bytes; too few numbers.
    pub fn run(
        &self,
        stream: &Stream,
        numbers: Slice<'_, f32>,
        parameters: &[Parameter<'_>],
    ) -> Result<(), Error> {
        let needed = (self.rule.numbers() - 1) * PITCH + 1;
        if numbers.len() < needed {
            return Err(Error::Size { what: "the numbers of an optimizer", found: numbers.len(), needed });
        }
        parameters.iter().try_for_each(|parameter| self.check(parameter))?;
        let used: Vec<&Parameter<'_>> =
            parameters.iter().filter(|parameter| !parameter.weights.is_empty()).collect();
        for some in used.chunks(COUNT) {
            let mut entries = Vec::with_capacity(COUNT);
            let mut end = 0_u32;
            for parameter in some {
                end += parameter.weights.len().div_ceil(CHUNK) as u32;
                let state = |at: usize| parameter.states.get(at).map_or(0, SliceMut::address);
                entries.push(Entry {
                    weights: parameter.weights.address(),
                    gradient: parameter.gradient.address(),
                    first: state(0),
                    second: state(1),
                    len: parameter.weights.len() as u32,
                    end,
                });
            }
            // Entries after the last are never reached: blocks end with it.
            entries.resize(COUNT, Entry { end, ..Entry::zeroed() });
            let args = Args::new().array(&entries).slice(numbers);
            let args = some.iter().fold(args, |args, parameter| {
                let args = args.writes(parameter.weights.as_ref()).reads(parameter.gradient);
                parameter.states.iter().fold(args, |args, state| args.writes(state.as_ref()))
            });
            // SAFETY: the arguments are those of the kernel, which stays within each parameter's length; lengths and alignment were checked.
            // All memory is named.
            unsafe { self.kernel.launch(stream, Grid::line(end, THREADS), args)? };
        }
        Ok(())
    }

    fn check(&self, parameter: &Parameter<'_>) -> Result<(), Error> {
        let needed = parameter.weights.len();
        let lengths = parameter.states.iter().map(SliceMut::len).chain([parameter.gradient.len()]);
        if let Some(found) = lengths.into_iter().find(|&found| found != needed) {
            return Err(Error::Size { what: "the gradient or a state of a parameter", found, needed });
        }
        let mut addresses = parameter
            .states
            .iter()
            .map(SliceMut::address)
            .chain([parameter.weights.address(), parameter.gradient.address()]);
        let is_aligned = addresses.all(|address| address.is_multiple_of(16));
        if !is_aligned || u32::try_from(needed).is_err() || parameter.states.len() != self.rule.states() {
            return Err(Error::Unsupported {
                what: format!("a step of {:?} for a parameter of {needed} floats", self.rule),
                remedy: "give parameters of fewer than 2^32 floats with all states, at multiples of 16 bytes",
            });
        }
        Ok(())
    }
}

fn source(rule: Rule) -> Source {
    Source::new("dense.cu", include_str!("dense.cu"))
        .define("RULE", rule as u8)
        .define("COUNT", COUNT)
        .define("CHUNK", CHUNK)
        .define("THREADS", THREADS)
        .define("PITCH", PITCH)
        .option("--fmad=false")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestCompiler;

    #[test]
    fn kernels_compile() {
        let Some(compiler) = TestCompiler::new() else { return };
        for rule in [Rule::Sgd, Rule::Adagrad, Rule::Adam] {
            compiler.build(&source(rule));
        }
    }
}
