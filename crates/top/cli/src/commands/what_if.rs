//! `steptime whatif` and `steptime explain`.

mod graph;
pub(super) mod plan;

use std::sync::Arc;

use steptime::answers::chrome;
use steptime::aten::optimizer::Form;
use steptime::rewrite::{
    Accumulate, BatchDims, Bf16, ChannelsLast, Checkpoint, CudaGraph, DataParallel, Fbgemm, Fp16, FuseAmong,
    FuseEmbeddingBags, FuseLinear, FusePointwise, Fusion, NoSync, Operators, Optimizer, PrefetchInputs,
    Remove, Reorder, ResizeBatch, Rule, SecondStream, Selection, Streams, Tf32,
};
use steptime::trace::Want;
use steptime::{Change, Choice, Question, Step};

use super::{Failure, load, pricing};
use crate::cli::{Changes, Explain, Fuse, Operators as Whose, Precision, WhatIf, Whom, usage};
use crate::console::Console;
use crate::report::{self, csv};
use crate::{output, progress};

/// Runs `whatif`.
pub fn run(args: &WhatIf, console: &Console<'_>) -> Result<(), Failure> {
    let changes = match &args.plan {
        None => args.change.clone(),
        Some(path) => plan::read(path)?.overridden(&args.change),
    };
    told(&changes).map_err(|words| usage("whatif", &words))?;
    let rules = rules(&changes);
    let rules: Vec<&dyn Rule> = rules.iter().map(|rule| &**rule).collect();
    let graph = args.graph.as_deref().map(graph::Format::of).transpose()?;
    if rules.is_empty() && changes.host_speed.is_none() && graph.is_none() {
        return Err("nothing to change: give --batch, --set, --accumulate, --fuse, --operators, --dtype, --channels-last, --prefetch-inputs, --reorder, --no-sync, --checkpoint, --remove, --on-stream, --streams, --data-parallel, --cuda-graph, --host-speed or --plan".into());
    }
    let step = open(console, &args.input, &args.whom)?;
    let question = question(&step, &args.whom)?;
    let change = Change { rules: &rules, host_times: changes.host_speed };
    let found = progress::spin("simulating", || question.changed(&change))?;
    if let Some(path) = &args.timeline {
        output::write_file(path, |out| chrome::write(out, &found.scheduled.graph, &found.after.timeline))?;
    }
    if let (Some(path), Some(format)) = (&args.graph, graph) {
        format.write(path, &found.export(&step))?;
    }
    Ok(console.print_answer(args.form, &found.answer(&step), report::what_if::text, csv::changed)?)
}

/// Runs `explain`.
pub fn explain(args: &Explain, console: &Console<'_>) -> Result<(), Failure> {
    let step = open(console, &args.input, &args.whom)?;
    let question = question(&step, &args.whom)?;
    let found = progress::spin("simulating", || question.explain())?;
    Ok(console.print_answer(args.form, &found.answer(&step), report::explain::text, csv::explained)?)
}

pub(super) fn open(
    console: &Console<'_>,
    input: &std::path::Path,
    whom: &Whom,
) -> Result<Arc<Step>, Failure> {
    load::step(console, input, &Choice { step: whom.part.step, rank: whom.part.rank }, Want::ALL)
}

pub(super) fn question<'s>(step: &'s Step, whom: &Whom) -> Result<Question<'s>, Failure> {
    let question = pricing::ask(step, &whom.pricing, whom.host.as_ref())?;
    Ok(match &whom.device {
        Some(name) => question.on(name)?,
        None => question,
    })
}

/// Checks that options that refine another change come with that change.
pub(super) fn told(changes: &Changes) -> Result<(), String> {
    if !changes.among.is_empty() && changes.fuse.iter().all(|&fuse| fuse == Fuse::Optimizer) {
        return Err("`among` selects the ops to fuse: `fuse` must be embedding-bags, elementwise or linear"
            .to_owned());
    }
    if changes.blocks.is_some() && changes.checkpoint.is_none() {
        return Err("`blocks` selects the blocks to recompute: it needs `checkpoint`".to_owned());
    }
    Ok(())
}

/// Returns the rule of a fusion, of all ops or of some.
fn fused(fuse: Fuse, among: &[Selection]) -> Box<dyn Rule> {
    let what = match fuse {
        Fuse::Optimizer => return Box::new(Optimizer { form: Form::Fused }),
        Fuse::EmbeddingBags if among.is_empty() => return Box::new(FuseEmbeddingBags),
        Fuse::Elementwise if among.is_empty() => return Box::new(FusePointwise),
        Fuse::Linear if among.is_empty() => return Box::new(FuseLinear),
        Fuse::EmbeddingBags => Fusion::EmbeddingBags,
        Fuse::Elementwise => Fusion::Elementwise,
        Fuse::Linear => Fusion::Linear,
    };
    Box::new(FuseAmong { what, ops: among.to_vec() })
}

/// Returns the rules of the changes, in their order of application.
pub(super) fn rules(changes: &Changes) -> Vec<Box<dyn Rule>> {
    let mut rules: Vec<Box<dyn Rule>> = Vec::new();
    if !changes.remove.is_empty() {
        rules.push(Box::new(Remove { ops: changes.remove.clone() }));
    }
    if let Some(batch) = changes.batch {
        let dims = changes.batch_dim.map_or(BatchDims::Inferred, BatchDims::At);
        rules.push(Box::new(ResizeBatch { to: batch, from: changes.recorded_batch, dims }));
    }
    for size in &changes.set {
        rules.push(Box::new(size.clone()));
    }
    for &fuse in &changes.fuse {
        rules.push(fused(fuse, &changes.among));
    }
    match changes.operators {
        Some(Whose::Steptime) => rules.push(Box::new(Operators)),
        Some(Whose::Fbgemm) => rules.push(Box::new(Fbgemm)),
        None => {}
    }
    match changes.dtype {
        Some(Precision::Tf32) => rules.push(Box::new(Tf32)),
        Some(Precision::Bf16) => rules.push(Box::new(Bf16)),
        Some(Precision::Fp16) => rules.push(Box::new(Fp16)),
        None => {}
    }
    if changes.channels_last {
        rules.push(Box::new(ChannelsLast));
    }
    if changes.prefetch_inputs {
        rules.push(Box::new(PrefetchInputs));
    }
    if changes.reorder {
        rules.push(Box::new(Reorder));
    }
    if changes.no_sync {
        rules.push(Box::new(NoSync));
    }
    if let Some(segments) = changes.checkpoint {
        let blocks = changes.blocks.clone().unwrap_or_default();
        rules
            .push(Box::new(Checkpoint { segments: Some(segments).filter(|&segments| segments > 0), blocks }));
    }
    if !changes.on_stream.is_empty() {
        rules.push(Box::new(SecondStream { ops: changes.on_stream.clone() }));
    }
    if let Some(count) = changes.streams {
        rules.push(Box::new(Streams { count }));
    }
    if let Some(batches) = changes.accumulate {
        rules.push(Box::new(Accumulate { batches }));
    }
    if let Some(ranks) = changes.data_parallel {
        rules.push(Box::new(DataParallel::new(ranks)));
    }
    if changes.cuda_graph {
        rules.push(Box::new(CudaGraph));
    }
    rules
}
