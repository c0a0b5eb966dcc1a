//! Gradients of several batches, summed before one update.

use steptime_aten::optimizer::Form;
use steptime_eager::Model;
use steptime_rewrite::{
    Accumulate, Facts, FuseLinear, FusePointwise, NoSync, Operators, Optimizer, PrefetchInputs, Rule,
};
use steptime_runtime::{DescribedStep, Numbers, Program, Session, input_round};

use crate::common::{DENSE, bits, described, floats, session};

/// Largest difference of a loss or a parameter.
const NEAR: f32 = 1e-6;
/// Samples of an update.
const SAMPLES: usize = 24;

fn model(batch: usize, optimizer: &str, sparse: bool) -> Model {
    let text = format!(
        "model = 'dlrm'\nbatch = {batch}\ndense = {DENSE}\nbottom_mlp = [8, 4]\ntop_mlp = [8, 1]\nsparse = {sparse}
tables = [{{ rows = 50, columns = 4, lookups = 3 }}, {{ rows = 7, columns = 4 }}]
optimizer = {{ name = '{optimizer}' }}\n"
    );
    Model::parse(&text).expect("a model")
}

/// The step of a model whose update has a number of batches.
fn accumulated(model: &Model, rules: &[&dyn Rule], batches: u32) -> DescribedStep {
    let accumulate = Accumulate { batches };
    let all: Vec<&dyn Rule> = rules.iter().copied().chain([&accumulate as &dyn Rule]).collect();
    let mut step = described(model, &[]);
    let ops = step.ops().clone();
    steptime_rewrite::apply(&mut step.step, &all, &Facts::new(&ops, Some(model.batch())))
        .expect("they apply");
    step
}

/// Feeds the samples of an update: each round has the rows after those of the rounds before.
fn feed(session: &mut Session, model: &Model, number: usize) {
    let batch = model.batch() as usize;
    let names: Vec<String> = session.program().inputs().map(str::to_owned).collect();
    for input in names {
        let (name, round) = input_round(&input);
        let rows = |width: usize| round * batch * width..(round + 1) * batch * width;
        let own = format!("{name}.{number}");
        match name.split('.').collect::<Vec<_>>()[..] {
            ["labels"] => {
                let all = floats(&own, SAMPLES, 1.0).into_iter().map(|x| f32::from(u8::from(x > 0.0)));
                session.feed_floats(&input, &all.collect::<Vec<_>>()[rows(1)])
            }
            [.., table, kind] if name.contains("tables") => {
                let size = model.tables()[table.parse::<usize>().expect("a number")];
                let each = size.lookups as usize;
                let values: Vec<i64> = match kind {
                    "indices" => {
                        bits(&own, SAMPLES * each).map(|bits| (bits % size.rows as u64) as i64).collect()
                    }
                    _ => (0..batch).map(|bag| (bag * each) as i64).collect(),
                };
                let values = if kind == "indices" { &values[rows(each)] } else { &values[..] };
                session.feed_ints(&input, values)
            }
            _ => session.feed_floats(&input, &floats(&own, SAMPLES * DENSE, 1.0)[rows(DENSE)]),
        }
        .expect("an input");
    }
}

/// Losses of three steps, and all parameters after them.
fn trained(step: &DescribedStep, model: &Model) -> (Vec<f32>, Vec<Vec<f32>>) {
    let program = Program::new(step).expect("it compiles");
    let numbers = Numbers { rate: 0.1, ..Numbers::for_class(program.optimizer().unwrap_or("SGD")) };
    let mut session = session(program, 2, numbers);
    let one = |number: usize, session: &mut Session| {
        feed(session, model, number);
        session.step().expect("a step")
    };
    let losses = (0..3).map(|number| one(number, &mut session)).collect();
    let mut tensors = session.tensors();
    tensors.sort_by(|one, other| one.name.cmp(&other.name));
    (losses, tensors.iter().map(|tensor| session.read(&tensor.name).expect("a tensor")).collect())
}

fn largest_difference(one: &[f32], other: &[f32]) -> f32 {
    assert_eq!(one.len(), other.len());
    one.iter().zip(other).map(|(one, other)| (one - other).abs()).fold(0.0, f32::max)
}

#[test]
fn accumulated_batches_train_as_one_batch_of_all_samples() {
    let fused = Optimizer { form: Form::Fused };
    let several: [&[&dyn Rule]; 3] =
        [&[], &[&FuseLinear, &fused], &[&FusePointwise, &PrefetchInputs, &NoSync]];
    for (optimizer, sparse) in [("sgd", true), ("sgd", false), ("adagrad", false), ("adam", false)] {
        let whole = model(SAMPLES, optimizer, sparse);
        let (losses, parameters) = trained(&described(&whole, &[]), &whole);
        assert!(losses[2] != losses[0]);
        for batches in [2, 3, 4] {
            let part = model(SAMPLES / batches, optimizer, sparse);
            for rules in several {
                let rules: Vec<&dyn Rule> = rules
                    .iter()
                    .copied()
                    .filter(|&rule| {
                        let mut step = described(&part, &[]);
                        let ops = step.ops().clone();
                        let facts = Facts::new(&ops, Some(part.batch()));
                        steptime_rewrite::apply(&mut step.step, &[rule], &facts).is_ok()
                    })
                    .collect();
                let mut step = accumulated(&part, &rules, batches as u32);
                step.separate_rounds().expect("rounds");
                let (own_losses, own) = trained(&step, &part);
                let case = format!("{optimizer}, sparse {sparse}, {batches} batches, {} rules", rules.len());
                let difference = largest_difference(&own_losses, &losses);
                assert!(difference <= NEAR, "{case}: {own_losses:?} {losses:?}");
                assert_eq!(own.len(), parameters.len());
                for (own, whole) in own.iter().zip(&parameters) {
                    let difference = largest_difference(own, whole);
                    assert!(difference <= NEAR, "{case}: {difference:e}");
                }
            }
        }
    }
}

#[test]
fn rounds_with_the_same_inputs_are_refused() {
    let part = model(SAMPLES / 2, "sgd", true);
    let step = accumulated(&part, &[], 2);
    let message = Program::new(&step).expect_err("it is refused").to_string();
    assert!(message.contains("separate_rounds"), "{message}");
}

#[test]
fn tables_that_are_updated_in_the_backward_pass_are_refused() {
    let part = model(SAMPLES / 2, "sgd", true);
    let mut step = accumulated(&part, &[&Operators], 2);
    step.separate_rounds().expect("rounds");
    let message = Program::new(&step).expect_err("it is refused").to_string();
    assert!(message.contains("accumulate without `operators`"), "{message}");
}
