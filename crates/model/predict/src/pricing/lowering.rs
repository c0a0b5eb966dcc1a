//! Launches of ops from their arguments, one after the other in the order of calls.

use smallvec::{SmallVec, smallvec};
use steptime_aten::kernel::{Kernel, Transfer, TransferDirection};
use steptime_aten::kernel_name::choose;
use steptime_aten::{Dtype, KernelCall, Lowering, OpCall, OpSet, Operand, Role, Settings, Slot};
use steptime_cost::device::{Context, Indices};
use steptime_graph::names::{CopyDirection, HostMemory};
use steptime_graph::{ActivityId, CallId, OpId, StepGraph, TiVec};
use steptime_trace::ActivityKind;

use super::context::in_context;
use super::kernel_names::{KernelNames, NameFacts, is_flat, transposed};
use super::launch::{Knowledge, Launch, Places, is_transfer};
use super::lookups::Lookups;

/// Launches of each op of a step changed by rules, in the order of [`Arguments::launches_by_hand_off`].
pub(crate) fn lower_changed(
    step: &steptime_step::StepIr,
    scheduled: &steptime_step::ScheduledStep,
    indices: &Indices,
    settings: Settings,
    ops: &OpSet,
    lookups: &Lookups,
) -> Vec<Launch> {
    let graph = &scheduled.graph;
    let lowering = |op: OpId| {
        let op = scheduled.ops[op];
        let call = step.call(op)?;
        let as_called = move |other: &OpCall| match step.lower(op, ops) {
            Some(lowered) if std::ptr::eq(call, other) => lowered.into_owned(),
            _ => ops.lower(other),
        };
        Some((call, move |seen| lower(call, seen, ops, as_called)))
    };
    in_context(in_order(graph, &graph.calls_by_hand_off(), settings, lowering), graph, indices, lookups)
}

/// Launches in the order of some calls. `lowering` returns the call of an op, and a function that lowers it given what the
/// recording shows of it.
pub(super) fn in_order<'c, Lower: FnOnce(NameFacts) -> Option<(KernelCall, Knowledge)>>(
    graph: &StepGraph,
    order: &[CallId],
    settings: Settings,
    lowering: impl Fn(OpId) -> Option<(&'c OpCall, Lower)>,
) -> (Vec<Launch>, Vec<Places>) {
    let mut launches: Vec<Launch> = Vec::new();
    let mut places: Vec<Places> = Vec::new();
    let mut of_op: TiVec<OpId, Option<usize>> = vec![None; graph.ops.len()].into();
    let named = KernelNames::classify(graph);
    for &call in order {
        let call = &graph.calls[call];
        // Activities inserted for exchanges between ranks are priced as collectives.
        let own = |row: &ActivityId| {
            let activity = &graph.activities[*row];
            activity.recorded.is_some() || activity.collective.is_none()
        };
        for row in call.activities().filter(own) {
            if let Some(at) = call.op.and_then(|op| of_op[op]) {
                launches[at].activities.push(row);
                continue;
            }
            let (arguments, lower) = call.op.and_then(&lowering).unzip();
            let called = arguments.map(|arguments| arguments.settings).unwrap_or_default();
            let settings = Settings {
                matmul_tf32: settings.matmul_tf32 || called.matmul_tf32,
                runtime: settings.runtime || called.runtime,
                ..settings
            };
            let seen = named.seen(call.op, settings);
            let mut lowered = lower.and_then(|lower| lower(seen));
            if let Some((kernel, _)) = &mut lowered {
                choose(kernel, call.activities().map(|row| graph.names.get(graph.activities[row].name)));
            }
            let (kernel, known) = match (lowered, activity_call(graph, row)) {
                // Only an execution trace says on which side of a copy the host is; its activity does too.
                (Some((kernel, _)), copied) if is_transfer(&copied) && !is_transfer(&kernel) => {
                    (copied, Knowledge::Op)
                }
                (Some(lowered), _) => lowered,
                (None, copied) if is_transfer(&copied) => (copied, Knowledge::Op),
                (None, unknown) => (unknown, Knowledge::Nothing),
            };
            if let (Some(op), true) = (call.op, known != Knowledge::Nothing) {
                of_op[op] = Some(launches.len());
            }
            let context = Context::in_step(smallvec![None; kernel.operands.len()]);
            places.push(arguments.map(|arguments| arguments.places(&kernel)).unwrap_or_default());
            launches.push(Launch { op: call.op, call: kernel, context, known, activities: vec![row] });
        }
    }
    (launches, places)
}

/// Lowers an op that is known to launch something. `as_called` lowers a call.
pub(super) fn lower(
    call: &OpCall,
    NameFacts { settings, strided }: NameFacts,
    ops: &OpSet,
    as_called: impl Fn(&OpCall) -> Lowering,
) -> Option<(KernelCall, Knowledge)> {
    let other = (settings != call.settings).then(|| OpCall { settings, ..call.clone() });
    let arguments = other.as_ref().unwrap_or(call);
    let lowered = match as_called(arguments) {
        Lowering::Kernel(kernel) if strided && is_flat(&kernel) => {
            transposed(arguments).map_or(Lowering::Kernel(kernel), |view| as_called(&view))
        }
        lowered => lowered,
    };
    match lowered {
        Lowering::Kernel(call) => Some((call, Knowledge::Op)),
        Lowering::Unknown(call) => Some((call, Knowledge::Arguments)),
        Lowering::Nothing | Lowering::Children => match ops.by_bytes(arguments) {
            Lowering::Unknown(call) => Some((call, Knowledge::Arguments)),
            _ => None,
        },
    }
}

/// Kernel call of an activity without a known op: copies and memsets describe themselves, kernels do not.
fn activity_call(graph: &StepGraph, activity: ActivityId) -> KernelCall {
    let row = &graph.activities[activity];
    let bytes = row.bytes.0;
    let copy = graph.copy_name(activity);
    let transfer = |direction| {
        let pinned = copy.host == HostMemory::Pinned;
        (Kernel::Transfer(Transfer { direction, pinned, bytes }), Role::Write)
    };
    let (kernel, role) = match row.kind {
        ActivityKind::Memset => (Kernel::Memset, Role::Write),
        ActivityKind::Memcpy => match copy.direction {
            CopyDirection::HostToDevice => transfer(TransferDirection::ToDevice),
            CopyDirection::DeviceToHost => transfer(TransferDirection::ToHost),
            CopyDirection::DeviceToDevice => (Kernel::DeviceCopy, Role::Update),
        },
        _ => (Kernel::Unknown, Role::Update),
    };
    let operands: SmallVec<[Operand; 4]> = smallvec![Operand { slot: Slot::Scratch, role, bytes }];
    KernelCall { kernel, dtype: Dtype::I8, operands, flops: 0, launches: 1 }
}
