//! What models are made of: layers and tables.

use steptime_aten::Dtype;

use super::file::{Description, Pooling, Table};
use crate::eager::Eager;
use crate::ops::activation::relu;
use crate::ops::copy::to_device;
use crate::ops::embedding_bag::{Bags, embedding_bag};
use crate::ops::linear::linear;
use crate::tensor::Tensor;

/// A linear layer: its weight `[out, in]`, and its bias where it has one, by their places among parameters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Linear {
    weight: usize,
    bias: Option<usize>,
}

impl Linear {
    pub(super) fn new(e: &mut Eager, from: i64, to: i64, biased: bool) -> Linear {
        let weight = e.parameter(&[to, from]);
        Linear { weight, bias: biased.then(|| e.parameter(&[to])) }
    }

    pub(super) fn forward(&self, e: &mut Eager, x: &Tensor) -> Tensor {
        let weight = e.parameters[self.weight].tensor.clone();
        let bias = self.bias.map(|bias| e.parameters[bias].tensor.clone());
        linear(e, x, &weight, bias.as_ref())
    }
}

/// Linear layers with rectifiers between them.
#[derive(Debug, Clone)]
pub(super) struct Mlp {
    layers: Vec<Linear>,
    /// Whether a rectifier follows the last.
    pub(super) rectified: bool,
    pub(super) width: i64,
}

impl Mlp {
    pub(super) fn new(e: &mut Eager, from: i64, widths: &[i64], rectified: bool) -> Mlp {
        let mut width = from;
        let mut layers = Vec::with_capacity(widths.len());
        for &to in widths {
            layers.push(Linear::new(e, width, to, true));
            width = to;
        }
        Mlp { layers, rectified, width }
    }

    pub(super) fn forward(&self, e: &mut Eager, x: &Tensor) -> Tensor {
        let mut x = x.clone();
        for (at, layer) in self.layers.iter().enumerate() {
            x = layer.forward(e, &x);
            if self.rectified || at + 1 < self.layers.len() {
                x = relu(e, &x);
            }
        }
        x
    }
}

/// Embedding tables, each with its bags.
#[derive(Debug, Clone)]
pub(super) struct Tables {
    tables: Vec<(usize, Table)>,
    bags: Bags,
}

impl Tables {
    pub(super) fn new(e: &mut Eager, of: &Description, tables: impl Iterator<Item = Table>) -> Tables {
        let tables = tables.map(|table| (e.parameter(&[table.rows, table.columns]), table)).collect();
        let bags = Bags { mean: of.pooling == Pooling::Mean, sparse: of.has_sparse_gradients() };
        Tables { tables, bags }
    }

    /// The widths of their rows.
    pub(super) fn columns(&self) -> impl Iterator<Item = i64> {
        self.tables.iter().map(|(_, table)| table.columns)
    }

    /// Brings lookups to the device, then where bags begin.
    pub(super) fn inputs(&self, e: &mut Eager, batch: i64) -> Lookups {
        let mut bring = |size: i64| {
            let there = e.host(&[size], Dtype::I64);
            to_device(e, &there)
        };
        let lookups = self.tables.iter().map(|(_, table)| bring(batch * table.lookups)).collect();
        let offsets = self.tables.iter().map(|_| bring(batch)).collect();
        Lookups { lookups, offsets }
    }

    /// The sums of all bags, table by table: `[batch, columns]` each.
    pub(super) fn forward(&self, e: &mut Eager, at: &Lookups) -> Vec<Tensor> {
        let each = self.tables.iter().zip(at.lookups.iter().zip(&at.offsets));
        each.map(|(&(table, _), (lookups, offsets))| {
            let table = e.parameters[table].tensor.clone();
            embedding_bag(e, &table, lookups, offsets, self.bags)
        })
        .collect()
    }
}

/// Which rows a batch looks up.
#[derive(Debug, Clone)]
pub(super) struct Lookups {
    lookups: Vec<Tensor>,
    offsets: Vec<Tensor>,
}
