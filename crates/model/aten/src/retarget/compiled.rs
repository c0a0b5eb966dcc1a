//! Regions made by torch.compile: on a CPU they have their own kernels, which no op shows.

use steptime_graph::execution::ExecutionGraph;

/// Prefixes of the names of such regions, the outermost first.
const REGIONS: [&str; 3] = ["Torch-Compiled Region", "CompiledFunction", "## Call CompiledFxGraph"];

/// Returns the name of the outermost compiled region of a step, if there is one.
#[must_use]
pub fn compiled_region(trace: &ExecutionGraph) -> Option<&str> {
    let names = trace.ids().map(|node| trace.node_name(node));
    names
        .filter(|name| REGIONS.iter().any(|region| name.starts_with(region)))
        .min_by_key(|name| REGIONS.iter().position(|region| name.starts_with(region)))
}
