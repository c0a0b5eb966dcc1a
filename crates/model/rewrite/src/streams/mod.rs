//! Independent branches on separate streams, with the events that they need.

mod backward;
mod branches;
mod selected_ops;
mod units;
mod waits;

use steptime_step::{Patch, StepIr};

use self::branches::Branch;
pub use self::selected_ops::SecondStream;
use self::units::Units;
use self::waits::Waits;
use crate::counted::counted;
use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// Runs independent branches of the forward pass on parallel streams, with their gradients.
#[derive(Debug, Clone, Copy)]
pub struct Streams {
    /// Number of streams, including the main stream.
    pub count: usize,
}

/// Maximum number of streams.
const MOST: usize = 32;

impl Rule for Streams {
    fn name(&self) -> &'static str {
        "streams"
    }

    fn stage(&self) -> Stage {
        Stage::Streams
    }

    fn effort(&self) -> &'static str {
        "medium: torch.cuda.stream around each branch, wait_stream where it begins and where branches meet"
    }

    fn risk(&self) -> &'static str {
        "a missing wait gives wrong numbers; tensors used on two streams need record_stream"
    }

    fn patches(&self, step: &StepIr, facts: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        if !(2..=MOST).contains(&self.count) {
            return Err(Error::Streams { asked: self.count, most: MOST });
        }
        let units = Units::find(step, facts.ops);
        refused(&units)?;
        let branches = branches::find(&units, self.count);
        let mut forward = vec![0; units.passes.forward.len()];
        for branch in &branches {
            branch.units.iter().for_each(|&unit| forward[unit] = branch.stream);
        }
        units.follow(&mut forward);
        if forward.iter().all(|&stream| stream == 0) {
            return Err(nothing(format!(
                "none of {} ops of the forward pass joins independent branches that are long enough for a stream of their own",
                units.passes.forward.len()
            )));
        }
        let StreamMoves { mut patch, backward, waits } = moved(self.name(), &units, &forward);
        patch.why = why(&units, &branches, &backward, waits);
        Ok(vec![patch])
    }
}

/// Result of moving units of the forward pass to streams.
struct StreamMoves {
    patch: Patch,
    /// The streams of the backward functions.
    backward: Vec<u32>,
    /// Number of waits between streams.
    waits: usize,
}

fn moved(rule: &'static str, units: &Units<'_>, forward: &[u32]) -> StreamMoves {
    let backward = backward::streams(units, forward);
    let used = forward.iter().max().map_or(1, |&last| last + 1);
    let mut patch = Patch::new(rule);
    let moves = units.passes.forward.iter().zip(forward).chain(units.passes.backward.iter().zip(&backward));
    patch.streams =
        moves.clone().filter(|(_, stream)| **stream > 0).map(|(&op, &stream)| (op, stream)).collect();
    let mut waits = Waits::new(units, &mut patch);
    moves.for_each(|(&op, &stream)| waits.unit(op, stream));
    waits.join(used);
    let waits = waits.count;
    StreamMoves { patch, backward, waits }
}

/// Checks that the step has no other streams, and that its tensors and the order of its ops are known.
fn refused(units: &Units<'_>) -> Result<(), Error> {
    let step = units.step;
    if step.ops.iter().any(|op| op.stream > 0) {
        return Err(nothing("branches have streams of their own already".to_owned()));
    }
    if step.tensors.iter().all(|tensor| tensor.storage.is_none()) {
        return Err(nothing("the identity of tensors is not known: record an execution trace".to_owned()));
    }
    if step.streams > 1 {
        return Err(nothing(format!("the step has kernels on {} streams already", step.streams)));
    }
    if units.passes.are_several(step) {
        return Err(nothing(
            "the step has several backward passes: the order of their ops is not known".to_owned(),
        ));
    }
    let unknown = |&&op: &&steptime_step::OpId| {
        let inside = step.subtree(op);
        inside.iter().all(|&op| step.ops[op].call.is_none()) && step.ops[op].name.contains("::")
    };
    match units.passes.forward.iter().find(unknown) {
        Some(&op) => Err(nothing(format!("the inputs and outputs of {} are not known", step.ops[op].name))),
        None => Ok(()),
    }
}

fn nothing(reason: String) -> Error {
    Error::NothingToDo { reason }
}

/// A description of the moved branches.
fn why(units: &Units<'_>, branches: &[Branch], backward: &[u32], waits: usize) -> String {
    let name = |branch: &Branch| {
        let heaviest = branch.units.iter().max_by(|&&one, &&other| {
            let weight = |unit: usize| units.weights[unit].unwrap_or_default();
            weight(one).total_cmp(&weight(other)).then(other.cmp(&one))
        });
        heaviest.map_or("", |&unit| &*units.step.ops[units.passes.forward[unit]].name)
    };
    let most = branches.iter().map(|branch| branch.stream).max().unwrap_or(0);
    let each = (0..=most).map(|stream| {
        let here: Vec<&Branch> = branches.iter().filter(|branch| branch.stream == stream).collect();
        let mut names: Vec<&str> = here.iter().map(|&branch| name(branch)).collect();
        names.sort_unstable();
        names.dedup();
        let ops: usize = here.iter().map(|branch| branch.units.len()).sum();
        let functions = backward.iter().filter(|&&on| on == stream && stream > 0).count();
        let place = match stream {
            0 => "stay".to_owned(),
            _ => format!("go to stream {stream}, with {functions} functions of the backward pass"),
        };
        format!(
            "{} of {ops} ops (with {}) {place}",
            counted(here.len(), "branch", "branches"),
            names.join(", ")
        )
    });
    let each: Vec<String> = each.collect();
    format!("{}; streams wait for one another {}", each.join("; "), counted(waits, "time", "times"))
}
