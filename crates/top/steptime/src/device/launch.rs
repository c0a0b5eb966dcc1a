//! What one op launches, and what the step around it says of that.

use smallvec::SmallVec;
use steptime_aten::kernel::Kernel;
use steptime_aten::{KernelCall, Place, reuse_distances};
use steptime_cost::device::{Context, Indices};
use steptime_graph::{ActivityId, OpId, StepGraph};
use steptime_trace::Nanos;

use super::lookups::Lookups;

/// Where the operands of a launch lie.
pub(super) type Places = SmallVec<[Place; 4]>;

/// How well it is known what an op launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// The op is known: its kernel has a family.
    Op,
    /// The op is not known, or what it launches is not: only the bytes of its arguments are.
    Arguments,
    /// Not even its arguments are known.
    Nothing,
}

/// What one op launches by itself.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The op; `None` for what is launched outside of ops.
    pub op: Option<OpId>,
    /// The kernel call it lowers to.
    pub call: KernelCall,
    /// What the call alone does not say.
    pub context: Context,
    /// How well it is known.
    pub known: Known,
    /// The device activities it launches.
    pub activities: Vec<ActivityId>,
}

impl Launch {
    /// The time measured for its activities: the sum of their medians.
    #[must_use]
    pub fn measured(&self, graph: &StepGraph) -> Option<Nanos> {
        let each = self.activities.iter().map(|&activity| graph.samples.median_duration(activity));
        each.sum::<Option<Nanos>>()
    }
}

/// Launches with what the step around them says: where their operands were touched last, which rows are looked up.
pub(super) fn in_context(
    (mut launches, places): (Vec<Launch>, Vec<Places>),
    graph: &StepGraph,
    indices: &Indices,
    lookups: &Lookups,
) -> Vec<Launch> {
    set_reuse(&mut launches, &places);
    for launch in &mut launches {
        // A new batch is in no cache of the host: its copy is as slow as after a flush.
        if is_transfer(&launch.call) {
            launch.context = Context::cold(&launch.call);
        }
    }
    lookups.set(graph, indices, &mut launches);
    launches
}

/// Whether a kernel copies between host and device.
pub(super) fn is_transfer(call: &KernelCall) -> bool {
    matches!(call.kernel, Kernel::Transfer(_))
}

/// Where the operands of each launch were touched last; a launch of which no operand's place is known is passed over.
fn set_reuse(launches: &mut [Launch], places: &[Places]) {
    let known = |at: &usize| places[*at].iter().any(|place| place.key().is_some());
    let with_place: Vec<usize> = (0..launches.len()).filter(known).collect();
    let walk: Vec<(&[Place], &KernelCall)> =
        with_place.iter().map(|&at| (places[at].as_slice(), &launches[at].call)).collect();
    let found = reuse_distances(&walk);
    for (at, reuse) in with_place.into_iter().zip(found) {
        launches[at].context.reuse = reuse;
    }
}
