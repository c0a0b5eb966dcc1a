//! `steptime validate --replay-only`: what recordings without a measured step say of themselves.

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use steptime::trace::Want;
use steptime::{Choice, SelfCheck, of_replay};

use super::{Failure, load};
use crate::output;
use crate::report::json_predict::DoubtJson;
use crate::report::json_replay::{Answer, ReplayJson, RowJson};
use crate::report::{self, json::Steps};

/// Replays all recordings; one that cannot be read is a row that says why.
pub fn run(paths: &[PathBuf], json: bool) -> Result<(), Failure> {
    let paths = load::expand(paths)?;
    let rows: Vec<RowJson> = paths.par_iter().map(|path| row(path)).collect();
    let answer = Answer::new(rows);
    if json {
        output::print_json(&answer)?
    } else {
        output::print(&report::replay::text(&answer))?
    }
    Ok(())
}

fn row(path: &Path) -> RowJson {
    let name = path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into());
    let read = |loaded: load::Loaded| {
        // Of a CPU there is a replay, of an accelerator that is not read there is none.
        if !loaded.step.accelerators.is_empty() {
            loaded.step.on_a_device()?;
        }
        Ok(loaded)
    };
    let loaded = match load::step(path, &Choice::default(), Want::TIMING).and_then(read) {
        Ok(loaded) => loaded,
        Err(why) => {
            let failed = Some(why.to_string());
            return RowJson { name, steps: 0, step_source: "none", replay: None, doubt: None, failed };
        }
    };
    let graph = &loaded.step.graph;
    let steps = Steps::of(graph);
    let check = if loaded.step.arguments.is_derived() { None } else { SelfCheck::of(graph) };
    let doubt = check.as_ref().and_then(|check| of_replay(graph, check));
    RowJson {
        name,
        steps: steps.count,
        step_source: steps.source,
        replay: check.as_ref().map(ReplayJson::new),
        doubt: doubt.as_ref().map(DoubtJson::new),
        failed: None,
    }
}
