//! Optimizers: the ops of `optimizer.step()`.

mod adagrad;
mod adam;
mod rows;
mod sgd;
mod state;

use serde::Deserialize;
use steptime_graph::names::EventName;

use crate::eager::Eager;
use crate::tensor::Tensor;

/// Update rule of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// Stochastic gradient descent, without momentum.
    Sgd,
    /// Adagrad.
    Adagrad,
    /// Adam.
    Adam,
    /// Adam with decoupled weight decay.
    AdamW,
}

impl Rule {
    /// Number of states per parameter element.
    pub(crate) fn moments(self) -> i64 {
        match self {
            Rule::Sgd => 0,
            Rule::Adagrad => 1,
            Rule::Adam | Rule::AdamW => 2,
        }
    }
}

/// Form of the update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Form {
    /// One parameter at a time.
    Loop,
    /// Op by op over lists of parameters; PyTorch's default.
    #[default]
    Foreach,
    /// One op for all parameters.
    Fused,
}

/// An optimizer with its states.
pub(crate) struct Optimizer {
    rule: Rule,
    form: Form,
    state: state::State,
}

impl Optimizer {
    pub(crate) fn new(e: &mut Eager, rule: Rule, form: Form) -> Optimizer {
        Optimizer { rule, form, state: state::State::new(e, rule, form) }
    }

    /// Name of its class.
    fn class(&self) -> &'static str {
        match self.rule {
            Rule::Sgd => "SGD",
            Rule::Adagrad => "Adagrad",
            Rule::Adam => "Adam",
            Rule::AdamW => "AdamW",
        }
    }

    /// The states of each parameter, by its index, with their names.
    pub(crate) fn states(&self) -> impl Iterator<Item = (usize, Tensor, &'static str)> {
        let names: &[&str] = if self.rule == Rule::Adagrad { &["sum"] } else { &["exp_avg", "exp_avg_sq"] };
        let each = |(list, name): (&Vec<Tensor>, &&'static str)| {
            let name = *name;
            list.iter().cloned().enumerate().map(move |(at, state)| (at, state, name)).collect::<Vec<_>>()
        };
        self.state.moments.iter().zip(names).flat_map(each)
    }

    /// Drops the gradients of the previous step.
    pub(crate) fn zero_grad(&self, e: &mut Eager) {
        let class = self.class();
        e.label(&EventName::optimizer(class, "zero_grad"), |e| {
            e.parameters.iter_mut().for_each(|parameter| parameter.grad = None);
        });
    }

    /// Updates the parameters.
    pub(crate) fn step(&self, e: &mut Eager) {
        let class = self.class();
        e.learning = false;
        e.label(&EventName::optimizer(class, "step"), |e| match self.rule {
            Rule::Sgd => sgd::step(e, self.form),
            Rule::Adagrad => adagrad::step(e, self.form, &self.state),
            Rule::Adam | Rule::AdamW => adam::step(e, self.form, self.rule == Rule::AdamW, &self.state),
        });
        e.learning = true;
    }
}
