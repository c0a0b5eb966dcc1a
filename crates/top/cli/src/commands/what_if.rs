//! `steptime whatif`.

mod graph;
pub(super) mod plan;
mod report;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde::Deserialize;
use steptime_answers::{WhatIfReport, chrome};
use steptime_predict::{Change, Choice, Query, Step};
use steptime_rewrite::Rule;

use super::{Failure, load, pricing};
use crate::cli::{Changes, Form, Fuse, OutputFile, Target};
use crate::commands::usage;
use crate::console::Console;
use crate::{output, progress};

/// `steptime whatif`.
#[derive(Debug, Args, Deserialize)]
#[command(after_help = "EXAMPLE
    steptime whatif examples/dlrm_default_2048 --batch 8192
    steptime whatif examples/dlrm_default_2048 --cuda-graph --dtype tf32
    steptime whatif examples/resnet50_32 --host-speed 0.5 --json
    steptime whatif examples/dlrm_default_2048 --plan change.toml

A plan is TOML with the same names: batch = 8192, cuda-graph = true, dtype = \"tf32\", ...
Changes may be given in any order: they are applied in a fixed order, a CUDA graph last.")]
pub struct WhatIf {
    /// A recording with an execution trace, an execution trace, or the description of a model (.toml)
    pub input: PathBuf,
    /// Changes to the step.
    #[command(flatten)]
    pub change: Changes,
    /// File of changes; options of the command line add to them and override them
    #[arg(long, value_name = "FILE.toml")]
    pub plan: Option<PathBuf>,
    /// Device, host and part of the input.
    #[command(flatten)]
    pub whom: Target,
    /// Output format.
    #[command(flatten)]
    pub form: Form,
    /// Write the changed step as a Chrome trace
    #[arg(long, value_name = "OUT.json")]
    pub timeline: Option<OutputFile>,
    /// Write the changed step (without changes, the recorded one) as a graph: a picture for Graphviz, JSON for scripts, or an
    /// execution trace that can be read again
    #[arg(long, value_name = "OUT.dot|OUT.json|OUT.et.json")]
    pub graph: Option<OutputFile>,
}

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
        report::text,
        report::csv,
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
    if !changes.among.is_empty()
        && !changes
            .fuse
            .iter()
            .any(|fuse| matches!(fuse, Fuse::EmbeddingBags | Fuse::Elementwise | Fuse::Linear))
    {
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
