//! Groups of lookups for one call: lookups with the same number of bags whose results are concatenated.

use rustc_hash::FxHashMap;
use steptime_aten::Dtype;
use steptime_step::{OpId, StepIr, TensorId, Uses};

use super::library::Library;
use super::lookups::{Lookup, described, find};
use super::result_consumers::{ResultUse, joined, list};
use super::table_training::{self, LookupBackward, Rules};
use crate::updates;

/// First op of a backward pass: it creates the gradient of the loss by itself.
const BEGINS: &str = "aten::ones_like";

/// A lookup, and the training of its table.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub lookup: Lookup,
    pub trained: Option<LookupBackward>,
    joined: ResultUse,
}

/// Training of the tables of a group in its backward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Training {
    /// None.
    None,
    /// An optimizer, by the operators' name, updates the looked-up rows.
    Update(&'static str),
    /// Every table gets a dense gradient, which the optimizer of the step takes.
    DenseGradient,
}

/// Lookups for one call.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub members: Vec<Member>,
    pub joined: ResultUse,
    pub training: Training,
    /// The last lookup of the group to run, ...
    pub last: OpId,
    /// ... the first function of its backward pass, ...
    pub first: Option<OpId>,
    /// ... and the first op of the backward passes on its thread.
    pub begins: Option<OpId>,
}

impl Group {
    /// A group without the positions of its ops.
    fn new(members: Vec<Member>, joined: ResultUse, training: Training) -> Group {
        let last = members[0].lookup.op;
        Group { members, joined, training, last, first: None, begins: None }
    }

    /// The operators' name of the optimizer that updates its tables in the backward pass.
    pub fn optimizer(&self) -> Option<&'static str> {
        match self.training {
            Training::Update(optimizer) => Some(optimizer),
            Training::None | Training::DenseGradient => None,
        }
    }

    /// The trained lookups of the group.
    pub fn trained(&self) -> impl Iterator<Item = &LookupBackward> {
        self.members.iter().filter_map(|member| member.trained.as_ref())
    }
}

/// Properties shared by a group.
type Key = (i64, bool, Dtype, Training, Option<OpId>, usize);

/// The groups for a library in the order of their last lookups, and the reasons why other lookups stay as they are.
pub(super) fn build(step: &StepIr, library: Library) -> (Vec<Group>, Vec<String>) {
    let uses = Uses::find(step);
    let (mut lookups, mut left) = find(step, &uses);
    lookups.retain(|lookup| {
        let refused = library.refuses(step, lookup);
        left.extend(refused.clone());
        refused.is_none()
    });
    let trained = table_training::find(step, &uses, &lookups);
    let own = |trained: &Option<LookupBackward>| {
        trained.as_ref().map(|trained| trained.own.clone()).unwrap_or_default()
    };
    let updates = updates::find(step, trained.iter().map(own).collect());
    let mut rules = Rules::default();
    let mut groups: Vec<(Key, Group)> = Vec::new();
    for (at, (lookup, trained)) in lookups.into_iter().zip(trained).enumerate() {
        let about = |what: &str| Err(format!("the gradient of {} {what}", described(step, lookup.table)));
        let training = match &trained {
            Some(trained) if !library.updates_tables() => match trained.is_sparse(step) {
                true => about("is sparse"),
                false => Ok(Training::DenseGradient),
            },
            Some(trained) if trained.shared => about("is used outside its optimizer"),
            Some(_) => {
                let annotation = updates.owner(step, at);
                table_training::optimizer(step, annotation, &updates.alone[at], lookup.table, &mut rules)
                    .map(Training::Update)
            }
            None => Ok(Training::None),
        };
        match training {
            Ok(training) => {
                let joined = joined(step, &uses, &lookup, trained.as_ref());
                add(step, &mut groups, Member { lookup, trained, joined }, training);
            }
            Err(why) => left.push(why),
        }
    }
    let mut groups: Vec<Group> = groups.into_iter().flat_map(|(_, group)| runs(step, group)).collect();
    in_order(step, &mut groups);
    (groups, left)
}

/// Sorts groups by their last lookups.
fn in_order(step: &StepIr, groups: &mut [Group]) {
    let (mut place, mut begins) = (FxHashMap::default(), FxHashMap::default());
    for (at, op) in step.running().into_iter().enumerate() {
        place.insert(op, at);
        if step.ops[op].name == BEGINS {
            begins.insert(step.ops[op].thread, op);
        }
    }
    let place = |op: &OpId| place.get(op).copied();
    for group in groups.iter_mut() {
        let ops = group.members.iter().map(|member| member.lookup.op);
        group.last = ops.max_by_key(place).unwrap_or(group.last);
        let functions: Vec<OpId> = group.trained().map(LookupBackward::function).collect();
        let running = functions.iter().copied().filter(|op| place(op).is_some());
        group.first = running.min_by_key(place).or(functions.first().copied());
        group.begins = begins.get(&step.ops[group.members[0].lookup.op].thread).copied();
    }
    groups.sort_by_key(|group| place(&group.last));
}

fn add(step: &StepIr, groups: &mut Vec<(Key, Group)>, member: Member, training: Training) {
    let (lookup, joined) = (&member.lookup, member.joined);
    let (op, dims) = match joined {
        ResultUse::Cat(op, _) | ResultUse::Stack(op, _) => {
            (Some(op), step.tensors[lookup.result].value.shape.len())
        }
        ResultUse::Alone => (None, 0),
    };
    let dtype = step.tensors[lookup.indices].value.dtype;
    let key = (lookup.bags, lookup.mean, dtype, training, op, dims);
    match groups.iter_mut().find(|(other, _)| op.is_some() && *other == key) {
        Some((_, group)) => group.members.push(member),
        None => groups.push((key, Group::new(vec![member], joined, training))),
    }
}

/// Consecutive lookups of a group, in order. A `stack` needs all of its inputs in the group, or each lookup is alone.
fn runs(step: &StepIr, mut group: Group) -> Vec<Group> {
    let place = |member: &Member| match member.joined {
        ResultUse::Cat(_, at) | ResultUse::Stack(_, at) => at,
        ResultUse::Alone => 0,
    };
    group.members.sort_by_key(place);
    let all = match group.joined {
        ResultUse::Stack(op, _) => list(step, op).map_or(0, <[TensorId]>::len),
        _ => 0,
    };
    let of = |members: Vec<Member>, joined: ResultUse| Group::new(members, joined, group.training);
    match group.joined {
        ResultUse::Stack(..) if group.members.len() < all => {
            group.members.into_iter().map(|member| of(vec![member], ResultUse::Alone)).collect()
        }
        ResultUse::Cat(op, _) => {
            let mut runs: Vec<Vec<Member>> = Vec::new();
            for member in group.members {
                match runs.last_mut() {
                    Some(run) if run.last().is_some_and(|last| place(last) + 1 == place(&member)) => {
                        run.push(member)
                    }
                    _ => runs.push(vec![member]),
                }
            }
            runs.into_iter()
                .map(|run| {
                    let at = place(&run[0]);
                    of(run, ResultUse::Cat(op, at))
                })
                .collect()
        }
        _ => vec![group],
    }
}
