//! Ops as PyTorch runs them on a GPU: their inner ops and their backward functions. One file per kind.

pub(crate) mod activation;
pub(crate) mod arithmetic;
pub(crate) mod copy;
pub(crate) mod embedding_bag;
pub(crate) mod exchange;
pub(crate) mod fill;
pub(crate) mod index;
pub(crate) mod linear;
pub(crate) mod loss;
pub(crate) mod norm;
pub(crate) mod reduce;
pub(crate) mod sparse;
pub(crate) mod views;
