//! Images with their channels next to one another, as after `model.to(memory_format=torch.channels_last)`.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use steptime_aten::Tensor;
use steptime_step::{Patch, Step, TensorId};

use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::stage::Stage;

/// Ops that look at images of channels: what they take and give changes its layout.
const OF_IMAGES: [&str; 5] = ["conv", "batch_norm", "pool", "upsample", "group_norm"];

/// Channels last, of the batch and of the filters.
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
        "ops without kernels for it copy back and forth"
    }

    fn doubt(&self) -> Option<(&'static str, f64)> {
        Some((
            "cuDNN takes more time on the host for channels last than is known here: where the host is the limit, the step is longer",
            0.25,
        ))
    }

    fn patches(&self, step: &Step, _: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let images = images(step);
        let mut patch = Patch::new(self.name());
        for (id, tensor) in step.tensors.iter_enumerated() {
            let value = &tensor.value;
            if images.contains(&id)
                && value.is_contiguous()
                && let Some(strides) = channels_last(value)
            {
                patch.reshape.push((id, Tensor { strides: SmallVec::from_slice(&strides), ..value.clone() }));
            }
        }
        if patch.is_empty() {
            let reason = "no op takes images of several channels, row by row".to_owned();
            return Err(Error::NothingToDo { reason });
        }
        patch.why = format!("{} tensors with channels last", patch.reshape.len());
        let running = step.running();
        let norms = running.iter().filter(|&&op| step.ops[op].name == "aten::native_group_norm").count();
        if norms > 0 {
            patch.why +=
                &format!("; {norms} group norms copy them row by row, which is not counted: it takes longer");
        }
        Ok(vec![patch])
    }
}

/// Four-dimensional tensors that ops of images take or give, and all that share an elementwise op with one.
fn images(step: &Step) -> FxHashSet<TensorId> {
    let mut images = FxHashSet::default();
    let four = |tensor: TensorId| step.tensors[tensor].value.shape.len() == 4;
    let running = step.running();
    let calls: Vec<_> =
        running.iter().filter_map(|&op| step.ops[op].call.as_deref().map(|call| (op, call))).collect();
    for (op, call) in &calls {
        if OF_IMAGES.iter().any(|word| step.ops[*op].name.contains(word)) {
            images.extend(call.takes().chain(call.gives()).filter(|&tensor| four(tensor)));
        }
    }
    let mut moved = true;
    while moved {
        moved = false;
        for (_, call) in &calls {
            let all: Vec<TensorId> =
                call.takes().chain(call.gives()).filter(|&tensor| four(tensor)).collect();
            let alike = all
                .iter()
                .all(|&tensor| step.tensors[tensor].value.shape == step.tensors[all[0]].value.shape);
            if alike && all.iter().any(|tensor| images.contains(tensor)) {
                for tensor in all {
                    moved |= images.insert(tensor);
                }
            }
        }
    }
    images
}

/// The strides of four dimensions whose second lies closest; `None` where that is the same as row by row.
fn channels_last(tensor: &Tensor) -> Option<[i64; 4]> {
    let &[n, c, h, w] = tensor.shape.as_slice() else { return None };
    let strides = [h.checked_mul(w)?.checked_mul(c)?, 1, w.checked_mul(c)?, c];
    (c > 1 && h.checked_mul(w)? > 1 && n > 0).then_some(strides)
}
