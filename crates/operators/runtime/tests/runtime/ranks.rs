//! Ranks of a job as threads on a CPU, against one device with the whole batch.

use std::thread;

use steptime_aten::optimizer::Form;
use steptime_eager::{Model, TableLayout};
use steptime_ops::Cpu;
use steptime_rewrite::{Bf16, Facts, FuseCasts, FuseLinear, Operators, Optimizer, Rule, apply};
use steptime_runtime::{DescribedStep, Error, NamedShape, Program, Rank, Reuse, Session, Target};

use crate::common::{DENSE, bits, floats, largest};

/// Largest difference, relative to the largest element of a tensor.
const NEAR: f64 = 1e-6;
/// Number of steps.
pub const STEPS: usize = 10;

/// A model of four tables, one of them with bags.
pub fn model(interaction: &str, optimizer: &str, pooling: &str) -> Model {
    let text = format!(
        "model = 'dlrm'\nbatch = 24\ndense = {DENSE}\nbottom_mlp = [16, 8]\ntop_mlp = [12, 1]\npooling = '{pooling}'
        interaction = '{interaction}'\nloss = 'bce_with_logits'\noptimizer = {{ name = '{optimizer}' }}
        tables = [{{ rows = 40, columns = 8, lookups = 3 }}, {{ rows = 9, columns = 8 }},
                  {{ rows = 30, columns = 8 }}, {{ rows = 6, columns = 8, lookups = 2 }}]"
    );
    Model::parse(&text).expect("a model")
}

/// Losses of all steps, and tensors by name with their part of the whole.
pub struct Trained {
    pub losses: Vec<f32>,
    pub tensors: Vec<(NamedShape, Vec<f32>)>,
}

/// Feeds the samples of a rank: its own ones, and the lookups of all samples in the tables that it has.
pub fn feed(session: &mut Session, model: &Model, [rank, ranks]: [usize; 2], step: usize) {
    let (batch, share) = (model.batch() as usize, model.batch() as usize / ranks);
    let inputs: Vec<String> = session.program().inputs().map(str::to_owned).collect();
    for name in inputs {
        let len = session.program().input_len(&name);
        if let Some(rest) = name.strip_prefix("tables.") {
            let (table, kind) = rest.split_once('.').expect("a table");
            let size = model.tables()[table.parse::<usize>().expect("a number")];
            let each = size.lookups as usize;
            let values: Vec<i64> = if kind == "offsets" {
                (0..len).map(|bag| (bag * each) as i64).collect()
            } else {
                let key = format!("tables.{table}.indices.{step}");
                let all: Vec<i64> =
                    bits(&key, batch * each).map(|bits| (bits % size.rows as u64) as i64).collect();
                let own = if len == all.len() { 0 } else { rank * share * each };
                all[own..own + len].to_vec()
            };
            session.feed_ints(&name, &values).expect("an input");
            continue;
        }
        let width = len / share;
        let mut values = floats(&format!("{name}.{step}"), batch * width, 1.0);
        if name == "labels" {
            values.iter_mut().for_each(|x| *x = f32::from(u8::from(*x > 0.0)));
        }
        session.feed_floats(&name, &values[rank * len..(rank + 1) * len]).expect("an input");
    }
}

fn trained(model: &Model, rules: &[&dyn Rule], group: Rank) -> Result<Trained, Error> {
    let mut described = DescribedStep::of_rank(model, group.rank() as u32)?;
    let ops = described.ops().clone();
    apply(&mut described.step, rules, &Facts::new(&ops, Some(model.batch()))).expect("the rules apply");
    let place = [group.rank(), group.ranks()];
    let session = Session::in_group(Program::new(&described)?, Cpu::new(1).expect("a thread"), 3, group)?;
    steps(session, model, place)
}

/// Runs the steps of a rank.
pub fn steps(mut session: Session, model: &Model, place: [usize; 2]) -> Result<Trained, Error> {
    let mut losses = Vec::new();
    for step in 0..STEPS {
        feed(&mut session, model, place, step);
        losses.push(session.step()?);
    }
    let tensors = session.tensors().into_iter().map(|tensor| {
        let values = session.read(&tensor.name).expect("a tensor");
        (tensor, values)
    });
    let tensors = tensors.collect();
    session.leave_group()?;
    Ok(Trained { losses, tensors })
}

/// Trains all ranks of a model's job.
fn job(model: &Model, rules: &[&dyn Rule]) -> Vec<Trained> {
    thread::scope(|scope| {
        let ranks = Rank::group(model.gpus() as usize).into_iter();
        let threads: Vec<_> = ranks.map(|rank| scope.spawn(|| trained(model, rules, rank))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic").expect("steps")).collect()
    })
}

/// The largest difference of elements, relative to the largest element.
fn difference(own: &[f32], wanted: &[f32]) -> f64 {
    assert_eq!(own.len(), wanted.len());
    let most = wanted.iter().fold(0.0_f64, |most, x| most.max(f64::from(x.abs())));
    let apart = |(a, b): (&f32, &f32)| f64::from((a - b).abs());
    largest(own.iter().zip(wanted).map(apart)) / most.max(f64::MIN_POSITIVE)
}

/// Compares a job with one device.
pub fn compare(alone: &Trained, ranks: &[Trained], what: &str) {
    for step in 0..STEPS {
        let mean = ranks.iter().map(|rank| f64::from(rank.losses[step])).sum::<f64>() / ranks.len() as f64;
        let wanted = f64::from(alone.losses[step]);
        assert!((mean - wanted).abs() <= NEAR * wanted, "{what}, step {step}: {mean} {wanted}");
    }
    let mut seen = 0;
    for (NamedShape { name, part, shape, .. }, own) in ranks.iter().flat_map(|rank| &rank.tensors) {
        let (NamedShape { shape: whole, .. }, all) =
            alone.tensors.iter().find(|tensor| tensor.0.name == *name).expect("a tensor of one device");
        let wanted: Vec<f32> = match part {
            None => all.clone(),
            Some(part) => {
                assert_eq!(part.whole[..], whole[..]);
                let [row, column] = part.offset;
                let rows = all.chunks(whole[1]).skip(row).take(shape[0]);
                rows.flat_map(|row| &row[column..column + shape[1]]).copied().collect()
            }
        };
        let apart = difference(own, &wanted);
        assert!(apart <= NEAR, "{what}, {name}: {apart:e}");
        seen += own.len();
    }
    let whole: usize = alone.tensors.iter().map(|(.., values)| values.len()).sum();
    assert!(seen >= whole, "{what}: {seen} of {whole} elements");
}

/// Ways to place the four tables on two or three ranks.
pub fn placements(model: &Model) -> Vec<(&'static str, Model)> {
    let size = model.tables()[0];
    let whole = |table: usize, gpu: u32| {
        let size = model.tables()[table];
        TableLayout::whole(gpu, size.rows, size.columns)
    };
    let cut = |gpus: &[u32]| TableLayout::by_columns(gpus, size.rows, size.columns);
    let on = |gpus: u32, homes: Vec<TableLayout>| model.on(gpus, homes).expect("a placement");
    vec![
        ("in turn", model.on_gpus(2).expect("two ranks")),
        ("in order", on(2, vec![whole(0, 0), whole(1, 0), whole(2, 1), whole(3, 1)])),
        ("three ranks", on(3, vec![whole(0, 2), whole(1, 0), whole(2, 1), whole(3, 0)])),
        ("by columns", on(2, vec![cut(&[1, 0]), whole(1, 0), whole(2, 1), whole(3, 1)])),
        ("replicated", on(2, vec![whole(0, 1), whole(1, 0), TableLayout::Everywhere, whole(3, 0)])),
        ("one rank without tables", on(2, vec![whole(0, 1), whole(1, 1), whole(2, 1), whole(3, 1)])),
    ]
}

#[test]
fn ranks_train_the_model_of_one_device() {
    for (interaction, optimizer, pooling) in
        [("dot", "sgd", "sum"), ("cat", "adagrad", "mean"), ("dot", "adam", "sum")]
    {
        let model = model(interaction, optimizer, pooling);
        let alone = job(&model.on_gpus(1).expect("one device"), &[]);
        for (what, placed) in placements(&model) {
            compare(&alone[0], &job(&placed, &[]), &format!("{what}, {optimizer}"));
        }
    }
}

#[test]
fn rules_change_the_steps_of_ranks() {
    for optimizer in ["sgd", "adagrad"] {
        let model = model("dot", optimizer, "sum");
        let rules: [&dyn Rule; 2] = [&Operators, &FuseLinear];
        let alone = job(&model.on_gpus(1).expect("one device"), &rules);
        for (what, placed) in placements(&model) {
            if what == "one rank without tables" {
                continue;
            }
            compare(&alone[0], &job(&placed, &rules), &format!("{what}, {optimizer}"));
        }
    }
}

#[test]
fn programs_of_ranks_compile_for_a_gpu() {
    let model = model("dot", "sgd", "sum");
    let fused = Optimizer { form: Form::Fused };
    let plans: [&[&dyn Rule]; 2] =
        [&[&Operators, &FuseLinear, &fused], &[&Operators, &Bf16, &FuseCasts, &FuseLinear, &fused]];
    for (what, placed) in placements(&model) {
        for (rank, rules) in (0..placed.gpus()).flat_map(|rank| plans.map(|rules| (rank, rules))) {
            let mut described = DescribedStep::of_rank(&placed, rank).expect("a step");
            let ops = described.ops().clone();
            let facts = Facts::new(&ops, Some(placed.batch()));
            for rule in rules {
                // A rank without tables has no lookups to fuse.
                let _ = apply(&mut described.step, &[*rule], &facts);
            }
            let is_narrow = described.narrow_exchanges();
            // Vectors that arrive in the order of the features are converted on arrival.
            if let "in order" | "one rank without tables" = what {
                assert_eq!(is_narrow, rules.len() > 3, "{what}, rank {rank}");
            }
            let program = Program::for_target(&described, Target::Cuda, Reuse::ByLifetime)
                .unwrap_or_else(|error| panic!("{what}, rank {rank}: {error}"));
            let count = |name: &str| program.instructions().iter().filter(|one| one.name == name).count();
            assert_eq!(count("c10d::alltoall_base_"), 2, "{what}");
            assert!(count("c10d::allreduce_") > 0, "{what}");
        }
    }
}

#[test]
fn every_run_has_the_same_bits() {
    let (_, placed) = placements(&model("dot", "sgd", "sum")).swap_remove(2);
    let [one, other] = [(); 2].map(|()| job(&placed, &[]));
    for (one, other) in one.iter().zip(&other) {
        assert_eq!(one.losses, other.losses);
        assert_eq!(one.tensors, other.tensors);
    }
}

#[test]
fn a_rank_that_fails_is_named_by_the_others() {
    let model = model("dot", "sgd", "sum").on_gpus(2).expect("two ranks");
    let run = |group: Rank| {
        let described = DescribedStep::of_rank(&model, group.rank() as u32).expect("a step");
        let program = Program::new(&described).expect("a program");
        let place = [group.rank(), 2];
        let mut session =
            Session::in_group(program, Cpu::new(1).expect("a thread"), 3, group.clone()).expect("a session");
        feed(&mut session, &model, place, 0);
        if group.rank() == 1 {
            session.feed_ints("tables.1.indices", &[9; 24]).expect("an input");
        }
        let error = session.step().expect_err("an index is too large").to_string();
        group.fail(&error);
        error
    };
    let errors: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = Rank::group(2).into_iter().map(|rank| scope.spawn(|| run(rank))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert!(errors[0].contains("rank 1 failed"), "{errors:?}");
    assert!(errors[0].contains("index 9") && errors[1].contains("index 9"), "{errors:?}");
}

#[test]
fn placements_that_are_not_trained_are_refused() {
    let model = model("dot", "sgd", "sum");
    let mut homes = model.on_gpus(2).expect("two ranks").homes();
    homes[2] = TableLayout::by_rows(2, 30, 8);
    let by_rows = model.on(2, homes).expect("a placement");
    let error = DescribedStep::of_rank(&by_rows, 0).expect_err("it is cut by rows").to_string();
    assert!(error.starts_with("table 2: it is cut by rows"), "{error}");
    let error = DescribedStep::of_rank(&by_rows, 2).expect_err("there is no such rank").to_string();
    assert!(error.contains("no rank 2 of 2"), "{error}");
    let step = DescribedStep::of_rank(&model.on_gpus(2).expect("two ranks"), 0).expect("a step");
    let group = Rank::group(3).remove(0);
    let program = Program::new(&step).expect("a program");
    let error =
        Session::in_group(program, Cpu::new(1).expect("a thread"), 0, group).expect_err("three ranks");
    assert!(error.to_string().contains("one of 2 ranks, and the group has 3"), "{error}");
}
