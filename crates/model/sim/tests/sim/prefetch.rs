//! Ranks that exchange the next batch during this one's dense part, against timelines computed by hand. Times in microseconds.

use crate::support;

use steptime_cost::PricedGraph;
use steptime_graph::{ActivityId, Job, RendezvousId, StepGraph, StreamDependency, TiVec};
use steptime_sim::world::{Parts, path};
use steptime_sim::{Hang, Meetings, Timeline, WorldTimeline};
use steptime_trace::Nanos;
use support::{Step, priced};

const EXCHANGE: ActivityId = ActivityId(0);
const DENSE: ActivityId = ActivityId(1);

fn us(time: f64) -> Nanos {
    Nanos::from_micros_f64(time)
}

/// A rank that launches the exchange of the next batch on a separate stream, then the dense part of this batch, which waits for the
/// exchange of the step before. Its host waits for nothing, and takes 100 per step.
fn rank(launch: f64, dense: f64) -> StepGraph {
    let mut graph = Step::default()
        .op("aten::mm", 0.0, launch - 10.0)
        .collective("all_to_allv", "0", [launch - 5.0, launch], 20, [launch + 2.0, launch + 4.0])
        .kernel([launch + 5.0, launch + 8.0], 7, [launch + 10.0, launch + 10.0 + dense])
        .op("aten::mul", 80.0, 90.0)
        .recorded(100.0);
    assert!(graph.waits.is_empty());
    graph.waits.push(StreamDependency { from: EXCHANGE, to: DENSE, inferred: false, wraps: true });
    graph
}

fn simulate(ranks: &[PricedGraph<'_>], moving: f64) -> Result<(Job, WorldTimeline), Hang> {
    let numbered: Vec<(u32, &StepGraph)> = (0..).zip(ranks.iter().map(|rank| rank.graph)).collect();
    let job = Job::from_ranks(&numbered).expect("collectives that match");
    let moving: TiVec<RendezvousId, Nanos> = vec![us(moving); job.rendezvous.len()].into();
    let world = WorldTimeline::simulate(ranks, Meetings { job: &job, moving: &moving })?;
    Ok((job, world))
}

fn graphs<'g>(ranks: &[PricedGraph<'g>]) -> Vec<&'g StepGraph> {
    ranks.iter().map(|rank| rank.graph).collect()
}

#[test]
fn an_exchange_beside_the_dense_part_costs_nothing() {
    let (early, late) = (rank(30.0, 40.0), rank(60.0, 30.0));
    let ranks = [priced(&early), priced(&late)];
    let (job, world) = simulate(&ranks, 50.0).expect("no hang");
    // The host determines the period. The exchange begins when the late rank launched it, and is over at 112: in the next step of the early rank,
    // whose dense part begins 38 + 2 after its launch at 138 by then.
    assert_eq!(world.period, us(100.0));
    let met = &world.rendezvous[RendezvousId(0)];
    assert_eq!((met.arrivals.clone(), met.release_time(0)), (vec![us(32.0), us(62.0)], us(62.0)));
    assert_eq!(world.ranks[0].ends[EXCHANGE], us(112.0));
    assert_eq!((world.ranks[0].starts[DENSE], world.ranks[1].starts[DENSE]), (us(40.0), us(70.0)));
    let parts = Parts::measure(&world, &job, 0, &early);
    // From 62 to 112 data moves; of these the dense part of the early rank, 40 to 80, hides 18.
    assert_eq!((parts.computes, parts.hidden, parts.moves), (us(40.0), us(18.0), us(32.0)));
    assert_eq!((parts.waits, parts.waits_beside), (us(8.0), us(22.0)));
    assert_eq!(parts.computes + parts.moves + parts.waits + parts.idles, world.period);
}

#[test]
fn a_dense_part_waits_for_the_exchange_of_the_step_before() {
    let (early, late) = (rank(30.0, 40.0), rank(60.0, 30.0));
    let ranks = [priced(&early), priced(&late)];
    // 62 + 90: over at 152, and the early rank's dense part of the step after would begin at 140. A queued activity begins 1 later.
    let (job, world) = simulate(&ranks, 90.0).expect("no hang");
    assert_eq!(world.period, us(100.0));
    assert_eq!(world.ranks[0].starts[DENSE], us(53.0));
    assert_eq!(world.ranks[1].starts[DENSE], us(70.0));
    let passages = path(&graphs(&ranks), &job, &world);
    let total: Nanos = passages.iter().map(|passage| passage.stretch.to - passage.stretch.from).sum();
    assert_eq!(total, world.period);
    assert!(passages.windows(2).all(|pair| pair[0].stretch.to == pair[1].stretch.from), "without gaps");
}

#[test]
fn exchanges_longer_than_a_step_follow_one_another() {
    let (early, late) = (rank(30.0, 40.0), rank(60.0, 30.0));
    let ranks = [priced(&early), priced(&late)];
    // The stream of exchanges is busy: 130 and 1 until the next begins. Hosts run ahead.
    let (job, world) = simulate(&ranks, 130.0).expect("no hang");
    assert_eq!(world.period, us(131.0));
    let passages = path(&graphs(&ranks), &job, &world);
    let exchanged: Nanos = passages
        .iter()
        .filter(|passage| passage.meets.is_some())
        .map(|passage| passage.stretch.to - passage.stretch.from)
        .sum();
    assert_eq!(exchanged, us(130.0));
}

#[test]
fn ranks_may_be_in_different_steps() {
    // The dense part of the first rank takes longer than its step on the host, that of the second does not: the second is ahead of
    // it by as much as the exchange lets it.
    let (slow, fast) = (rank(30.0, 150.0), rank(30.0, 20.0));
    let ranks = [priced(&slow), priced(&fast)];
    let (_, world) = simulate(&ranks, 10.0).expect("no hang");
    assert_eq!(world.period, us(151.0));
    // Exchanges do not wait for dense parts: hosts launch them every 100.
    assert_eq!(world.rendezvous[RendezvousId(0)].waited(0), Nanos::ZERO);
    assert_eq!(world.ranks[1].ends[DENSE] - world.ranks[1].starts[DENSE], us(20.0));
}

#[test]
fn an_exchange_that_waits_for_the_update_spans_two_steps() {
    // The exchange also waits for the dense part of the step before, which waits for the exchange before that: 60 + 1, 90 + 1 for two
    // steps, which run in turn.
    let looped = || {
        let mut graph = rank(20.0, 90.0);
        graph.waits.insert(0, StreamDependency { from: DENSE, to: EXCHANGE, inferred: false, wraps: true });
        graph
    };
    let (one, other) = (looped(), looped());
    let ranks = [priced(&one), priced(&other)];
    let (_, world) = simulate(&ranks, 60.0).expect("no hang");
    // The dense part alone fills 91 of a step, the host 100.
    assert_eq!(world.period, us(100.0));
    let alone = Timeline::simulate(&ranks[0]);
    assert_eq!(alone.period, us(100.0));
    // 160 and 90 make 252 of two steps.
    let (_, world) = simulate(&ranks, 160.0).expect("no hang");
    assert_eq!(world.period, us(161.0), "the stream of exchanges decides");
}

/// The exchange, then the dense part, then the update on a third stream; the next exchange but one waits for the update. Nothing waits
/// longer than a step, but the loop takes two.
fn loop_of_two(moving: f64, dense: f64, update: f64) -> StepGraph {
    let mut graph = Step::default()
        .op("aten::mm", 0.0, 5.0)
        .collective("all_to_allv", "0", [10.0, 12.0], 20, [14.0, 14.0 + moving])
        .kernel([15.0, 17.0], 7, [19.0, 19.0 + dense])
        .kernel([20.0, 22.0], 8, [24.0, 24.0 + update])
        .op("aten::mul", 80.0, 90.0)
        .recorded(100.0);
    let update = ActivityId(2);
    let wait = |from, to, wraps| StreamDependency { from, to, inferred: false, wraps };
    graph.waits = vec![wait(update, EXCHANGE, true), wait(EXCHANGE, DENSE, true), wait(DENSE, update, false)];
    graph
}

#[test]
fn a_loop_over_two_steps_takes_half_of_it_a_step() {
    // 149, 99 and 99 with 1 before each: 350 in two steps, while each stream alone needs 150 at most.
    let (one, other) = (loop_of_two(149.0, 99.0, 99.0), loop_of_two(149.0, 99.0, 99.0));
    let ranks = [priced(&one), priced(&other)];
    let alone = Timeline::simulate(&ranks[0]);
    assert_eq!(alone.period, us(175.0), "alone, after {} steps", alone.steps);
    let (_, world) = simulate(&ranks, 149.0).expect("no hang");
    assert_eq!(world.period, us(175.0), "after {} steps", world.steps);
}
