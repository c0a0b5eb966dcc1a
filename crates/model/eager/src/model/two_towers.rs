//! Two towers: queries and items become vectors, and each query is classified against all items of the batch.

use super::file::{Description, Table, Tower};
use super::layers::{Lookups, Mlp, Tables};
use super::network::Network;
use crate::eager::Eager;
use crate::ops::arithmetic::divide;
use crate::ops::fill::arange;
use crate::ops::linear::matmul;
use crate::ops::loss::cross_entropy;
use crate::ops::norm::normalize;
use crate::ops::views::{cat, t};
use crate::tensor::Tensor;

/// Divisor of the cosine of two vectors in the logits.
const TEMPERATURE: f64 = 0.1;

pub(super) struct TwoTowers {
    batch: i64,
    query: Side,
    item: Side,
}

/// One of the towers.
struct Side {
    tables: Tables,
    mlp: Mlp,
}

impl Side {
    fn new(e: &mut Eager, of: &Description, tower: Tower) -> Side {
        let own = |(_, table): &(usize, Table)| table.tower == Some(tower);
        let tables = Tables::new(e, of, of.each_table().enumerate().filter(own));
        let width = tables.columns().sum();
        let mlp = e.within("mlp", |e| Mlp::new(e, width, &of.top_mlp, false));
        Side { tables, mlp }
    }

    fn forward(&self, e: &mut Eager, at: &Lookups) -> Tensor {
        let rows = self.tables.forward(e, at);
        let all = if rows.len() == 1 { rows[0].clone() } else { cat(e, &rows) };
        let vectors = self.mlp.forward(e, &all);
        normalize(e, &vectors)
    }
}

impl TwoTowers {
    pub(super) fn new(e: &mut Eager, of: &Description) -> TwoTowers {
        let query = e.within("query", |e| Side::new(e, of, Tower::Query));
        let item = e.within("item", |e| Side::new(e, of, Tower::Item));
        TwoTowers { batch: of.share(), query, item }
    }
}

impl Network for TwoTowers {
    fn loss(&self, e: &mut Eager) -> Tensor {
        let [query, item] =
            e.label("## to_device ##", |e| [&self.query, &self.item].map(|side| side.tables.inputs(e)));
        let logits = e.label("## forward ##", |e| {
            let queries = self.query.forward(e, &query);
            let items = self.item.forward(e, &item);
            let turned = t(e, &items);
            let products = matmul(e, &queries, &turned);
            divide(e, &products, TEMPERATURE)
        });
        e.label("## loss ##", |e| {
            let own = arange(e, self.batch);
            cross_entropy(e, &logits, &own)
        })
    }
}
