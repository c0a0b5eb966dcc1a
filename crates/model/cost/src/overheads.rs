//! The overheads of the paper: T1 between top-level ops, T2 before an op's first launch, T3 after its last,
//! T4 inside a runtime call, T5 between launches (or, for an op that launches nothing, all of it).
//!
//! "Building a Performance Model for Deep Learning Recommendation Model Training on GPUs", section III-C.
//! The simulator prices gaps ([`crate::host`]); `inspect` shows this view of the same samples, and
//! it is the input of the published method.

use std::collections::BTreeMap;

use steptime_graph::{MarkId, MarkKind, OpId, Role, StepGraph, TiVec};
use steptime_trace::Nanos;

use crate::host::profiler::ProfilerCost;
use crate::host::robust::mean_of_ranks;

/// Kind of overhead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Overhead {
    /// Time between two top-level ops of a thread.
    T1,
    /// Time from an op's beginning to its first launch.
    T2,
    /// Time from an op's last launch to its end.
    T3,
    /// Time inside a runtime call.
    T4,
    /// Time between two launches of an op, or the whole of an op that launches nothing.
    T5,
    /// Time from one host thread to another: to the backward pass and back. The paper has no name for it.
    HandOff,
}

/// Samples of overheads, by kind and by the name of the op (T2, T3, T5) or call (T4); T1 has one name.
#[derive(Debug, Clone, Default)]
pub struct Overheads {
    samples: BTreeMap<(Overhead, String), Vec<Nanos>>,
}

impl FromIterator<(Overhead, String, Nanos)> for Overheads {
    /// Collects overheads from single samples: kind, op or call, duration.
    fn from_iter<I: IntoIterator<Item = (Overhead, String, Nanos)>>(samples: I) -> Overheads {
        let mut overheads = Overheads::default();
        for (kind, name, time) in samples {
            overheads.samples.entry((kind, name)).or_default().push(time);
        }
        overheads
    }
}

/// Times that the published method subtracts for the profiler, per host event and per device event.
const PUBLISHED_HOST_EVENT: Nanos = Nanos(2_000);
const PUBLISHED_DEVICE_EVENT: Nanos = Nanos(4_000);

/// Correction for the profiler's cost.
enum Correction {
    Measured(TiVec<MarkId, Nanos>),
    Published,
}

/// A span of one thread between two marks, of one kind of overhead.
struct Span {
    kind: Overhead,
    name: String,
    /// First and last mark.
    from: MarkId,
    to: MarkId,
}

impl Overheads {
    /// Collects the overheads of all steps, with the profiler's measured cost subtracted gap by gap.
    pub fn measured(graph: &StepGraph, profiler: &ProfilerCost) -> Overheads {
        Overheads::collect(graph, &Correction::Measured(profiler.gap_costs(graph)))
    }

    /// Collects them in the published way: 2 µs subtracted per host event, 4 µs per device event.
    pub fn published(graph: &StepGraph) -> Overheads {
        Overheads::collect(graph, &Correction::Published)
    }

    fn collect(graph: &StepGraph, correction: &Correction) -> Overheads {
        let mut overheads = Overheads::default();
        let up_to = correction.up_to(graph);
        for span in spans(graph) {
            let off = up_to[span.to] - up_to[span.from];
            let times: Vec<Nanos> = graph
                .samples
                .steps()
                .filter_map(|step| {
                    let gap = graph.samples.mark(step, span.to)? - graph.samples.mark(step, span.from)?;
                    Some((gap - off).max(Nanos::ZERO))
                })
                .collect();
            overheads.samples.entry((span.kind, span.name)).or_default().extend(times);
        }
        overheads.hand_offs(graph, correction);
        overheads
    }

    /// Adds the hand-offs between threads, by the thread that continues.
    fn hand_offs(&mut self, graph: &StepGraph, correction: &Correction) {
        for (index, mark) in graph.marks.iter_enumerated() {
            if !graph.is_hand_off(index) {
                continue;
            }
            let to = match graph.threads[mark.thread].role {
                Role::Main => "to the main thread",
                Role::Autograd => "to the autograd thread",
                Role::Other => "to another thread",
            };
            let off = match correction {
                Correction::Measured(parts) => parts[index],
                Correction::Published => PUBLISHED_HOST_EVENT,
            };
            let gaps = graph.samples.steps().filter_map(|s| graph.samples.gap(s, index, mark));
            let times = gaps.map(|gap| (gap - off).max(Nanos::ZERO));
            self.samples.entry((Overhead::HandOff, to.to_owned())).or_default().extend(times);
        }
    }

    /// Returns all kinds and names, with their samples.
    pub fn iter(&self) -> impl Iterator<Item = (Overhead, &str, &[Nanos])> {
        self.samples.iter().map(|((kind, name), times)| (*kind, name.as_str(), times.as_slice()))
    }

    /// Returns all samples of one kind, for any name.
    pub fn samples_of_kind(&self, kind: Overhead) -> Vec<Nanos> {
        self.samples.iter().filter(|((k, _), _)| *k == kind).flat_map(|(_, t)| t.iter().copied()).collect()
    }

    /// Returns the published statistic: the mean of the samples within 1.5 interquartile ranges of the
    /// quartiles. For an unknown name, that of the kind as a whole; zero without any.
    pub fn published_mean(&self, kind: Overhead, name: &str) -> Nanos {
        self.published_mean_of(kind, name).unwrap_or_else(|| self.published_mean_of_kind(kind))
    }

    /// Returns the same for one name alone; `None` if the name is unknown.
    pub fn published_mean_of(&self, kind: Overhead, name: &str) -> Option<Nanos> {
        let times = self.samples.get(&(kind, name.to_owned()))?;
        (!times.is_empty()).then(|| mean_within_iqr(times))
    }

    /// Returns the same for all samples of a kind.
    pub fn published_mean_of_kind(&self, kind: Overhead) -> Nanos {
        mean_within_iqr(&self.samples_of_kind(kind))
    }
}

impl Correction {
    /// Returns the sum of subtracted times up to each mark, inclusive: calls may be nested, so that no span is summed
    /// by itself.
    fn up_to(&self, graph: &StepGraph) -> TiVec<MarkId, Nanos> {
        let published = |kind| match kind {
            MarkKind::CallBegin(call) if graph.calls[call].kind.launches() => PUBLISHED_DEVICE_EVENT,
            MarkKind::OpBegin(_) | MarkKind::CallBegin(_) => PUBLISHED_HOST_EVENT,
            _ => Nanos::ZERO,
        };
        let mut sum = Nanos::ZERO;
        let parts = graph.marks.iter_enumerated().map(|(mark, row)| match self {
            Correction::Measured(parts) => parts[mark],
            Correction::Published => published(row.kind),
        });
        let sums = parts.map(|part| {
            sum += part;
            sum
        });
        sums.collect()
    }
}

fn spans(graph: &StepGraph) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut last_end: Option<MarkId> = None;
    let mut thread = None;
    for (index, op) in graph.ops.iter_enumerated() {
        if !graph.is_top_level(index) {
            continue;
        }
        if thread != Some(op.thread) {
            thread = Some(op.thread);
            last_end = None;
        }
        if let Some(from) = last_end {
            let foreign = from.next().until(op.begin.next()).any(|mark| graph.is_hand_off(mark));
            if !foreign {
                spans.push(Span { kind: Overhead::T1, name: "between ops".into(), from, to: op.begin });
            }
        }
        last_end = Some(op.end);
        inside(graph, index, &mut spans);
    }
    for call in &graph.calls {
        let waits = call.kind.synchronises() || call.blocking != steptime_graph::Blocking::Never;
        if !waits {
            let name = graph.names.get(call.api).to_owned();
            spans.push(Span { kind: Overhead::T4, name, from: call.begin, to: call.end });
        }
    }
    spans
}

/// Adds T2, T5, T3 of one top-level op.
fn inside(graph: &StepGraph, index: OpId, spans: &mut Vec<Span>) {
    let op = &graph.ops[index];
    let name = graph.op_name(index);
    let launches: Vec<(MarkId, MarkId)> = op
        .begin
        .until(op.end)
        .filter_map(|mark| match graph.marks[mark].kind {
            MarkKind::CallBegin(call) => {
                let call = &graph.calls[call];
                call.kind.launches().then_some((call.begin, call.end))
            }
            _ => None,
        })
        .collect();
    let mut span = |kind, from, to| spans.push(Span { kind, name: name.to_owned(), from, to });
    match (launches.first(), launches.last()) {
        (Some(first), Some(last)) => {
            span(Overhead::T2, op.begin, first.0);
            span(Overhead::T3, last.1, op.end);
        }
        _ => span(Overhead::T5, op.begin, op.end),
    }
    for pair in launches.windows(2) {
        span(Overhead::T5, pair[0].1, pair[1].0);
    }
}

fn mean_within_iqr(times: &[Nanos]) -> Nanos {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let Some(last) = sorted.len().checked_sub(1) else { return Nanos::ZERO };
    let (q1, q3) = (sorted[last / 4], sorted[last * 3 / 4]);
    let reach = (q3 - q1) * 3 / 2;
    let mut kept: Vec<Nanos> = sorted.into_iter().filter(|&t| t >= q1 - reach && t <= q3 + reach).collect();
    mean_of_ranks(&mut kept, 0.0, 1.0).unwrap_or(Nanos::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_mean_leaves_outliers_out() {
        let times: Vec<Nanos> = [10, 10, 11, 11, 12, 12, 1000].map(Nanos).to_vec();
        assert_eq!(mean_within_iqr(&times), Nanos(11));
        assert_eq!(mean_within_iqr(&[]), Nanos::ZERO);
    }
}
