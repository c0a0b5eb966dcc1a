//! Python overhead of a checkpoint per saved tensor and per segment.
//!
//! Measured on a CPU with PyTorch 2.11, `use_reentrant=False`, over chains of 100 small ops that save one or two tensors each: additional time over
//! the same chain without a checkpoint, in units of one such op.

use std::ops::Range;

use rustc_hash::FxHashSet;
use steptime_graph::execution::StorageId;
use steptime_step::OpId;

use super::forward::Forward;

/// A tensor that is not kept.
const KEEP: f64 = 2.3;
/// A tensor that is recomputed and given to the function that saved it.
const RESTORE: f64 = 4.8;
/// A segment in the forward pass, and in the backward pass: random states and autocast are saved and restored.
const SEGMENT: [f64; 2] = [29.0, 44.0];

/// Host time that a segment adds to its ops and to the functions from place `first` on, in units of a small op with autograd.
pub(super) fn costs(forward: &Forward<'_>, places: Range<usize>, first: usize) -> Vec<(OpId, f64)> {
    let roots = &forward.roots[places.clone()];
    let mut seen: FxHashSet<StorageId> = roots.iter().flat_map(|&root| forward.taken(root)).collect();
    let made = forward.made.iter().filter(|(_, (at, _))| places.contains(at));
    seen.extend(made.map(|(storage, _)| *storage));
    let saved = |function: &OpId| {
        let taken: FxHashSet<StorageId> =
            forward.taken(*function).filter(|taken| seen.contains(taken)).collect();
        (*function, taken.len() as f64)
    };
    let functions: Vec<(OpId, f64)> = forward.functions[first..].iter().map(saved).collect();
    let count: f64 = functions.iter().map(|(_, count)| count).sum();
    let each = KEEP * count / roots.len() as f64;
    let mut more: Vec<(OpId, f64)> = roots.iter().map(|&root| (root, each)).collect();
    more.extend(
        functions.into_iter().filter(|(_, count)| *count > 0.0).map(|(op, count)| (op, RESTORE * count)),
    );
    more.push((roots[0], SEGMENT[0]));
    more.push((forward.functions[first], SEGMENT[1]));
    more
}
