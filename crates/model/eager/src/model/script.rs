//! The script that trains: two steps, of which the second is written down.

use steptime_trace::ExecutionTrace;

use super::dlrm::Dlrm;
use super::file::{Architecture, Description};
use super::network::Network;
use super::two_towers::TwoTowers;
use super::wide::WideAndDeep;
use crate::backward;
use crate::eager::Eager;
use crate::optimizer::Optimizer;

fn network(e: &mut Eager, of: &Description) -> Box<dyn Network> {
    match of.model {
        Architecture::Dlrm | Architecture::DcnV2 => Box::new(Dlrm::new(e, of)),
        Architecture::DeepFm | Architecture::WideAndDeep => Box::new(WideAndDeep::new(e, of)),
        Architecture::TwoTowers => Box::new(TwoTowers::new(e, of)),
    }
}

/// How many parameters a model has.
pub(super) fn parameters(of: &Description) -> u64 {
    let mut e = Eager::new();
    network(&mut e, of);
    e.parameters.iter().map(|parameter| parameter.tensor.numel() as u64).sum()
}

/// Trains a step to fill memory as it stays, then the one that is written down.
pub(super) fn record(of: &Description) -> ExecutionTrace {
    let mut e = Eager::new();
    let network = network(&mut e, of);
    let updates = of.updates();
    let optimizer = Optimizer::new(&mut e, updates.name, updates.form);
    step(&mut e, network.as_ref(), &optimizer);
    e.restart();
    step(&mut e, network.as_ref(), &optimizer);
    e.log.finish()
}

fn step(e: &mut Eager, network: &dyn Network, optimizer: &Optimizer) {
    let loss = network.loss(e);
    optimizer.zero_grad(e);
    e.label("## backward ##", |e| backward::run(e, &loss));
    e.label("## optimizer ##", |e| optimizer.step(e));
}
