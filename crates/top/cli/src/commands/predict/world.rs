//! `steptime predict --world N`: one rank's step as that of a job.

use steptime::aten::Dtype;
use steptime::rewrite::{DataParallel, TableHome, tables};
use steptime::shard::read_plan_of;
use steptime::{Error, Home, Keeps, Spread, TableSize, WhatIfs, World};

use super::super::Failure;
use crate::cli::{Parallel, SendAs, World as Typed, usage};

/// The job that was asked for.
pub fn spread(typed: &Typed, asked: &WhatIfs<'_>, ranks: u32) -> Result<Spread, Failure> {
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
    let tables = typed.plan.as_deref().map(|path| homes(path, asked, ranks)).transpose()?;
    Ok(asked.in_world(&World { dense, keeps, tables, batch, before: &[], after: &[] })?)
}

/// What a rank keeps.
fn keeps(typed: &Typed) -> Result<Keeps, Failure> {
    let sends = [
        (typed.send.is_some(), "--send"),
        (typed.bucket_view, "--bucket-view"),
        (typed.bucket_mb.is_some(), "--bucket-mb"),
    ];
    let plan = (typed.plan.is_some(), "--plan");
    let blocks = (typed.blocks.is_some(), "--blocks");
    let (others, with): (Vec<(bool, &str)>, &str) = match typed.parallel {
        Parallel::Ddp => (vec![blocks], "fsdp or zero2"),
        Parallel::Zero1 if plan.0 || blocks.0 => (vec![blocks, plan], if blocks.0 { "fsdp or zero2" } else { "ddp" }),
        Parallel::Zero1 => (Vec::new(), ""),
        Parallel::Fsdp | Parallel::Zero2 => (sends.into_iter().chain([plan]).collect(), "ddp"),
    };
    if let Some((_, option)) = others.iter().find(|(given, _)| *given) {
        return Err(usage("predict", &format!("{option} needs --parallel {with}")).into());
    }
    let blocks = || typed.blocks.clone().unwrap_or_default();
    Ok(match typed.parallel {
        Parallel::Ddp => Keeps::All,
        Parallel::Zero1 => Keeps::OwnStates,
        Parallel::Zero2 => Keeps::Parts { blocks: blocks(), reshard: false },
        Parallel::Fsdp => Keeps::Parts { blocks: blocks(), reshard: true },
    })
}

/// Where a plan puts the tables that the step looks up.
fn homes(path: &std::path::Path, asked: &WhatIfs<'_>, ranks: u32) -> Result<Vec<TableHome>, Failure> {
    let found = tables(asked.unchanged());
    let size = |table: &steptime::rewrite::LookedUp| TableSize { rows: table.rows, columns: table.columns, lookups: 1 };
    let sizes: Vec<TableSize> = found.iter().map(size).collect();
    let (gpus, homes) = read_plan_of(path, &sizes).map_err(Error::from)?;
    if gpus > ranks {
        return Err(format!("{}: it is of {gpus} GPUs, and --world is {ranks}", path.display()).into());
    }
    Ok(homes.iter().map(home).collect())
}

fn home(home: &Home) -> TableHome {
    match home {
        Home::Everywhere => TableHome::Everywhere,
        Home::Parts(parts) if home.is_by_rows() => {
            TableHome::Rows(parts.iter().map(|part| part.size[0]).collect())
        }
        Home::Parts(parts) => TableHome::Columns(parts.iter().map(|part| (part.gpu, part.size[1])).collect()),
    }
}
