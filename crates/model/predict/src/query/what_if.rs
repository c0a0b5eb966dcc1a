//! Queries of the step time after changes.

use steptime_cost::device::DeviceSpec;
use steptime_rewrite::Rule;

use super::Query;
use super::host::ChosenHost;
use crate::error::Error;
use crate::memory;
use crate::plausibility::{check_sizes, check_time};
use crate::predict::{Prediction, predict_in};
use crate::step::Step;
use crate::time_sources::Kernels;
use crate::whatif::{self, Base, Change, ModifiedStep, Outcome, PricedStep, Pricing, WhatIf};

impl Query<'_> {
    /// Changes the step, and predicts its time before and after.
    ///
    /// ```
    /// # fn main() -> Result<(), steptime_predict::Error> {
    /// # let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples");
    /// use steptime_rewrite::{CudaGraph, ResizeBatch};
    ///
    /// let step = steptime_predict::open(format!("{examples}/dlrm_default_2048"))?;
    /// let answer = step.predict().what_if(&[&ResizeBatch::to(8192), &CudaGraph])?;
    /// println!("{} to {}", answer.before.step, answer.after.step);
    /// # assert!(answer.after.active > answer.before.active);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Query::simulate`]; also where a rule does not apply, or where changed kernels have to be priced for the GPU recorded on
    /// and no profile of it ships.
    pub fn what_if(&self, rules: &[&dyn Rule]) -> Result<WhatIf, Error> {
        self.changed(&Change { rules, host_times: None })
    }

    /// Like [`Query::what_if`], but the change may also be one of the host.
    ///
    /// # Errors
    /// As [`Query::what_if`]; also where the factor is out of range.
    pub fn changed(&self, change: &Change<'_>) -> Result<WhatIf, Error> {
        self.what_ifs()?.changed(change)
    }

    /// Prepares the step for queries of many changes: shared work is done once.
    ///
    /// # Errors
    /// As [`Query::simulate`].
    pub fn what_ifs(&self) -> Result<WhatIfs<'_>, Error> {
        let step = self.predictable()?;
        if step.arguments.known() == 0 {
            return Err(Error::NoArguments { path: self.step.path.clone() });
        }
        let chosen = self.chosen(step)?;
        let pricing = self.pricing(&chosen);
        let peak = memory::peak_of_recorded(step, &pricing.kernels);
        let before = predict_in(step, &pricing.host, &pricing.kernels, self.asked(&chosen), peak);
        if let Some(device) = &before.device {
            check_sizes(&step.path, &step.graph, &device.launches)?;
        }
        check_time(step, before.step)?;
        let base = Base::new(step, &pricing, before);
        Ok(WhatIfs { question: self, step, chosen, base })
    }

    fn pricing<'c>(&'c self, chosen: &'c ChosenHost<'_>) -> Pricing<'c> {
        Pricing { host: self.host_of(chosen), kernels: self.kernels(), process: self.process }
    }
}

/// A step prepared for queries of many changes, made by [`Query::what_ifs`]. Threads may use it concurrently.
///
/// ```
/// # fn main() -> Result<(), steptime_predict::Error> {
/// # let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples");
/// use steptime_predict::Change;
/// use steptime_rewrite::ResizeBatch;
///
/// let step = steptime_predict::open(format!("{examples}/dlrm_default_2048"))?;
/// let question = step.predict();
/// let asked = question.what_ifs()?;
/// for batch in [1024, 4096, 8192] {
///     let answer = asked.changed(&Change { rules: &[&ResizeBatch::to(batch)], ..Change::default() })?;
///     println!("{batch}: {}", answer.after.step);
/// #   assert!(answer.after.step > steptime_trace::Nanos::ZERO);
/// }
/// # Ok(())
/// # }
/// ```
pub struct WhatIfs<'q> {
    question: &'q Query<'q>,
    step: &'q Step,
    chosen: ChosenHost<'q>,
    base: Base,
}

impl WhatIfs<'_> {
    /// The step before any change.
    #[must_use]
    pub fn before(&self) -> &Prediction {
        &self.base.before
    }

    /// The step that is changed.
    #[must_use]
    pub fn recorded(&self) -> &Step {
        self.step
    }

    /// Specification of the GPU, where known.
    #[must_use]
    pub fn spec(&self) -> Option<&DeviceSpec> {
        self.base.spec.as_ref()
    }

    /// Ops and tensors before any change.
    #[must_use]
    pub fn unchanged(&self) -> &steptime_step::StepIr {
        &self.base.step
    }

    /// Device memory of the step over time, at each change of it; empty where unknown. Ops are those of
    /// [`WhatIfs::unchanged`].
    #[must_use]
    pub fn memory(&self) -> Vec<steptime_step::Moment> {
        memory::over_recorded(self.step, self.base.spec.as_ref(), &self.base.step)
    }

    /// Whether unchanged kernels keep their measured time.
    pub(crate) fn is_measured(&self) -> bool {
        matches!(self.question.kernels(), Kernels::Measured)
    }

    /// Changes the step, and predicts its time.
    ///
    /// # Errors
    /// As [`Query::changed`].
    pub fn changed(&self, change: &Change<'_>) -> Result<WhatIf, Error> {
        whatif::what_if(self.step, &self.pricing(), change, &self.base)
    }

    /// Changes the step without pricing it, for use by queries that differ only in GPU and host.
    /// The distribution of lookups and PyTorch's settings are those of this query.
    ///
    /// # Errors
    /// Fails where a rule does not apply.
    pub fn edited(&self, rules: &[&dyn Rule]) -> Result<ModifiedStep, Error> {
        ModifiedStep::apply(self.step, &self.base, rules, &self.question.kernels())
    }

    /// Predicts a changed step for each of these factors on the host's times (`None` for unchanged).
    ///
    /// # Errors
    /// Fails where changed kernels have to be priced for the GPU recorded on and no profile of it ships. An outcome fails where its
    /// factor is out of range.
    pub fn outcomes(
        &self,
        edited: &ModifiedStep,
        host_times: &[Option<f64>],
    ) -> Result<Vec<Result<Outcome, Error>>, Error> {
        let costed = PricedStep::price(self.step, &self.pricing(), &self.base, edited)?;
        Ok(host_times.iter().map(|&times| Outcome::simulate(&self.base, edited, &costed, times)).collect())
    }

    /// The step, its prices, and the work that all its changes share.
    pub(crate) fn parts(&self) -> (&Step, Pricing<'_>, &Base) {
        (self.step, self.pricing(), &self.base)
    }

    fn pricing(&self) -> Pricing<'_> {
        self.question.pricing(&self.chosen)
    }
}
