//! Exchanges of vectors in 16 bits, as a change of the predicted step.

use steptime_aten::Tensor;
use steptime_rewrite::{Error, Facts, Rule, Stage};
use steptime_step::{Patch, StepIr, TensorId};

/// Sends vectors in 16 bits that are converted to 16 bits on arrival.
#[derive(Debug)]
pub struct NarrowExchanges {
    /// Tensors of the exchanges, with their values in 16 bits.
    tensors: Vec<(TensorId, Tensor)>,
}

impl NarrowExchanges {
    /// The tensors whose types differ between two forms of a step; `None` where there are none.
    pub fn between(wide: &StepIr, narrow: &StepIr) -> Option<NarrowExchanges> {
        let both = wide.tensors.iter().zip(narrow.tensors.iter_enumerated());
        let differ = both.filter(|(wide, (_, narrow))| wide.value.dtype != narrow.value.dtype);
        let tensors: Vec<_> = differ.map(|(_, (at, narrow))| (at, narrow.value.clone())).collect();
        (!tensors.is_empty()).then_some(NarrowExchanges { tensors })
    }
}

impl Rule for NarrowExchanges {
    fn name(&self) -> &'static str {
        "narrow-exchanges"
    }

    fn stage(&self) -> Stage {
        Stage::Casts
    }

    fn patches(&self, step: &StepIr, _: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let mut patch = Patch::new(self.name());
        let known = self.tensors.iter().filter(|(at, _)| step.tensors.get(*at).is_some());
        patch.reshape = known.cloned().collect();
        patch.why = "looked-up vectors sent in 16 bits".to_owned();
        Ok(vec![patch])
    }
}
