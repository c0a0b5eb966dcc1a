//! Predictions of many changes of one step on several threads: each change is made once, and priced for every GPU and host.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;
use steptime_rewrite::Rule;

use crate::error::Error;
use crate::query::WhatIfs;
use crate::whatif::Outcome;

/// One point of a grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GridPoint {
    /// Index of the query, which sets GPU and host.
    pub question: usize,
    /// Index of the list of rules that changes the step.
    pub change: usize,
    /// Factor on the host's times; `None` for unchanged.
    pub host_times: Option<f64>,
}

/// Result of a point. Where a change does not apply, all its points have the same error.
pub type GridAnswer = Result<Outcome, Arc<Error>>;

/// Points of one change that are priced together: their indices by query.
type PointsByQuery = BTreeMap<usize, Vec<usize>>;

/// Predicts every point of a grid and passes each answer with the point's index to `take`, in no order and from several threads,
/// until `take` returns `false`. All queries must be about the same step.
///
/// ```
/// # fn main() -> Result<(), steptime_predict::Error> {
/// # let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples");
/// use steptime_predict::GridPoint;
/// use steptime_rewrite::{ResizeBatch, Rule};
///
/// let step = steptime_predict::open(format!("{examples}/dlrm_default_2048"))?;
/// let question = step.predict();
/// let changes: Vec<Vec<Box<dyn Rule>>> =
///     [1024, 4096].map(|batch| vec![Box::new(ResizeBatch::to(batch)) as Box<dyn Rule>]).into();
/// let point = |change, host_times| GridPoint { question: 0, change, host_times };
/// let points = [point(0, None), point(0, Some(0.5)), point(1, None), point(1, Some(0.5))];
/// let steps = std::sync::Mutex::new(vec![None; points.len()]);
/// steptime_predict::grid(&[question.what_ifs()?], &changes, &points, |at, answer| {
///     steps.lock().unwrap()[at] = answer.ok().map(|outcome| outcome.step);
///     true
/// });
/// let steps = steps.into_inner().unwrap();
/// # assert!(steps[1] < steps[0] && steps[0] < steps[2]);
/// # Ok(())
/// # }
/// ```
///
/// # Panics
/// Panics where the query or change of a point does not exist.
pub fn grid(
    questions: &[WhatIfs<'_>],
    changes: &[Vec<Box<dyn Rule>>],
    points: &[GridPoint],
    take: impl Fn(usize, GridAnswer) -> bool + Sync,
) {
    // The launches of ops depend on whether a profile prices them.
    let mut edits: BTreeMap<(usize, bool), PointsByQuery> = BTreeMap::new();
    for (at, point) in points.iter().enumerate() {
        let edit = (point.change, questions[point.question].is_measured());
        edits.entry(edit).or_default().entry(point.question).or_default().push(at);
    }
    let edits: Vec<(usize, PointsByQuery)> =
        edits.into_iter().map(|((change, _), asked)| (change, asked)).collect();
    let stopped = AtomicBool::new(false);
    let give = |at: usize, answer: GridAnswer| {
        if !stopped.load(Ordering::Relaxed) && !take(at, answer) {
            stopped.store(true, Ordering::Relaxed);
        }
    };
    edits.par_iter().with_max_len(1).for_each(|(change, asked)| {
        if !stopped.load(Ordering::Relaxed) {
            edit(questions, &changes[*change], asked, points, &give);
        }
    });
}

/// Predicts the points of one change.
fn edit(
    questions: &[WhatIfs<'_>],
    rules: &[Box<dyn Rule>],
    asked: &PointsByQuery,
    points: &[GridPoint],
    give: &impl Fn(usize, GridAnswer),
) {
    let all = || asked.values().flatten().copied();
    let Some(&first) = asked.keys().next() else { return };
    let rules: Vec<&dyn Rule> = rules.iter().map(|rule| &**rule).collect();
    let edited = match questions[first].edited(&rules) {
        Ok(edited) => edited,
        Err(error) => {
            let error = Arc::new(error);
            return all().for_each(|at| give(at, Err(Arc::clone(&error))));
        }
    };
    for (&question, places) in asked {
        let times: Vec<Option<f64>> = places.iter().map(|&at| points[at].host_times).collect();
        match questions[question].outcomes(&edited, &times) {
            Ok(outcomes) => {
                let answers = outcomes.into_iter().map(|outcome| outcome.map_err(Arc::new));
                places.iter().zip(answers).for_each(|(&at, answer)| give(at, answer));
            }
            Err(error) => {
                let error = Arc::new(error);
                places.iter().for_each(|&at| give(at, Err(Arc::clone(&error))));
            }
        }
    }
}
