//! Regions that torch.compile made: on a CPU their kernels are its own, and no op shows them.

use steptime_graph::execution::ExecutionGraph;

/// How the names of such regions begin, in the order of how outer they are.
const REGIONS: [&str; 3] = ["Torch-Compiled Region", "CompiledFunction", "## Call CompiledFxGraph"];

/// The name of the first compiled region of a step, where there is one.
#[must_use]
pub fn compiled_region(trace: &ExecutionGraph) -> Option<&str> {
    let names = trace.ids().map(|node| trace.node_name(node));
    names
        .filter(|name| REGIONS.iter().any(|region| name.starts_with(region)))
        .min_by_key(|name| REGIONS.iter().position(|region| name.starts_with(region)))
}
