//! Asking how long a step would take if it were another.

use steptime_rewrite::{self as rewrite, Rule};

use super::{Question, takes_time};
use crate::error::Error;
use crate::explain::{self, Explanation};
use crate::memory;
use crate::predict::{Prediction, predict_in};
use crate::step::Step;
use crate::whatif::{self, Change, Pricing, WhatIf};

impl Question<'_> {
    /// Changes the step, and answers how long it takes before and after.
    ///
    /// ```
    /// # fn main() -> Result<(), steptime::Error> {
    /// # let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples");
    /// use steptime::rewrite::{CudaGraph, ResizeBatch};
    ///
    /// let step = steptime::open(format!("{examples}/dlrm_default_2048"))?;
    /// let answer = step.predict().what_if(&[&ResizeBatch::to(8192), &CudaGraph])?;
    /// println!("{} to {}", answer.before.step, answer.after.step);
    /// # assert!(answer.after.active > answer.before.active);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Question::simulate`]; where a rule does not apply; where what changes is to be priced by the GPU recorded on
    /// and no profile of it ships.
    pub fn what_if(&self, rules: &[&dyn Rule]) -> Result<WhatIf, Error> {
        self.changed(&Change { rules, host_times: None })
    }

    /// The same, of a change that may be one of the host too.
    ///
    /// # Errors
    /// As [`Question::what_if`]; where the factor makes no sense.
    pub fn changed(&self, change: &Change<'_>) -> Result<WhatIf, Error> {
        self.with_pricing(|step, pricing, before| whatif::what_if(step, pricing, change, before))
    }

    /// What bounds the step, and what each change that applies would bring, the best first.
    ///
    /// # Errors
    /// As [`Question::simulate`].
    pub fn explain(&self) -> Result<Explanation, Error> {
        let rules = rewrite::all();
        self.with_pricing(|step, pricing, before| explain::explain(step, pricing, &rules, before))
    }

    fn with_pricing<T>(
        &self,
        then: impl FnOnce(&Step, &Pricing<'_>, Prediction) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let step = self.shaped(true)?;
        if step.arguments.known() == 0 {
            return Err(Error::NoArguments { path: self.step.path.clone() });
        }
        let chosen = self.chosen(&step)?;
        let pricing = Pricing { host: self.host_of(&chosen), kernels: self.kernels(), process: self.process };
        let mut before = predict_in(&step, self.process, &pricing.host, &pricing.kernels);
        takes_time(&step, before.step)?;
        before.asked = self.asked(&chosen);
        let spec = memory::spec(&step, &pricing.kernels);
        let before = before.with_peak(memory::of_recorded(&step, &pricing.kernels), spec.as_ref());
        then(&step, &pricing, before)
    }
}
