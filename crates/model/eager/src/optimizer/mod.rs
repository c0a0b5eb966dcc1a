//! Optimizers: what `optimizer.step()` runs.

mod adagrad;
mod adam;
mod rows;
mod sgd;
mod state;

use serde::Deserialize;
use steptime_graph::names::EventName;

use crate::eager::Eager;

/// How a parameter is updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Rule {
    Sgd,
    Adagrad,
    Adam,
    AdamW,
}

impl Rule {
    /// How many numbers it keeps of each parameter.
    pub(crate) fn moments(self) -> i64 {
        match self {
            Rule::Sgd => 0,
            Rule::Adagrad => 1,
            Rule::Adam | Rule::AdamW => 2,
        }
    }
}

/// How parameters are gone over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Form {
    /// One by one.
    Loop,
    /// Op by op over lists of them; PyTorch's default.
    #[default]
    Foreach,
    /// One op for all.
    Fused,
}

/// An optimizer with the state that it keeps of parameters.
pub(crate) struct Optimizer {
    rule: Rule,
    form: Form,
    state: state::State,
}

impl Optimizer {
    pub(crate) fn new(e: &mut Eager, rule: Rule, form: Form) -> Optimizer {
        Optimizer { rule, form, state: state::State::new(e, rule, form) }
    }

    /// Its class.
    fn class(&self) -> &'static str {
        match self.rule {
            Rule::Sgd => "SGD",
            Rule::Adagrad => "Adagrad",
            Rule::Adam => "Adam",
            Rule::AdamW => "AdamW",
        }
    }

    /// Forgets the gradients of the last step.
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
