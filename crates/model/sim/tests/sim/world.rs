//! Several ranks against timelines computed by hand. Times in microseconds.

use crate::support;

use steptime_cost::{Demand, Demands, PricedGraph};
use steptime_graph::{ActivityId, Job, Mismatch, RendezvousId, StepGraph, TiVec};
use steptime_sim::world::{Parts, path, replay_recorded};
use steptime_sim::{Hang, Meetings, Timeline, WorldTimeline};
use steptime_trace::Nanos;
use support::{Step, priced};

fn us(time: f64) -> Nanos {
    Nanos::from_micros_f64(time)
}

/// A rank that launches a collective `launch` after the beginning of its step of 200; its kernel runs for `runs`. Then its host
/// waits for its device.
fn rank(launch: f64, runs: f64) -> StepGraph {
    Step::default()
        .op("aten::mm", 0.0, launch - 10.0)
        .kernel([5.0, 10.0], 7, [12.0, 22.0])
        .collective("allreduce", "0", [launch - 5.0, launch], 7, [launch + 2.0, launch + 2.0 + runs])
        .call("cudaDeviceSynchronize", launch + 10.0, 136.0)
        .recorded(200.0)
}

fn simulate(ranks: &[PricedGraph<'_>]) -> Result<(Job, WorldTimeline), Hang> {
    let graphs: Vec<&StepGraph> = ranks.iter().map(|rank| rank.graph).collect();
    let numbered: Vec<(u32, &StepGraph)> = (0..).zip(graphs.iter().copied()).collect();
    let job = Job::from_ranks(&numbered).expect("collectives that match");
    let moving: TiVec<RendezvousId, Nanos> =
        job.moving(&graphs).into_iter().map(|time| time.expect("a recorded time")).collect();
    let world = WorldTimeline::simulate(ranks, Meetings { job: &job, moving: &moving })?;
    Ok((job, world))
}

#[test]
fn the_last_rank_decides_and_the_others_wait() {
    // The second rank launches 60 later; as recorded the collective took 20 once both were there.
    let (early, late) = (rank(50.0, 80.0), rank(110.0, 20.0));
    let ranks = [priced(&early), priced(&late)];
    let (job, world) = simulate(&ranks).expect("no hang");
    assert_eq!(job.rendezvous.len(), 1);
    assert_eq!(world.period, us(200.0));
    let met = &world.rendezvous[RendezvousId(0)];
    assert_eq!(met.arrivals, [us(52.0), us(112.0)]);
    assert_eq!((met.last(), met.waited(0), met.waited(1)), (1, us(60.0), Nanos::ZERO));
    assert_eq!(met.release_time(0) + met.moving, us(132.0));
    for rank in &world.ranks {
        assert_eq!(rank.ends.raw[1], us(132.0), "all leave together");
    }
    let parts = Parts::measure(&world, &job, 0, &early);
    assert_eq!((parts.computes, parts.waits, parts.moves), (us(10.0), us(60.0), us(20.0)));
    assert_eq!(parts.computes + parts.waits + parts.moves + parts.idles, world.period);
    assert_eq!(Parts::measure(&world, &job, 1, &late).waits, Nanos::ZERO);
}

#[test]
fn what_moves_is_the_shortest_part() {
    let (early, late) = (rank(50.0, 80.0), rank(110.0, 20.0));
    let graphs = [&early, &late];
    let job = Job::from_ranks(&[(0, &early), (1, &late)]).expect("a job");
    let steps = Job::common_steps(&graphs);
    assert_eq!(steps.len(), 3);
    let met = job.rendezvous_times(RendezvousId(0), &graphs, &steps[0]).expect("recorded");
    assert_eq!((met.moving, met.last()), (us(20.0), 1));
    assert_eq!(met.arrivals[0].waited, us(60.0));
}

#[test]
fn a_rank_that_waits_for_its_device_waits_for_the_others() {
    let (early, late) = (rank(50.0, 80.0), rank(110.0, 20.0));
    let ranks = [priced(&early), priced(&late)];
    let (job, world) = simulate(&ranks).expect("no hang");
    assert_eq!(world.rendezvous[RendezvousId(0)].release_time(1), us(112.0));
    let own = Timeline::simulate(&ranks[1]);
    assert_eq!(world.period, own.period, "the late rank waits for nobody");
    let passages = path(&[&early, &late], &job, &world);
    assert_eq!(
        passages.iter().map(|passage| passage.stretch.to - passage.stretch.from).sum::<Nanos>(),
        world.period
    );
    assert!(passages.windows(2).all(|pair| pair[0].stretch.to == pair[1].stretch.from), "without gaps");
    assert!(passages.iter().any(|passage| passage.rank == 1));
}

#[test]
fn a_broadcast_holds_up_nobody_but_those_before_its_root() {
    let at = |launch: f64| {
        Step::default()
            .op("aten::mm", 0.0, 20.0)
            .collective("broadcast", "0", [launch - 5.0, launch], 7, [launch + 2.0, launch + 6.0])
            .call("cudaDeviceSynchronize", 130.0, 136.0)
            .recorded(200.0)
    };
    // The root is the first rank: it is gone before the second comes.
    let (root, after) = (at(50.0), at(110.0));
    let (_, world) = simulate(&[priced(&root), priced(&after)]).expect("no hang");
    let met = &world.rendezvous[RendezvousId(0)];
    assert_eq!((met.waited(0), met.waited(1)), (Nanos::ZERO, Nanos::ZERO));
    assert_eq!((world.ranks[0].ends.raw[0], world.ranks[1].ends.raw[0]), (us(56.0), us(116.0)));
    // In the other order the second waits for it.
    let (_, world) = simulate(&[priced(&after), priced(&root)]).expect("no hang");
    let met = &world.rendezvous[RendezvousId(0)];
    assert_eq!((met.held_by(1), met.waited(1), met.waited(0)), (0, us(60.0), Nanos::ZERO));
}

#[test]
fn alike_ranks_take_as_long_as_one() {
    let one = rank(50.0, 20.0);
    let alone = Timeline::simulate(&priced(&one));
    let ranks: Vec<PricedGraph<'_>> = (0..8).map(|_| priced(&one)).collect();
    let (_, world) = simulate(&ranks).expect("no hang");
    assert_eq!(world.period, alone.period);
    for rank in &world.ranks {
        assert_eq!((&rank.marks, &rank.starts, &rank.ends), (&alone.marks, &alone.starts, &alone.ends));
    }
}

#[test]
fn the_recorded_steps_are_replayed() {
    let (early, late) = (rank(50.0, 80.0), rank(110.0, 20.0));
    let job = Job::from_ranks(&[(0, &early), (1, &late)]).expect("a job");
    let replay =
        replay_recorded(&[priced(&early), priced(&late)], &job).expect("no hang").expect("three steps");
    assert_eq!((replay.simulated, replay.measured), (us(200.0), us(200.0)));
}

#[test]
fn groups_entered_in_another_order_hang() {
    let order = |first: &str, second: &str| {
        Step::default()
            .op("aten::mm", 0.0, 20.0)
            .collective("allreduce", first, [25.0, 30.0], 7, [32.0, 40.0])
            .collective("allreduce", second, [45.0, 50.0], 7, [52.0, 60.0])
            .recorded(200.0)
    };
    let (one, other) = (order("a", "b"), order("b", "a"));
    let hang = simulate(&[priced(&one), priced(&other)]).expect_err("each waits for the other");
    assert_eq!(hang.waiting.len(), 2);
    assert!(hang.to_string().contains("of the step: ranks 0"), "{hang}");
}

#[test]
fn collectives_that_do_not_match_are_named() {
    let of = |ops: &[&str]| {
        let step = Step::default().op("aten::mm", 0.0, 20.0);
        let add = |step: Step, (at, op): (usize, &&str)| {
            let at = 25.0 + 20.0 * at as f64;
            step.collective(op, "0", [at, at + 5.0], 7, [at + 7.0, at + 10.0])
        };
        ops.iter().enumerate().fold(step, add).recorded(200.0)
    };
    let (sum, exchange, twice) = (of(&["allreduce"]), of(&["all_to_allv"]), of(&["allreduce", "allreduce"]));
    let differ = Job::from_ranks(&[(0, &sum), (3, &exchange)]).expect_err("other collectives");
    assert!(matches!(&differ, Mismatch::Differ { nth: 1, ranks: [0, 3], .. }), "{differ}");
    assert!(differ.to_string().contains("rank 3 all_to_all of 1024 bytes"), "{differ}");
    let missing = Job::from_ranks(&[(0, &sum), (1, &twice)]).expect_err("one more");
    assert!(matches!(missing, Mismatch::Missing { counts: [1, 2], .. }), "{missing}");
}

/// A rank that launches a collective on a separate stream, and 10 later a product of 30 on all of the GPU.
fn overlapping(launch: f64) -> StepGraph {
    Step::default()
        .op("aten::mm", 0.0, launch - 10.0)
        .collective("allreduce", "0", [launch - 5.0, launch], 20, [launch + 2.0, launch + 22.0])
        .kernel([launch + 5.0, launch + 10.0], 7, [launch + 12.0, launch + 42.0])
        .op("aten::mul", 180.0, 190.0)
        .recorded(200.0)
}

/// Demands of its kernels on 132 multiprocessors: the collective takes 24 of them whole, the product all.
fn asking<'g>(graph: &'g StepGraph) -> PricedGraph<'g> {
    let demand =
        |blocks: f64| Demand { blocks, warps: 16.0, block: [0.1, 0.3, 0.9, 0.4], memory: 0.0, busy: 1.0 };
    let of = vec![Some(demand(24.0)), Some(demand(132.0))].into();
    PricedGraph { demands: Some(Demands { multiprocessors: 132, nodes: false, of }), ..priced(graph) }
}

#[test]
fn a_product_beside_a_collective_takes_two_waves() {
    let (early, late) = (overlapping(50.0), overlapping(110.0));
    let ranks = [asking(&early), asking(&late)];
    let (_, world) = simulate(&ranks).expect("no hang");
    let product = |rank: usize| (world.ranks[rank].starts.raw[1], world.ranks[rank].ends.raw[1]);
    // The early rank's collective is there from 52 until 132: its product takes 60 instead of 30.
    assert_eq!(world.ranks[0].ends.raw[0], us(132.0));
    assert_eq!(product(0), (us(62.0), us(122.0)));
    // The late rank's data moves until 132, 10 of its product beside it: half of them are lost.
    assert_eq!(product(1), (us(122.0), us(157.0)));
    // If demands are unknown, each kernel takes its own time.
    let (_, world) = simulate(&[priced(&early), priced(&late)]).expect("no hang");
    assert_eq!((world.ranks[0].ends.raw[1], world.ranks[1].ends.raw[1]), (us(92.0), us(152.0)));
}

#[test]
fn blocks_that_are_placed_stay_when_a_collective_comes() {
    // The product is launched first, and the collective while it runs.
    let graph = || {
        Step::default()
            .op("aten::mm", 0.0, 20.0)
            .collective("allreduce", "0", [45.0, 50.0], 20, [52.0, 72.0])
            .kernel([25.0, 30.0], 7, [32.0, 62.0])
            .op("aten::mul", 180.0, 190.0)
            .recorded(200.0)
    };
    let (one, other) = (graph(), graph());
    let collective = one.activities.keys().find(|&at| one.activities[at].collective.is_some());
    let asking = |graph| {
        let mut priced = asking(graph);
        if collective != Some(ActivityId(0)) {
            priced.demands.iter_mut().for_each(|demands| demands.of.raw.swap(0, 1));
        }
        priced
    };
    let (_, world) = simulate(&[asking(&one), asking(&other)]).expect("no hang");
    let product =
        one.activities.keys().find(|&at| one.activities[at].collective.is_none()).expect("a product");
    assert_eq!(world.ranks[0].ends[product], us(62.0));
}
