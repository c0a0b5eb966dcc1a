//! Exchanges that read and write matrices at their places, instead of flat tensors that are packed before and unpacked after.
//!
//! A rank writes the memory of the others row by row. So it takes gradients where the backward pass leaves them, and stores vectors where the
//! concatenation of all features has them: the copies before and after the exchange have no work.

use rustc_hash::FxHashMap;
use steptime_step::TensorId;
use steptime_tensor::Layout;

use crate::arg::Arg;
use crate::binder::Use;
use crate::bytes::Bytes;
use crate::gpu::{BagArgs, FlatExchange, GpuAllToAll, Parts, exchanged_bags};
use crate::kernel::Kernel;
use crate::piece::{Bindings, Piece};
use crate::places::{MemoryId, Places};
use crate::program::Instruction;
use crate::slices::Access;

/// The op that looks up and pools vectors.
const LOOKS_UP: &str = "steptime::embedding_bag";

/// Lets exchanges read and write the matrices whose copies they have.
pub(crate) fn direct_exchanges(mut instructions: Vec<Instruction>, places: &Places<'_>) -> Vec<Instruction> {
    let exchanges: Vec<usize> =
        (0..instructions.len()).filter(|&at| flat_exchange(&instructions[at]).is_some()).collect();
    let mut removed = vec![false; instructions.len()];
    for at in exchanges {
        let Some((changed, copies)) = direct(&instructions, places, at) else { continue };
        instructions[at] = changed;
        copies.into_iter().for_each(|at| removed[at] = true);
    }
    let mut removed = removed.into_iter();
    instructions.retain(|_| !removed.next().unwrap_or(false));
    instructions
}

/// The exchange of flat tensors that an instruction is.
fn flat_exchange(instruction: &Instruction) -> Option<FlatExchange<'_>> {
    match &instruction.kernel {
        Kernel::Gpu(work) => work.flat_exchange(),
        _ => None,
    }
}

/// Copies of an instruction that does nothing else.
fn copies(instruction: &Instruction) -> Option<Vec<(Arg, Arg)>> {
    match &instruction.kernel {
        Kernel::Gpu(work) => work.copies(),
        _ => None,
    }
}

/// The exchange without the copies around it, and the instructions of these.
fn direct(all: &[Instruction], places: &Places<'_>, at: usize) -> Option<(Instruction, Vec<usize>)> {
    let exchange = flat_exchange(&all[at])?;
    let [(from, sent), (to, received)] = exchange.whole;
    let before = Around::find(all, places, at, from, sent, true);
    let after = Around::find(all, places, at, to, received, false);
    let lookup = if before.is_none() { Lookup::find(all, places, at, from) } else { None };
    if let (Some(lookup), Some(after)) = (lookup, &after) {
        return lookup.sent(all, at, after);
    }
    let pieces = |side: &Option<Around>, flat: &[Vec<Arg>]| match side {
        Some(around) => Some(around.parts.clone()),
        None => of_flat(&all[at], flat),
    };
    let [from, to] = [pieces(&before, exchange.sent)?, pieces(&after, exchange.received)?];
    let mut bindings = Bindings::default();
    let mut bound = |parts: Vec<Vec<Piece>>, access: Access| -> Parts {
        let mut part =
            |part: &Vec<Piece>| part.iter().map(|own| bindings.add(&own.with_access(access))).collect();
        parts.iter().map(&mut part).collect()
    };
    let (from, to) = (bound(from, Access::Read), bound(to, Access::Write));
    let removed: Vec<usize> = [before, after].into_iter().flatten().flat_map(|side| side.copies).collect();
    if removed.is_empty() {
        return None;
    }
    let kernel = Kernel::Gpu(Box::new(GpuAllToAll::new(from, to)));
    Some((replaced(&all[at], bindings, kernel), removed))
}

/// The lookup whose results an exchange sends.
#[derive(Debug)]
struct Lookup {
    at: usize,
    /// Its results.
    to: Piece,
}

impl Lookup {
    /// The lookup that alone makes the flat tensor of an exchange, which alone reads it.
    fn find(all: &[Instruction], places: &Places<'_>, at: usize, flat: &Arg) -> Option<Lookup> {
        let (memory, _) = *all[at].slots.get(flat.slot)?;
        let users = users(all, places, at, memory)?;
        let &[lookup] = &users[..] else { return None };
        let to = Piece::all(&all[lookup]).into_iter().find(|piece| piece.memory == memory)?;
        let is_whole = to.arg().len() == flat.len()
            && to.arg().layout.is_contiguous()
            && to.arg().layout.offset() == flat.layout.offset()
            && to.arg().dtype == flat.dtype;
        let fits = all[lookup].name == LOOKS_UP && lookup < at && moves(all, [lookup, at], memory);
        (fits && is_whole).then_some(Lookup { at: lookup, to })
    }

    /// The lookup and the exchange as one instruction, and the instructions that it replaces. It receives one matrix of each rank.
    fn sent(self, all: &[Instruction], at: usize, after: &Around) -> Option<(Instruction, Vec<usize>)> {
        let Kernel::Gpu(work) = &all[self.at].kernel else { return None };
        let used = work.table_use()?;
        if after.parts.iter().any(|part| part.len() > 1) {
            return None;
        }
        let pieces = Piece::all(&all[self.at]);
        let mut bindings = Bindings::default();
        let mut bound = |arg: &Arg| {
            let own = pieces.iter().find(|piece| piece.arg() == arg)?;
            Some(bindings.add(own))
        };
        let tables = used.tables.iter().map(&mut bound).collect::<Option<Vec<_>>>()?;
        let (indices, offsets, to) = (bound(used.indices)?, bound(used.offsets)?, bound(self.to.arg())?);
        let write = |part: &Vec<Piece>| {
            part.iter().map(|own| bindings.add(&own.with_access(Access::Write))).collect()
        };
        let received: Parts = after.parts.iter().map(write).collect();
        let args = BagArgs { tables, indices, offsets, to };
        let kernel = exchanged_bags(args, used.names.to_vec(), used.pooling, received);
        let removed = after.copies.iter().copied().chain([self.at]).collect();
        Some((replaced(&all[at], bindings, Kernel::Gpu(kernel)), removed))
    }
}

/// An instruction with other operands and another kernel.
fn replaced(old: &Instruction, bindings: Bindings, kernel: Kernel) -> Instruction {
    let Bindings { slots, uses } = bindings;
    let (name, place) = (old.name.clone(), old.place.clone());
    Instruction { op: old.op, name, place, slots, uses, at: Vec::new(), order: Vec::new(), kernel }
}

/// Users of memory other than an exchange; `None` where others than instructions use it.
fn users(all: &[Instruction], places: &Places<'_>, at: usize, memory: MemoryId) -> Option<Vec<usize>> {
    let is_named = |tensor: TensorId| places.described.named(tensor).is_some();
    if places.memories[memory.0].tensor.is_some_and(is_named) {
        return None;
    }
    let uses = |user: usize| all[user].slots.iter().any(|&(own, _)| own == memory);
    Some((0..all.len()).filter(|&user| user != at && uses(user)).collect())
}

/// The parts of a flat tensor of an exchange.
fn of_flat(exchange: &Instruction, parts: &[Vec<Arg>]) -> Option<Vec<Vec<Piece>>> {
    let all = Piece::all(exchange);
    let piece = |arg: &Arg| {
        let whole = all.iter().find(|own| own.arg().slot == arg.slot)?;
        Some(Piece { memory: whole.memory, one: Use { arg: arg.clone(), ..whole.one.clone() } })
    };
    parts.iter().map(|part| part.iter().map(piece).collect()).collect()
}

/// The copies that make all operands of an exchange, or take all its results.
#[derive(Debug)]
struct Around {
    /// For each rank the matrices on the other side of the copies.
    parts: Vec<Vec<Piece>>,
    /// The instructions.
    copies: Vec<usize>,
}

impl Around {
    /// The copies before or after an exchange of a flat tensor with parts of these sizes.
    fn find(
        all: &[Instruction],
        places: &Places<'_>,
        at: usize,
        flat: &Arg,
        sizes: &[usize],
        before: bool,
    ) -> Option<Around> {
        let (memory, _) = *all[at].slots.get(flat.slot)?;
        if flat.len() == 0 {
            return None;
        }
        let users = users(all, places, at, memory)?;
        // Elements of the flat tensor with those on the other side.
        let mut pairs: Vec<(Arg, Piece)> = Vec::new();
        for &user in &users {
            if (user < at) != before || !moves(all, [user, at], memory) {
                return None;
            }
            let pieces: FxHashMap<usize, Piece> =
                Piece::all(&all[user]).into_iter().map(|piece| (piece.arg().slot, piece)).collect();
            for (from, to) in copies(&all[user])? {
                let (own, other) = if before { (to, from) } else { (from, to) };
                let piece = pieces.get(&other.slot)?;
                let is_own = all[user].slots.get(own.slot).is_some_and(|&(slot, _)| slot == memory);
                if !is_own || piece.memory == memory || own.dtype != flat.dtype || other.dtype != flat.dtype {
                    return None;
                }
                let one = Use { arg: Arg { pad: 0, ..other }, ..piece.one.clone() };
                pairs.push((own, Piece { memory: piece.memory, one }));
            }
        }
        let mut start = flat.layout.offset();
        let mut parts = Vec::with_capacity(sizes.len());
        for &size in sizes {
            parts.push(columns(&mut pairs, start, size)?);
            start += size;
        }
        (pairs.is_empty() && !users.is_empty()).then_some(Around { parts, copies: users })
    }
}

/// Whether a copy can be made at the place of an exchange: no instruction between both writes its source, or uses its target.
fn moves(all: &[Instruction], [copy, exchange]: [usize; 2], flat: MemoryId) -> bool {
    let (first, last) = (copy.min(exchange), copy.max(exchange));
    let own = Bytes::of_memories(&all[copy]);
    let others = own.iter().filter(|bytes| bytes.used.region != flat.0 as u32);
    let between = || all[first + 1..last].iter().flat_map(Bytes::of_memories);
    others.into_iter().all(|bytes| between().all(|other| !bytes.conflicts(&other)))
}

/// Takes the pairs of a part of a flat tensor: the matrices that together are its columns, in order.
fn columns(pairs: &mut Vec<(Arg, Piece)>, start: usize, size: usize) -> Option<Vec<Piece>> {
    let is_in = |arg: &Arg| (start..start + size).contains(&arg.layout.offset());
    let (mut own, rest): (Vec<_>, Vec<_>) =
        std::mem::take(pairs).into_iter().partition(|(arg, _)| is_in(arg));
    *pairs = rest;
    own.sort_by_key(|(arg, _)| arg.layout.offset());
    let mut column = 0;
    let mut parts = Vec::with_capacity(own.len());
    for (arg, piece) in own {
        let rows = matrix(&arg.layout)?;
        let other = matrix(&piece.one.arg.layout)?;
        let pitch = size.checked_div(rows.shape()[0])?;
        let fits = rows.shape() == other.shape()
            && pitch * rows.shape()[0] == size
            && (rows.strides()[0] == pitch || rows.shape()[0] == 1)
            && rows.offset() == start + column;
        if !fits {
            return None;
        }
        column += rows.shape()[1];
        let arg = Arg { layout: other, ..piece.one.arg.clone() };
        parts.push(Piece { memory: piece.memory, one: Use { arg, ..piece.one } });
    }
    let width = parts.first().map_or(0, |piece| size / piece.arg().shape()[0].max(1));
    (column == width).then_some(parts)
}

/// Rows of neighbouring elements; dimensions of one element are left out.
fn matrix(layout: &Layout) -> Option<Layout> {
    match (layout.shape(), layout.strides()) {
        (&[_, _], &[_, 1]) => Some(layout.clone()),
        (&[rows, 1, width], &[pitch, _, 1]) => Layout::new(&[rows, width], &[pitch, 1], layout.offset()).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use steptime_eager::{Model, TableLayout};
    use steptime_rewrite::{ConcatInPlace, DirectExchanges, Facts, FuseLinear, Operators, apply};
    use steptime_step::StepIr;

    use crate::described::DescribedStep;
    use crate::plan::Reuse;
    use crate::program::Program;
    use crate::target::Target;

    /// Copies of floats in a program.
    fn copies(described: &DescribedStep) -> usize {
        let program = Program::for_target(described, Target::Cuda, Reuse::ByLifetime).expect("a program");
        let names = program.instructions().iter().map(|one| &*one.name);
        names.filter(|name| matches!(*name, "aten::clone" | "aten::cat")).count()
    }

    /// Ops that copy in a step.
    fn ops(step: &StepIr) -> usize {
        let copies = |op: &steptime_step::OpId| {
            let row = &step.ops[*op];
            let copied = row.call.as_deref().and_then(|call| call.inputs.get(1));
            let is_within = row.name == "steptime::cat_in_place"
                && copied.is_some_and(|copied| copied.tensors().is_empty());
            matches!(&*row.name, "aten::clone" | "aten::cat" | "steptime::cat_in_place") && !is_within
        };
        step.running().iter().filter(|op| copies(op)).count()
    }

    #[test]
    fn the_rule_of_the_prediction_leaves_out_the_same_copies() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/models");
        for name in ["dlrm_nvidia", "dlrm_default", "dcn_v2", "deepfm"] {
            let model = Model::read(&folder.join(format!("{name}.toml"))).expect("a description");
            let tables = model.tables();
            let half = |at: usize| u32::from(2 * at >= tables.len());
            let homes = tables.iter().enumerate();
            let homes = homes.map(|(at, table)| TableLayout::whole(half(at), table.rows, table.columns));
            let model = model.on(2, homes.collect()).expect("two ranks");
            let mut described = DescribedStep::of_rank(&model, 0).expect("a step");
            let all = described.ops().clone();
            let facts = Facts::new(&all, Some(model.batch()));
            apply(&mut described.step, &[&Operators, &FuseLinear], &facts).expect("they apply");
            let mut step = described.step.clone();
            apply(&mut step, &[&ConcatInPlace], &facts).expect("it applies");
            let before = ops(&step);
            apply(&mut step, &[&DirectExchanges], &facts).expect("it applies");
            let packed = copies(&described);
            described.direct_exchanges();
            let left_out = packed - copies(&described);
            assert!(left_out > 0, "{name}");
            assert_eq!(before - ops(&step), left_out, "{name}");
        }
    }
}
