//! Streams and waits of the nodes of captured graphs.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_graph::names::EventName;
use steptime_graph::{
    ActivityId, ApiKind, Call, CallId, CollectiveKind, Phase, StepGraph, StreamDependency, StreamId,
};
use steptime_trace::Stream;

use super::bytes::{Memories, Uses};
use super::dependencies::Dependencies;
use crate::exchange_order::{Action, actions, early};
use crate::ids::OpId;
use crate::node_order::NodeOrder;
use crate::schedule::ScheduledStep;
use crate::step::StepIr;

/// Puts the nodes of captured graphs on streams, so that they wait for one another by their data alone. `flat` is the schedule before capture,
/// `captured` the one after it.
pub(crate) fn order(step: &StepIr, order: &NodeOrder, flat: &ScheduledStep, captured: &mut ScheduledStep) {
    let memories = Memories::new(step, order, &launching(step, flat));
    let op_of = |node: ActivityId| {
        let call = flat.graph.activities[captured.carried.activities[node]?].call;
        Some(flat.ops[flat.graph.calls[call].op?])
    };
    let graph = &mut captured.graph;
    let mut streams = Streams::new(graph);
    let mut waits = Waits::default();
    for call in graph.calls_by_hand_off() {
        let row = graph.calls[call];
        if !row.has_activities() {
            continue;
        }
        if row.kind != ApiKind::GraphLaunch {
            waits.alone(graph, row, streams.main);
            continue;
        }
        let mut nodes: Vec<(Option<OpId>, [ActivityId; 2])> = Vec::new();
        for at in row.activities() {
            let op = op_of(at);
            if op.is_some_and(|op| step.ops[op].ahead) {
                // A copy for the next step has a stream of its own.
                continue;
            }
            match nodes.last_mut().filter(|(last, _)| op.is_some() && *last == op) {
                Some((_, ends)) => ends[1] = at,
                None => nodes.push((op, [at; 2])),
            }
        }
        let mut all = Dependencies::default();
        let add = |&(op, [first, _]): &(Option<OpId>, [ActivityId; 2])| {
            let uses = memories.uses(op);
            let is_exchange = graph.activities[first].collective.is_some();
            if is_exchange { all.add_exchange(uses) } else { all.add(uses) }
        };
        let needs: Vec<Vec<usize>> = nodes.iter().map(add).collect();
        streams.begin();
        for (at, (_, [first, last])) in nodes.iter().enumerate() {
            let stream = match graph.activities[*first].collective {
                Some(_) => streams.of_exchanges(graph),
                None => streams.place(graph, at, &needs[at], &all),
            };
            for own in first.until(last.next()) {
                graph.activities[own].stream = stream;
            }
            waits.all.extend(needs[at].iter().map(|&need| wait(nodes[need].1[1], *first)));
        }
        let roots = (0..nodes.len()).filter(|&at| needs[at].is_empty()).map(|at| nodes[at].1[0]).collect();
        let sinks = all.last().map(|at| nodes[at].1[1]).collect();
        waits.graph(graph, row, roots, sinks);
    }
    waits.finish(graph);
}

/// Calls that a runtime keeps together.
struct Node {
    /// The function of the backward pass around them, or their op; `None` for an exchange.
    function: Option<OpId>,
    exchange: Option<CollectiveKind>,
    calls: Vec<CallId>,
}

/// The calls of a stretch that is launched as one, in the order of a runtime that starts exchanges with other ranks as soon as it can. `flat` is the
/// schedule before capture.
pub(crate) fn in_order(
    step: &StepIr,
    order: &NodeOrder,
    flat: &ScheduledStep,
    calls: Vec<CallId>,
) -> Vec<CallId> {
    let graph = &flat.graph;
    let exchanged = |call: CallId| {
        let mut own = graph.calls[call].activities();
        own.find_map(|at| Some(graph.collectives[graph.activities[at].collective?].kind))
    };
    if calls.iter().all(|&call| exchanged(call).is_none()) {
        return calls;
    }
    let op_of = |call: CallId| Some(flat.ops[graph.calls[call].op?]);
    let is_ahead = |call: &CallId| op_of(*call).is_some_and(|op| step.ops[op].ahead);
    let (ahead, calls): (Vec<CallId>, Vec<CallId>) = calls.into_iter().partition(is_ahead);
    // Ops of one function of the backward pass run together.
    let around = |op: OpId| {
        let is_function = |&op: &OpId| matches!(step.event(op), EventName::Engine(_));
        step.around(op).find(is_function).unwrap_or(op)
    };
    let mut nodes: Vec<Node> = Vec::new();
    for call in calls {
        let (op, exchange) = (op_of(call), exchanged(call));
        let function = op.map(around).filter(|_| exchange.is_none());
        match nodes.last_mut().filter(|last| function.is_some() && last.function == function) {
            Some(last) => last.calls.push(call),
            None => nodes.push(Node { function, exchange, calls: vec![call] }),
        }
    }
    let memories = Memories::new(step, order, &launching(step, flat));
    let uses_of = |node: &Node| Uses::joined(node.calls.iter().map(|&call| memories.uses(op_of(call))));
    let uses: Vec<Uses> = nodes.iter().map(uses_of).collect();
    let sends: Vec<bool> = nodes.iter().map(|node| node.exchange == Some(CollectiveKind::AllToAll)).collect();
    let phase = |call: CallId| graph.calls[call].op.map(|op| graph.ops[op].phase);
    let is_forward = |node: &Node| node.calls.iter().any(|&call| phase(call) == Some(Phase::Forward));
    let forward = nodes.iter().rposition(is_forward);
    let early = early(&sends, forward, |one, other| uses[one].conflicts_by_data(&uses[other]));
    let exchanges: Vec<bool> = early.iter().map(|&at| nodes[at].exchange.is_some()).collect();
    let actions = actions(&exchanges, |one, other| uses[early[one]].conflicts(&uses[early[other]]));
    let launched = actions.into_iter().flat_map(|action| match action {
        Action::Run(nodes) => nodes,
        Action::Start(exchange) => vec![exchange],
        Action::Await(_) => Vec::new(),
    });
    ahead.into_iter().chain(launched.flat_map(|at| std::mem::take(&mut nodes[early[at]].calls))).collect()
}

/// Ops that launch work, with those around them.
fn launching(step: &StepIr, flat: &ScheduledStep) -> FxHashSet<OpId> {
    let calls = flat.graph.calls.iter().filter(|call| call.has_activities());
    let ops = calls.filter_map(|call| Some(flat.ops[call.op?]));
    ops.flat_map(|op| step.around(op)).collect()
}

fn wait(from: ActivityId, to: ActivityId) -> StreamDependency {
    StreamDependency { from, to, inferred: false, wraps: false }
}

/// Streams of nodes.
struct Streams {
    main: StreamId,
    /// Stream of exchanges with other ranks, which keep their order.
    exchanges: Option<StreamId>,
    all: Vec<StreamId>,
    /// The last node of each stream in the current graph.
    tails: Vec<Option<usize>>,
}

impl Streams {
    fn new(graph: &StepGraph) -> Streams {
        let launched = graph.calls.iter().filter(|call| call.kind == ApiKind::GraphLaunch);
        let streams = launched.flat_map(Call::activities).map(|at| graph.activities[at].stream);
        let main = streams.min().unwrap_or(StreamId(0));
        Streams { main, exchanges: None, all: vec![main], tails: Vec::new() }
    }

    fn begin(&mut self) {
        self.tails = vec![None; self.all.len()];
    }

    fn of_exchanges(&mut self, graph: &mut StepGraph) -> StreamId {
        *self.exchanges.get_or_insert_with(|| new_stream(graph))
    }

    /// The stream of a node: that of a node that it waits for, a free one, or a new one.
    fn place(&mut self, graph: &mut StepGraph, node: usize, needs: &[usize], all: &Dependencies) -> StreamId {
        let direct = needs.iter().find_map(|need| self.tails.iter().position(|tail| *tail == Some(*need)));
        let free = || self.tails.iter().position(|tail| tail.is_none_or(|tail| all.waits(node, tail)));
        let at = direct.or_else(free).unwrap_or_else(|| {
            self.all.push(new_stream(graph));
            self.tails.push(None);
            self.tails.len() - 1
        });
        self.tails[at] = Some(node);
        self.all[at]
    }
}

fn new_stream(graph: &mut StepGraph) -> StreamId {
    let device = graph.streams.first().map_or(0, |stream| stream.device);
    let last = graph.streams.iter().map(|stream| stream.stream).max().unwrap_or(0);
    graph.streams.push_and_get_key(Stream { device, stream: last + 1 })
}

/// Waits between streams.
#[derive(Default)]
struct Waits {
    all: Vec<StreamDependency>,
    /// Activities that all later ones wait for.
    last: Vec<ActivityId>,
    /// Activities that wait for the step before.
    first: Vec<ActivityId>,
    /// Waits between the streams of a recording, which the data of nodes replaces.
    replaced: FxHashSet<(ActivityId, ActivityId)>,
    /// For each activity that a wait is for, those that have to wait in its place.
    instead: FxHashMap<ActivityId, Vec<ActivityId>>,
}

impl Waits {
    /// A call outside of graphs: its work on the main stream waits for the graph before it.
    fn alone(&mut self, graph: &StepGraph, call: Call, main: StreamId) {
        for at in call.activities().filter(|&at| graph.activities[at].stream == main) {
            self.next(vec![at], vec![at]);
        }
    }

    /// A graph: its first nodes wait for everything before it.
    fn graph(&mut self, graph: &StepGraph, call: Call, roots: Vec<ActivityId>, sinks: Vec<ActivityId>) {
        let inside = |at: ActivityId| call.first_activity <= at && at < call.end_activity;
        for wait in graph.waits.iter().filter(|wait| inside(wait.to)) {
            if wait.wraps || !inside(wait.from) {
                self.instead.insert(wait.to, roots.clone());
            } else {
                self.replaced.insert((wait.from, wait.to));
            }
        }
        self.next(roots, sinks);
    }

    fn next(&mut self, first: Vec<ActivityId>, last: Vec<ActivityId>) {
        for &from in &self.last {
            self.all.extend(first.iter().map(|&to| wait(from, to)));
        }
        if self.first.is_empty() {
            self.first = first;
        }
        self.last = last;
    }

    /// Adds all waits to a graph. The first activities wait for the last ones of the step before.
    fn finish(self, graph: &mut StepGraph) {
        let known = std::mem::take(&mut graph.waits);
        let is_replaced =
            |wait: &StreamDependency| !wait.wraps && self.replaced.contains(&(wait.from, wait.to));
        for wait in known.into_iter().filter(|wait| !is_replaced(wait)) {
            match self.instead.get(&wait.to) {
                Some(roots) => graph.waits.extend(roots.iter().map(|&to| StreamDependency { to, ..wait })),
                None => graph.waits.push(wait),
            }
        }
        graph.waits.extend(self.all);
        for &from in &self.last {
            let wrapped = |&to: &ActivityId| StreamDependency { wraps: true, ..wait(from, to) };
            graph.waits.extend(self.first.iter().map(wrapped));
        }
        graph.waits.sort_by_key(|wait| (wait.to, wait.from, wait.wraps));
        graph.waits.dedup_by_key(|wait| (wait.to, wait.from, wait.wraps));
    }
}
