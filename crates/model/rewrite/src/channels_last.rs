//! Images with contiguous channels, as after `model.to(memory_format=torch.channels_last)`.

use std::collections::BTreeSet;

use steptime_aten::{Tensor, channels_last};
use steptime_step::{OpId, Patch, StepIr, TensorId};

use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// Channels-last layout of the batch and of the filters.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChannelsLast;

impl Rule for ChannelsLast {
    fn name(&self) -> &'static str {
        "channels-last"
    }

    fn stage(&self) -> Stage {
        Stage::Layout
    }

    fn effort(&self) -> &'static str {
        "two lines: model and batch to memory_format=torch.channels_last"
    }

    fn risk(&self) -> &'static str {
        "ops without channels-last kernels convert back and forth"
    }

    fn doubt(&self) -> Option<(&'static str, f64)> {
        Some((
            "cuDNN adds host time for channels-last tensors that is not modelled: a host-bound step is longer",
            0.25,
        ))
    }

    fn patches(&self, step: &StepIr, _: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let images = images(step);
        let mut patch = Patch::new(self.name());
        for (id, tensor) in step.tensors.iter_enumerated() {
            let value = &tensor.value;
            if images.contains(&id)
                && value.is_contiguous()
                && let Some(strides) = channels_last::strides(&value.shape)
            {
                patch.reshape.push((id, Tensor { strides, ..value.clone() }));
            }
        }
        if patch.is_empty() {
            let reason = "no image op has a contiguous tensor of several channels".to_owned();
            return Err(Error::NothingToDo { reason });
        }
        patch.why = format!("{} tensors in channels-last format", patch.reshape.len());
        let running = step.running();
        let norms = running.iter().filter(|&&op| step.ops[op].name == "aten::native_group_norm").count();
        if norms > 0 {
            patch.why += &format!(
                "; {norms} group norms copy them to contiguous tensors: the time of these copies is not counted"
            );
        }
        Ok(vec![patch])
    }
}

/// Four-dimensional tensors that are inputs or outputs of image ops, and all that share an elementwise op with one.
fn images(step: &StepIr) -> BTreeSet<TensorId> {
    let shape = |tensor: TensorId| &step.tensors[tensor].value.shape[..];
    let of_images = |op: OpId| {
        let call = step.ops[op].call.as_deref()?;
        let four = call.takes().chain(call.gives()).filter(|&tensor| shape(tensor).len() == 4);
        Some((step.ops[op].name.as_str(), four.collect()))
    };
    let ops: Vec<_> = step.running().iter().filter_map(|&op| of_images(op)).collect();
    channels_last::images(&ops, shape)
}
