//! Cross entropy of scores as two instructions of a GPU, each with one pass over the scores.
//!
//! PyTorch divides scores by a temperature, computes the logarithms of their softmax, takes those at the samples' classes, and goes back through
//! all of it: seven passes over a matrix of which only one row's sum and one element matter. One instruction keeps the logarithms of the rows'
//! sums, another one computes the gradient of the scores from them. Numbers are those of the separate ops.

mod scaling;

use rustc_hash::FxHashMap;
use steptime_aten::Dtype;
use steptime_tensor::Layout;

use self::scaling::Scaling;
use crate::arg::Arg;
use crate::binder::Use;
use crate::gpu::{CrossEntropyArgs, cross_entropy, cross_entropy_backward};
use crate::kernel::Kernel;
use crate::piece::{Bindings, Piece};
use crate::places::{MemoryId, Places};
use crate::program::Instruction;
use crate::slices::Access;

/// Names of the instructions.
const FORWARD: &str = "steptime::cross_entropy";
const BACKWARD: &str = "steptime::cross_entropy_backward";

/// Joins cross entropies in a program for a GPU.
pub(crate) fn joined(mut instructions: Vec<Instruction>, places: &mut Places<'_>) -> Vec<Instruction> {
    let found: Vec<CrossEntropy> = {
        let graph = Graph::new(&instructions, places);
        (0..instructions.len()).filter_map(|at| CrossEntropy::find(&graph, at)).collect()
    };
    let mut removed = vec![false; instructions.len()];
    for one in found {
        let sums = one.sums(places);
        let (forward, backward) = one.instructions(&instructions, sums);
        one.replaced.iter().for_each(|&at| removed[at] = true);
        for (at, instruction) in [(one.forward_at, forward), (one.backward_at, backward)] {
            instructions[at] = instruction;
            removed[at] = false;
        }
    }
    let mut kept = removed.iter().map(|removed| !removed);
    instructions.retain(|_| kept.next().unwrap_or(true));
    instructions
}

/// Instructions with the users of each piece of memory.
struct Graph<'g, 'd> {
    instructions: &'g [Instruction],
    places: &'g Places<'d>,
    users: FxHashMap<MemoryId, Vec<usize>>,
}

impl<'g, 'd> Graph<'g, 'd> {
    fn new(instructions: &'g [Instruction], places: &'g Places<'d>) -> Graph<'g, 'd> {
        let mut users: FxHashMap<MemoryId, Vec<usize>> = FxHashMap::default();
        for (at, instruction) in instructions.iter().enumerate() {
            instruction.slots.iter().for_each(|(memory, _)| users.entry(*memory).or_default().push(at));
        }
        Graph { instructions, places, users }
    }

    /// The users of memory that no one outside of the program has.
    fn users(&self, memory: MemoryId) -> &[usize] {
        let tensor = self.places.memories[memory.0].tensor;
        let is_named = tensor.is_some_and(|tensor| self.places.described.named(tensor).is_some());
        if is_named { &[] } else { self.users.get(&memory).map_or(&[], Vec::as_slice) }
    }

    fn name(&self, at: usize) -> &'g str {
        &self.instructions[at].name
    }

    fn pieces(&self, at: usize) -> Vec<Piece> {
        Piece::all(&self.instructions[at])
    }

    /// Whether an instruction after the first one, up to the last one, writes memory.
    fn is_written(&self, memory: MemoryId, after: usize, last: usize) -> bool {
        let writes = |&(own, access): &(MemoryId, Access)| own == memory && access != Access::Read;
        self.instructions[after + 1..=last].iter().any(|instruction| instruction.slots.iter().any(writes))
    }
}

/// A cross entropy of scores, and its gradient.
#[derive(Debug)]
struct CrossEntropy {
    scores: Piece,
    classes: Piece,
    /// The loss, and the number of samples.
    loss: Piece,
    total: Piece,
    /// Gradient of the loss, and of the scores.
    gradient: Piece,
    to: Piece,
    divisor: f32,
    /// Instructions that the two new ones replace, and the places of these.
    replaced: Vec<usize>,
    forward_at: usize,
    backward_at: usize,
}

impl CrossEntropy {
    /// The cross entropy whose logarithms an instruction computes.
    fn find(graph: &Graph<'_, '_>, at: usize) -> Option<CrossEntropy> {
        if graph.name(at) != "aten::_log_softmax" {
            return None;
        }
        let [from, logarithms] = graph.pieces(at).try_into().ok()?;
        let &[own, loss_at, softmax_at] = graph.users(logarithms.memory) else { return None };
        let names = [graph.name(loss_at), graph.name(softmax_at)];
        if own != at || names != ["aten::nll_loss_forward", "aten::_log_softmax_backward_data"] {
            return None;
        }
        let [picked, classes, loss, total] = graph.pieces(loss_at).try_into().ok()?;
        let [of_logarithms, output, of_scores] = graph.pieces(softmax_at).try_into().ok()?;
        let &[set_at, taken_at] = graph.users(of_logarithms.memory) else { return None };
        if graph.name(set_at) != "aten::nll_loss_backward" || taken_at != softmax_at {
            return None;
        }
        let [gradient, of_classes, of_total, set] = graph.pieces(set_at).try_into().ok()?;
        let same = [
            (&picked, &logarithms),
            (&output, &logarithms),
            (&set, &of_logarithms),
            (&of_classes, &classes),
            (&of_total, &total),
        ];
        let is_matrix = from.arg().shape().len() == 2 && of_scores.arg().shape() == from.arg().shape();
        if !is_matrix || same.iter().any(|(one, other)| one.key() != other.key()) {
            return None;
        }
        let (before, after) =
            (Scaling::before(graph, &from, at), Scaling::after(graph, &of_scores, softmax_at));
        let pairs = before.iter().flat_map(|one| after.iter().map(move |other| (one, other)));
        let (before, after) = pairs
            .filter(|(one, other)| {
                one.divisor.to_bits() == other.divisor.to_bits() && one.dtype() == other.dtype()
            })
            .max_by_key(|(one, other)| one.replaced.len() + other.replaced.len())?;
        let replaced = [&before.replaced[..], &[at, loss_at, set_at, softmax_at], &after.replaced].concat();
        let backward_at = replaced.iter().copied().max()?;
        let first = replaced.iter().copied().min()?;
        let found = CrossEntropy {
            scores: before.end.clone(),
            classes,
            loss,
            total,
            gradient,
            to: after.end.clone(),
            divisor: before.divisor,
            replaced,
            forward_at: loss_at,
            backward_at,
        };
        let stays = |piece: &Piece, from: usize| !graph.is_written(piece.memory, from, backward_at - 1);
        let all_stay = stays(&found.scores, first)
            && stays(&found.classes, loss_at)
            && stays(&found.total, loss_at)
            && stays(&found.gradient, set_at)
            && found.scores.memory != found.to.memory;
        (all_stay && found.is_aligned()).then_some(found)
    }

    /// Whether scores and gradients begin with vectors, and have no gaps.
    fn is_aligned(&self) -> bool {
        [&self.scores, &self.to].into_iter().all(|piece| {
            let arg = piece.arg();
            let start = arg.layout.offset() * arg.dtype.size() as usize;
            arg.layout.is_contiguous() && start.is_multiple_of(16) && !arg.layout.is_empty() && arg.pad == 0
        })
    }

    /// The logarithms of the rows' sums.
    fn sums(&self, places: &mut Places<'_>) -> Piece {
        let tensor = self.loss.one.tensor;
        let rows = self.scores.arg().shape()[0];
        let memory = places.add(tensor, 8 * rows as u64);
        // A vector that is not empty has a layout.
        let layout = Layout::contiguous(&[rows]).unwrap_or_else(|_| self.classes.arg().layout.clone());
        let arg = Arg { slot: 0, layout, dtype: Dtype::F64, pad: 0 };
        Piece { memory, one: Use { tensor, access: Access::Write, arg } }
    }

    /// The instructions of the loss and of the gradient.
    fn instructions(&self, all: &[Instruction], sums: Piece) -> (Instruction, Instruction) {
        let read = |piece: &Piece| piece.with_access(Access::Read);
        let write = |piece: &Piece| piece.with_access(Access::Write);
        let (divisor, halves) = (self.divisor, self.scores.arg().dtype == Dtype::Bf16);
        let mut bindings = Bindings::default();
        let [scores, classes, kept, loss, total] =
            [read(&self.scores), read(&self.classes), write(&sums), write(&self.loss), write(&self.total)]
                .map(|piece| bindings.add(&piece));
        let args = CrossEntropyArgs { scores, classes, sums: kept, scalars: [loss, total], divisor };
        let first = &all[self.forward_at];
        let forward = Instruction {
            op: first.op,
            name: FORWARD.to_owned(),
            place: first.place.clone(),
            slots: bindings.slots,
            uses: bindings.uses,
            at: Vec::new(),
            order: Vec::new(),
            kernel: Kernel::Gpu(cross_entropy(args, halves)),
        };
        let mut bindings = Bindings::default();
        let [scores, classes, kept, gradient, total, to] = [
            read(&self.scores),
            read(&self.classes),
            read(&sums),
            read(&self.gradient),
            read(&self.total),
            write(&self.to),
        ]
        .map(|piece| bindings.add(&piece));
        let args = CrossEntropyArgs { scores, classes, sums: kept, scalars: [gradient, total], divisor };
        let last = &all[self.backward_at];
        let backward = Instruction {
            op: last.op,
            name: BACKWARD.to_owned(),
            place: last.place.clone(),
            slots: bindings.slots,
            uses: bindings.uses,
            at: Vec::new(),
            order: Vec::new(),
            kernel: Kernel::Gpu(cross_entropy_backward(args, to, halves)),
        };
        (forward, backward)
    }
}
