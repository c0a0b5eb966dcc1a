//! Replays the recorded steps of all ranks with their recorded times: the difference is the simulator's own error.

use steptime_cost::PricedGraph;
use steptime_cost::host::recorded_gaps::waits_for_device;
use steptime_graph::{ActivityId, Job, MarkId, RendezvousId, StepGraph, StepId, TiVec, median};
use steptime_trace::Nanos;

use super::{Hang, Times, World, meets};
use crate::replay::Replay;

/// Replays the steps that all ranks recorded, each with its own gaps and durations and with the profiler's cost left in; a
/// collective takes its recorded time from the last arrival on. Returns `None` if there are fewer than two steps.
///
/// # Errors
/// If ranks wait for each other for ever.
pub fn replay_recorded(priced: &[PricedGraph<'_>], job: &Job) -> Result<Option<Replay>, Hang> {
    let graphs: Vec<&StepGraph> = priced.iter().map(|rank| rank.graph).collect();
    let steps = Job::common_steps(&graphs);
    let meets = meets(priced, job);
    let mut world = World::new(priced, &meets, job);
    let typical = job.moving(&graphs);
    let mut begins: Vec<Nanos> = Vec::new();
    for step in &steps {
        let times: Vec<_> = priced.iter().zip(step).map(|(rank, &step)| recorded(rank, step)).collect();
        let borrowed: Vec<Times<'_>> =
            times.iter().map(|(gaps, durations)| Times { gaps, durations }).collect();
        let moving = |at: RendezvousId| {
            job.rendezvous_times(at, &graphs, step)
                .map(|met| met.moving)
                .or(typical[usize::from(at)])
                .unwrap_or_default()
        };
        let moving: TiVec<RendezvousId, Nanos> = job.rendezvous.keys().map(moving).collect();
        world.step(&borrowed, &moving)?;
        begins.push(world.engines.iter().map(|engine| engine.begin()).max().unwrap_or_default());
    }
    // The first step starts with idle queues.
    let from = usize::from(steps.len() > 2);
    let first = |step: &[StepId]| -> Option<Nanos> { graphs[0].samples.mark(step[0], MarkId(0)) };
    let follow = |at: &usize| steps[*at + 1][0] == steps[*at][0].next();
    let pairs = (from..steps.len().saturating_sub(1))
        .filter(follow)
        .filter_map(|at| Some((begins[at + 1] - begins[at], first(&steps[at + 1])? - first(&steps[at])?)));
    let (mut simulated, mut measured): (Vec<Nanos>, Vec<Nanos>) = pairs.unzip();
    let Some((simulated, measured)) = median(&mut simulated).zip(median(&mut measured)) else {
        return Ok(None);
    };
    let none = Nanos::ZERO;
    Ok(Some(Replay { simulated, measured, active_simulated: none, active: none, single: false }))
}

/// Returns the gaps and durations of a recorded step; missing ones are taken from the typical step.
fn recorded(rank: &PricedGraph<'_>, step: StepId) -> (TiVec<MarkId, Nanos>, TiVec<ActivityId, Nanos>) {
    let (graph, samples) = (rank.graph, &rank.graph.samples);
    let gap = |(at, mark): (MarkId, &steptime_graph::Mark)| {
        if waits_for_device(graph, at) {
            return Nanos::ZERO;
        }
        samples.gap(step, at, mark).unwrap_or(rank.host.gaps[at])
    };
    let duration = |at: ActivityId| samples.activity_duration(step, at).unwrap_or(rank.durations[at]);
    (graph.marks.iter_enumerated().map(gap).collect(), graph.activities.keys().map(duration).collect())
}
