//! Concatenated parts that a view then divides into one row per part.

use rustc_hash::FxHashMap;
use steptime_step::{StepIr, TensorId};

use super::{Link, OpTensors};

/// The parts of each concatenated tensor.
#[derive(Debug, Default)]
pub(super) struct Joins(FxHashMap<TensorId, Vec<TensorId>>);

impl Joins {
    /// The concatenated tensors of a step.
    pub fn find(step: &StepIr) -> Joins {
        let mut joined = FxHashMap::default();
        for op in step.running() {
            let row = &step.ops[op];
            let Some(call) = row.call.as_deref().filter(|_| row.name == "aten::cat") else { continue };
            let parts = call.inputs.first().map(|arg| arg.tensors().to_vec());
            if let (Some(parts), Some(whole)) = (parts.filter(|parts| parts.len() > 1), call.gives().next()) {
                joined.insert(whole, parts);
            }
        }
        Joins(joined)
    }
}

impl OpTensors<'_> {
    /// Links each part to the width of a row, where a view divides a concatenated dimension into as many rows as there were parts.
    pub(super) fn rows_of_parts(&mut self) {
        let (Some(x), Some(out)) = (self.input(0), self.output(0)) else { return };
        let Some(parts) = self.made_of.joins.0.get(&x) else { return };
        let (whole, rows) = (self.shape(x), self.shape(out));
        let count = parts.len() as i64;
        let divided = (0..whole.len()).find(|&at| {
            rows.len() == whole.len() + 1
                && whole[..at] == rows[..at]
                && whole[at + 1..] == rows[at + 2..]
                && rows[at] == count
                && rows[at] * rows[at + 1] == whole[at]
        });
        let Some(at) = divided else { return };
        let is_row =
            |part: &TensorId| self.shape(*part).len() == whole.len() && self.shape(*part)[at] == rows[at + 1];
        if !parts.iter().all(is_row) {
            return;
        }
        let at = at as isize;
        let alike = parts
            .iter()
            .filter_map(|&part| Some(Link::Same(self.dim(Some(part), at)?, self.dim(Some(out), at + 1)?)));
        let alike: Vec<Link> = alike.collect();
        self.links.extend(alike);
    }
}
