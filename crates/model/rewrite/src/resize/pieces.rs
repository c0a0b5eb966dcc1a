//! Arguments that select pieces of a tensor: they move with grown sizes.

use rustc_hash::FxHashMap;
use steptime_aten::Arg;
use steptime_step::{Call, OpId, StepIr, TensorId};

/// Ops that take one piece, and whether their last number is its length instead of its end.
const PIECES: [(&str, bool); 2] = [("aten::slice", false), ("aten::narrow", true)];
/// Ops that split a tensor into pieces.
const CUTS: [&str; 3] = ["aten::split", "aten::split_with_sizes", "aten::unsafe_split"];

/// For a tensor and one of its dimensions, the starts of its pieces, and the pieces.
pub(super) struct Pieces {
    of: FxHashMap<(TensorId, i64), Vec<(i64, TensorId)>>,
}

impl Pieces {
    pub fn find(step: &StepIr) -> Pieces {
        let mut of: FxHashMap<(TensorId, i64), Vec<(i64, TensorId)>> = FxHashMap::default();
        for piece in step.running().into_iter().filter_map(|op| Piece::find(step, op)) {
            let known = of.entry((piece.whole, piece.dim)).or_default();
            if !known.iter().any(|(start, _)| *start == piece.start) {
                known.push((piece.start, piece.tensor));
            }
        }
        Pieces { of }
    }

    /// Adjusts the arguments of an op to the grown pieces. `more` is the growth of a dimension of a tensor. A piece moves by the growth of those
    /// before it.
    pub fn adjust(&self, step: &StepIr, op: OpId, call: &mut Call, more: &impl Fn(TensorId, i64) -> i64) {
        if CUTS.contains(&&*step.ops[op].name) {
            return cut(step, op, call, more);
        }
        let Some(piece) = Piece::find(step, op) else { return };
        let before = self.of[&(piece.whole, piece.dim)].iter().filter(|(start, _)| *start < piece.start);
        let moved: i64 = before.map(|&(_, tensor)| more(tensor, piece.dim)).sum();
        let grown = more(piece.tensor, piece.dim) * piece.by;
        if let Some(start @ Arg::Int(_)) = call.inputs.get_mut(2) {
            *start = Arg::Int(piece.start + moved);
        }
        if let Some(Arg::Int(end)) = call.inputs.get_mut(3) {
            let moved = if piece.is_length { 0 } else { moved };
            *end = end.saturating_add(grown + moved);
        }
    }
}

/// The sizes of the pieces of a split tensor.
fn cut(step: &StepIr, op: OpId, call: &mut Call, more: &impl Fn(TensorId, i64) -> i64) {
    let Some(old) = &step.ops[op].call else { return };
    let pieces: Vec<TensorId> = old.gives().collect();
    let rank = pieces.first().map_or(0, |&piece| step.tensors[piece].value.shape.len() as i64);
    let dim = match call.inputs.get(2) {
        Some(Arg::Int(dim)) if *dim < 0 => dim + rank,
        Some(Arg::Int(dim)) => *dim,
        _ => 0,
    };
    match call.inputs.get_mut(1) {
        Some(Arg::Ints(sizes)) if sizes.len() == pieces.len() => {
            sizes.iter_mut().zip(&pieces).for_each(|(size, &piece)| *size += more(piece, dim));
        }
        Some(Arg::Int(size)) => *size += pieces.first().map_or(0, |&piece| more(piece, dim)),
        _ => {}
    }
}

/// The piece of a tensor that an op takes.
struct Piece {
    whole: TensorId,
    tensor: TensorId,
    dim: i64,
    start: i64,
    /// Step between elements.
    by: i64,
    is_length: bool,
}

impl Piece {
    fn find(step: &StepIr, op: OpId) -> Option<Piece> {
        let row = &step.ops[op];
        let (_, is_length) = PIECES.iter().find(|(name, _)| *name == row.name)?;
        let call = row.call.as_deref()?;
        let whole = *call.inputs.first()?.tensors().first()?;
        let &[Arg::Int(dim), Arg::Int(start)] = call.inputs.get(1..3)? else { return None };
        let rank = step.tensors[whole].value.shape.len() as i64;
        let by = if let Some(Arg::Int(by)) = call.inputs.get(4) { *by } else { 1 };
        let dim = if dim < 0 { dim + rank } else { dim };
        Some(Piece { whole, tensor: call.gives().next()?, dim, start, by, is_length: *is_length })
    }
}
