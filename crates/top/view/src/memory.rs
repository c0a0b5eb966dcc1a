//! Device memory of the tensors of a step, over time.

use serde::Serialize;
use steptime_predict::WhatIfs;
use steptime_step::{MemoryKind, Moment};

use crate::columns::{Column, Columns};

/// Memory from each moment to the next.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Memory {
    /// Moments, in microseconds from the step's begin on the host.
    pub at_us: Column,
    /// Kinds of memory.
    pub kinds: Vec<&'static str>,
    /// Kilobytes (1000 bytes) of each kind.
    pub kb: Vec<Column>,
}

/// Returns the memory of a step; `None` if its tensors are not known.
pub(crate) fn build(asked: &WhatIfs<'_>, columns: &mut Columns) -> Option<Memory> {
    let moments = asked.memory();
    let (graph, marks) = (&asked.recorded().graph, &asked.before().timeline.marks);
    let mut last = 0;
    let mut at = |moment: &Moment| {
        let op = asked.unchanged().ops[moment.op].origin.recorded()?;
        let mark = if moment.ends { graph.ops[op].end } else { graph.ops[op].begin };
        // Ops of two threads are ordered by their hand-offs, which may differ slightly from the order of time.
        last = u32::try_from(marks[mark].0.max(0) / 1000).unwrap_or(u32::MAX).max(last);
        Some(last)
    };
    let shown: Vec<(u32, &Moment)> =
        moments.iter().filter_map(|moment| Some((at(moment)?, moment))).collect();
    if shown.is_empty() {
        return None;
    }
    let kb = |bytes: u64| u32::try_from(bytes / 1000).unwrap_or(u32::MAX);
    Some(Memory {
        at_us: columns.growing(shown.iter().map(|(at, _)| *at)),
        kinds: MemoryKind::ALL.map(MemoryKind::name).to_vec(),
        kb: MemoryKind::ALL
            .map(|kind| columns.growing(shown.iter().map(|(_, moment)| kb(moment.needs.bytes_of(kind)))))
            .to_vec(),
    })
}
