//! Chains of elementwise ops as one kernel, as `torch.compile` of a small function makes them.

mod chains;
mod compiled;
mod groups;
mod units;

use steptime_step::{Patch, Step};

use self::compiled::Compiled;
use self::units::Units;
use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::selection::Among;
use crate::stage::Stage;

/// Compiles every chain of elementwise ops of the forward pass, and with it its backward pass.
#[derive(Debug, Clone, Copy, Default)]
pub struct FusePointwise;

impl Rule for FusePointwise {
    fn name(&self) -> &'static str {
        "fuse-elementwise"
    }

    fn stage(&self) -> Stage {
        Stage::Chains
    }

    fn effort(&self) -> &'static str {
        "small: each chain in a function of its own, under torch.compile"
    }

    fn risk(&self) -> &'static str {
        "shapes that change compile again; sums may be rounded otherwise"
    }

    fn doubt(&self) -> Option<(&'static str, f64)> {
        Some((
            "calling a compiled function takes Python some time, in one model twice as long as in another: where the host is the limit, the step may be longer",
            0.2,
        ))
    }

    fn patches(&self, step: &Step, facts: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        self.among(step, facts, &Among::ALL)
    }
}

impl FusePointwise {
    /// The same of some ops of the forward pass alone.
    pub(crate) fn among(&self, step: &Step, facts: &Facts<'_>, among: &Among) -> Result<Vec<Patch>, Error> {
        let units = Units::of(step, facts, among);
        let chains = chains::find(&units);
        if chains.is_empty() {
            let reason = "no two elementwise ops of the forward pass follow one another alone".to_owned();
            return Err(Error::NothingToDo { reason });
        }
        let mut compiled = Compiled::new(&units, self.name());
        chains.iter().for_each(|chain| compiled.chain(chain));
        let [forward, backward] = compiled.kernels;
        let mut patch = compiled.patch;
        patch.why = format!(
            "{} chains of elementwise ops: {forward} kernels of the forward pass and {backward} of the backward pass become one each",
            chains.len()
        );
        Ok(vec![patch])
    }
}
