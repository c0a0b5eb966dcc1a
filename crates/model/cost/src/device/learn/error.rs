//! What can go wrong when models are learnt, or read back.

use forust_ml::errors::ForustError;

/// Why nothing could be learnt from rows.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LearnError {
    /// Targets or weights are not one for each row.
    #[error("{targets} targets and {weights} weights for {rows} rows")]
    Lengths {
        /// How many targets there are.
        targets: usize,
        /// How many weights there are.
        weights: usize,
        /// How many rows there are.
        rows: usize,
    },
    /// There are no rows.
    #[error("there are no rows")]
    NoRows,
    /// No residual is a finite number: there is nothing to score.
    #[error("no row could be compared")]
    NoScore,
    /// The library that grows trees refuses the rows.
    #[error("trees cannot be grown: {0}")]
    Boost(#[from] Box<ForustError>),
    /// The trees that were grown do not hold together.
    #[error(transparent)]
    Trees(#[from] TreesError),
}

/// Why trees do not hold together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TreesError {
    /// The base or the step of the leaves is not finite, or the step is not above zero.
    #[error("a scale of trees is not a positive number")]
    Scale,
    /// A tree is cut off.
    #[error("a tree ends too early")]
    Short,
    /// A split names a child that is not there.
    #[error("a tree lacks a child")]
    NoChild,
    /// A split is on a feature that is not there.
    #[error("a split is on a feature that is not there")]
    NoFeature,
    /// A split is at a threshold that is not there.
    #[error("a split is at a threshold that is not there")]
    NoThreshold,
    /// A threshold is infinite or not a number, or thresholds are not in order.
    #[error("a threshold is not a number, or not in order")]
    Threshold,
    /// Features have more thresholds than can be told apart.
    #[error("there are too many thresholds")]
    Thresholds,
    /// A node has two parents or is its own ancestor, or a tree has more than 65,535 nodes.
    #[error("a node of a tree has two parents, or there are too many")]
    Nodes,
    /// Nodes are left over after the last tree.
    #[error("there are nodes without a tree")]
    Spare,
}
