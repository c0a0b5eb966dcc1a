//! Implementations of ops, one op or one family a file.

mod activations;
mod arithmetic;
pub(crate) mod cast;
mod cat;
mod collectives;
mod compare;
mod copy;
mod elementwise;
mod embedding_bag;
mod embedding_gradient;
mod fill;
mod index;
mod interaction;
mod joined_indices;
mod linear;
mod loss;
mod nll;
mod norm;
mod optimizer;
pub(crate) mod pointwise;
mod pooled;
mod products;
mod reduce;
mod reorder;
mod rows;
mod slope;
mod softmax;
mod views;

use crate::row::Row;

/// The rows of all files.
pub(crate) const FILES: &[&[Row]] = &[
    activations::ROWS,
    arithmetic::ROWS,
    cast::ROWS,
    cat::ROWS,
    collectives::ROWS,
    compare::ROWS,
    copy::ROWS,
    embedding_bag::ROWS,
    embedding_gradient::ROWS,
    fill::ROWS,
    index::ROWS,
    interaction::ROWS,
    linear::ROWS,
    loss::ROWS,
    nll::ROWS,
    norm::ROWS,
    optimizer::ROWS,
    pooled::ROWS,
    products::ROWS,
    reduce::ROWS,
    rows::ROWS,
    softmax::ROWS,
    views::ROWS,
];

/// Ops that compute nothing.
pub(crate) const WITHOUT_WORK: &[&str] = views::NAMES;
