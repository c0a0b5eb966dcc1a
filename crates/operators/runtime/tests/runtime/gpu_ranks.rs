//! Ranks of a job on GPUs that write the memory of one another, against one GPU with the whole batch.

use std::thread;

use steptime_cuda::Device;
use steptime_cuda::gemm::Math;
use steptime_cuda::peer::{Mailbox, Peers};
use steptime_eager::Model;
use steptime_ops::Cpu;
use steptime_rewrite::{Bf16, Facts, FuseCasts, FuseLinear, Operators, Rule, apply};
use steptime_runtime::{
    DescribedStep, Error, GpuGroup, GpuOptions, Link, Program, Rank, Reuse, Session, Target,
};

use crate::common::device;
use crate::ranks::{Trained, compare, model, placements, steps};

/// All GPUs, at least two.
fn devices() -> Option<Vec<Device>> {
    device()?;
    let count = Device::count().expect("a driver");
    if count < 2 {
        steptime_skips::skip("one GPU");
        return None;
    }
    Some((0..count).map(|at| Device::open(at).expect("a GPU")).collect())
}

/// The step of a rank after some rules; with `direct` its exchanges have no copies around them.
fn described(model: &Model, rules: &[&dyn Rule], rank: usize, direct: bool) -> DescribedStep {
    let mut described = DescribedStep::of_rank(model, rank as u32).expect("a step");
    let ops = described.ops().clone();
    for rule in rules {
        // A rank without tables has no lookups to join.
        let _ = apply(&mut described.step, &[*rule], &Facts::new(&ops, Some(model.batch())));
    }
    if direct {
        described.direct_exchanges();
    }
    described
}

fn program(described: &DescribedStep) -> Program {
    Program::for_target(described, Target::Cuda, Reuse::ByLifetime).unwrap_or_else(|error| panic!("{error}"))
}

fn trained(model: &Model, program: Program, device: &Device, rank: &Rank) -> Result<Trained, Error> {
    let mut group = None;
    if rank.ranks() > 1 {
        let mailbox = Mailbox::new(device, rank.ranks())?;
        let all = rank.gather(mailbox.address(), None)?;
        let all = all.iter().map(|one| (**one).clone()).collect();
        let link = Link::Peers(Peers::join(mailbox, rank.rank(), all)?);
        group = Some(GpuGroup { rank: rank.clone(), link });
    }
    let options = GpuOptions { device: device.clone(), math: Math::Full, graph: true, group };
    let session = Session::on_gpu(program, options, &Cpu::new(1).expect("a thread"), 3)?;
    steps(session, model, [rank.rank(), rank.ranks()])
}

/// Trains all ranks of a model's job.
fn job(model: &Model, rules: &[&dyn Rule], direct: bool, devices: &[Device]) -> Vec<Trained> {
    thread::scope(|scope| {
        let ranks = Rank::group(model.gpus() as usize).into_iter().zip(devices);
        let threads: Vec<_> = ranks
            .map(|(rank, device)| {
                let program = program(&described(model, rules, rank.rank(), direct));
                scope.spawn(move || trained(model, program, device, &rank))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic").expect("steps")).collect()
    })
}

#[test]
fn ranks_on_gpus_train_the_model_of_one() {
    let Some(devices) = devices() else { return };
    let rules: [&dyn Rule; 2] = [&Operators, &FuseLinear];
    for (interaction, optimizer) in [("dot", "sgd"), ("cat", "adagrad")] {
        let model = model(interaction, optimizer, "sum");
        let alone = job(&model.on_gpus(1).expect("one device"), &rules, false, &devices);
        let fits = |placed: &Model| placed.gpus() as usize <= devices.len();
        for (what, placed) in placements(&model).into_iter().filter(|(_, placed)| fits(placed)) {
            let packed = job(&placed, &rules, false, &devices);
            compare(&alone[0], &packed, &format!("{what}, {optimizer}"));
            let direct = job(&placed, &rules, true, &devices);
            for (direct, packed) in direct.iter().zip(&packed) {
                assert_eq!(direct.losses, packed.losses, "{what}, {optimizer}");
                assert_eq!(direct.tensors, packed.tensors, "{what}, {optimizer}");
            }
        }
    }
}

#[test]
fn ranks_in_16_bits_have_the_same_bits_with_direct_exchanges() {
    let Some(devices) = devices() else { return };
    let rules: [&dyn Rule; 4] = [&Operators, &Bf16, &FuseCasts, &FuseLinear];
    let (_, placed) = placements(&model("dot", "sgd", "sum")).swap_remove(1);
    let [packed, direct] = [false, true].map(|direct| job(&placed, &rules, direct, &devices));
    for (direct, packed) in direct.iter().zip(&packed) {
        assert_eq!(direct.losses, packed.losses);
        assert_eq!(direct.tensors, packed.tensors);
    }
}

#[test]
fn direct_exchanges_have_no_copies_around_them() {
    let model = model("dot", "sgd", "sum");
    let count =
        |program: &Program, name: &str| program.instructions().iter().filter(|one| one.name == name).count();
    for (what, placed) in placements(&model) {
        let both =
            [false, true].map(|direct| program(&described(&placed, &[&Operators, &FuseLinear], 0, direct)));
        let [packed, direct] = &both;
        assert_eq!(count(direct, "c10d::alltoall_base_"), 2, "{what}");
        assert!(direct.instructions().len() < packed.instructions().len(), "{what}");
        // Lookups are sent part by part; those of tables on every rank are not sent.
        let own = usize::from(what == "replicated");
        assert_eq!(count(direct, "steptime::embedding_bag"), own, "{what}");
        if what == "in order" {
            // The concatenation of constants remains.
            assert_eq!(count(direct, "aten::clone"), 0, "{direct}");
            assert_eq!(count(packed, "aten::cat") - count(direct, "aten::cat"), 1, "{direct}");
        }
    }
}
