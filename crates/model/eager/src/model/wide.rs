//! Wide & Deep, and DeepFM: a linear model of all features parallel to an MLP of their vectors; DeepFM also has a factorization machine.

use super::file::{Architecture, Description, Table};
use super::interaction::machine;
use super::layers::{Linear, Lookups, Mlp, Tables};
use super::network::{Network, batch, loss_of, output};
use crate::eager::Eager;
use crate::ops::arithmetic::add;
use crate::ops::reduce::sum;
use crate::ops::views::cat;
use crate::tensor::Tensor;

pub(super) struct WideAndDeep {
    of: Description,
    /// One weight per row of each table.
    weights: Tables,
    /// Weights of dense features.
    dense: Option<Linear>,
    tables: Tables,
    deep: Mlp,
}

impl WideAndDeep {
    pub(super) fn new(e: &mut Eager, of: &Description) -> WideAndDeep {
        let narrow = of.each_table().map(|table| Table { columns: 1, ..table });
        let weights = e.within("wide", |e| Tables::new(e, of, narrow.enumerate()));
        let dense = (of.dense > 0).then(|| e.within("wide.dense", |e| Linear::new(e, of.dense, 1, true)));
        let tables = Tables::new(e, of, of.each_table().enumerate());
        let width = of.dense + tables.columns().sum::<i64>();
        let deep = e.within("deep", |e| Mlp::new(e, width, &of.top_mlp, false));
        WideAndDeep { of: of.clone(), weights, dense, tables, deep }
    }

    fn forward(&self, e: &mut Eager, dense: Option<&Tensor>, at: &Lookups) -> Tensor {
        let linear = e.label("## wide ##", |e| {
            let weights = self.weights.forward(e, at);
            let all = cat(e, &weights);
            let total = sum(e, &all, 1, true);
            match (&self.dense, dense) {
                (Some(layer), Some(dense)) => {
                    let own = layer.forward(e, dense);
                    add(e, &total, &own)
                }
                _ => total,
            }
        });
        let rows = e.label("## embedding ##", |e| self.tables.forward(e, at));
        let paired = (self.of.model == Architecture::DeepFm).then(|| {
            e.label("## interaction ##", |e| {
                let all = cat(e, &rows);
                let pairs = machine(e, &all, self.of.tables[0].columns);
                sum(e, &pairs, 1, true)
            })
        });
        e.label("## top_mlp ##", |e| {
            let all: Vec<Tensor> = dense.cloned().into_iter().chain(rows).collect();
            let all = cat(e, &all);
            let mut logit = self.deep.forward(e, &all);
            for part in [Some(linear), paired].into_iter().flatten() {
                logit = add(e, &logit, &part);
            }
            output(e, &self.of, logit)
        })
    }
}

impl Network for WideAndDeep {
    fn loss(&self, e: &mut Eager) -> Tensor {
        let (dense, at, labels) = batch(e, &self.of, &self.tables);
        let output = e.label("## forward ##", |e| self.forward(e, dense.as_ref(), &at));
        loss_of(e, &self.of, &output, &labels)
    }
}
