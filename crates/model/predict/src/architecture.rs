//! Groups recordings by architecture, from the ops of their steps.
//!
//! A model in another size or variant does not count as a new model: a fit is scored on it as held out only where
//! its whole architecture was left out of the fit.

use std::collections::BTreeSet;

use steptime_graph::{OpId, Phase, StepGraph};

use crate::step::Step;
use crate::uncertainty::uncertainty;

/// Pairs of consecutive ops in the forward pass of a step, independent of sizes and repetitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Signature(BTreeSet<(String, String)>);

impl Signature {
    fn from_graph(graph: &StepGraph) -> Signature {
        let is_forward = |&op: &OpId| graph.is_top_level(op) && graph.ops[op].phase == Phase::Forward;
        let forward = graph.ops.keys().filter(is_forward);
        Signature::from_names(&forward.map(|op| graph.op_name(op)).collect::<Vec<&str>>())
    }

    fn from_names(names: &[&str]) -> Signature {
        Signature(names.windows(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect())
    }

    /// Number of common pairs over the number of all pairs; zero where neither step has any, as in a step that
    /// was captured into a CUDA graph.
    fn likeness(&self, other: &Signature) -> f64 {
        let common = self.0.intersection(&other.0).count();
        let all = self.0.len() + other.0.len() - common;
        if all == 0 { 0.0 } else { common as f64 / all as f64 }
    }
}

/// Architecture of each recording, by the name of the first model in its group. A group joins models with the same first word
/// (`dlrm_mlperf`, `dlrm_graph`), models whose steps are alike, and everything that such links connect.
#[must_use]
pub fn architectures(recordings: &[Step]) -> Vec<String> {
    let names: Vec<&str> = recordings.iter().map(first_word).collect();
    let signatures: Vec<Signature> =
        recordings.iter().map(|recorded| Signature::from_graph(&recorded.graph)).collect();
    groups(&names, &signatures).into_iter().map(|first| names[first].to_owned()).collect()
}

/// First word of a model's name: the recorder's or, without it, the recording's. The rest after the first
/// underscore or hyphen names configuration, variant and batch.
fn first_word(recorded: &Step) -> &str {
    let name = recorded.meta.as_ref().and_then(|meta| meta.model.as_deref()).unwrap_or(&recorded.name);
    name.split(['_', '-']).find(|word| !word.is_empty()).unwrap_or(name)
}

/// Index of the first member of each one's group.
fn groups(names: &[&str], signatures: &[Signature]) -> Vec<usize> {
    let mut of: Vec<usize> = (0..names.len()).collect();
    for one in 0..names.len() {
        for other in 0..one {
            let linked = names[one].eq_ignore_ascii_case(names[other])
                || signatures[one].likeness(&signatures[other]) >= uncertainty().decisions.same_architecture;
            let (low, high) = (of[one].min(of[other]), of[one].max(of[other]));
            if linked && low < high {
                of.iter_mut().filter(|group| **group == high).for_each(|group| *group = low);
            }
        }
    }
    of
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn example(name: &str) -> Step {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").join(name);
        Step::open(&path, &Default::default()).unwrap()
    }

    #[test]
    fn configurations_and_variants_are_one_architecture_whatever_their_names() {
        let names = ["dlrm_default_2048", "resnet50_32", "dlrm_ddp_2048", "dlrm_default_fused_2048"];
        let mut recordings = names.map(example);
        assert_eq!(architectures(&recordings), ["dlrm", "resnet50", "dlrm", "dlrm"]);
        for (at, recorded) in recordings.iter_mut().enumerate() {
            (recorded.name, recorded.meta) = (format!("model{at}_x"), None);
        }
        assert_eq!(architectures(&recordings), ["model0", "model1", "model0", "model0"]);
    }

    #[test]
    fn chains_of_likeness_are_one_group() {
        let steps = [
            vec!["a", "b", "c", "d"],
            vec!["x", "y"],
            vec!["c", "d", "e", "f"],
            vec!["a", "b", "c", "d", "e", "f"],
        ];
        let signatures = steps.map(|names| Signature::from_names(&names));
        assert_eq!(groups(&["p", "q", "r", "s"], &signatures), [0, 1, 0, 0]);
        // Steps without known ops are alike only by name.
        let unknown = [Signature::default(), Signature::default(), Signature::default()];
        assert_eq!(groups(&["p", "q", "P"], &unknown), [0, 1, 0]);
    }
}
