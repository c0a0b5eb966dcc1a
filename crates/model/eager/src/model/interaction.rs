//! Interactions of the features' vectors.

use steptime_aten::Dtype;

use super::file::{Description, Interaction};
use super::layers::Linear;
use crate::eager::Eager;
use crate::ops::arithmetic::{add, mul, scale, sub};
use crate::ops::index::pairs;
use crate::ops::linear::bmm;
use crate::ops::reduce::sum;
use crate::ops::views::{cat, transpose, view};
use crate::role::{NamedTensor, Role};
use crate::tensor::Tensor;

/// An interaction with its parameters.
pub(super) struct Meeting {
    kind: Kind,
    /// Width of the result.
    pub(super) width: i64,
}

enum Kind {
    Dot {
        /// Indices of pairs in the matrix of all products.
        rows: Tensor,
        columns: Tensor,
        width: i64,
    },
    Cat,
    Fm {
        width: i64,
    },
    Cross(Vec<Cross>),
}

/// A cross layer: one full weight, or two of low rank.
struct Cross {
    narrow: Option<Linear>,
    wide: Linear,
}

impl Meeting {
    /// An interaction of features of these widths. Dense features, if any, come first.
    pub(super) fn new(e: &mut Eager, kind: Interaction, of: &Description, widths: &[i64]) -> Meeting {
        let features = widths.len() as i64;
        let all: i64 = widths.iter().sum();
        let own = if of.dense > 0 { widths[0] } else { 0 };
        match kind {
            Interaction::Cat => Meeting { kind: Kind::Cat, width: all },
            Interaction::Fm => Meeting { kind: Kind::Fm { width: widths[0] }, width: own + widths[0] },
            Interaction::Dot => {
                let count = features * (features - 1) / 2;
                let mut places = |name, indices| {
                    let places = e.empty(&[count], Dtype::I64);
                    e.buffers.push(NamedTensor { id: places.id, name, role: Role::Indices(indices) });
                    places
                };
                let below = |row: i64| (0..row).map(move |column| (row, column));
                let (firsts, seconds) = (0..features).flat_map(below).unzip();
                let (rows, columns) =
                    (places("pairs.rows".to_owned(), firsts), places("pairs.columns".to_owned(), seconds));
                Meeting { kind: Kind::Dot { rows, columns, width: widths[0] }, width: own + count }
            }
            Interaction::Cross => {
                let layers = (0..of.cross_layers.unwrap_or(3))
                    .map(|at| e.within(&format!("cross.{at}"), |e| Cross::new(e, all, of.cross_rank)));
                Meeting { kind: Kind::Cross(layers.collect()), width: all }
            }
        }
    }

    /// Untrained tensors of the interaction.
    pub(super) fn buffers(&self) -> Vec<Tensor> {
        match &self.kind {
            Kind::Dot { rows, columns, .. } => vec![rows.clone(), columns.clone()],
            _ => Vec::new(),
        }
    }

    /// The result of the interaction, `[batch, width]`.
    pub(super) fn forward(&self, e: &mut Eager, dense: Option<Tensor>, rows: Vec<Tensor>) -> Tensor {
        let all: Vec<Tensor> = dense.iter().cloned().chain(rows).collect();
        let side_by_side = if all.len() == 1 { all[0].clone() } else { cat(e, &all) };
        let met = match &self.kind {
            Kind::Cat => return side_by_side,
            Kind::Cross(layers) => return crossed(e, layers, side_by_side),
            Kind::Dot { rows, columns, width } => {
                let vectors = view(e, &side_by_side, &[side_by_side.size(0), -1, *width]);
                let turned = transpose(e, &vectors, 1, 2);
                let products = bmm(e, &vectors, &turned);
                pairs(e, &products, rows, columns)
            }
            Kind::Fm { width } => machine(e, &side_by_side, *width),
        };
        match dense {
            Some(dense) => cat(e, &[dense, met]),
            None => met,
        }
    }
}

impl Cross {
    fn new(e: &mut Eager, width: i64, rank: Option<i64>) -> Cross {
        let narrow = rank.map(|rank| e.within("narrow", |e| Linear::new(e, width, rank, false)));
        let wide = e.within("wide", |e| Linear::new(e, rank.unwrap_or(width), width, true));
        Cross { narrow, wide }
    }
}

/// The cross network: `x = x0 * (W x + b) + x`, layer by layer.
fn crossed(e: &mut Eager, layers: &[Cross], first: Tensor) -> Tensor {
    let mut x = first.clone();
    for layer in layers {
        let narrow = layer.narrow.map(|narrow| narrow.forward(e, &x));
        let projected = layer.wide.forward(e, narrow.as_ref().unwrap_or(&x));
        let product = mul(e, &first, &projected);
        x = add(e, &product, &x);
    }
    x
}

/// Half of the difference of squared sum and sum of squares: the sum of products of all pairs, `[batch, width]`.
pub(super) fn machine(e: &mut Eager, side_by_side: &Tensor, width: i64) -> Tensor {
    let vectors = view(e, side_by_side, &[side_by_side.size(0), -1, width]);
    let total = sum(e, &vectors, 1, false);
    let square = mul(e, &total, &total);
    let squares = mul(e, &vectors, &vectors);
    let of_squares = sum(e, &squares, 1, false);
    let twice = sub(e, &square, &of_squares);
    scale(e, &twice, 0.5)
}
