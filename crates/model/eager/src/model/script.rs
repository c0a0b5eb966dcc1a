//! The training script: two steps, of which the second is recorded.

use super::dlrm::Dlrm;
use super::file::{Architecture, Description};
use super::network::Network;
use super::two_towers::TwoTowers;
use super::wide::WideAndDeep;
use crate::backward;
use crate::eager::{Eager, Parameter};
use crate::optimizer::Optimizer;
use crate::role::{NamedShard, NamedStep, NamedTensor, Role};
use crate::world::World;

fn network(e: &mut Eager, of: &Description) -> Box<dyn Network> {
    match of.model {
        Architecture::Dlrm | Architecture::DcnV2 => Box::new(Dlrm::new(e, of)),
        Architecture::DeepFm | Architecture::WideAndDeep => Box::new(WideAndDeep::new(e, of)),
        Architecture::TwoTowers => Box::new(TwoTowers::new(e, of)),
    }
}

/// Number of parameters of a model.
pub(super) fn parameters(of: &Description) -> u64 {
    // In a job, all tables count once, independent of their placement.
    let of = &Description { parallel: None, ..of.clone() };
    let mut e = Eager::new(None);
    network(&mut e, of);
    e.parameters.iter().map(|parameter| parameter.tensor.numel() as u64).sum()
}

/// Trains a step on a rank to reach the steady state of memory, then the recorded one.
pub(super) fn record(of: &Description, rank: i64) -> NamedStep {
    // A job of one rank is a job, too.
    let ranks = of.parallel.as_ref().map(|_| i64::from(of.gpus()));
    let mut e = Eager::new(ranks.map(|ranks| World::new(ranks, rank)));
    let network = network(&mut e, of);
    let updates = of.updates();
    let optimizer = Optimizer::new(&mut e, updates.name, updates.form);
    step(&mut e, network.as_ref(), &optimizer);
    e.restart();
    if let Some(ranks) = ranks {
        e.log.among(ranks);
    }
    step(&mut e, network.as_ref(), &optimizer);
    let shards = e.parameters.iter().filter_map(|parameter| {
        let [offset, whole] = parameter.part_of?;
        Some(NamedShard { name: parameter.name.clone(), offset, whole })
    });
    let shards = shards.collect();
    NamedStep { tensors: named(&mut e, &optimizer), trace: e.log.finish(), ranks: of.gpus(), shards }
}

/// The tensors of a step with a name.
pub(crate) fn named(e: &mut Eager, optimizer: &Optimizer) -> Vec<NamedTensor> {
    let parameter = |parameter: &Parameter| NamedTensor {
        id: parameter.tensor.id,
        name: parameter.name.clone(),
        role: Role::Parameter(parameter.initial),
    };
    let mut all: Vec<NamedTensor> = e.parameters.iter().map(parameter).collect();
    for (at, state, name) in optimizer.states() {
        let name = format!("{}.{name}", e.parameters[at].name);
        all.push(NamedTensor { id: state.id, name, role: Role::State });
    }
    all.extend(e.buffers.iter().cloned());
    all.append(&mut e.named);
    all
}

fn step(e: &mut Eager, network: &dyn Network, optimizer: &Optimizer) {
    let loss = network.loss(e);
    e.name(&loss, "loss", Role::Loss);
    optimizer.zero_grad(e);
    e.label("## backward ##", |e| backward::run(e, &loss));
    e.label("## optimizer ##", |e| optimizer.step(e));
}
