//! Losses of 200 steps against PyTorch, from equal weights and batches. `data/losses.py` made the losses.

use serde_json::Value;
use steptime_eager::Model;
use steptime_runtime::{Numbers, Program};

use crate::common::{described, largest, losses, session};

/// Largest relative difference of a loss.
const NEAR: f64 = 1e-4;

/// A model of the fixture, with its settings.
pub struct Reference {
    pub name: String,
    pub model: Model,
    pub rate: f64,
    pub decay: f64,
    pub steps: usize,
    every: usize,
    losses: Vec<f64>,
}

/// All models of the fixture.
pub fn references() -> Vec<Reference> {
    let all: Vec<Value> = serde_json::from_str(include_str!("../data/losses.json")).expect("the fixture");
    let number = |of: &Value, key: &str| of[key].as_f64().expect("a number");
    let one = |of: &Value| Reference {
        name: of["name"].as_str().expect("a name").to_owned(),
        model: Model::parse(of["model"].as_str().expect("a description")).expect("a model"),
        rate: number(of, "rate"),
        decay: number(of, "decay"),
        steps: number(of, "steps") as usize,
        every: number(of, "every") as usize,
        losses: of["losses"]
            .as_array()
            .expect("losses")
            .iter()
            .map(|x| x.as_f64().expect("a loss"))
            .collect(),
    };
    all.iter().map(one).collect()
}

impl Reference {
    /// Settings of the optimizer of a program.
    pub fn numbers(&self, program: &Program) -> Numbers {
        let class = program.optimizer().unwrap_or("SGD");
        Numbers { rate: self.rate, decay: self.decay, ..Numbers::for_class(class) }
    }

    /// The largest relative difference from PyTorch's losses.
    pub fn difference(&self, losses: &[f32]) -> f64 {
        let own = losses.iter().skip(self.every - 1).step_by(self.every);
        let relative = |(own, theirs): (&f32, &f64)| ((f64::from(*own) - theirs) / theirs.abs()).abs();
        largest(own.zip(&self.losses).map(relative))
    }

    /// Largest difference of the losses of the first 30 steps, relative to the first known loss: later ones of 16 bits depend on their rounding.
    pub fn early_difference(&self, losses: &[f32]) -> f64 {
        let own = losses.iter().take(30).skip(self.every - 1).step_by(self.every);
        let relative = |(own, theirs): (&f32, &f64)| (f64::from(*own) - theirs).abs() / self.losses[0];
        largest(own.zip(&self.losses).map(relative))
    }
}

#[test]
fn two_hundred_losses_are_those_of_pytorch() {
    let references = references();
    assert!(references.len() >= 8);
    let mut failed = Vec::new();
    for reference in references {
        let program = Program::new(&described(&reference.model, &[])).expect("it compiles");
        let numbers = reference.numbers(&program);
        let own = losses(&mut session(program, 2, numbers), &reference.model, reference.steps);
        let difference = reference.difference(&own);
        println!("{}: {difference:.2e}", reference.name);
        if difference > NEAR {
            failed.push(format!("{}: {difference:e} {:?}", reference.name, &own[..5]));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
