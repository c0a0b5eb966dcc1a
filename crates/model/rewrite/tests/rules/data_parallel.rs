//! One of several data-parallel ranks.

use crate::common;

use common::{Example, counts, named, open, takes};
use steptime_aten::Dtype;
use steptime_graph::{Collective, CollectiveKind, StepGraph};
use steptime_rewrite::{DataParallel, Error, Facts, Rule, apply};
use steptime_step::{ScheduledStep, StepIr, schedule};

/// Recorded elements of each averaged bucket, for torchvision's ResNet-50 with PyTorch 2.11 on an H200.
const BUCKETS: [u64; 5] = [2_049_000, 7_875_584, 6_563_840, 6_637_568, 2_431_040];
/// Recorded elements of buffers from the first rank: running statistics, and their numbers of batches.
const BUFFERS: [u64; 2] = [53_120, 53];

fn scheduled(example: &Example, rule: DataParallel) -> (StepIr, ScheduledStep) {
    let step = example.after(&rule).expect("it applies");
    let scheduled = schedule(&step, &example.step, &example.graph, &example.ops);
    assert_eq!(scheduled.circle(), None);
    (step, scheduled)
}

fn collectives(graph: &StepGraph) -> Vec<&Collective> {
    graph.activities.iter().filter_map(|row| Some(&graph.collectives[row.collective?])).collect()
}

#[test]
fn gradients_are_averaged_in_the_buckets_that_were_recorded() {
    let example = open("resnet50_32");
    let (step, after) = scheduled(&example, DataParallel::new(8));
    let of =
        |kind| collectives(&after.graph).into_iter().filter(move |own| own.kind == kind).collect::<Vec<_>>();
    let sums = of(CollectiveKind::AllReduce);
    assert_eq!(sums.iter().map(|own| own.sent.0 / 4).collect::<Vec<_>>(), BUCKETS);
    assert!(sums.iter().all(|own| own.sent == own.received && own.group.size == Some(8)));
    let buffers: Vec<u64> = of(CollectiveKind::Broadcast).iter().map(|own| own.sent.0).collect();
    assert_eq!(buffers, [4 * BUFFERS[0], 8 * BUFFERS[1]]);
    let counts = counts(&step);
    let first = named(&step, "torch.distributed.ddp.reducer::copy_bucket_to_grad")[0];
    assert_eq!(takes(&step, first), [[1000]], "the last layer's bias");
    for (name, count) in [
        ("torch::distributed::reducer::mul_out", 161),
        ("torch.distributed.ddp.reducer::copy_bucket_to_grad", 161),
        ("c10d::allreduce_", 5),
        ("nccl:all_reduce", 5),
        ("c10d::broadcast_", 2),
    ] {
        assert_eq!(counts.get(name), Some(&count), "{name}");
    }
}

/// A bucket waits for its gradients and is averaged during the backward pass; its copies back wait for it.
#[test]
fn averages_run_beside_the_backward_pass() {
    let example = open("resnet50_32");
    let (_, after) = scheduled(&example, DataParallel::new(2));
    let graph = &after.graph;
    let main = example.graph.activities.iter().next().expect("an activity").stream;
    let exchanged: Vec<_> = graph
        .activities
        .iter_enumerated()
        .filter(|(_, row)| row.collective.is_some())
        .map(|(at, _)| at)
        .collect();
    assert!(exchanged.iter().all(|&at| graph.activities[at].stream != main));
    for &at in &exchanged {
        let waits = graph.waits.iter().filter(|wait| wait.to == at && !wait.wraps);
        assert_eq!(waits.count(), 1, "it waits for what was launched before it");
    }
    let last = exchanged.last().expect("a collective");
    assert!(graph.waits.iter().any(|wait| wait.from == *last && graph.activities[wait.to].stream == main));
}

#[test]
fn the_rest_is_carried_over() {
    let example = open("resnet50_32");
    let (_, after) = scheduled(&example, DataParallel::new(8));
    let kept = after.carried.activities.iter().flatten().count();
    assert_eq!(kept, example.graph.activities.len());
}

#[test]
fn views_are_not_copied_back_and_bf16_is_half_as_much() {
    let example = open("resnet50_32");
    let (views, _) = scheduled(&example, DataParallel { views: true, ..DataParallel::new(8) });
    assert!(named(&views, "torch.distributed.ddp.reducer::copy_bucket_to_grad").is_empty());
    assert_eq!(named(&views, "torch::distributed::reducer::mul_out").len(), 161);
    let (sent, after) = scheduled(&example, DataParallel { send: Some(Dtype::Bf16), ..DataParallel::new(8) });
    let sums: Vec<u64> = collectives(&after.graph)
        .into_iter()
        .filter(|own| own.kind == CollectiveKind::AllReduce)
        .map(|own| own.sent.0 / 2)
        .collect();
    assert_eq!(sums, BUCKETS);
    assert_eq!(named(&sent, "torch::distributed::reducer::copy_").len(), 161);
    assert!(named(&sent, "torch::distributed::reducer::mul_out").is_empty());
}

#[test]
fn buckets_are_as_large_as_is_said() {
    let example = open("resnet50_32");
    let (_, after) = scheduled(&example, DataParallel { bucket: Some(1 << 40), ..DataParallel::new(8) });
    let sums = collectives(&after.graph).into_iter().filter(|own| own.kind == CollectiveKind::AllReduce);
    assert_eq!(sums.map(|own| own.sent.0 / 4).collect::<Vec<_>>(), [BUCKETS.iter().sum::<u64>()]);
}

#[test]
fn what_cannot_be_averaged_is_refused() {
    let sparse = open("dlrm_default_2048").after(&DataParallel::new(4)).unwrap_err();
    assert!(matches!(sparse, Error::SparseAveraged { .. }), "{sparse}");
    assert!(sparse.to_string().contains("place the tables"), "{sparse}");
    let example = open("resnet50_32");
    assert_eq!(example.after(&DataParallel::new(0)).unwrap_err(), Error::Ranks);
    let mut twice = example.step.clone();
    let rule: &dyn Rule = &DataParallel::new(4);
    let facts = Facts::new(&example.ops, None);
    apply(&mut twice, &[rule], &facts).expect("it applies");
    let refused = apply(&mut twice, &[rule], &facts).unwrap_err();
    assert!(refused.to_string().contains("averaged already"), "{refused}");
}
