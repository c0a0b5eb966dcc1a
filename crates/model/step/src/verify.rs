//! Checks of a step after a patch.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_aten::{Arg, Device, OpCall, OpSet};
use steptime_graph::TiVec;

use crate::call::Call;
use crate::error::Error;
use crate::ids::{OpId, TensorId};
use crate::patch::Patch;
use crate::step::{Origin, StepIr};
use crate::uses::{Uses, new_outputs};

/// Ops that copy from one device to the other.
const COPIES: [&str; 4] = ["aten::copy_", "aten::_to_copy", "aten::to", "aten::_local_scalar_dense"];

impl StepIr {
    /// Checks the result of patches on the step `before`; `moves` is set where any producer or consumer of a tensor changes.
    pub(crate) fn verify(
        &self,
        before: &StepIr,
        patches: &[Patch],
        moves: bool,
        ops: &OpSet,
    ) -> Result<(), Error> {
        let is = moves.then(|| Uses::find(self));
        if let Some(is) = &is {
            self.nothing_dangles(before, &Uses::find(before), is, patches)?;
            self.made_once()?;
        }
        let derived: FxHashSet<OpId> = patches.iter().flat_map(|patch| &patch.derive).copied().collect();
        let of_these = |rule: &str| patches.iter().any(|patch| patch.rule == rule);
        let running = self.running();
        let mut places: TiVec<OpId, usize> = vec![usize::MAX; self.ops.len()].into();
        running.iter().enumerate().for_each(|(place, &op)| places[op] = place);
        for op in running {
            match self.ops[op].origin {
                // Its inputs and outputs are unchanged.
                Origin::Inserted(_) if derived.contains(&op) => {}
                // A repetition has the same shapes, in the order of the repeated ops.
                Origin::Inserted(rule) if of_these(rule) && self.ops[op].again.is_none() => {
                    is.as_ref().map_or(Ok(()), |is| self.in_order(op, is, &places))?;
                    self.fits(op, None, ops)?;
                }
                Origin::Changed(_, rule) if of_these(rule) => {
                    self.fits(op, Some(before), ops)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn shape(&self, tensor: TensorId) -> Vec<i64> {
        self.tensors[tensor].value.shape.to_vec()
    }

    /// Checks that tensors that were made by an op before, and are still taken, are still made.
    fn nothing_dangles(
        &self,
        before: &StepIr,
        was: &Uses,
        is: &Uses,
        patches: &[Patch],
    ) -> Result<(), Error> {
        // A lifted op writes to memory from before the step.
        let lifted = patches.iter().flat_map(|patch| &patch.lift);
        let lifted = lifted.filter_map(|(inner, _)| self.ops[*inner].call.as_deref());
        let there: FxHashSet<TensorId> = lifted.flat_map(Call::takes).collect();
        for tensor in before.tensors.keys().filter(|tensor| !there.contains(tensor)) {
            if was.producer(tensor).is_some()
                && is.producer(tensor).is_none()
                && let Some(&op) = is.consumers(tensor).first()
            {
                let (op, shape) = (self.ops[op].name.clone(), self.shape(tensor));
                return Err(Error::Dangling { op, shape });
            }
        }
        Ok(())
    }

    /// Checks that no inserted op makes a tensor of another op, unless one is inside the other, or both repeat ops that did so.
    fn made_once(&self) -> Result<(), Error> {
        let mut makers: FxHashMap<TensorId, OpId> = FxHashMap::default();
        for op in self.running() {
            let Some(call) = &self.ops[op].call else { continue };
            let inserted = matches!(self.ops[op].origin, Origin::Inserted(_));
            for tensor in new_outputs(call) {
                let maker = *makers.entry(tensor).or_insert(op);
                let repeat = self.ops[op].again.is_some() && self.ops[maker].again.is_some();
                if inserted && !repeat && !self.is_within(op, maker) {
                    let (op, shape) = (self.ops[op].name.clone(), self.shape(tensor));
                    return Err(Error::MadeTwice { op, shape });
                }
            }
        }
        Ok(())
    }

    /// Checks that an inserted op takes tensors that were made before it, within one thread. `places` are the positions of ops among all running
    /// ones.
    fn in_order(&self, op: OpId, uses: &Uses, places: &TiVec<OpId, usize>) -> Result<(), Error> {
        let Some(call) = &self.ops[op].call else { return Ok(()) };
        for tensor in call.takes() {
            let Some(maker) = uses.producer(tensor) else { continue };
            let is_later = places[op] < places[maker] && !self.is_within(maker, op);
            if self.ops[maker].thread == self.ops[op].thread && is_later {
                return Err(Error::Early { op: self.ops[op].name.clone(), shape: self.shape(tensor) });
            }
        }
        Ok(())
    }

    /// Checks that the call of an op is consistent, and agrees with its call `before` where it was recorded.
    fn fits(&self, op: OpId, before: Option<&StepIr>, ops: &OpSet) -> Result<(), Error> {
        let Some(call) = self.call(op) else { return Ok(()) };
        devices_agree(call)?;
        shapes_follow(call, || before?.call(op), ops)
    }
}

fn devices_agree(call: &OpCall) -> Result<(), Error> {
    if COPIES.contains(&&*call.name) {
        return Ok(());
    }
    let on = |device: Device| {
        let sized = |tensor: &&steptime_aten::Tensor| !tensor.shape.is_empty() && tensor.device == device;
        call.inputs.iter().flat_map(Arg::tensors).any(|tensor| sized(&tensor))
    };
    if on(Device::Cuda) && (on(Device::Cpu) || on(Device::Pinned)) {
        return Err(Error::Devices { op: call.name.clone() });
    }
    Ok(())
}

/// Checks that outputs follow from inputs, where the op's definition derives them: for a recorded op, only where that derivation matched the
/// recording.
fn shapes_follow<'c>(
    call: &OpCall,
    before: impl FnOnce() -> Option<&'c OpCall>,
    ops: &OpSet,
) -> Result<(), Error> {
    let Some(expected) = results(call, ops) else { return Ok(()) };
    let differs = || shapes(&expected).zip(shapes(&call.outputs)).find(|(expected, found)| expected != found);
    let Some((expected, found)) = differs() else { return Ok(()) };
    if let Some(before) = before()
        && !results(before, ops).is_some_and(|results| shapes(&results).eq(shapes(&before.outputs)))
    {
        return Ok(());
    }
    Err(Error::Shapes { op: call.name.clone(), expected: expected.to_vec(), found: found.to_vec() })
}

/// The outputs of a call, derived from the op's definition instead of the recording.
fn results(call: &OpCall, ops: &OpSet) -> Option<Vec<Arg>> {
    ops.find(&call.name)?.outputs?;
    let OpCall { name, inputs, settings, .. } = call;
    let (name, inputs) = (name.clone(), inputs.clone());
    ops.outputs(&OpCall { name, inputs, outputs: Vec::new(), settings: *settings })
}

fn shapes(results: &[Arg]) -> impl Iterator<Item = &[i64]> {
    results.iter().flat_map(Arg::tensors).map(|tensor| &tensor.shape[..])
}
