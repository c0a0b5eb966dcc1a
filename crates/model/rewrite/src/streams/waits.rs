//! Waits between streams: a stream takes no tensor before another stream has made it.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_aten::Arg;
use steptime_graph::execution::StorageId;
use steptime_step::{Call, NewOp, OpId, Patch, Place, StepIr, StreamWait, TensorId, Uses};

use super::units::Units;
use crate::passes::{gives, takes};

/// Name of the op that records an event on one stream and waits for it on another.
const WAIT: &str = "wait_stream";
/// Host time of the script for `with torch.cuda.stream`, and for `wait_stream` beside its two calls, in units of a small op with autograd. From two
/// recordings with branches on streams, on one host: 68 us and 20 us, where such an op took 6.2 us.
const SWITCH: f64 = 11.0;
const PYTHON: f64 = 3.0;

/// Inserts waits between streams, unit after unit in the order of launches.
pub(super) struct Waits<'u, 's> {
    units: &'u Units<'s>,
    patch: &'u mut Patch,
    makers: Uses,
    /// Units so far, with their streams.
    order: Vec<(OpId, u32)>,
    /// The unit that made a tensor, and the last that wrote to a memory.
    made: FxHashMap<TensorId, usize>,
    written: FxHashMap<StorageId, usize>,
    /// The last unit for which a stream has waited on another.
    seen: FxHashMap<(u32, u32), usize>,
    /// Tensors that are registered with the allocator for use on another stream.
    marked: FxHashSet<(TensorId, u32)>,
    /// Number of waits.
    pub count: usize,
}

impl<'u, 's> Waits<'u, 's> {
    pub fn new(units: &'u Units<'s>, patch: &'u mut Patch) -> Waits<'u, 's> {
        Waits {
            units,
            patch,
            makers: Uses::find(units.step),
            order: Vec::new(),
            made: FxHashMap::default(),
            written: FxHashMap::default(),
            seen: FxHashMap::default(),
            marked: FxHashSet::default(),
            count: 0,
        }
    }

    /// Appends a unit on a stream.
    pub fn unit(&mut self, op: OpId, stream: u32) {
        let step = self.units.step;
        let at = self.order.len();
        let mut awaited: FxHashMap<u32, usize> = FxHashMap::default();
        for tensor in takes(step, op) {
            let storage = step.tensors[tensor].storage;
            let written = storage.and_then(|storage| self.written.get(&storage));
            let makers = [self.made.get(&tensor), written].map(|maker| maker.copied());
            for maker in makers.into_iter().flatten() {
                let on = self.order[maker].1;
                if on != stream {
                    let latest = awaited.entry(on).or_insert(maker);
                    *latest = maker.max(*latest);
                    self.mark(tensor, stream, op);
                }
            }
        }
        let mut awaited: Vec<(u32, usize)> = awaited.into_iter().collect();
        awaited.sort_unstable();
        for (on, maker) in awaited {
            if self.seen.get(&(stream, on)).is_none_or(|&seen| seen < maker) {
                // A branch begins as soon as its inputs are ready; a unit that joins branches waits as late as possible.
                let (upto, place) =
                    if on == 0 { (maker, self.after(maker)) } else { (at - 1, self.before(op, at)) };
                self.wait(StreamWait { waiting: stream, awaited: on }, upto, place);
            }
        }
        // Parameters are from the previous step, and from the main stream.
        if stream != 0 && !self.seen.contains_key(&(stream, 0)) {
            let first = self.order.first().map_or(op, |&(first, _)| first);
            self.wait(StreamWait { waiting: stream, awaited: 0 }, 0, Place::Before(first));
        }
        let switches = self.order.last().is_none_or(|&(_, before)| before != stream);
        if stream != 0 && switches && !self.is_function(op) {
            self.patch.script.push((op, SWITCH));
        }
        self.order.push((op, stream));
        self.note(step, op, at);
    }

    /// Makes the main stream wait for all others at the end of the backward pass.
    pub fn join(&mut self, streams: u32) {
        let Some(&(last, _)) = self.order.last().filter(|(op, _)| self.is_function(*op)) else { return };
        for awaited in 1..streams {
            let latest = self.order.iter().rposition(|&(_, stream)| stream == awaited);
            if latest > self.seen.get(&(0, awaited)).copied() {
                self.wait(StreamWait { waiting: 0, awaited }, self.order.len() - 1, Place::LastIn(last));
            }
        }
    }

    fn note(&mut self, step: &StepIr, op: OpId, at: usize) {
        let taken: FxHashSet<TensorId> = takes(step, op).into_iter().collect();
        for tensor in gives(step, op) {
            self.made.insert(tensor, at);
            if let (true, Some(storage)) = (taken.contains(&tensor), step.tensors[tensor].storage) {
                self.written.insert(storage, at);
            }
        }
    }

    fn wait(&mut self, waits: StreamWait, upto: usize, place: Place) {
        self.count += 1;
        if let Place::Before(op) | Place::After(op) = place {
            self.patch.script.push((op, PYTHON));
        }
        self.seen.insert((waits.waiting, waits.awaited), upto);
        self.patch.insert.push((place, NewOp::waiting(WAIT, waits)));
    }

    /// The place after a unit.
    fn after(&self, unit: usize) -> Place {
        let op = self.order[unit].0;
        if self.is_function(op) { Place::LastIn(op) } else { Place::After(op) }
    }

    /// The place before a unit: the engine records events at the end of the preceding function.
    fn before(&self, op: OpId, at: usize) -> Place {
        if self.is_function(op) { Place::LastIn(self.order[at - 1].0) } else { Place::Before(op) }
    }

    fn is_function(&self, op: OpId) -> bool {
        self.units.step.ops[op].thread != steptime_graph::HostThreadId::MAIN
    }

    /// Registers the use of a tensor on another stream with the allocator; the engine does so itself.
    fn mark(&mut self, tensor: TensorId, stream: u32, op: OpId) {
        // Where several tensors have one id, the last one is known.
        let made = self.makers.producer(tensor);
        let there = |made: OpId| self.order.iter().any(|&(unit, _)| self.units.step.is_within(made, unit));
        if !self.is_function(op) && made.is_some_and(there) && self.marked.insert((tensor, stream)) {
            let call = Call { inputs: vec![Arg::Tensor(tensor)], ..Call::default() };
            self.patch.insert.push((Place::Before(op), NewOp::new("aten::record_stream", call)));
        }
    }
}
