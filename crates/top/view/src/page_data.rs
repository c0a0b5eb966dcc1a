//! The data of all views.

use serde::Serialize;
use steptime_answers::{
    Difference, ExplainReport, PredictionReport, RooflineReport, WhatIfReport, critical_path, explain,
};
use steptime_graph::{Module, Phase};
use steptime_predict::{Change, Error, Prediction, Query, Step, WhatIf, WhatIfs};
use steptime_sim::IdleCause;

use crate::changes::{self, Changes};
use crate::columns::Columns;
use crate::graph::{self, DescribedGraph, Graph};
use crate::memory::{self, Memory};
use crate::timeline::{self, Side};

/// Number of runs of the critical path that are described in words.
const RUNS: usize = 10;

/// A step, and the question about it.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'s> {
    /// The step.
    pub step: &'s Step,
    /// The conditions of the prediction: GPU, host, and so on.
    pub question: &'s Query<'s>,
}

/// Content of a page about a step.
#[derive(Debug)]
pub struct StepViews {
    head: Head,
    columns: Columns,
}

/// All data outside of columns.
#[derive(Debug, Serialize)]
struct Head {
    schema: u32,
    title: String,
    predicted: PredictionReport,
    measured_ms: Option<f64>,
    explained: Result<ExplainReport, String>,
    bound: Vec<explain::Bottleneck>,
    runs: Vec<Run>,
    causes: Vec<Cause>,
    phases: Vec<&'static str>,
    sides: Vec<Side>,
    graph: Graph,
    modules: Vec<ModuleName>,
    second: Option<ComparedStep>,
    changes: Vec<Changes>,
    roofline: Result<Roof, String>,
    memory: Option<Memory>,
    difference: Option<Difference>,
}

/// The step to compare with.
#[derive(Debug, Serialize)]
struct ComparedStep {
    title: String,
    graph: Graph,
    modules: Vec<ModuleName>,
}

/// A module of the model.
#[derive(Debug, Serialize)]
struct ModuleName {
    name: String,
    class: String,
    parent: Option<u32>,
}

/// A stretch of the critical path in words.
#[derive(Debug, Serialize)]
struct Run {
    place: &'static str,
    phase: &'static str,
    names: Vec<String>,
    ms: f64,
}

/// A cause of idle time.
#[derive(Debug, Clone, Serialize)]
struct Cause {
    key: &'static str,
    name: &'static str,
}

/// Roofline of the kernels, and the peaks of the device.
#[derive(Debug, Serialize)]
struct Roof {
    answer: RooflineReport,
    memory_gb_s: f64,
    l2_gb_s: f64,
    peaks: Vec<(&'static str, f64)>,
}

/// Answer to a page about a change.
#[derive(Serialize)]
struct ChangeView {
    changed: WhatIfReport,
    bound: Vec<explain::Bottleneck>,
    side: Side,
    graph: Graph,
    changes: Changes,
}

impl ComparedStep {
    fn new(step: &Step, prediction: &Prediction, columns: &mut Columns) -> ComparedStep {
        let editable = step.arguments.editable(&step.graph);
        let described =
            (step.arguments.known() > 0).then(|| DescribedGraph::recorded(&editable, &step.graph));
        let modules = step.modules();
        ComparedStep {
            title: step.title(),
            graph: graph::build(&step.graph, prediction, described.as_ref(), &modules, columns),
            modules: modules.list.iter().map(ModuleName::new).collect(),
        }
    }
}

impl ModuleName {
    fn new(module: &Module) -> ModuleName {
        ModuleName {
            name: module.path.clone(),
            class: module.class.clone(),
            parent: module.parent.map(|parent| parent.0),
        }
    }
}

impl StepViews {
    /// Builds all views of a step; `against` is another to compare it with.
    ///
    /// # Errors
    /// As [`Query::simulate`], for both. Other failures are shown with their reasons on the page.
    pub fn build(subject: &Subject<'_>, against: Option<&Subject<'_>>) -> Result<StepViews, Error> {
        let Subject { step, question } = *subject;
        let mut columns = Columns::default();
        let asked = question.what_ifs();
        let explanation = asked.as_ref().map_err(ToString::to_string).and_then(|asked| {
            let found = asked.explain().map_err(|error| error.to_string())?;
            Ok((asked, found))
        });
        // The unchanged step is shown even if changes cannot be predicted.
        let prediction = match &asked {
            Ok(asked) => asked.before().clone(),
            Err(_) => question.simulate()?,
        };
        let recorded = asked.as_ref().map_or(step, WhatIfs::recorded);
        let described =
            asked.as_ref().ok().map(|asked| DescribedGraph::recorded(asked.unchanged(), &recorded.graph));
        let mut sides = vec![timeline::predicted("predicted", &recorded.graph, &prediction, &mut columns)];
        sides.extend(timeline::measured("measured, profiled", &recorded.graph, &mut columns));
        let modules = recorded.modules();
        let graph = graph::build(&recorded.graph, &prediction, described.as_ref(), &modules, &mut columns);
        let changes = match &explanation {
            Err(_) => Vec::new(),
            Ok((asked, found)) => {
                let of = |s: &steptime_predict::Suggestion| {
                    changes::collect(s.rule, &s.diff, asked.unchanged(), &s.step, &mut columns)
                };
                found.alone.iter().map(of).collect()
            }
        };
        let memory = asked.as_ref().ok().and_then(|asked| memory::build(asked, &mut columns));
        let (difference, second) = match against {
            None => (None, None),
            Some(other) => {
                let second = other.question.simulate()?;
                sides.push(timeline::predicted("second", &other.step.graph, &second, &mut columns));
                let difference = Difference::between((recorded, &prediction), (other.step, &second));
                (Some(difference), Some(ComparedStep::new(other.step, &second, &mut columns)))
            }
        };
        let predicted = PredictionReport::from_prediction(&prediction, recorded);
        let head = Head {
            schema: steptime_answers::SCHEMA,
            title: step.title(),
            measured_ms: step.meta.as_ref().and_then(|meta| meta.step_ms).filter(|ms| ms.is_finite()),
            explained: explanation.map(|(_, found)| ExplainReport::from_explanation(&found, recorded)),
            bound: explain::bound(&predicted),
            runs: runs(&predicted),
            causes: IdleCause::ALL.map(|cause| Cause { key: cause.key(), name: cause.name() }).to_vec(),
            phases: Phase::ALL.map(Phase::name).to_vec(),
            sides,
            graph,
            modules: modules.list.iter().map(ModuleName::new).collect(),
            second,
            changes,
            roofline: roofline(subject).map_err(|error| error.to_string()),
            memory,
            difference,
            predicted,
        };
        Ok(StepViews { head, columns })
    }

    /// Returns the title of the step.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.head.title
    }

    /// Returns the number of slices in its timelines.
    #[must_use]
    pub fn slices(&self) -> usize {
        self.head.sides.iter().map(|side| side.slices).sum()
    }

    /// Returns the head as JSON, and the block of columns.
    pub(crate) fn parts(&self) -> serde_json::Result<(Vec<u8>, &[u8])> {
        Ok((with_texts(&self.head, &self.columns)?, self.columns.bytes()))
    }
}

/// Predicts a change and encodes the answer for the page: the length of a JSON text (four bytes, little-endian), this text,
/// padded with blanks to a multiple of four, and a block of columns.
///
/// # Errors
/// As [`WhatIfs::changed`].
pub fn what_if(asked: &WhatIfs<'_>, change: &Change<'_>) -> Result<Vec<u8>, Error> {
    let found = asked.changed(change)?;
    let mut columns = Columns::default();
    let after = after(asked, &found, &mut columns);
    let text = with_texts(&after, &columns).unwrap_or_default();
    let length = text.len().next_multiple_of(4);
    let mut bytes = Vec::with_capacity(4 + length + columns.bytes().len());
    bytes.extend((length as u32).to_le_bytes());
    bytes.extend(&text);
    bytes.resize(4 + length, b' ');
    bytes.extend(columns.bytes());
    Ok(bytes)
}

fn after(asked: &WhatIfs<'_>, found: &WhatIf, columns: &mut Columns) -> ChangeView {
    let graph = &found.scheduled.graph;
    let described =
        DescribedGraph { step: &found.step, of: found.scheduled.ops.iter().map(|&op| Some(op)).collect() };
    let names: Vec<&str> = found.audits.iter().map(|audit| audit.rule).collect();
    let answer = WhatIfReport::from_what_if(found, asked.recorded());
    ChangeView {
        bound: explain::bound_of(graph, &found.after),
        side: timeline::predicted("changed", graph, &found.after, columns),
        graph: graph::build(graph, &found.after, Some(&described), &asked.recorded().modules(), columns),
        changes: changes::collect(&names.join(" + "), &found.diff, asked.unchanged(), &found.step, columns),
        changed: answer,
    }
}

/// Encodes an answer as JSON, with the texts that columns refer to.
fn with_texts(answer: &impl Serialize, columns: &Columns) -> serde_json::Result<Vec<u8>> {
    #[derive(Serialize)]
    struct WithTexts<'w, T: Serialize> {
        texts: &'w [String],
        #[serde(flatten)]
        answer: &'w T,
    }
    serde_json::to_vec(&WithTexts { texts: columns.texts(), answer })
}

fn runs(predicted: &PredictionReport) -> Vec<Run> {
    let pieces = predicted.critical_path.as_deref().unwrap_or_default();
    let told = |run: critical_path::Run| {
        let (place, phase) = run.key()?;
        let names = run.names().into_iter().take(4).map(str::to_owned).collect();
        Some(Run { place, phase: phase.name(), names, ms: run.time.as_millis() })
    };
    critical_path::condensed(critical_path::runs(pieces), RUNS).into_iter().filter_map(told).collect()
}

fn roofline(subject: &Subject<'_>) -> Result<Roof, Error> {
    let roofline = subject.question.roofline()?;
    let spec = &roofline.spec;
    let peaks =
        [("fp32", spec.peak.f32_tflop_s), ("TF32", spec.peak.tf32_tflop_s), ("bf16", spec.peak.bf16_tflop_s)];
    Ok(Roof {
        answer: RooflineReport::from_roofline(&roofline, subject.step),
        memory_gb_s: spec.memory.rate_gb_s,
        l2_gb_s: spec.l2.rate_gb_s,
        peaks: peaks.into_iter().filter(|(_, peak)| *peak > 0.0).collect(),
    })
}
