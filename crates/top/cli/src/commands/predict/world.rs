//! `steptime predict --world N`: a job made from one rank's step, and a described job whose ranks are changed.

use steptime_aten::Dtype;
use steptime_eager::Sharding;
use steptime_eager::{Model, TableLayout, TableSize};
use steptime_predict::{Error, KeptState, Spread, WhatIfs, World, shard::read_plan_of};
use steptime_rewrite::{DataParallel, Rule, TableHome, tables};

use super::super::{Failure, what_if};
use super::args::{Parallel, SendAs, World as Typed};
use crate::commands::usage;

/// Builds the requested job; `job` is the described one, whose step on one GPU `asked` holds.
pub fn spread(typed: &Typed, asked: &WhatIfs<'_>, job: Option<&Model>) -> Result<Spread, Failure> {
    let ranks = typed.ranks.or_else(|| job.map(Model::gpus)).unwrap_or(1);
    let dense = DataParallel {
        ranks,
        bucket: typed.bucket_mb.map(|mib| mib << 20),
        views: typed.bucket_view,
        send: typed.send.map(|send| match send {
            SendAs::Bf16 => Dtype::Bf16,
            SendAs::Fp16 => Dtype::F16,
        }),
    };
    let keeps = keeps(typed)?;
    let batch = match typed.global_batch {
        Some(all) if !all.is_multiple_of(u64::from(ranks)) || all == 0 => {
            return Err(usage("predict", &format!("{ranks} ranks cannot share {all} samples evenly")).into());
        }
        all => all.map(|all| all / u64::from(ranks)),
    };
    // The description's nodes apply only to its own number of GPUs.
    let nodes = typed.nodes.or_else(|| job.filter(|model| model.gpus() == ranks)?.nodes());
    if nodes.is_some_and(|nodes| !ranks.is_multiple_of(nodes)) {
        let words =
            format!("{ranks} ranks cannot be divided evenly among {} nodes", nodes.unwrap_or_default());
        return Err(usage("predict", &words).into());
    }
    let tables = match (&typed.plan, job) {
        (Some(path), _) => Some(homes(path, asked, ranks)?),
        (None, Some(model)) => Some(placed("the description", &model.homes(), ranks)?),
        (None, None) => None,
    };
    let changes = typed.changes.as_deref().map(what_if::plan::read).transpose()?.unwrap_or_default();
    what_if::validate(&changes).map_err(|words| usage("predict", &words))?;
    if changes.host_speed.is_some() {
        return Err(
            usage("predict", "`host-speed` in a plan applies to a single step: use --host-speed").into()
        );
    }
    let rules = what_if::rules(&changes);
    let after: Vec<&dyn Rule> = rules.iter().map(|rule| &**rule).collect();
    Ok(asked.in_world(&World {
        dense,
        keeps,
        tables,
        nodes,
        batch,
        copies_apart: typed.copies_apart,
        before: &[],
        after: &after,
    })?)
}

/// Returns the parameters, gradients and optimizer states that a rank keeps.
fn keeps(typed: &Typed) -> Result<KeptState, Failure> {
    let sends = [
        (typed.send.is_some(), "--send"),
        (typed.bucket_view, "--bucket-view"),
        (typed.bucket_mb.is_some(), "--bucket-mb"),
    ];
    let plan = (typed.plan.is_some(), "--plan");
    let blocks = (typed.blocks.is_some(), "--blocks");
    let (others, with): (Vec<(bool, &str)>, &str) = match typed.parallel {
        Parallel::Ddp => (vec![blocks], "fsdp or zero2"),
        Parallel::Zero1 if plan.0 || blocks.0 => {
            (vec![blocks, plan], if blocks.0 { "fsdp or zero2" } else { "ddp" })
        }
        Parallel::Zero1 => (Vec::new(), ""),
        Parallel::Fsdp | Parallel::Zero2 => (sends.into_iter().chain([plan]).collect(), "ddp"),
    };
    if let Some((_, option)) = others.iter().find(|(given, _)| *given) {
        return Err(usage("predict", &format!("{option} needs --parallel {with}")).into());
    }
    let blocks = || typed.blocks.clone().unwrap_or_default();
    Ok(match typed.parallel {
        Parallel::Ddp => KeptState::All,
        Parallel::Zero1 => KeptState::OwnStates,
        Parallel::Zero2 => KeptState::Parts { blocks: blocks(), reshard: false },
        Parallel::Fsdp => KeptState::Parts { blocks: blocks(), reshard: true },
    })
}

/// Reads the placement of the step's tables from a plan.
fn homes(path: &std::path::Path, asked: &WhatIfs<'_>, ranks: u32) -> Result<Vec<TableHome>, Failure> {
    let found = tables(asked.unchanged());
    let size = |table: &steptime_rewrite::PlacedTable| TableSize {
        rows: table.rows,
        columns: table.columns,
        lookups: 1,
    };
    let sizes: Vec<TableSize> = found.iter().map(size).collect();
    let (gpus, homes) = read_plan_of(path, &sizes).map_err(Error::from)?;
    if gpus > ranks {
        return Err(format!("{}: the plan is for {gpus} GPUs, and --world is {ranks}", path.display()).into());
    }
    if let Some(table) = homes.iter().position(|home| home.caches().next().is_some()) {
        return Err(format!(
            "{}: table {table} is in host memory behind a cache: tables of a recorded step must be on GPUs; for a described model use \
            `shard --evaluate` with such a plan",
            path.display()
        )
        .into());
    }
    placed(&path.display().to_string(), &homes, ranks)
}

/// Converts the placement to that of rules; `whose` names its source in errors.
fn placed(whose: &str, homes: &[TableLayout], ranks: u32) -> Result<Vec<TableHome>, Failure> {
    let all = homes.iter().enumerate().map(|(table, own)| home(own, ranks).ok_or(table));
    all.collect::<Result<_, _>>().map_err(|table| {
        format!(
            "{whose}: table {table} is split by rows over some of the GPUs: a table of a recorded step can only be split over all of them; \
            a described model can have such a plan"
        )
        .into()
    })
}

/// Converts the placement of one table of a recorded step; `None` if such a table cannot be split that way.
fn home(home: &TableLayout, ranks: u32) -> Option<TableHome> {
    let TableLayout::Parts(parts) = home else { return Some(TableHome::Everywhere) };
    match home.cutting(ranks) {
        Sharding::Grid => None,
        Sharding::Rows => Some(TableHome::Rows(parts.iter().map(|part| part.size[0]).collect())),
        Sharding::Copies | Sharding::Whole | Sharding::Columns => {
            Some(TableHome::Columns(parts.iter().map(|part| (part.gpu, part.size[1])).collect()))
        }
    }
}
