//! The network against PyTorch: outputs, gradients, and weights after three steps of either optimizer.

use serde::Deserialize;
use steptime_cost::device::learn::descent::{Descent, Optimizer};
use steptime_cost::device::learn::mlp::{Dense, Mlp};

#[derive(Deserialize)]
struct Fixture {
    inputs: Vec<Vec<f32>>,
    targets: Vec<f32>,
    outputs: Vec<f32>,
    loss: f32,
    start: Vec<Layer>,
    gradients: Vec<Layer>,
    adam: Vec<Layer>,
    sgd: Vec<Layer>,
}

#[derive(Deserialize)]
struct Layer {
    weights: Vec<f32>,
    bias: Vec<f32>,
}

fn network(layers: &[Layer]) -> Mlp {
    let layers = layers.iter().map(|layer| Dense {
        inputs: layer.weights.len() / layer.bias.len(),
        outputs: layer.bias.len(),
        weights: layer.weights.clone(),
        bias: layer.bias.clone(),
    });
    Mlp { layers: layers.collect() }
}

fn assert_close(ours: &Mlp, theirs: &[Layer], what: &str) {
    for (ours, theirs) in ours.parameters().zip(network(theirs).parameters()) {
        assert!((ours - theirs).abs() < 2e-6, "{what}: {ours} against {theirs}");
    }
}

#[test]
fn it_is_pytorchs() {
    let fixture: Fixture = serde_json::from_str(include_str!("data/mlp.json")).unwrap();
    let start = network(&fixture.start);
    for (input, &output) in fixture.inputs.iter().zip(&fixture.outputs) {
        assert!((start.predict(input) - output).abs() < 1e-6);
    }
    let batch: Vec<(&[f32], f32)> =
        fixture.inputs.iter().map(Vec::as_slice).zip(fixture.targets.iter().copied()).collect();
    let (gradients, loss) = start.gradients(&batch);
    assert!((loss - fixture.loss).abs() < 1e-6);
    assert_close(&gradients, &fixture.gradients, "gradients");
    for (optimizer, expected) in [(Optimizer::Adam, &fixture.adam), (Optimizer::Sgd, &fixture.sgd)] {
        let mut trained = start.clone();
        let mut descent = Descent::new(optimizer, &trained);
        for _ in 0..3 {
            let (gradients, _) = trained.gradients(&batch);
            descent.step(&mut trained, &gradients, 0.01);
        }
        assert_close(&trained, expected, "weights");
    }
}
