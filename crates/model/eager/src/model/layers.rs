//! Components of models: layers and tables.

use steptime_aten::Dtype;

use super::cached::CacheTransfers;
use super::file::{Description, Pooling, Table};
use super::tables_on_ranks::Spread;
use crate::eager::Eager;
use crate::ops::activation::relu;
use crate::ops::copy::to_device;
use crate::ops::embedding_bag::{Bags, embedding_bag};
use crate::ops::linear::linear;
use crate::role::{Initial, NamedTensor, Role};
use crate::tensor::Tensor;

/// A linear layer: its weight `[out, in]`, and its bias where it has one, by their indices among parameters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Linear {
    weight: usize,
    bias: Option<usize>,
}

impl Linear {
    pub(super) fn new(e: &mut Eager, from: i64, to: i64, biased: bool) -> Linear {
        let initial = Initial::Uniform { bound: 1.0 / (from.max(1) as f64).sqrt() };
        let weight = e.parameter("weight", &[to, from], initial);
        Linear { weight, bias: biased.then(|| e.parameter("bias", &[to], initial)) }
    }

    pub(super) fn forward(&self, e: &mut Eager, x: &Tensor) -> Tensor {
        let weight = e.parameters[self.weight].tensor.clone();
        let bias = self.bias.map(|bias| e.parameters[bias].tensor.clone());
        linear(e, x, &weight, bias.as_ref())
    }
}

/// Linear layers with ReLUs between them.
#[derive(Debug, Clone)]
pub(super) struct Mlp {
    layers: Vec<Linear>,
    /// Whether a ReLU follows the last layer.
    pub(super) rectified: bool,
    pub(super) width: i64,
}

impl Mlp {
    pub(super) fn new(e: &mut Eager, from: i64, widths: &[i64], rectified: bool) -> Mlp {
        let mut width = from;
        let mut layers = Vec::with_capacity(widths.len());
        for (at, &to) in widths.iter().enumerate() {
            layers.push(e.within(&at.to_string(), |e| Linear::new(e, width, to, true)));
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

/// Embedding tables with their bags: all tables, or a rank's parts of them.
#[derive(Debug, Clone)]
pub(super) struct Tables {
    own: Vec<OwnedTable>,
    /// The widths of all tables' rows.
    columns: Vec<i64>,
    /// The exchange of pooled rows between ranks.
    spread: Option<Spread>,
}

/// A table, or a part of one.
#[derive(Debug, Clone)]
struct OwnedTable {
    /// Index among parameters.
    parameter: usize,
    /// Lookups per step, and bags per step.
    lookups: i64,
    batch: i64,
    bags: Bags,
    /// Transfers from and to host memory before lookups.
    moved: CacheTransfers,
}

impl Tables {
    /// Tables with their indices in the description.
    pub(super) fn new(
        e: &mut Eager,
        of: &Description,
        tables: impl Iterator<Item = (usize, Table)>,
    ) -> Tables {
        let bags = Bags { mean: of.pooling == Pooling::Mean, sparse: of.has_sparse_gradients() };
        let tables: Vec<(usize, Table)> = tables.collect();
        let columns = tables.iter().map(|(_, table)| table.columns).collect();
        let Some(rank) = e.world.as_ref().map(|world| world.rank) else {
            let own = tables.iter().map(|(at, table)| OwnedTable {
                parameter: e.within(&format!("tables.{at}"), |e| {
                    let initial = of.table_init.of_rows(table.rows);
                    e.parameter("weight", &[table.rows, table.columns], initial)
                }),
                lookups: of.batch * table.lookups,
                batch: of.batch,
                bags,
                moved: CacheTransfers::NONE,
            });
            return Tables { own: own.collect(), columns, spread: None };
        };
        let spread = Spread::new(e, of, &tables);
        let own = spread.pieces_on(rank).map(|piece| {
            let everywhere = piece.gpu.is_none() && piece.over == 1;
            let batch = if everywhere { of.share() } else { of.batch };
            let shape = [piece.rows, piece.columns];
            let (number, table) = tables[piece.table()];
            let initial = of.table_init.of_rows(table.rows);
            let parameter = e.within(&format!("tables.{number}"), |e| {
                if everywhere {
                    e.parameter("weight", &shape, initial)
                } else {
                    e.own_parameter("weight", &shape, initial)
                }
            });
            let whole = [table.rows, table.columns];
            e.parameters[parameter].part_of = (shape != whole).then_some([piece.first, whole]);
            OwnedTable {
                parameter,
                lookups: piece.lookups.max(1),
                batch,
                // Sparse gradients cannot be averaged.
                bags: Bags { sparse: bags.sparse && !everywhere, ..bags },
                moved: CacheTransfers { rows: piece.moved, numbers: 1 + of.updates().name.moments() },
            }
        });
        Tables { own: own.collect(), columns, spread: Some(spread) }
    }

    /// The same tables, with pooled rows returned table by table.
    pub(super) fn separate(self) -> Tables {
        Tables { spread: self.spread.map(Spread::separate), ..self }
    }

    /// The widths of the tables' rows.
    pub(super) fn columns(&self) -> impl Iterator<Item = i64> {
        self.columns.iter().copied()
    }

    /// Copies lookups to the device, then offsets of bags.
    pub(super) fn inputs(&self, e: &mut Eager) -> Lookups {
        let mut bring = |own: &OwnedTable, name: &str, size: i64| {
            let there = e.host(&[size], Dtype::I64);
            let name = e.parameters[own.parameter].name.replace("weight", name);
            e.named.push(NamedTensor { id: there.id, name, role: Role::Input });
            to_device(e, &there)
        };
        let lookups = self.own.iter().map(|own| bring(own, "indices", own.lookups)).collect();
        let offsets = self.own.iter().map(|own| bring(own, "offsets", own.batch)).collect();
        Lookups { lookups, offsets }
    }

    /// The pooled rows of all bags, `[batch, columns]` per table; for several ranks, concatenated.
    pub(super) fn forward(&self, e: &mut Eager, at: &Lookups) -> Vec<Tensor> {
        let each = self.own.iter().zip(at.lookups.iter().zip(&at.offsets));
        let pooled = each
            .map(|(own, (lookups, offsets))| {
                let table = e.parameters[own.parameter].tensor.clone();
                own.moved.run(e, &table);
                embedding_bag(e, &table, lookups, offsets, own.bags)
            })
            .collect();
        match &self.spread {
            Some(spread) => spread.together(e, pooled),
            None => pooled,
        }
    }
}

/// Lookups and offsets of a batch.
#[derive(Debug, Clone)]
pub(super) struct Lookups {
    lookups: Vec<Tensor>,
    offsets: Vec<Tensor>,
}
