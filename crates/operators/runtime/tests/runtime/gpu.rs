//! Steps on a GPU: losses of PyTorch, equal bits, and the operators' errors.

use steptime_cuda::Device;
use steptime_cuda::gemm::Math;
use steptime_ops::Cpu;
use steptime_rewrite::{Bf16, DenseOperators, Facts, FuseCasts, FuseLinear, Operators, Rule, apply};
use steptime_runtime::{DescribedStep, GpuOptions, Numbers, Program, Reuse, Session, Target};

use crate::common::{device, feed, fill, losses};
use crate::losses::{Reference, references};

fn program(described: &DescribedStep) -> Program {
    Program::for_target(described, Target::Cuda, Reuse::ByLifetime).unwrap_or_else(|error| panic!("{error}"))
}

fn session(described: &DescribedStep, device: &Device, math: Math, graph: bool, numbers: Numbers) -> Session {
    let options = GpuOptions { device: device.clone(), math, graph, group: None };
    let cpu = Cpu::new(2).expect("threads");
    let mut session = Session::on_gpu(program(described), options, &cpu, 1).expect("a session");
    session.set_numbers(numbers).expect("settings");
    fill(&mut session);
    session
}

/// The steps of a model: plain, with dense gradients of all tables in one call, and by the operators where they apply with the same results, each
/// in 32 bits and in 16.
fn steps(reference: &Reference) -> Vec<(&'static str, DescribedStep)> {
    let adam = reference.name.contains("towers") || reference.name.contains("wide");
    let plans: [(&str, &[&dyn Rule]); 8] = [
        ("plain", &[]),
        ("dense gradients", &[&DenseOperators, &FuseLinear]),
        ("dense gradients with casts, bf16", &[&DenseOperators, &Bf16]),
        ("dense gradients, bf16", &[&DenseOperators, &Bf16, &FuseCasts, &FuseLinear]),
        ("operators", &[&Operators, &FuseLinear]),
        ("plain, bf16", &[&Bf16]),
        ("operators with casts, bf16", &[&Operators, &Bf16]),
        ("operators, bf16", &[&Operators, &Bf16, &FuseCasts, &FuseLinear]),
    ];
    let plain = DescribedStep::new(&reference.model).expect("a step");
    let ops = plain.ops().clone();
    let facts = Facts::new(&ops, Some(reference.model.batch()));
    let changed = plans.into_iter().filter(|(plan, _)| !(adam && plan.starts_with("operators")));
    let changed = changed.filter_map(|(plan, rules)| {
        let mut described = plain.clone();
        apply(&mut described.step, rules, &facts).ok().map(|_| (plan, described))
    });
    changed.collect()
}

/// The steps that a GPU runs.
fn running_steps(reference: &Reference) -> Vec<(&'static str, DescribedStep)> {
    let mut all = steps(reference);
    all.retain(|(_, described)| Program::for_target(described, Target::Cuda, Reuse::ByLifetime).is_ok());
    all
}

/// Difference of losses from those of PyTorch in 32 bits, and the largest that is right.
fn difference(reference: &Reference, plan: &str, losses: &[f32]) -> (f64, f64) {
    match plan.ends_with("bf16") {
        true => (reference.early_difference(losses), 0.03),
        false => (reference.difference(losses), 1e-4),
    }
}

#[test]
fn all_plans_compile_for_a_gpu() {
    let mut failed = Vec::new();
    for reference in references() {
        for (plan, described) in steps(&reference) {
            if let Err(error) = Program::for_target(&described, Target::Cuda, Reuse::ByLifetime) {
                failed.push(format!("{} {plan}: {error}", reference.name));
            }
        }
    }
    // Sparse gradients of tables need the rule `operators`.
    failed.retain(|why| {
        !why.contains("sparse gradients")
            && !why.contains("SparseBackward")
            && !why.contains("sparse_backward")
    });
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn losses_on_a_gpu_are_those_of_pytorch() {
    let Some(device) = device() else { return };
    let (mut failed, mut ran) = (Vec::new(), 0);
    for reference in references() {
        for (plan, described) in steps(&reference) {
            let compiled = Program::for_target(&described, Target::Cuda, Reuse::ByLifetime);
            if let Err(error) = compiled {
                println!("{} {plan}: {error}", reference.name);
                continue;
            }
            let numbers = reference.numbers(&program(&described));
            let mut session = session(&described, &device, Math::Full, true, numbers);
            let own = losses(&mut session, &reference.model, reference.steps);
            let (difference, most) = difference(&reference, plan, &own);
            println!("{} {plan}: {difference:.2e}", reference.name);
            ran += 1;
            if difference > most || !difference.is_finite() {
                failed.push(format!("{} {plan}: {difference:e} {:?}", reference.name, &own[..5]));
            }
        }
    }
    assert!(failed.is_empty() && ran >= 16, "{ran} {failed:#?}");
}

#[test]
fn bits_on_a_gpu_are_the_same_in_each_run_with_and_without_a_graph() {
    let Some(device) = device() else { return };
    for reference in references() {
        for (plan, described) in running_steps(&reference) {
            let numbers = reference.numbers(&program(&described));
            let run = |math: Math, graph: bool| {
                let mut session = session(&described, &device, math, graph, numbers);
                let losses: Vec<u32> =
                    losses(&mut session, &reference.model, 12).iter().map(|loss| loss.to_bits()).collect();
                let mut all = Vec::new();
                for tensor in session.tensors() {
                    all.extend(session.read(&tensor.name).expect("a tensor").iter().map(|x| x.to_bits()));
                }
                (losses, all)
            };
            let first = run(Math::Full, true);
            assert!(first == run(Math::Full, true), "{} {plan}: another run", reference.name);
            assert!(first == run(Math::Full, false), "{} {plan}: no graph", reference.name);
            let tf32 = run(Math::Tf32, true);
            assert!(tf32 == run(Math::Tf32, true), "{} {plan}: TF32", reference.name);
        }
    }
}

#[test]
fn a_resumed_step_on_a_gpu_has_the_same_bits() {
    let Some(device) = device() else { return };
    for reference in references() {
        for (plan, described) in running_steps(&reference) {
            let numbers = reference.numbers(&program(&described));
            let mut one = session(&described, &device, Math::Full, true, numbers);
            losses(&mut one, &reference.model, 5);
            let mut other = session(&described, &device, Math::Full, true, numbers);
            for tensor in one.tensors() {
                let values = one.read(&tensor.name).expect("a tensor");
                other.write(&tensor.name, &values).expect("the same tensor");
            }
            other.set_steps(one.steps());
            let [first, second] = [&mut one, &mut other].map(|session| losses(session, &reference.model, 5));
            assert_eq!(first, second, "{} {plan}", reference.name);
        }
    }
}

#[test]
fn an_index_outside_of_a_table_is_refused_with_its_place() {
    let Some(device) = device() else { return };
    let all = references();
    let reference = all.iter().find(|reference| reference.name.contains("dlrm")).expect("a model");
    for (plan, described) in steps(reference) {
        let Ok(compiled) = Program::for_target(&described, Target::Cuda, Reuse::ByLifetime) else { continue };
        let numbers = reference.numbers(&compiled);
        let mut session = session(&described, &device, Math::Full, true, numbers);
        feed(&mut session, &reference.model, 0);
        session.step().expect("a step");
        let len = session.program().input_len("tables.0.indices");
        let mut indices = vec![0; len];
        indices[1] = 1 << 40;
        session.feed_ints("tables.0.indices", &indices).expect("an input");
        let error = session.step().expect_err("an index that no table has").to_string();
        println!("{plan}: {error}");
        assert!(error.contains("1099511627776") && error.contains("is not in 0..50"), "{plan}: {error}");
    }
}

#[test]
fn measured_steps_on_a_gpu_have_the_same_bits_and_times_in_order() {
    let Some(device) = device() else { return };
    for reference in references() {
        for (plan, described) in running_steps(&reference) {
            let numbers = reference.numbers(&program(&described));
            let mut plain = session(&described, &device, Math::Full, true, numbers);
            let mut measured = session(&described, &device, Math::Full, true, numbers);
            let expected = losses(&mut plain, &reference.model, 6);
            for (at, expected) in expected.into_iter().enumerate() {
                feed(&mut measured, &reference.model, at);
                if at % 2 == 1 {
                    assert_eq!(measured.step().expect("a step"), expected, "{} {plan} {at}", reference.name);
                    continue;
                }
                let times = measured.measured_step().expect("a step");
                assert_eq!(times.loss, expected, "{} {plan} {at}", reference.name);
                let mut last = std::time::Duration::ZERO;
                for one in times.inputs.iter().chain(&times.instructions) {
                    let work = one.device.expect("work on the GPU");
                    assert!(work.begin >= last && work.begin >= one.host.begin.min(work.end));
                    last = work.end;
                }
                let wait = times.wait.expect("a wait");
                assert!(times.instructions.len() == measured.program().instructions().len());
                // Clocks of host and GPU agree within a millisecond.
                let apart = std::time::Duration::from_millis(1);
                assert!(last <= wait.end + apart, "{last:?} {:?}", wait.end);
                assert!(times.time() <= times.end + apart && !times.time().is_zero());
            }
        }
    }
}
