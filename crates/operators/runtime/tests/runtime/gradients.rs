//! Gradients of whole models against finite differences.

use steptime_eager::Model;
use steptime_rewrite::{FuseLinear, Operators, Rule};
use steptime_runtime::{Numbers, Program, Session};

use crate::common::{described, feed, floats, session};

const TABLES: &str =
    "tables = [{ rows = 30, columns = 4, lookups = 3 }, { rows = 10, columns = 4, count = 2 }]";
const HEADS: [&str; 6] = [
    "model = 'dlrm'\ndense = 5\nbottom_mlp = [8, 4]\ntop_mlp = [8, 1]\nloss = 'mse'",
    "model = 'dlrm'\ndense = 5\nbottom_mlp = [8, 6]\ntop_mlp = [8, 1]\npooling = 'mean'",
    "model = 'dlrm'\ndense = 5\nbottom_mlp = [8, 4]\ntop_mlp = [8, 1]\ninteraction = 'fm'\nsparse = false",
    "model = 'dcn_v2'\ndense = 5\nbottom_mlp = [8, 4]\ncross_rank = 3\ntop_mlp = [8, 1]",
    "model = 'deepfm'\ndense = 5\ntop_mlp = [8, 1]",
    "model = 'wide_and_deep'\ndense = 5\ntop_mlp = [8, 1]",
];

fn models() -> Vec<Model> {
    let mut texts: Vec<String> = HEADS.iter().map(|head| format!("batch = 16\n{head}\n{TABLES}")).collect();
    let towers = TABLES
        .replace("lookups = 3", "lookups = 3, tower = 'query'")
        .replace("count = 2", "count = 2, tower = 'item'");
    texts.push(format!(
        "batch = 16\nmodel = 'two_towers'\ntop_mlp = [8, 4]\noptimizer = {{ name = 'sgd' }}\n{towers}"
    ));
    texts.iter().map(|text| Model::parse(text).expect("a model")).collect()
}

/// Names and elements of all parameters.
fn parameters(session: &mut Session) -> Vec<(String, Vec<f32>)> {
    let names: Vec<String> = session.tensors().into_iter().map(|tensor| tensor.name).collect();
    names.into_iter().map(|name| (name.clone(), session.read(&name).expect("a parameter"))).collect()
}

/// The loss at parameters moved along a direction.
fn loss(session: &mut Session, at: &[(String, Vec<f32>)], towards: &[Vec<f32>], by: f32) -> f64 {
    for ((name, values), direction) in at.iter().zip(towards) {
        let moved: Vec<f32> = values.iter().zip(direction).map(|(value, way)| value + by * way).collect();
        session.write(name, &moved).expect("a parameter");
    }
    f64::from(session.step().expect("a step"))
}

#[test]
fn a_step_descends_along_the_slope_of_the_loss() {
    let mut tested = 0;
    for model in models() {
        for rules in [vec![], vec![&Operators as &dyn Rule, &FuseLinear]] {
            let program = Program::new(&described(&model, &rules)).expect("it compiles");
            let mut session = session(program, 1, Numbers::for_class("SGD").with_rate(1.0));
            feed(&mut session, &model, 0);
            let before = parameters(&mut session);
            session.step().expect("a step");
            let after = parameters(&mut session);
            // One parameter at a time, so that none is hidden by larger ones.
            for chosen in 0..before.len() {
                let way = |(at, (name, values)): (usize, &(String, Vec<f32>))| match at == chosen {
                    true => floats(&format!("way to {name}"), values.len(), 1.0),
                    false => vec![0.0; values.len()],
                };
                let ways: Vec<Vec<f32>> = before.iter().enumerate().map(way).collect();
                let gradient =
                    before[chosen].1.iter().zip(&after[chosen].1).map(|(old, new)| f64::from(old - new));
                let slope: f64 = gradient.zip(&ways[chosen]).map(|(g, &way)| g * f64::from(way)).sum();
                // Over a large distance ReLUs switch, over a small one losses are rounded.
                let measured = [1e-2_f32, 3e-3, 1e-3, 3e-4].map(|far| {
                    let [ahead, behind] = [far, -far].map(|by| loss(&mut session, &before, &ways, by));
                    (ahead - behind) / (2.0 * f64::from(far))
                });
                let close = |measured: &f64| {
                    (slope - measured).abs() <= 1e-2 * slope.abs().max(measured.abs()) + 5e-5
                };
                assert!(measured.iter().any(close), "{:?}: {slope} {measured:?}", before[chosen].0);
                tested += usize::from(slope.abs() > 1e-3);
            }
        }
    }
    assert!(tested > 60, "{tested}");
}
