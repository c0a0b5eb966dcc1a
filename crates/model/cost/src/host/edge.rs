//! The key of a host gap: the marks on both sides, and their context.
//!
//! A gap lies between two marks (an op or a call begins or ends). The same pair of marks costs about the same in every
//! model, so a table of pairs prices models that it was not measured on. The two marks before and the op around make the
//! key narrower. If a narrow key is unknown, a wider one is used.

use rustc_hash::FxHashMap;
use steptime_graph::{ApiKind, MarkId, MarkKind, StepGraph, TiVec};

/// How much of its context a key holds: the levels of the table, narrowest first.
pub const LEVELS: usize = 6;

/// The levels by name, for output: how an estimate was found.
pub const LEVEL_NAMES: [&str; LEVELS] =
    ["in context", "after the same mark", "same pair", "op before", "op after", "class"];

/// A gap's narrowest key, as text: what a profile file holds.
///
/// A mark reads `aten::t{` where an op begins and `aten::t}` where it ends; calls have round brackets,
/// annotations square ones.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EdgeKey {
    /// Two marks before the gap's left side.
    pub before_that: String,
    /// The mark before the left side.
    pub before: String,
    /// The mark where the gap begins.
    pub left: String,
    /// The mark where it ends.
    pub right: String,
    /// The op around: `-` for none; led by `~` where another thread takes over, by `^` between steps.
    pub within: String,
}

/// The narrowest keys of all gaps of a graph, as indices into a list of distinct keys.
#[derive(Debug, Clone)]
pub struct Edges {
    /// Distinct keys, in order of appearance.
    pub keys: Vec<EdgeKey>,
    /// For each mark: the key of the gap that ends there.
    pub of_mark: TiVec<MarkId, u32>,
}

impl Edges {
    /// Names every gap of a graph.
    pub fn of_graph(graph: &StepGraph) -> Edges {
        let labels: TiVec<MarkId, String> = graph.marks.keys().map(|m| label(graph, m)).collect();
        let mut index: FxHashMap<EdgeKey, u32> = FxHashMap::default();
        let mut edges = Edges { keys: Vec::new(), of_mark: TiVec::with_capacity(labels.len()) };
        for (at, mark) in graph.marks.iter_enumerated() {
            let left = mark.after;
            let before = graph.marks[left].after;
            let before_that = graph.marks[before].after;
            let around = graph.enclosing_op(at).map_or("-", |op| graph.op_name(op));
            let other_thread = graph.marks[left].thread != mark.thread;
            let sign = if mark.wraps {
                "^"
            } else if other_thread {
                "~"
            } else {
                ""
            };
            let key = EdgeKey {
                before_that: labels[before_that].clone(),
                before: labels[before].clone(),
                left: labels[left].clone(),
                right: labels[at].clone(),
                within: format!("{sign}{around}"),
            };
            let id = *index.entry(key.clone()).or_insert_with(|| {
                edges.keys.push(key);
                edges.keys.len() as u32 - 1
            });
            edges.of_mark.push(id);
        }
        edges
    }
}

impl EdgeKey {
    /// The key with as much context as a level keeps: what is left out is empty.
    pub fn at_level(&self, level: usize) -> [&str; 5] {
        let (left, right) = (self.left.as_str(), self.right.as_str());
        match level {
            0 => [&self.before_that, &self.before, left, right, &self.within],
            1 => ["", &self.before, left, right, &self.within],
            2 => ["", "", left, right, self.turn()],
            3 => ["", "", left, class(right), self.turn()],
            4 => ["", "", class(left), right, self.turn()],
            _ => ["", "", class(left), class(right), self.turn()],
        }
    }

    /// The sign before the op around: `~` for another thread, `^` for another step, empty for neither.
    fn turn(&self) -> &str {
        let signed = self.within.starts_with(['~', '^']);
        &self.within[..usize::from(signed)]
    }
}

fn label(graph: &StepGraph, mark: MarkId) -> String {
    let name = graph.names.get(graph.mark_name(mark));
    let bracket = match graph.marks[mark].kind {
        MarkKind::OpBegin(op) if graph.ops[op].annotation => '[',
        MarkKind::OpEnd(op) if graph.ops[op].annotation => ']',
        MarkKind::OpBegin(_) => '{',
        MarkKind::OpEnd(_) => '}',
        MarkKind::CallBegin(_) => '(',
        MarkKind::CallEnd(_) => ')',
    };
    format!("{name}{bracket}")
}

/// The class of a mark: what kind of thing begins or ends.
fn class(label: &str) -> &'static str {
    let Some(bracket) = label.chars().last() else { return "?" };
    let launches = || ApiKind::of(&label[..label.len() - 1]) != ApiKind::Other;
    match bracket {
        '{' => "op begins",
        '}' => "op ends",
        '[' => "annotation begins",
        ']' => "annotation ends",
        '(' if launches() => "launch begins",
        ')' if launches() => "launch ends",
        '(' => "call begins",
        ')' => "call ends",
        _ => "?",
    }
}
