//! Launches of each op of a step: its arguments, lowered to a kernel call, with the recorded activities.

use smallvec::smallvec;
use steptime_aten::derive::{DerivedStep, OpLaunch, OpTree, TreeKind, TreeNode};
use steptime_aten::kernel::{Kernel, Precision};
use steptime_aten::{OpCall, OpSet, Settings, from_execution, from_kineto};
use steptime_cost::device::{Context, Indices};
use steptime_graph::execution::{ExecutionGraph, NodeId, join_step};
use steptime_graph::names::PROCESS_GROUP;
use steptime_graph::{CallId, OpId, OpOrigin, StepGraph, TiVec};
use steptime_trace::{KeptResult, Trace};

use super::context::in_context;
use super::kept_results;
use super::launch::{Knowledge, Launch, Places};
use super::lookups::Lookups;
use super::lowering::{in_order, lower};

/// Arguments of ops.
#[derive(Debug, Default)]
pub struct Arguments {
    /// Call of each op of the graph.
    calls: TiVec<OpId, Option<Box<OpCall>>>,
    /// Execution-trace node of each op of the graph.
    nodes: TiVec<OpId, Option<NodeId>>,
    /// The execution trace, which identifies tensors.
    execution: Option<ExecutionGraph>,
    /// Launches of ops of a step without times, whose graph was derived from the execution trace alone.
    derived: Option<Vec<OpLaunch>>,
    lookups: Lookups,
    /// Results that the script keeps alive.
    kept: Vec<KeptResult>,
}

impl Arguments {
    /// Returns the arguments of each op of a step, from the execution trace where there is one, else from a Kineto trace
    /// that recorded shapes.
    #[must_use]
    pub fn from_step(graph: &StepGraph, execution: Option<ExecutionGraph>, timing: &Trace) -> Arguments {
        let recorded = from_kineto::Calls::new(timing);
        let joined = execution.as_ref().map(|execution| (execution, join_step(execution, graph)));
        let of_op = |op: OpId| {
            if let Some((execution, joined)) = &joined
                && let Some(node) = joined.op_to_node[op]
            {
                return Some(Box::new(from_execution::op_call(execution, node)));
            }
            match graph.ops[op].origin {
                OpOrigin::Timing(row) => recorded.call(row).map(Box::new),
                OpOrigin::Execution(_) | OpOrigin::Derived => None,
            }
        };
        let calls = graph.ops.keys().map(of_op).collect();
        let nodes = joined.map(|(_, joined)| joined.op_to_node).unwrap_or_default();
        Arguments { calls, nodes, execution, derived: None, lookups: Lookups::default(), kept: Vec::new() }
    }

    /// Returns the arguments of a step graph derived from an execution trace, moved to the GPU where the trace is of a CPU.
    #[must_use]
    pub fn derived(derived: &DerivedStep, tree: &OpTree, execution: ExecutionGraph) -> Arguments {
        let of_op = |node: &u32| &tree.nodes[*node as usize];
        let call = |node: &TreeNode| (node.kind == TreeKind::Op).then(|| Box::new(node.call.clone()));
        Arguments {
            calls: derived.nodes.iter().map(|node| call(of_op(node))).collect(),
            nodes: derived.nodes.iter().map(|node| of_op(node).origin).collect(),
            execution: Some(execution),
            derived: Some(derived.kernels.clone()),
            lookups: Lookups::default(),
            kept: Vec::new(),
        }
    }

    /// Adds recorded lookups.
    #[must_use]
    pub fn with_lookups(self, lookups: Lookups) -> Arguments {
        Arguments { lookups, ..self }
    }

    /// The recorded lookups.
    #[must_use]
    pub fn lookups(&self) -> &Lookups {
        &self.lookups
    }

    /// Adds the results that the script keeps alive.
    #[must_use]
    pub fn with_kept(self, kept: Vec<KeptResult>) -> Arguments {
        Arguments { kept, ..self }
    }

    /// Converts the step to a graph that can be changed.
    #[must_use]
    pub fn editable(&self, graph: &StepGraph) -> steptime_step::StepIr {
        let node = |op: OpId| self.nodes.get(op).copied().flatten();
        let call = |op: OpId| match (&self.execution, node(op)) {
            // Requests of collectives have no kernels of their own, but tensors.
            (Some(execution), Some(node)) if graph.op_name(op).starts_with(PROCESS_GROUP) => {
                Some(from_execution::op_call(execution, node))
            }
            _ => self.called(op).cloned(),
        };
        let mut step = steptime_step::StepIr::from_graph(graph, self.execution.as_ref(), call, node);
        kept_results::mark(&mut step, graph, &self.kept);
        step
    }

    /// Autograd's sequence number at the begin of an op; `None` where unknown.
    #[must_use]
    pub fn sequence(&self, op: OpId) -> Option<i64> {
        let node = self.nodes.get(op).copied().flatten()?;
        let noted = self.execution.as_ref()?.nodes.noted[node.index()];
        (noted.sequence >= 0).then_some(noted.sequence)
    }

    /// The execution trace, where there is one.
    #[must_use]
    pub fn execution(&self) -> Option<&ExecutionGraph> {
        self.execution.as_ref()
    }

    /// Whether no part of the step was timed.
    #[must_use]
    pub fn is_derived(&self) -> bool {
        self.derived.is_some()
    }

    /// Shapes of an op's tensor arguments; empty where not recorded.
    #[must_use]
    pub fn shapes(&self, op: OpId) -> Vec<Vec<i64>> {
        let tensors = self.called(op).into_iter().flat_map(OpCall::input_tensors);
        tensors.map(|(_, _, tensor)| tensor.shape.to_vec()).collect()
    }

    /// Whether the identity of the ops' tensor arguments is known.
    #[must_use]
    pub fn tells_tensors_apart(&self) -> bool {
        self.execution.is_some() && self.nodes.iter().any(Option::is_some)
    }

    /// Number of ops with known arguments.
    #[must_use]
    pub fn known(&self) -> usize {
        self.calls.iter().flatten().count()
    }

    /// Launches of each op of the step, lowered to kernel calls, in order of execution.
    #[must_use]
    pub fn launches(
        &self,
        graph: &StepGraph,
        indices: &Indices,
        settings: Settings,
        ops: &OpSet,
    ) -> Vec<Launch> {
        match &self.derived {
            Some(launched) => in_context(derived_launches(launched, settings), graph, indices, &self.lookups),
            None => {
                let recorded = self.recorded_launches(graph, &graph.calls_by_time(), settings, ops);
                in_context(recorded, graph, indices, &self.lookups)
            }
        }
    }

    /// Launches in an order that follows from dependencies alone, the same whether or not the step was timed.
    #[must_use]
    pub(crate) fn launches_by_hand_off(
        &self,
        graph: &StepGraph,
        indices: &Indices,
        settings: Settings,
        ops: &OpSet,
    ) -> Vec<Launch> {
        let recorded = self.recorded_launches(graph, &graph.calls_by_hand_off(), settings, ops);
        in_context(recorded, graph, indices, &self.lookups)
    }

    fn called(&self, op: OpId) -> Option<&OpCall> {
        self.calls.get(op)?.as_deref()
    }

    fn recorded_launches(
        &self,
        graph: &StepGraph,
        order: &[CallId],
        settings: Settings,
        ops: &OpSet,
    ) -> (Vec<Launch>, Vec<Places>) {
        let lowering = |op: OpId| {
            let call = self.called(op)?;
            Some((call, move |seen| lower(call, seen, ops, |call| ops.lower(call))))
        };
        in_order(graph, order, settings, lowering)
    }
}

fn derived_launches(launched: &[OpLaunch], settings: Settings) -> (Vec<Launch>, Vec<Places>) {
    let launch = |launched: &OpLaunch| {
        let mut call = launched.call.clone();
        if settings.matmul_tf32
            && let Kernel::Gemm(gemm) = &mut call.kernel
            && gemm.precision == Precision::F32
        {
            gemm.precision = Precision::Tf32;
        }
        Launch {
            op: Some(launched.op),
            context: Context::in_step(smallvec![None; call.operands.len()]),
            call,
            known: if launched.known { Knowledge::Op } else { Knowledge::Arguments },
            activities: launched.activities.clone(),
        }
    };
    (launched.iter().map(launch).collect(), launched.iter().map(|launched| launched.places.clone()).collect())
}
