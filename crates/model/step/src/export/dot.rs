//! A step as a picture, in DOT for Graphviz.
//!
//! Host threads, annotations and functions are boxes around the ops inside them; an op with arguments is a node, and ops inside it are not drawn.
//! Solid edges are tensors, with shape and type; dashed ones hand-offs between host threads; dotted ones waits between streams. Ops that a rule
//! changed or inserted have the rule's colour.

use std::io::{self, Write};

use rustc_hash::FxHashMap;
use steptime_graph::{Role, TiVec};

use super::Export;
use super::edges::{self, Wait};
use crate::ids::{OpId, TensorId};
use crate::step::{Origin, StepIr};
use crate::uses::Uses;

/// Colours of rules, in the order of their names.
const COLOURS: [&str; 8] =
    ["#8dd3c7", "#ffffb3", "#bebada", "#fb8072", "#80b1d3", "#fdb462", "#b3de69", "#fccde5"];

/// Edges, each drawn once with all of its tensors.
type DrawnEdges = FxHashMap<(OpId, OpId), Vec<TensorId>>;

struct Picture<'s> {
    export: &'s Export<'s>,
    out: &'s mut dyn Write,
    /// The rules that changed anything, by name.
    rules: Vec<&'static str>,
    /// The node as which, or within which, each op is drawn; `None` for boxes.
    node: TiVec<OpId, Option<OpId>>,
}

/// Writes a step.
///
/// # Errors
/// Where the output cannot be written.
pub fn write(out: &mut dyn Write, export: &Export<'_>) -> io::Result<()> {
    let step = export.step;
    let mut rules: Vec<&'static str> = step.running().into_iter().filter_map(|op| rule(step, op)).collect();
    rules.sort_unstable();
    rules.dedup();
    let mut node: TiVec<OpId, Option<OpId>> = vec![None; step.ops.len()].into();
    for op in step.running() {
        let around = step.ops[op].parent.and_then(|parent| node[parent]);
        node[op] = around.or_else(|| is_node(step, op).then_some(op));
    }
    let mut picture = Picture { export, out, rules, node };
    writeln!(picture.out, "digraph {} {{", quoted(export.name))?;
    writeln!(picture.out, "  compound=true; newrank=true; rankdir=TB; fontname=\"sans-serif\";")?;
    writeln!(picture.out, "  node [shape=box, style=filled, fillcolor=white, fontname=\"sans-serif\"];")?;
    writeln!(picture.out, "  edge [fontname=\"sans-serif\", fontsize=9];")?;
    picture.legend()?;
    picture.threads()?;
    picture.tensors()?;
    let (hand_offs, streams) = (edges::hand_offs(export), edges::stream_waits(export));
    picture.waits(&hand_offs, "style=dashed, color=\"#1f78b4\", constraint=false")?;
    picture.waits(&streams, "style=dotted, color=\"#e31a1c\", penwidth=2, constraint=false")?;
    writeln!(picture.out, "}}")
}

/// The rule that inserted or changed an op.
fn rule(step: &StepIr, op: OpId) -> Option<&'static str> {
    match step.ops[op].origin {
        Origin::Recorded(_) => None,
        Origin::Changed(_, rule) | Origin::Inserted(rule) => Some(rule),
    }
}

/// Whether an op is drawn as a node: it has arguments, or no ops inside.
fn is_node(step: &StepIr, op: OpId) -> bool {
    step.ops[op].arguments().is_some() || step.ops[op].children.is_empty()
}

/// A text in quotes, on one line. Control characters are replaced by spaces.
fn quoted(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("\"{}\"", plain.replace('\\', "\\\\").replace('"', "\\\""))
}

impl Picture<'_> {
    fn colour(&self, rule: &str) -> &'static str {
        let at = self.rules.iter().position(|known| *known == rule).unwrap_or(0);
        COLOURS[at % COLOURS.len()]
    }

    fn legend(&mut self) -> io::Result<()> {
        if self.rules.is_empty() {
            return Ok(());
        }
        writeln!(self.out, "  subgraph cluster_rules {{ label=\"changed by\";")?;
        for rule in self.rules.clone() {
            let (name, colour) = (quoted(rule), self.colour(rule));
            writeln!(
                self.out,
                "    {} [label={name}, fillcolor=\"{colour}\"];",
                quoted(&format!("rule {rule}"))
            )?;
        }
        writeln!(self.out, "  }}")
    }

    fn threads(&mut self) -> io::Result<()> {
        let step = self.export.step;
        for (thread, roots) in step.threads.iter_enumerated().filter(|(_, roots)| !roots.is_empty()) {
            let role = self.export.scheduled.graph.threads.get(thread).map_or("", |row| match row.role {
                Role::Main => ", main",
                Role::Autograd => ", autograd",
                Role::Other => "",
            });
            writeln!(
                self.out,
                "  subgraph cluster_thread_{} {{ label=\"thread {}{role}\";",
                thread.0, thread.0
            )?;
            self.inside(roots)?;
            writeln!(self.out, "  }}")?;
        }
        Ok(())
    }

    /// Writes boxes and nodes. Open boxes are kept in a list, so that nesting depth is not limited.
    fn inside(&mut self, roots: &[OpId]) -> io::Result<()> {
        let step = self.export.step;
        let mut open: Vec<Option<OpId>> = roots.iter().rev().copied().map(Some).collect();
        while let Some(next) = open.pop() {
            let Some(op) = next else {
                writeln!(self.out, "    }}")?;
                continue;
            };
            let name = quoted(&step.ops[op].name);
            if is_node(step, op) {
                let within = step.subtree(op);
                let changed = within.into_iter().find_map(|op| rule(step, op));
                let fill = changed.map(|rule| format!(", fillcolor=\"{}\"", self.colour(rule)));
                writeln!(self.out, "    op{} [label={name}{}];", op.0, fill.unwrap_or_default())?;
                continue;
            }
            writeln!(self.out, "    subgraph cluster_op{} {{ label={name};", op.0)?;
            open.push(None);
            open.extend(step.ops[op].children.iter().rev().copied().map(Some));
        }
        Ok(())
    }

    fn tensors(&mut self) -> io::Result<()> {
        let step = self.export.step;
        let mut drawn = DrawnEdges::default();
        for edge in edges::data(step, &Uses::find(step)) {
            if let (Some(from), Some(to)) = (self.node[edge.from], self.node[edge.to])
                && from != to
            {
                let tensors = drawn.entry((from, to)).or_default();
                if !tensors.contains(&edge.tensor) {
                    tensors.push(edge.tensor);
                }
            }
        }
        let mut drawn: Vec<_> = drawn.into_iter().collect();
        drawn.sort_unstable();
        for ((from, to), tensors) in drawn {
            let text = |&tensor: &TensorId| {
                let value = &step.tensors[tensor].value;
                let sizes: Vec<String> = value.shape.iter().map(i64::to_string).collect();
                format!("[{}] {}", sizes.join(", "), value.dtype.name())
            };
            // Lines of a label are separated by an escape of the format.
            let labels: Vec<String> = tensors.iter().map(text).collect();
            writeln!(self.out, "  op{} -> op{} [label=\"{}\"];", from.0, to.0, labels.join("\\n"))?;
        }
        Ok(())
    }

    fn waits(&mut self, waits: &[Wait], style: &str) -> io::Result<()> {
        let step = self.export.step;
        let mut drawn: Vec<(OpId, OpId)> = Vec::new();
        for wait in waits.iter().filter(|wait| !wait.wraps) {
            let end = |op: OpId| self.node[op].or_else(|| first_node(step, op));
            drawn.extend(end(wait.from).zip(end(wait.to)).filter(|(from, to)| from != to));
        }
        drawn.sort_unstable();
        drawn.dedup();
        for (from, to) in drawn {
            writeln!(self.out, "  op{} -> op{} [{style}];", from.0, to.0)?;
        }
        Ok(())
    }
}

/// The first node inside a box.
fn first_node(step: &StepIr, op: OpId) -> Option<OpId> {
    step.subtree(op).into_iter().find(|&op| is_node(step, op))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn names_end_neither_their_quotes_nor_their_line() {
        assert_eq!(quoted(r#"a "b" \ c"#), r#""a \"b\" \\ c""#);
        assert_eq!(quoted("a\nb\u{1b}["), "\"a b [\"");
        assert_eq!(quoted("autograd::engine: Größe<{}>"), "\"autograd::engine: Größe<{}>\"");
    }
}
