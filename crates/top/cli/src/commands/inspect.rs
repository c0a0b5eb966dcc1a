//! `steptime inspect`.

use rayon::prelude::*;
use steptime::graph::{self, Options, StepGraph};
use steptime::trace::{Input, Recording};
use steptime::{Choice, Error, one_job};

use super::{Failure, load, source};
use crate::cli::{Inspect, Part};
use crate::report::{self, inspection};
use crate::{output, progress};

/// Runs it.
pub fn run(args: &Inspect) -> Result<(), Failure> {
    let input = load::everything(&args.input)?;
    let chosen = chosen(args, &input)?;
    let graphs = progress::spin("joining", || graphs(&input.recordings, chosen, &args.part))?;
    let answer =
        inspection::of(&args.input.display().to_string(), &input, &graphs, chosen, &source::profiler());
    if args.json {
        output::print_json(&answer)?;
    } else {
        output::print(&report::inspect::text(&answer))?;
    }
    Ok(())
}

/// Which recording to show in detail: that of the rank asked for, else the first.
fn chosen(args: &Inspect, input: &Input) -> Result<usize, Error> {
    let choice = Choice { rank: args.part.rank, step: args.part.step };
    one_job(&input.path, &input.recordings, &choice)?;
    let Some(wanted) = args.part.rank else { return Ok(0) };
    let ranks: Vec<Option<u32>> = input.recordings.iter().map(|r| r.rank).collect();
    let alone = ranks.len() == 1 && ranks[0].is_none() && wanted == 0;
    let at = ranks.iter().position(|&rank| rank == Some(wanted)).or(alone.then_some(0));
    at.ok_or_else(|| {
        let known: Vec<String> = ranks.iter().flatten().map(u32::to_string).collect();
        let known = if known.is_empty() {
            "no ranks, only one trace".into()
        } else {
            format!("ranks {}", known.join(", "))
        };
        Error::NoSuchRank { path: input.path.clone(), wanted, known }
    })
}

/// The graph of each recording that has timing; what cannot be built only matters where a step was asked for.
fn graphs(recordings: &[Recording], chosen: usize, part: &Part) -> Result<Vec<Option<StepGraph>>, Error> {
    let build = |(index, recording): (usize, &Recording)| {
        let Some(trace) = load::timing(recording) else {
            return match part.step {
                Some(_) if index == chosen => Err(Error::NoTiming { path: recording.path.clone() }),
                _ => Ok(None),
            };
        };
        let step = part.step.filter(|_| index == chosen);
        match StepGraph::build(trace, &Options { step }) {
            Ok(graph) => Ok(Some(graph)),
            Err(graph::Error::NoHostEvents) if step.is_none() => Ok(None),
            Err(source) => Err(Error::Graph { path: recording.path.clone(), source }),
        }
    };
    let built: Vec<_> = recordings.par_iter().enumerate().map(build).collect();
    built.into_iter().collect()
}
