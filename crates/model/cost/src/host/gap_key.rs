//! The key of a host gap: the marks on both sides, and their context.
//!
//! A gap is between two marks (an op or a call begins or ends). The same pair of marks costs about the same in every
//! model, so a table of pairs also prices models outside of the measurements. The two marks before and the op around make the
//! key narrower. If a narrow key is unknown, a wider one is used.

use rustc_hash::FxHashMap;
use steptime_graph::{ApiKind, MarkId, MarkKind, StepGraph, TiVec};
use steptime_trace::{NameId, Strings};

/// Number of levels of the table: amounts of context in a key, narrowest first.
pub const LEVELS: usize = 6;

/// Names of the levels for output: the source of an estimate.
pub const LEVEL_NAMES: [&str; LEVELS] =
    ["in context", "after the same mark", "same pair", "op before", "op after", "class"];

/// Narrowest key of a gap, as text in a profile file.
///
/// A mark reads `aten::t{` where an op begins and `aten::t}` where it ends; calls have round brackets,
/// annotations square ones.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EdgeKey {
    /// Two marks before the gap's left side.
    pub before_that: String,
    /// Mark before the left side.
    pub before: String,
    /// Mark where the gap begins.
    pub left: String,
    /// Mark where the gap ends.
    pub right: String,
    /// Op around: `-` for none; with the prefix `~` if another thread takes over, `^` between steps.
    pub within: String,
}

/// Narrowest keys of all gaps of a graph, as indices into a list of distinct keys. Each text is stored once.
#[derive(Debug, Clone)]
pub struct Edges {
    /// Distinct keys, in order of appearance.
    keys: Vec<[NameId; 5]>,
    names: Strings,
    /// Key of the gap that ends at each mark.
    pub of_mark: TiVec<MarkId, u32>,
}

impl Edges {
    /// Finds the key of every gap of a graph.
    pub fn from_graph(graph: &StepGraph) -> Edges {
        let mut names = Strings::default();
        // By the name, and the kind of beginning or end.
        let mut known: Vec<[Option<NameId>; BRACKETS.len()]> =
            vec![[None; BRACKETS.len()]; graph.names.len()];
        let mut labelled = |mark: MarkId| {
            let (name, bracket) = (graph.mark_name(mark), bracket(graph, mark));
            let text = || names.intern(&format!("{}{}", graph.names.get(name), BRACKETS[bracket]));
            *known[usize::from(name)][bracket].get_or_insert_with(text)
        };
        let labels: TiVec<MarkId, NameId> = graph.marks.keys().map(&mut labelled).collect();
        // By the name of the op around, the last for none, and the sign.
        let mut around: Vec<[Option<NameId>; SIGNS.len()]> = vec![[None; SIGNS.len()]; graph.names.len() + 1];
        let mut index: FxHashMap<Key, u32> = FxHashMap::default();
        let mut keys = Vec::new();
        let mut of_mark = TiVec::with_capacity(labels.len());
        for (at, mark) in graph.marks.iter_enumerated() {
            let left = mark.after;
            let before = graph.marks[left].after;
            let before_that = graph.marks[before].after;
            let op = graph.enclosing_op(at).map(|op| graph.ops[op].name);
            let other_thread = graph.marks[left].thread != mark.thread;
            let sign = if mark.wraps { 2 } else { usize::from(other_thread) };
            let text =
                || names.intern(&format!("{}{}", SIGNS[sign], op.map_or("-", |op| graph.names.get(op))));
            let within = *around[op.map_or(graph.names.len(), usize::from)][sign].get_or_insert_with(text);
            let key = [labels[before_that], labels[before], labels[left], labels[at], within];
            let id = *index.entry(Key::from(key)).or_insert_with(|| {
                keys.push(key);
                keys.len() as u32 - 1
            });
            of_mark.push(id);
        }
        Edges { keys, names, of_mark }
    }

    /// Returns the distinct keys, in order of appearance.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = EdgeKey> {
        self.keys.iter().map(|key| {
            let [before_that, before, left, right, within] = key.map(|name| self.names.get(name).to_owned());
            EdgeKey { before_that, before, left, right, within }
        })
    }

    /// Returns the distinct keys, as names of a list of texts.
    pub(super) fn named(&self) -> (&[[NameId; 5]], &Strings) {
        (&self.keys, &self.names)
    }

    /// Returns for each distinct key the marks on both sides, and the sign before the op around: the context of level 2.
    pub fn pairs(&self) -> impl Iterator<Item = (NameId, NameId, &str)> {
        self.keys.iter().map(|&[_, _, left, right, within]| (left, right, turn(self.names.get(within))))
    }
}

impl EdgeKey {
    /// Returns the key with the context of a level; the other parts are empty.
    pub fn at_level(&self, level: usize) -> [&str; 5] {
        let (left, right) = (self.left.as_str(), self.right.as_str());
        match level {
            0 => [&self.before_that, &self.before, left, right, &self.within],
            1 => ["", &self.before, left, right, &self.within],
            2 => ["", "", left, right, turn(&self.within)],
            3 => ["", "", left, class(right), turn(&self.within)],
            4 => ["", "", class(left), right, turn(&self.within)],
            _ => ["", "", class(left), class(right), turn(&self.within)],
        }
    }
}

/// Returns the sign before the op around: `~` for another thread, `^` for another step, empty for neither.
pub(super) fn turn(within: &str) -> &str {
    let signed = within.starts_with(['~', '^']);
    &within[..usize::from(signed)]
}

/// A key as names, which compare faster than a list of them.
type Key = (NameId, NameId, NameId, NameId, NameId);

/// Signs before the op around: none, another thread, another step.
const SIGNS: [&str; 3] = ["", "~", "^"];

/// Possible last characters of a mark's label.
const BRACKETS: [char; 6] = ['[', ']', '{', '}', '(', ')'];

/// Returns the index in [`BRACKETS`] of the last character of a mark's label, by the kind of beginning or end.
fn bracket(graph: &StepGraph, mark: MarkId) -> usize {
    match graph.marks[mark].kind {
        MarkKind::OpBegin(op) if graph.ops[op].annotation => 0,
        MarkKind::OpEnd(op) if graph.ops[op].annotation => 1,
        MarkKind::OpBegin(_) => 2,
        MarkKind::OpEnd(_) => 3,
        MarkKind::CallBegin(_) => 4,
        MarkKind::CallEnd(_) => 5,
    }
}

/// Returns the class of a mark: the kind of beginning or end.
pub(super) fn class(label: &str) -> &'static str {
    let Some(bracket) = label.chars().last() else { return "?" };
    let launches =
        || !matches!(ApiKind::from_name(&label[..label.len() - 1]), ApiKind::Other | ApiKind::FunctionQuery);
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
