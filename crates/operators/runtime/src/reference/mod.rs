//! Every instruction of small models against plain loops in double precision.
//!
//! Before an instruction runs, its operands are read; after it, its results are compared with those of the plain version of its op for the same
//! operands. So each op is tested in its own place, on its own layouts, and errors do not add up.

mod dense;
mod rare;
mod tables;
mod tensor;
mod updates;

use std::collections::BTreeSet;

use steptime_aten::{Arg as Argument, Dtype};
use steptime_eager::Model;
use steptime_ops::Cpu;
use steptime_step::{StepIr, TensorId};

use self::tensor::Plain;
use crate::binder::Use;
use crate::described::DescribedStep;
use crate::kernel::Kernel;
use crate::program::{Instruction, Program};
use crate::session::Session;
use crate::slices::Access;

/// Largest error, relative to the largest element of the result.
const NEAR: f64 = 1e-5;

/// Operands of an instruction before it runs.
pub(super) struct Operands<'s> {
    step: &'s StepIr,
    call: Option<&'s steptime_step::Call>,
    name: &'s str,
    /// Whether the slope of a ReLU is a part of the instruction.
    gated: bool,
    before: Vec<(TensorId, Plain)>,
    uses: Vec<(TensorId, Access)>,
    number_of_step: i32,
    /// States of the rows of each table that the instruction updates.
    states: Vec<Vec<Plain>>,
    numbers: crate::numbers::Numbers,
    described: &'s DescribedStep,
}

impl Operands<'_> {
    /// The values of a tensor.
    fn value(&self, tensor: TensorId) -> &Plain {
        let found = self.before.iter().find(|(own, _)| *own == tensor);
        &found.unwrap_or_else(|| panic!("{} does not use {tensor:?}", self.name)).1
    }

    fn id(&self, at: usize) -> TensorId {
        self.call.expect("a call").inputs[at].tensors()[0]
    }

    fn at(&self, at: usize) -> &Plain {
        self.value(self.id(at))
    }

    fn out(&self, at: usize) -> TensorId {
        self.call.expect("a call").outputs[at].tensors()[0]
    }

    fn number(&self, at: usize) -> f64 {
        match &self.call.expect("a call").inputs[at] {
            Argument::Int(value) => *value as f64,
            Argument::Float(value) => *value,
            Argument::Tensor(tensor) => match self.described.named(*tensor) {
                Some((_, steptime_eager::Role::Number(value))) => *value,
                _ => panic!("no number"),
            },
            other => panic!("{other:?}"),
        }
    }
}

/// The plain results of an instruction: tensors with their values.
fn results(of: &Operands<'_>) -> Option<Vec<(TensorId, Plain)>> {
    dense::results(of).or_else(|| tables::results(of)).or_else(|| updates::results(of))
}

fn read(session: &Session, instruction: &Instruction, one: &Use) -> Plain {
    let bytes = session.bytes_at(&instruction.at[one.arg.slot]);
    let layout = &one.arg.layout;
    let value = |at: usize| match one.arg.dtype {
        Dtype::F32 => f64::from(bytemuck::cast_slice::<u8, f32>(bytes)[at]),
        Dtype::I64 => bytemuck::cast_slice::<u8, i64>(bytes)[at] as f64,
        _ => f64::from(bytes[at]),
    };
    Plain::read(layout.shape(), layout.strides(), layout.offset(), value)
}

/// States of the rows of each table of an instruction.
fn row_states(session: &mut Session, at: usize) -> Vec<Vec<Plain>> {
    let Kernel::Rows(update) = &session.program.instructions[at].kernel else { return Vec::new() };
    let tables: Vec<String> = update.states().map(|(table, _)| table.to_owned()).collect();
    let all = session.tensors();
    let mut of_table = |table: &String| {
        let own = all
            .iter()
            .filter(|one| one.state && one.name.rsplit_once('.').is_some_and(|(of, _)| of == table));
        own.map(|state| {
            let values = session.read(&state.name).expect("a state");
            Plain { shape: state.shape.clone(), values: values.into_iter().map(f64::from).collect() }
        })
        .collect()
    };
    tables.iter().map(&mut of_table).collect()
}

/// Runs two steps of a model, instruction by instruction. Adds the names of the compared ops.
fn check(
    described: &DescribedStep,
    program: Program,
    fed: impl Fn(&mut Session),
    names: &mut BTreeSet<String>,
) {
    let mut session = Session::new(program, Cpu::new(2).expect("threads"), 3).expect("memory");
    fed(&mut session);
    for _ in 0..2 {
        for at in 0..session.program.instructions.len() {
            let states = row_states(&mut session, at);
            let instruction = &session.program.instructions[at];
            let before = instruction.uses.iter().map(|one| (one.tensor, read(&session, instruction, one)));
            let row = &described.step.ops[instruction.op];
            let operands = Operands {
                step: &described.step,
                call: row.call.as_deref(),
                name: &instruction.name,
                gated: row.name == "aten::threshold_backward",
                before: before.collect(),
                uses: instruction.uses.iter().map(|one| (one.tensor, one.access)).collect(),
                number_of_step: session.steps() as i32 + 1,
                states,
                numbers: *session.numbers(),
                described,
            };
            let expected = results(&operands).unwrap_or_else(|| panic!("{} has no plain version", row.name));
            let step = session.steps();
            session.instruction(at).expect("it runs");
            let instruction = &session.program.instructions[at];
            let changed: BTreeSet<TensorId> = instruction
                .uses
                .iter()
                .filter(|one| one.access != Access::Read)
                .map(|one| one.tensor)
                .collect();
            assert!(!changed.is_empty(), "{}", row.name);
            for (tensor, plain) in &expected {
                let one = instruction.uses.iter().find(|one| one.tensor == *tensor).expect("a result");
                let own = read(&session, instruction, one);
                let error = own.error(plain);
                assert!(error <= NEAR, "{} in step {step}: {error:e} ({:?})", row.name, own.shape);
            }
            let compared: BTreeSet<TensorId> = expected.iter().map(|(tensor, _)| *tensor).collect();
            assert!(changed.is_subset(&compared), "{}: {changed:?} {compared:?}", row.name);
            names.insert(instruction.name.clone());
        }
        let steps = session.steps();
        session.set_steps(steps + 1);
    }
}

const TABLES: &str =
    "tables = [{ rows = 40, columns = 8, lookups = 3, count = 2 }, { rows = 9, columns = 6, count = 2 }]";

/// Descriptions whose steps have all ops.
fn descriptions() -> Vec<String> {
    let model = |text: &str| format!("batch = 33\n{text}\n{TABLES}");
    let dlrm = "model = 'dlrm'\ndense = 5\nbottom_mlp = [16, 8]\ntop_mlp = [16, 1]";
    let towers = TABLES.replace("columns = 8", "tower = 'query', columns = 8");
    let towers = towers.replace("columns = 6", "tower = 'item', columns = 6");
    let mut all = vec![
        model(&format!("{dlrm}\nloss = 'mse'")),
        model(&format!("{dlrm}\npooling = 'mean'\noptimizer = {{ name = 'sgd', form = 'loop' }}")),
        model(&format!("{dlrm}\nsparse = false\noptimizer = {{ name = 'sgd', form = 'fused' }}")),
        model("model = 'dcn_v2'\ndense = 5\nbottom_mlp = [16, 8]\ncross_rank = 3\ntop_mlp = [1]"),
        model("model = 'deepfm'\ndense = 5\ntop_mlp = [16, 1]").replace("columns = 6", "columns = 8"),
        model("model = 'wide_and_deep'\ntop_mlp = [16, 1]\npooling = 'mean'\noptimizer = { name = 'adam' }"),
        format!("batch = 33\nmodel = 'two_towers'\ntop_mlp = [16, 8]\npooling = 'mean'\n{towers}"),
    ];
    for name in ["adagrad", "adam", "adamw"] {
        for form in ["loop", "foreach", "fused"] {
            all.push(model(&format!("{dlrm}\noptimizer = {{ name = '{name}', form = '{form}' }}")));
        }
    }
    all
}

/// Feeds numbers without a pattern.
fn feed(session: &mut Session, model: &Model) {
    let mut state = 12345_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let inputs: Vec<String> = session.program.inputs.keys().cloned().collect();
    for name in inputs {
        let len = session.program.input_len(&name);
        let table =
            name.split_once("tables.").and_then(|(_, rest)| rest.split('.').next()?.parse::<usize>().ok());
        let Some(table) = table.map(|table| model.tables()[table]) else {
            let values: Vec<f32> = (0..len).map(|_| (random() % 1000) as f32 / 1000.0).collect();
            session.feed_floats(&name, &values).expect("an input");
            continue;
        };
        let values: Vec<i64> = match name.ends_with("indices") {
            true => (0..len).map(|_| (random() % table.rows as u64) as i64).collect(),
            false => (0..len as i64)
                .map(|bag| bag * table.lookups + i64::from(table.lookups > 1 && bag % 2 == 1))
                .collect(),
        };
        session.feed_ints(&name, &values).expect("an input");
    }
}

#[test]
fn every_op_is_near_its_plain_version() {
    use steptime_rewrite::{DenseOperators, Facts, FuseLinear, Operators, Rule, apply};
    let mut names = BTreeSet::new();
    for text in descriptions() {
        let model = Model::parse(&text).expect("a model");
        let plain = DescribedStep::new(&model).expect("a step");
        check(
            &plain,
            Program::new(&plain).expect("it compiles"),
            |session| feed(session, &model),
            &mut names,
        );
        for rule in [&Operators as &dyn Rule, &DenseOperators, &FuseLinear] {
            let mut changed = plain.clone();
            let ops = changed.ops().clone();
            if apply(&mut changed.step, &[rule], &Facts::new(&ops, Some(33))).is_ok() {
                let program = Program::new(&changed).expect("it compiles");
                check(&changed, program, |session| feed(session, &model), &mut names);
            }
        }
    }
    rare::check_all(&mut names);
    // Casts of lists run on a GPU alone; tests of `steptime-cuda` compare them.
    let on_gpu_alone = ["aten::_foreach_copy_"];
    // Exchanges run in jobs alone; `tests/runtime/ranks.rs` compares these with one device.
    let of_job = |name: &str| name.starts_with("c10d::") || name.starts_with("torch::distributed::");
    let computes = |name: &&str| {
        !crate::ops::WITHOUT_WORK.contains(name) && !on_gpu_alone.contains(name) && !of_job(name)
    };
    let missed: Vec<&str> = crate::table::known_ops()
        .into_iter()
        .filter(computes)
        .filter(|name| !names.contains(*name))
        .collect();
    assert!(missed.is_empty(), "{missed:?}");
    assert!(names.contains("steptime::linear_backward"));
}
