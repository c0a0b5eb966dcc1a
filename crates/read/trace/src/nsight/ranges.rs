//! NVTX ranges: PyTorch's ops as `torch.autograd.profiler.emit_nvtx` names them, steps, and other labels.

use super::tables::Row;
use crate::kineto::{HostKind, HostOp, ThreadId};
use crate::other_profilers;
use crate::strings::NameId;
use crate::units::Nanos;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Event types of ranges: pushed and popped, or started and ended.
const RANGES: [i64; 2] = [59, 60];
/// Letters in the name of a step besides its number.
const STEPS: [&str; 8] =
    ["step", "iteration", "iter", "trainstep", "trainingstep", "train", "batch", "profilerstep"];

/// Range on one thread.
pub(super) struct Range {
    pub(super) thread: i64,
    text: String,
    start: Nanos,
    end: Nanos,
}

/// Op, step or label made from a range.
pub(super) struct Op {
    pub(super) thread: i64,
    pub(super) name: String,
    kind: HostKind,
    sequence: i64,
    start: Nanos,
    end: Nanos,
}

impl Range {
    /// Reads the range of a row; `None` for marks, and for ranges that never ended.
    pub(super) fn from_row(row: &Row<'_>, texts: &FxHashMap<i64, String>) -> Option<Range> {
        let (start, end) = (row.time("start")?, row.time("end")?);
        if row.number("eventType").is_some_and(|kind| !RANGES.contains(&kind)) {
            return None;
        }
        let text = row.text("text").or_else(|| texts.get(&row.number("textId")?).cloned())?;
        Some(Range { thread: row.number("globalTid")?, text, start, end: end.max(start) })
    }
}

impl Op {
    pub(super) fn row(&self, name: NameId, thread: ThreadId) -> HostOp {
        HostOp {
            kind: self.kind,
            name,
            thread,
            start: self.start,
            dur: self.end - self.start,
            external_id: 0,
            record_function_id: 0,
            sequence: self.sequence,
            forward_thread: 0,
        }
    }
}

/// Returns the ops and labels of all ranges. Steps are the ranges with a step's name, of the thread and name with the longest total time.
pub(super) fn ops(ranges: Vec<Range>) -> Vec<Op> {
    let mut times: BTreeMap<(String, i64), Nanos> = BTreeMap::new();
    for range in &ranges {
        if let Some(stem) = step_stem(&range.text) {
            *times.entry((stem, range.thread)).or_default() += range.end - range.start;
        }
    }
    let steps = times.into_iter().max_by_key(|(_, time)| *time).map(|(key, _)| key);
    let mut counted = 0;
    let mut each: Vec<Op> = Vec::with_capacity(ranges.len());
    for range in ranges {
        let is_step = steps.as_ref().is_some_and(|(stem, thread)| {
            *thread == range.thread && step_stem(&range.text).as_ref() == Some(stem)
        });
        let (name, kind, sequence) = if is_step {
            counted += 1;
            (other_profilers::step_name(number(&range.text).unwrap_or(counted - 1)), HostKind::Annotation, -1)
        } else {
            let (name, sequence) = op(&range.text);
            let kind =
                if sequence.is_some() || name.contains("::") { HostKind::Op } else { HostKind::Annotation };
            (name.to_owned(), kind, sequence.unwrap_or(-1))
        };
        each.push(Op { thread: range.thread, name, kind, sequence, start: range.start, end: range.end });
    }
    each
}

/// Returns the letters of a step's name, if it is one: `step 3`, `Iteration_12`, `train_step#4`.
fn step_stem(text: &str) -> Option<String> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || " _-#:/()[]=.".contains(letter);
    let letters: String = text.chars().filter(char::is_ascii_alphabetic).collect();
    let stem = letters.to_ascii_lowercase();
    (text.chars().all(fits) && STEPS.contains(&stem.as_str())).then_some(stem)
}

/// Returns the first number in a text.
fn number(text: &str) -> Option<i64> {
    let digits = text.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// Returns the name of an op and its sequence number: `aten::mm, seq = 12, op_id = 3, sizes = [[4, 4]]`.
fn op(text: &str) -> (&str, Option<i64>) {
    let fields = [", seq = ", ", op_id = ", ", sizes = ", ", input_op_ids = "];
    let end = fields.iter().filter_map(|field| text.find(field)).min().unwrap_or(text.len());
    let sequence = text.find(fields[0]).and_then(|at| number(&text[at..]));
    (&text[..end], sequence.or((end < text.len()).then_some(-1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(thread: i64, text: &str, start: i64, end: i64) -> Range {
        Range { thread, text: text.to_owned(), start: Nanos(start), end: Nanos(end) }
    }

    #[test]
    fn steps_are_known_by_their_names() {
        for (text, stem) in [
            ("step 3", Some("step")),
            ("Iteration_12", Some("iteration")),
            ("train_step#4", Some("trainstep")),
            ("iter", Some("iter")),
            ("optimizer.step", None),
            ("forward", None),
            ("step: loss é", None),
        ] {
            assert_eq!(step_stem(text).as_deref(), stem, "{text}");
        }
    }

    #[test]
    fn times_at_the_ends_of_their_numbers_overflow_nothing() {
        let all = vec![range(1, "step 1", i64::MIN, i64::MAX), range(1, "step 2", i64::MIN, i64::MAX)];
        assert_eq!(ops(all).len(), 2);
    }

    #[test]
    fn ranges_become_steps_ops_and_labels() {
        let all = vec![
            range(1, "iteration 7", 0, 100),
            range(1, "aten::mm, seq = 12, op_id = 3, sizes = [[4, 4]]", 10, 20),
            range(1, "forward", 5, 50),
            range(2, "batch 1", 0, 10),
            range(1, "iteration 8", 100, 190),
        ];
        let found: Vec<_> = ops(all).into_iter().map(|op| (op.name, op.kind, op.sequence)).collect();
        let label = |name: &str| (name.to_owned(), HostKind::Annotation, -1);
        assert_eq!(
            found,
            [
                label("ProfilerStep#7"),
                ("aten::mm".to_owned(), HostKind::Op, 12),
                label("forward"),
                label("batch 1"),
                label("ProfilerStep#8"),
            ]
        );
    }
}
