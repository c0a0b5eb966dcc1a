//! `steptime predict --world N`: one rank's step as that of a job, and a described job whose ranks are changed.

use steptime::aten::Dtype;
use steptime::rewrite::{DataParallel, Rule, TableHome, tables};
use steptime::shard::read_plan_of;
use steptime::{Error, Home, Model, Spread, TableSize, WhatIfs, World};

use super::super::{Failure, what_if};
use crate::cli::{SendAs, World as Typed, usage};

/// The job that was asked for: `job` is the described one, whose step on one GPU is asked about.
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
    let batch = match typed.global_batch {
        Some(all) if !all.is_multiple_of(u64::from(ranks)) || all == 0 => {
            return Err(usage("predict", &format!("{ranks} ranks cannot share {all} samples evenly")).into());
        }
        all => all.map(|all| all / u64::from(ranks)),
    };
    let tables = typed.plan.as_deref().map(|path| homes(path, asked, ranks)).transpose()?;
    let tables = tables.or_else(|| Some(job?.homes().iter().map(home).collect()));
    let changes = typed.changes.as_deref().map(what_if::plan::read).transpose()?.unwrap_or_default();
    what_if::told(&changes).map_err(|words| usage("predict", &words))?;
    if changes.host_speed.is_some() {
        return Err(usage(
            "predict",
            "`host-speed` of a plan of changes is that of one step: say --host-speed",
        )
        .into());
    }
    let rules = what_if::rules(&changes);
    let after: Vec<&dyn Rule> = rules.iter().map(|rule| &**rule).collect();
    Ok(asked.in_world(&World {
        dense,
        tables,
        batch,
        copies_apart: typed.copies_apart,
        before: &[],
        after: &after,
    })?)
}

/// Where a plan puts the tables that the step looks up.
fn homes(path: &std::path::Path, asked: &WhatIfs<'_>, ranks: u32) -> Result<Vec<TableHome>, Failure> {
    let found = tables(asked.unchanged());
    let size = |table: &steptime::rewrite::LookedUp| TableSize {
        rows: table.rows,
        columns: table.columns,
        lookups: 1,
    };
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
