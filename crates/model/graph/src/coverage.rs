//! Counts of events in a recording that were joined.

use steptime_trace::{Nanos, Trace};

use crate::ids::TraceCall;
use crate::marks::{Source, ThreadMarks};
use crate::names::ApiKind;

/// Minimum share of matching marks, in thousandths, for steps that count as alike.
const ALIKE_PERMILLE: usize = 950;

/// Counts of joined events, over the whole trace unless noted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Number of ops and annotations.
    pub host_ops: usize,
    /// Number of runtime and driver calls.
    pub calls: usize,
    /// Calls that launch work on the device.
    pub launches: usize,
    /// Launches inside an op.
    pub launches_in_op: usize,
    /// Launches outside any op: counted, and replayed as the thread's own.
    pub launches_outside: usize,
    /// Number of kernels, copies and memsets.
    pub activities: usize,
    /// Activities whose launching call is in the trace.
    pub activities_linked: usize,
    /// Linked activities that were launched within a step.
    pub activities_in_steps: usize,
    /// Activities launched in the trace but before its first step.
    pub activities_before_steps: usize,
    /// Kernel launches within the steps.
    pub launches_in_steps: usize,
    /// Kernel launches within the steps without a kernel: the profiler lost it.
    pub launches_lost: usize,
    /// Activities of the template step that began long after their launch although no known cause delayed them.
    pub late_starts: usize,
    /// Sum of these delays.
    pub late: Nanos,
    /// Steps at the beginning that took far longer than the others: excluded as warm-up.
    pub steps_of_warm_up: usize,
    /// Steps that lost more of their kernels than others: excluded.
    pub steps_incomplete: usize,
    /// Number of processes that marked steps; 1 if none did.
    pub processes: usize,
    /// Number of steps in the trace.
    pub steps: usize,
    /// Steps with the same sequence of ops and calls as the template.
    pub steps_alike: usize,
    /// Marks of all steps that could be matched with the template, in thousandths.
    pub marks_matched_permille: usize,
    /// Events longer than the event around them: cut to fit.
    pub clamped: usize,
    /// Events that span several steps: excluded.
    pub across_steps: usize,
    /// Stream waits in the template step.
    pub stream_waits: usize,
    /// Stream waits paired with an event by inference.
    pub waits_inferred: usize,
    /// Inferred pairs that contradict the device's times: dropped.
    pub waits_refuted: usize,
    /// Hand-offs from thread to thread in the template step.
    pub hand_offs: usize,
}

impl Coverage {
    /// Counts launches and activities over the whole trace.
    pub(crate) fn from_trace(
        trace: &Trace,
        threads: &[ThreadMarks],
        launched_by: &[Option<TraceCall>],
    ) -> Coverage {
        let mut coverage = Coverage {
            host_ops: trace.ops.len(),
            calls: trace.calls.len(),
            activities: trace.activities.len(),
            processes: trace.stepping_processes().len().max(1),
            clamped: threads.iter().map(|t| t.clamped).sum(),
            ..Coverage::default()
        };
        let kinds: Vec<ApiKind> = trace.names.iter().map(|(_, name)| ApiKind::from_name(name)).collect();
        let kind_of = |call: TraceCall| kinds[trace.calls.name[call.index()].0 as usize];
        coverage.activities_linked = launched_by.iter().flatten().count();
        for thread in threads {
            let mut open_ops = 0u32;
            for mark in &thread.marks {
                match mark.source {
                    Source::Op(_) if mark.begins => open_ops += 1,
                    Source::Op(_) => open_ops -= 1,
                    Source::Call(call) if mark.begins && kind_of(call).launches() => {
                        coverage.launches += 1;
                        if open_ops > 0 {
                            coverage.launches_in_op += 1;
                        } else {
                            coverage.launches_outside += 1;
                        }
                    }
                    Source::Call(_) => {}
                }
            }
        }
        coverage
    }

    /// Whether the steps do the same work, as far as can be detected: 95 of 100 marks match.
    pub fn steps_are_alike(&self) -> bool {
        self.marks_matched_permille >= ALIKE_PERMILLE
    }

    /// Share of device activities whose launching call is in the trace; 1 where there are none.
    pub fn linked_share(&self) -> f64 {
        share(self.activities_linked, self.activities)
    }

    /// Share of launches inside an op; 1 if there are none.
    pub fn attributed_share(&self) -> f64 {
        share(self.launches_in_op, self.launches)
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}
