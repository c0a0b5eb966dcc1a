//! Errors of learning models and of reading them back.

use forust_ml::errors::ForustError;

/// Reason why nothing could be learnt from rows.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LearnError {
    /// There must be one target and one weight per row.
    #[error("{targets} targets and {weights} weights for {rows} rows")]
    Lengths {
        /// Number of targets.
        targets: usize,
        /// Number of weights.
        weights: usize,
        /// Number of rows.
        rows: usize,
    },
    /// There are no rows.
    #[error("there are no rows")]
    NoRows,
    /// No residual is a finite number, so that there is no score.
    #[error("no row could be compared")]
    NoScore,
    /// The library that grows trees refuses the rows.
    #[error("trees cannot be grown: {0}")]
    Boost(#[from] Box<ForustError>),
    /// The grown trees are inconsistent.
    #[error(transparent)]
    Trees(#[from] TreesError),
}

/// Inconsistency of trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TreesError {
    /// The base or the step of the leaves is not finite, or the step is not above zero.
    #[error("a scale of trees is not a positive number")]
    Scale,
    /// A tree is cut off.
    #[error("a tree ends too early")]
    Short,
    /// A split names a child that does not exist.
    #[error("a tree lacks a child")]
    NoChild,
    /// A split is on a feature that does not exist.
    #[error("a split is on a feature that does not exist")]
    NoFeature,
    /// A split is at a threshold that does not exist.
    #[error("a split is at a threshold that does not exist")]
    NoThreshold,
    /// A threshold is infinite or not a number, or thresholds are not in order.
    #[error("a threshold is not a number, or not in order")]
    Threshold,
    /// There are more thresholds than the format can number.
    #[error("there are too many thresholds")]
    Thresholds,
    /// A node has two parents or is its own ancestor, or a tree has more than 65,535 nodes.
    #[error("a node of a tree has two parents, or there are too many")]
    Nodes,
    /// Nodes are left over after the last tree.
    #[error("there are nodes without a tree")]
    Spare,
}
