//! How much of a recording the joins reached.

use steptime_trace::{Nanos, Trace};

use crate::ids::TraceCall;
use crate::marks::{Source, ThreadMarks};
use crate::names::ApiKind;

/// Steps of which less than this share of the marks match, in thousandths, do not do the same.
const ALIKE_PERMILLE: usize = 950;

/// Counts of what was joined, over the whole trace unless said otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Ops and annotations.
    pub host_ops: usize,
    /// Runtime and driver calls.
    pub calls: usize,
    /// Calls that put work on the device.
    pub launches: usize,
    /// Of these, inside an op.
    pub launches_in_op: usize,
    /// Of these, outside any op: counted, and replayed as the thread's own.
    pub launches_outside: usize,
    /// Kernels, copies and memsets.
    pub activities: usize,
    /// Of these, with the call that launched them in the trace.
    pub activities_linked: usize,
    /// Of these, launched within a step.
    pub activities_in_steps: usize,
    /// Launched in the trace but before its first step.
    pub activities_before_steps: usize,
    /// Kernel launches within the steps.
    pub launches_in_steps: usize,
    /// Of these, without a kernel: the profiler lost it.
    pub launches_lost: usize,
    /// Activities of the template step that began long after their launch although nothing that is known held them up.
    pub late_starts: usize,
    /// The time that they began late, all together.
    pub late: Nanos,
    /// Steps at the beginning that took far longer than the others: left out as warm-up.
    pub steps_of_warm_up: usize,
    /// Steps that lost more of their kernels than others did: left out.
    pub steps_incomplete: usize,
    /// Processes that marked steps, or one.
    pub processes: usize,
    /// Steps in the trace.
    pub steps: usize,
    /// Steps whose sequence of ops and calls is the template's.
    pub steps_alike: usize,
    /// Marks of all steps that could be matched with the template, in thousandths.
    pub marks_matched_permille: usize,
    /// Events longer than the one they began in: cut to fit.
    pub clamped: usize,
    /// Events that lie across steps: left out.
    pub across_steps: usize,
    /// Stream waits in the template step.
    pub stream_waits: usize,
    /// Of these, paired with an event by inference.
    pub waits_inferred: usize,
    /// Inferred pairs that the device's times contradict: dropped.
    pub waits_refuted: usize,
    /// Hand-offs from thread to thread in the template step.
    pub hand_offs: usize,
}

impl Coverage {
    /// Counts launches and activities over the whole trace.
    pub(crate) fn of_trace(
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
        let kinds: Vec<ApiKind> = trace.names.iter().map(|(_, name)| ApiKind::of(name)).collect();
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

    /// Whether the steps do the same, as nearly as one can tell: 95 of 100 marks match.
    pub fn steps_are_alike(&self) -> bool {
        self.marks_matched_permille >= ALIKE_PERMILLE
    }

    /// Share of device activities whose launching call is in the trace; 1 where there are none.
    pub fn linked_share(&self) -> f64 {
        share(self.activities_linked, self.activities)
    }

    /// Share of launches that lie inside an op; 1 where there are none.
    pub fn attributed_share(&self) -> f64 {
        share(self.launches_in_op, self.launches)
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}
