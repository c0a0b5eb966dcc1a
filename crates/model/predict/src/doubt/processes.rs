//! Doubt: a file of a folder with several processes, each with its own steps. A file alone is opened as a job of them.

use steptime_graph::StepGraph;

use super::Doubt;

/// The doubt, where the file has steps of more than one process.
pub(super) fn doubt(graph: &StepGraph) -> Option<Doubt> {
    let processes = graph.coverage.processes;
    (processes > 1).then(|| Doubt {
        kind: "processes",
        text: format!(
            "{processes} processes marked steps in this file: their events count as one step, by the marks of the first process; give one \
             file per process, or this file alone"
        ),
        below: 0.0,
        above: 0.0,
        no_estimate: true,
    })
}
