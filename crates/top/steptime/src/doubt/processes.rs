//! A file of a folder that holds several processes, each with steps of its own. A file alone is a job of them.

use steptime_graph::StepGraph;

use super::Doubt;

/// The doubt, where the steps of more than one process are in the file.
pub(super) fn doubt(graph: &StepGraph) -> Option<Doubt> {
    let processes = graph.coverage.processes;
    (processes > 1).then(|| Doubt {
        kind: "processes",
        text: format!(
            "{processes} processes marked steps in this file: all that they did counts as one step, by the marks of the first; \
             give one file a process, or this file alone"
        ),
        below: 0.0,
        above: 0.0,
        no_estimate: true,
    })
}
