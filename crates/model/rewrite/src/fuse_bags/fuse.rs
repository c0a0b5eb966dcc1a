//! The patch that merges several bags into one: the ops of the first bag stay, with the sizes of all.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_aten::{Arg, Lowering, OpSet, Tensor};
use steptime_step::{OpId, Patch, Place, StepIr, TensorId, Uses};

use super::bags::Bag;
use super::chain::Chain;
use super::corresponding_ops::AlignedOps;
use super::merged_arguments;
use super::merged_sizes::Grow;
use super::split_results::Parts;
use crate::error::Error;
use crate::updates::{self, Updates};

/// The patch, with a description of its savings.
pub(super) fn patch(step: &StepIr, bags: &[Bag], ops: &OpSet, rule: &'static str) -> Result<Patch, Error> {
    let uses = Uses::find(step);
    let chains: Vec<Chain> =
        bags.iter().map(|bag| Chain::find(step, &uses, bag)).collect::<Result<_, _>>()?;
    let updates = updates::find(step, chains.iter().map(|chain| chain.tensors.clone()).collect());
    let mut fuse =
        Fuse { step, bags, grow: Grow::new(step, bags), patch: Patch::new(rule), one: FxHashMap::default() };
    let aligned = fuse.align(&chains, &updates)?;
    fuse.new_tensors(&chains)?;
    fuse.resize(&aligned, &uses, &updates)?;
    fuse.why(ops);
    Ok(fuse.patch)
}

struct Fuse<'s> {
    step: &'s StepIr,
    bags: &'s [Bag],
    grow: Grow,
    patch: Patch,
    /// Replacements of tensors of the first bag in its own ops: its result and its gradient.
    one: FxHashMap<TensorId, TensorId>,
}

impl Fuse<'_> {
    /// Matches the ops of the bags; the ops of all but the first bag are removed.
    fn align(&mut self, chains: &[Chain], updates: &Updates) -> Result<AlignedOps, Error> {
        let each: Vec<Vec<OpId>> = chains
            .iter()
            .zip(&updates.alone)
            .map(|(chain, update)| chain.roots.iter().chain(update).copied().collect())
            .collect();
        let differ = |op: OpId| Error::BagsDiffer { op: self.step.ops[op].name.clone() };
        if each.iter().any(|roots| roots.len() != each[0].len()) {
            return Err(differ(self.bags[0].op));
        }
        let mut rows: Vec<Vec<OpId>> =
            (0..each[0].len()).map(|at| each.iter().map(|roots| roots[at]).collect()).collect();
        for (op, places) in lists(updates) {
            let children = &self.step.ops[op].children;
            let all: Option<Vec<OpId>> = places.iter().map(|&place| children.get(place).copied()).collect();
            rows.extend(all);
        }
        let mut aligned = AlignedOps::default();
        for row in rows {
            aligned.add(self.step, &row)?;
            let others: FxHashSet<OpId> = row.iter().copied().filter(|&op| op != row[0]).collect();
            if !others.is_empty() && others.len() + 1 != row.len() {
                return Err(differ(row[0]));
            }
            self.patch.remove.extend(row.iter().filter(|op| others.contains(op)));
        }
        Ok(aligned)
    }

    /// The fused result and its gradient, and the ops that split and join them.
    fn new_tensors(&mut self, chains: &[Chain]) -> Result<(), Error> {
        let (step, first) = (self.step, &self.bags[0]);
        let shape = [first.kind.bags * self.bags.len() as i64, first.kind.width];
        let whole = Tensor::contiguous(&shape, first.kind.dtype);
        let fused = self.patch.tensor(step, whole.clone());
        self.one.insert(first.result, fused);
        let results: Vec<TensorId> = self.bags.iter().map(|bag| bag.result).collect();
        let parts = Parts { kind: &first.kind, results: &results, fused };
        let [view, unbind] = parts.forward(step, &mut self.patch);
        self.patch.insert.extend([(Place::After(first.op), unbind), (Place::After(first.op), view)]);
        let gradients: Option<Vec<TensorId>> = chains.iter().map(|chain| chain.gradient).collect();
        match (chains[0].backward, gradients) {
            (Some(backward), Some(gradients)) => {
                let gradient = self.patch.tensor(step, whole);
                self.one.insert(gradients[0], gradient);
                let functions = parts.backward(&gradients, gradient, step, &mut self.patch);
                self.patch.insert.extend(functions.map(|function| (Place::Before(backward), function)));
                Ok(())
            }
            _ if chains.iter().all(|chain| chain.backward.is_none()) => Ok(()),
            _ => Err(Error::BagsDiffer { op: step.ops[first.op].name.clone() }),
        }
    }

    /// Gives the first bag's tensors and arguments the sizes of all bags.
    fn resize(&mut self, aligned: &AlignedOps, uses: &Uses, updates: &Updates) -> Result<(), Error> {
        let mut tensors = aligned.tensors(self.step)?;
        for (op, places) in lists(updates) {
            let Some(call) = &self.step.ops[op].call else { continue };
            for arg in call.inputs.iter().chain(&call.outputs) {
                let Arg::Tensors(list) = arg else { continue };
                let each: Option<Vec<TensorId>> =
                    places.iter().map(|&place| list.get(place).copied()).collect();
                if let Some([first, ..]) = each.as_deref() {
                    tensors.entry(*first).or_insert_with(|| each.clone().unwrap_or_default());
                }
            }
            self.patch.change.push((op, updates::without(call, &places[1..])));
        }
        let listed = updates.lists.iter().map(|(op, _)| *op);
        let own: FxHashSet<OpId> = aligned.rows.iter().flatten().copied().chain(listed).collect();
        let mut reshape = Vec::new();
        for (&first, each) in tensors.iter().filter(|(first, _)| !self.one.contains_key(first)) {
            let values: Vec<&Tensor> = each.iter().map(|&tensor| &self.step.tensors[tensor].value).collect();
            let Some(grown) = self.grow.tensor(&values) else { continue };
            if let Some(&op) = uses.consumers(first).iter().find(|op| !own.contains(op)) {
                let (op, shape) = (self.step.ops[op].name.clone(), values[0].shape.to_vec());
                return Err(Error::BagShared { op, shape });
            }
            reshape.push((first, grown));
        }
        reshape.sort_by_key(|(tensor, _)| *tensor);
        self.patch.reshape = reshape;
        for row in &aligned.rows {
            self.patch.change.extend(
                merged_arguments::call(self.step, row, &self.grow, &self.one).map(|call| (row[0], call)),
            );
        }
        Ok(())
    }

    /// Describes the savings.
    fn why(&mut self, ops: &OpSet) {
        let removed = self.patch.remove.iter().flat_map(|&op| self.step.subtree(op));
        let [mut all, mut copies, mut kernels] = [0; 3];
        for op in removed {
            let launches =
                self.step.lower(op, ops).is_some_and(|lowered| matches!(*lowered, Lowering::Kernel(_)));
            let copy = self.step.ops[op].name == "aten::copy_";
            all += 1;
            copies += usize::from(launches && copy);
            kernels += usize::from(launches && !copy);
        }
        let (bags, width) = (self.bags.len(), self.bags[0].kind.width);
        self.patch.why = format!(
            "{bags} embedding bags of {width} columns become one: {all} fewer ops, among them {copies} copies and {kernels} kernels"
        );
    }
}

/// Ops on lists with the tensors of all bags, with their positions.
fn lists(updates: &Updates) -> impl Iterator<Item = (OpId, Vec<usize>)> {
    let all = |(op, places): &(OpId, Vec<Option<usize>>)| {
        Some((*op, places.iter().copied().collect::<Option<_>>()?))
    };
    updates.lists.iter().filter_map(all)
}
