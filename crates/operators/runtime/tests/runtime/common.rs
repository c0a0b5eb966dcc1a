//! Descriptions of models, weights and batches by a formula, and steps.

use std::path::{Path, PathBuf};

use steptime_cuda::Device;
use steptime_eager::Model;
use steptime_ops::Cpu;
use steptime_rewrite::{Facts, Rule, apply};
use steptime_runtime::{DescribedStep, Numbers, Program, Session};

/// The folder of shipped descriptions.
pub fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/models")
}

/// A shipped model, on one device.
pub fn shipped(name: &str) -> Model {
    let model = Model::read(&models().join(format!("{name}.toml"))).expect("a description");
    model.on_gpus(1).expect("one device")
}

/// All shipped models, by name.
pub fn names() -> Vec<String> {
    let files = std::fs::read_dir(models()).expect("a folder").flatten();
    let mut names: Vec<String> = files
        .filter_map(|file| file.path().file_stem().map(|name| name.to_string_lossy().into_owned()))
        .collect();
    names.sort_unstable();
    names
}

/// Hashes of a name and the positions 0 to `count - 1`, as in `data/losses.py`.
pub fn bits(name: &str, count: usize) -> impl Iterator<Item = u64> {
    let start = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |start, byte| {
        (start ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    (1..=count as u64).map(move |at| {
        let mut x = start.wrapping_add(at.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    })
}

/// Numbers between `-scale` and `scale`.
pub fn floats(name: &str, count: usize, scale: f64) -> Vec<f32> {
    let unit = |bits: u64| (bits >> 11) as f64 / (1u64 << 53) as f64;
    bits(name, count).map(|bits| ((2.0 * unit(bits) - 1.0) * scale) as f32).collect()
}

/// The step of a model after some rules.
pub fn described(model: &Model, rules: &[&dyn Rule]) -> DescribedStep {
    let mut described = DescribedStep::new(model).expect("a step");
    let ops = described.ops().clone();
    apply(&mut described.step, rules, &Facts::new(&ops, Some(model.batch()))).expect("the rules apply");
    described
}

/// The first GPU; `None` where the tests are skipped.
pub fn device() -> Option<Device> {
    match Device::open(0) {
        Ok(device) => Some(device),
        Err(_) => {
            steptime_skips::skip("no GPU");
            None
        }
    }
}

/// A session with weights by the formula.
pub fn session(program: Program, threads: usize, numbers: Numbers) -> Session {
    let mut session = Session::new(program, Cpu::new(threads).expect("threads"), 1).expect("memory");
    session.set_numbers(numbers).expect("settings");
    fill(&mut session);
    session
}

/// Writes weights by the formula.
pub fn fill(session: &mut Session) {
    for tensor in session.tensors().iter().filter(|tensor| !tensor.state) {
        let last = *tensor.shape.last().expect("a dimension") as f64;
        let scale = if tensor.name.contains("tables") { 0.5 } else { last.powf(-0.5) };
        let values = floats(&tensor.name, tensor.shape.iter().product(), scale);
        session.write(&tensor.name, &values).expect("a parameter");
    }
}

/// Feeds a batch by the formula.
pub fn feed(session: &mut Session, model: &Model, number: usize) {
    let size = model.batch() as usize;
    let inputs: Vec<String> = session.program().inputs().map(str::to_owned).collect();
    for name in inputs {
        if let Some(table) = table(&name) {
            let table_size = model.tables()[table];
            let each = table_size.lookups as usize;
            let values: Vec<i64> = if name.ends_with("indices") {
                let own = format!("tables.{table}.indices.{number}");
                bits(&own, size * each).map(|bits| (bits % table_size.rows as u64) as i64).collect()
            } else {
                (0..size).map(|bag| (bag * each + if each > 1 { bag % 2 } else { 0 }) as i64).collect()
            };
            session.feed_ints(&name, &values).expect("an input");
            continue;
        }
        let values = match &*name {
            "labels" => {
                let sign = |x: &f32| f32::from(u8::from(*x > 0.0));
                floats(&format!("labels.{number}"), size, 1.0).iter().map(sign).collect()
            }
            _ => floats(&format!("{name}.{number}"), size * DENSE, 1.0),
        };
        session.feed_floats(&name, &values).expect("an input");
    }
}

/// The largest of some numbers that are not negative; NaN where one of them is.
pub fn largest(all: impl Iterator<Item = f64>) -> f64 {
    all.fold(0.0, |most, own| if own > most || own.is_nan() { own } else { most })
}

/// Dense features of the small models.
pub const DENSE: usize = 5;

/// Number of batches that repeat.
pub const BATCHES: usize = 8;

/// The table of an input `tables.3.indices`.
fn table(name: &str) -> Option<usize> {
    let (_, rest) = name.split_once("tables.")?;
    rest.split('.').next()?.parse().ok()
}

/// Losses of some steps.
pub fn losses(session: &mut Session, model: &Model, steps: usize) -> Vec<f32> {
    let one = |step: usize| {
        feed(session, model, step % BATCHES);
        session.step().expect("a step")
    };
    (0..steps).map(one).collect()
}
