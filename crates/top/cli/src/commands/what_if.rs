//! `steptime whatif` and `steptime explain`.

mod graph;
pub(super) mod plan;

use std::sync::Arc;

use steptime_answers::{ExplainReport, WhatIfReport, chrome};
use steptime_predict::{Change, Choice, Query, Step};
use steptime_rewrite::Rule;

use super::{Failure, load, pricing};
use crate::cli::{Changes, Explain, Fuse, Target, WhatIf, usage};
use crate::console::Console;
use crate::{output, progress, report};

/// Runs `whatif`.
pub fn run(args: &WhatIf, console: &Console<'_>) -> Result<(), Failure> {
    let changes = match &args.plan {
        None => args.change.clone(),
        Some(path) => plan::read(path)?.overridden(&args.change),
    };
    validate(&changes).map_err(|words| usage("whatif", &words))?;
    let rules = rules(&changes);
    let rules: Vec<&dyn Rule> = rules.iter().map(|rule| &**rule).collect();
    let graph = args.graph.as_deref().map(graph::Format::from_path).transpose()?;
    if rules.is_empty() && changes.host_speed.is_none() && graph.is_none() {
        return Err("nothing to change: give a change, such as --batch, --fuse or --cuda-graph, or --plan; `steptime whatif --help` lists all".into());
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
    Ok(console.print_answer(
        args.form,
        &WhatIfReport::from_what_if(&found, &step),
        report::what_if::text,
        report::what_if::csv,
    )?)
}

/// Runs `explain`.
pub fn explain(args: &Explain, console: &Console<'_>) -> Result<(), Failure> {
    let step = open(console, &args.input, &args.whom)?;
    let question = question(&step, &args.whom)?;
    let found = progress::spin("simulating", || question.explain())?;
    Ok(console.print_answer(
        args.form,
        &ExplainReport::from_explanation(&found, &step),
        report::explain::text,
        report::explain::csv,
    )?)
}

pub(super) fn open(
    console: &Console<'_>,
    input: &std::path::Path,
    whom: &Target,
) -> Result<Arc<Step>, Failure> {
    load::step(console, input, &Choice { step: whom.part.step, rank: whom.part.rank })
}

pub(super) fn question<'s>(step: &'s Step, whom: &Target) -> Result<Query<'s>, Failure> {
    let question = pricing::ask(step, &whom.pricing, whom.host.as_ref())?;
    Ok(match &whom.device {
        Some(name) => question.on(name)?,
        None => question,
    })
}

/// Checks that options that refine another change come with that change.
pub(super) fn validate(changes: &Changes) -> Result<(), String> {
    if !changes.among.is_empty() && changes.fuse.iter().all(|&fuse| fuse == Fuse::Optimizer) {
        return Err("`among` selects the ops to fuse: `fuse` must be embedding-bags, elementwise or linear"
            .to_owned());
    }
    if changes.blocks.is_some() && changes.checkpoint.is_none() {
        return Err("`blocks` selects the blocks to recompute: it needs `checkpoint`".to_owned());
    }
    Ok(())
}

/// Returns the rules of the changes, in their order of application.
pub(super) fn rules(changes: &Changes) -> Vec<Box<dyn Rule>> {
    steptime_predict::Changes::from(changes).rules()
}
