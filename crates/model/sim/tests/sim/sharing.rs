//! Kernels of two streams that share the device, computed by hand. Times in microseconds.

use crate::support;

use steptime_cost::{Demand, Demands};
use steptime_graph::{ActivityId, StepGraph};
use steptime_sim::Timeline;
use steptime_sim::sharing::RunningKernels;
use steptime_trace::Nanos;
use support::{Step, priced};

/// The multiprocessors of the device.
const ALL: u32 = 100;
/// Delay of a kernel that found no room.
const LATE: f64 = 2.0;

fn us(time: f64) -> Nanos {
    Nanos::from_micros_f64(time)
}

/// Demand of blocks, each of which takes a multiprocessor for itself.
fn blocks(blocks: f64) -> Demand {
    Demand { blocks, warps: 8.0, block: [1.0; 4], memory: 0.0, busy: 1.0 }
}

/// Two kernels, launched right after one another on two streams.
fn two(times: [f64; 2]) -> StepGraph {
    Step::default()
        .op("aten::mm", 0.0, 40.0)
        .kernel([10.0, 15.0], 7, [17.0, 17.0 + times[0]])
        .kernel([20.0, 25.0], 20, [27.0, 27.0 + times[1]])
        .recorded(1000.0)
}

fn simulated(graph: &StepGraph, demands: [Option<Demand>; 2]) -> Timeline {
    let of = graph.activities.keys().map(|at| demands[usize::from(at)]).collect();
    let mut priced = priced(graph);
    priced.demands = Some(Demands { multiprocessors: ALL, nodes: false, of });
    Timeline::simulate(&priced)
}

/// Beginning and end of a kernel, relative to the beginning of the first.
fn span(timeline: &Timeline, kernel: usize) -> [Nanos; 2] {
    let (at, zero) = (ActivityId::from(kernel), timeline.starts[ActivityId(0)]);
    [timeline.starts[at] - zero, timeline.ends[at] - zero]
}

#[test]
fn kernels_for_which_there_is_room_do_not_hold_one_another() {
    let timeline = simulated(&two([100.0, 100.0]), [Some(blocks(50.0)), Some(blocks(50.0))]);
    assert_eq!(span(&timeline, 0), [us(0.0), us(100.0)]);
    assert_eq!(span(&timeline, 1), [us(10.0), us(110.0)]);
    assert_eq!(timeline.active(), us(110.0));
}

#[test]
fn a_kernel_that_fills_the_device_delays_the_other() {
    let timeline = simulated(&two([100.0, 100.0]), [Some(blocks(100.0)), Some(blocks(100.0))]);
    assert_eq!(span(&timeline, 0), [us(0.0), us(100.0)]);
    assert_eq!(span(&timeline, 1), [us(10.0), us(200.0 + LATE)]);
}

#[test]
fn the_last_wave_leaves_room() {
    // Two waves, of which the second takes half of the device: the other kernel has the other half from 50 on.
    let timeline = simulated(&two([100.0, 30.0]), [Some(blocks(150.0)), Some(blocks(50.0))]);
    assert_eq!(span(&timeline, 0), [us(0.0), us(100.0)]);
    assert_eq!(span(&timeline, 1), [us(10.0), us(50.0 + 30.0 + LATE)]);
}

#[test]
fn bandwidth_is_shared() {
    // Each has room, and takes all of the bandwidth alone.
    let greedy = Demand { memory: 1.0, ..blocks(50.0) };
    let timeline = simulated(&two([110.0, 100.0]), [Some(greedy), Some(greedy)]);
    assert_eq!(span(&timeline, 0), [us(0.0), us(210.0)]);
    assert_eq!(span(&timeline, 1), [us(10.0), us(210.0)]);
}

#[test]
fn what_asks_for_nothing_takes_its_time() {
    for demands in [[None, None], [Some(blocks(100.0)), None]] {
        let timeline = simulated(&two([100.0, 100.0]), demands);
        assert_eq!(span(&timeline, 0), [us(0.0), us(100.0)]);
        assert_eq!(span(&timeline, 1), [us(10.0), us(110.0)]);
    }
}

#[test]
fn a_kernel_alone_is_as_without_the_model() {
    let graph = Step::default()
        .op("aten::mm", 0.0, 60.0)
        .kernel([10.0, 15.0], 7, [17.0, 67.125])
        .call("cudaEventRecord", 16.0, 17.0)
        .call("cudaStreamWaitEvent", 18.0, 19.0)
        .kernel([20.0, 25.0], 20, [68.0, 78.333])
        .activity(
            "cudaMemcpyAsync",
            [26.0, 28.0],
            "gpu_memcpy",
            "Memcpy HtoD (Pinned -> Device)",
            20,
            [80.0, 83.7],
        )
        .kernel([30.0, 35.0], 20, [84.0, 90.0])
        .call("cudaStreamSynchronize", 40.0, 95.0)
        .recorded(200.0);
    let alone = Timeline::simulate(&priced(&graph));
    let mut shared = priced(&graph);
    let of = graph.activities.keys().map(|at| (usize::from(at) != 2).then_some(blocks(250.0))).collect();
    shared.demands = Some(Demands { multiprocessors: ALL, nodes: false, of });
    let shared = Timeline::simulate(&shared);
    assert_eq!(alone.period, shared.period);
    assert_eq!((alone.marks, alone.starts, alone.ends), (shared.marks, shared.starts, shared.ends));
    assert_eq!((alone.mark_causes, alone.activity_causes), (shared.mark_causes, shared.activity_causes));
}

#[test]
fn work_is_never_done_faster_than_alone() {
    let demands = [blocks(30.0), blocks(130.0), Demand { memory: 0.7, ..blocks(80.0) }, blocks(1000.0)];
    for one in demands {
        for other in demands {
            let mut running = RunningKernels::on(ALL);
            running.begin(0, us(0.0), us(70.0), one);
            running.begin(1, us(5.0), us(90.0), other);
            let mut ends = [Nanos::ZERO; 2];
            while running.next_change().is_some() {
                for kernel in running.change() {
                    ends[kernel] = running.now();
                }
            }
            assert!(ends[0] >= us(70.0) && ends[1] >= us(95.0), "{one:?} {other:?}: {ends:?}");
            assert!(ends[0].max(ends[1]) <= us(160.0 + 2.0 * LATE), "{one:?} {other:?}: {ends:?}");
        }
    }
}
