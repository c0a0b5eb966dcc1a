//! Steps and inputs that are refused, with a reason and a remedy.

use steptime_eager::{Model, OptimizerRule, record};
use steptime_ops::Cpu;
use steptime_rewrite::Fbgemm;
use steptime_runtime::{DescribedStep, Error, Numbers, Program, Session};

use crate::common::described;

const SMALL: &str = "model = 'dlrm'\nbatch = 4\ndense = 3\nbottom_mlp = [4]\ntop_mlp = [1]
    tables = [{ rows = 10, columns = 4, lookups = 2, count = 2 }]";

fn small() -> Session {
    let model = Model::parse(SMALL).expect("a model");
    let program = Program::new(&described(&model, &[])).expect("it compiles");
    Session::new(program, Cpu::new(1).expect("a thread"), 1).expect("memory")
}

fn feed(session: &mut Session, index: i64) -> Result<(), Error> {
    session.feed_floats("dense", &[0.5; 12])?;
    session.feed_floats("labels", &[1.0; 4])?;
    for table in 0..2 {
        session.feed_ints(&format!("tables.{table}.indices"), &[1, 2, 3, 4, 5, 6, 7, index])?;
        session.feed_ints(&format!("tables.{table}.offsets"), &[0, 2, 2, 8])?;
    }
    Ok(())
}

#[test]
fn ops_without_an_implementation_are_named_with_place_and_remedy() {
    let job = format!("{SMALL}\n[parallel]\ngpus = 2\nrow_wise = [0]");
    let model = Model::parse(&job).expect("a model");
    let refused =
        Program::new(&DescribedStep::new(&model).expect("a step")).expect_err("no exchange").to_string();
    assert!(refused.contains("c10d::") && refused.contains("cut them by columns"), "{refused}");
    let job = format!("{SMALL}\n[parallel]\ngpus = 2");
    let step = DescribedStep::new(&Model::parse(&job).expect("a model")).expect("a step");
    let program = Program::new(&step).expect("it compiles");
    let refused = Session::new(program, Cpu::new(1).expect("a thread"), 1).expect_err("one rank").to_string();
    assert!(refused.contains("one of 2 ranks"), "{refused}");
    let model = Model::parse(SMALL).expect("a model");
    let refused = Program::new(&described(&model, &[&Fbgemm])).expect_err("no such op").to_string();
    assert!(refused.contains("fbgemm") && refused.contains("`operators`"), "{refused}");
}

#[test]
fn inputs_are_checked() {
    let mut session = small();
    let error = |result: Result<(), Error>| result.expect_err("an error").to_string();
    assert_eq!(
        error(session.feed_floats("dens", &[])),
        "no input is named `dens`; there are dense, labels, tables.0.indices, tables.0.offsets, tables.1.indices, tables.1.offsets"
    );
    assert_eq!(error(session.feed_floats("dense", &[1.0])), "`dense` takes 12 floats, not 1 floats");
    assert_eq!(error(session.feed_ints("dense", &[1; 12])), "`dense` takes 12 floats, not 12 whole numbers");
    for wrong in [[1, 2, 3, 4], [0, 3, 2, 4], [0, 2, 4, 9], [0, -1, 2, 3]] {
        let refused = error(session.feed_ints("tables.0.offsets", &wrong));
        assert!(refused.contains("begin at 0 and increase up to 8"), "{refused}");
    }
    let refused =
        session.set_numbers(Numbers { rate: f64::NAN, ..*session.numbers() }).expect_err("not a rate");
    assert!(refused.to_string().contains("the learning rate"), "{refused}");
}

#[test]
fn an_index_out_of_range_changes_nothing() {
    let mut session = small();
    feed(&mut session, 9).expect("a batch");
    session.step().expect("a step");
    let parameters = |session: &mut Session| -> Vec<Vec<f32>> {
        session.tensors().iter().map(|tensor| session.read(&tensor.name).expect("a parameter")).collect()
    };
    let before = parameters(&mut session);
    for index in [10, -1, i64::MAX] {
        feed(&mut session, index).expect("a batch");
        let refused = session.step().expect_err("no such row");
        assert!(refused.to_string().contains("embedding"), "{refused}");
        let source = std::error::Error::source(&refused).expect("a source").to_string();
        assert!(source.contains("tables.0.weight") && source.contains(&index.to_string()), "{source}");
    }
    assert_eq!(before, parameters(&mut session));
    assert_eq!(session.steps(), 1);
    feed(&mut session, 9).expect("a batch");
    session.step().expect("a step");
}

#[test]
fn a_model_written_in_rust_trains_or_says_which_shapes_do_not_fit() {
    let step = |width: i64| {
        record(
            OptimizerRule::AdamW,
            |layers| (layers.table("items", 20, 4), layers.linear("out", width, 1)),
            |forward, &(items, out)| {
                let (dense, labels) = (forward.input("dense", &[8, 3]), forward.input("labels", &[8, 1]));
                let rows = forward.bags(items, 8, 16);
                let x = forward.cat(&[dense, rows])?;
                let x = forward.linear(out, &x)?;
                let x = forward.sigmoid(&x);
                forward.mse(&x, &labels)
            },
        )
    };
    let refused = step(9).expect_err("9 is not 7").to_string();
    assert!(refused.contains("[8, 7]") && refused.contains("[1, 9]"), "{refused}");
    let described = DescribedStep::from_named(&step(7).expect("a step")).expect("a step");
    let program = Program::new(&described).expect("it compiles");
    let mut session = Session::new(program, Cpu::new(1).expect("a thread"), 1).expect("memory");
    session.set_numbers(Numbers::for_class("AdamW").with_rate(0.05)).expect("settings");
    session.feed_ints("items.indices", &(0..16).collect::<Vec<_>>()).expect("an input");
    session.feed_ints("items.offsets", &(0..8).map(|bag| 2 * bag).collect::<Vec<_>>()).expect("an input");
    session.feed_floats("dense", &[0.25; 24]).expect("an input");
    session.feed_floats("labels", &[1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]).expect("an input");
    let losses: Vec<f32> = (0..40).map(|_| session.step().expect("a step")).collect();
    assert!(losses[39] < losses[0] / 10.0, "{losses:?}");
}
