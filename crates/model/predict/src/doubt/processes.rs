//! Doubt: a file of a folder with several processes, each with its own steps. A file alone is opened as a job of them.

use steptime_graph::StepGraph;

use super::Doubt;

/// The doubt, where the file has steps of more than one process.
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
