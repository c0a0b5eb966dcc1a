//! Optimizer steps as a whole: each parameter is updated in one pass over memory, in any of PyTorch's forms.
//!
//! The numbers in the ops of a step are placeholders. Settings come from [`Numbers`], which may change from step to step.

use steptime_aten::Dtype;
use steptime_cuda::optimizer::{DenseStep, Parameter, Rule};
use steptime_ops::elementwise::{Expr, Input, Program};
use steptime_step::{Call, TensorId};
use steptime_tensor::View;

use super::rows;
use crate::arg::Arg;
use crate::binder::{Binder, Built, Refusal, in_order, of_type};
use crate::kernel::Kernel;
use crate::row::{Row, missing, runs};
use crate::run::Run;
use crate::slices::Access;
use crate::target::Target;

/// The remedy for ops of optimizers outside of an optimizer's step.
const PART: &str = "it runs as a part of `Optimizer.step` alone";

pub(super) const ROWS: &[Row] = &[
    runs("Optimizer.step#SGD.step", sgd),
    runs("Optimizer.step#Adagrad.step", adagrad),
    runs("Optimizer.step#Adam.step", adam),
    runs("Optimizer.step#AdamW.step", adam),
    missing("aten::_foreach_add_", PART),
    missing("aten::_foreach_addcmul_", PART),
    missing("aten::_foreach_addcdiv_", PART),
    missing("aten::_foreach_lerp_", PART),
    missing("aten::_fused_sgd_", PART),
    missing("aten::_fused_adagrad_", PART),
    missing("aten::_fused_adam_", PART),
    missing("aten::_fused_adamw_", PART),
];

/// Tensors of an optimizer's ops by role, one each for every parameter.
#[derive(Debug, Default)]
struct Lists {
    parameters: Vec<TensorId>,
    gradients: Vec<TensorId>,
    first: Vec<TensorId>,
    second: Vec<TensorId>,
}

/// Reads the ops inside an optimizer's step; `read` adds the tensors of one op, and returns whether it is known.
fn lists(
    b: &Binder<'_, '_>,
    read: impl Fn(&str, &[&[TensorId]], &mut Lists) -> bool,
) -> Result<Lists, Refusal> {
    let mut lists = Lists::default();
    for &op in &b.row().children {
        let row = &b.step().ops[op];
        let Some(call) = row.call.as_deref() else { continue };
        let on_device = |call: &Call| {
            call.takes().next().is_some_and(|first| !b.is_on_host(first) && !b.value(first).shape.is_empty())
        };
        let args: Vec<&[TensorId]> = call.inputs.iter().map(|arg| arg.tensors()).collect();
        if on_device(call) && !read(&row.name, &args, &mut lists) {
            return Err(format!("it calls {}, which it does not in any known form", row.name));
        }
    }
    Ok(lists)
}

/// Gradient descent without momentum; tables with sparse gradients change only in their rows.
fn sgd(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let found = lists(b, |name, args, lists| {
        let known = matches!(name, "aten::_foreach_add_" | "aten::add_" | "aten::_fused_sgd_");
        if known && args.len() > 1 {
            lists.parameters.extend(args[0]);
            lists.gradients.extend(args[1]);
        }
        known && (name != "aten::_fused_sgd_" || args.get(2).is_none_or(|momenta| momenta.is_empty()))
    })?;
    let mut updates: Vec<Update> = Vec::new();
    let mut sparse = Vec::new();
    for (&parameter, &gradient) in found.parameters.iter().zip(&found.gradients) {
        if b.value(gradient).is_sparse() {
            sparse.push(rows::descent(b, parameter, gradient)?);
        } else {
            updates.push(Update::new(b, parameter, gradient, &[])?);
        }
    }
    if b.target == Target::Cuda {
        if !sparse.is_empty() {
            return Err(
                "sparse gradients of tables have no implementation on a GPU: use the rule `operators`, or \
                 `sparse = false`, which can be accumulated"
                    .to_owned(),
            );
        }
        return on_gpu(Rule::Sgd, updates);
    }
    let [p, g, rate] = [0, 1, 2].map(Expr::input);
    let program = compiled(&[p - rate * g])?;
    Ok(Built::Kernel(Kernel::new(move |run| {
        let numbers = run.numbers.of_step("SGD", run.step);
        updates.iter().try_for_each(|update| update.run(run, &program, &numbers))?;
        sparse.iter_mut().try_for_each(|update| update(run))
    })))
}

/// `h += g^2; p -= rate g / (sqrt h + eps)`.
fn adagrad(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let found = lists(b, |name, args, lists| {
        match name {
            "aten::_foreach_addcmul_" | "aten::addcmul_" => {
                lists.first.extend(args[0]);
                lists.gradients.extend(args[1]);
            }
            "aten::_foreach_addcdiv_" | "aten::addcdiv_" => lists.parameters.extend(args[0]),
            "aten::_fused_adagrad_" => {
                lists.parameters.extend(args[0]);
                lists.gradients.extend(args[1]);
                lists.first.extend(args[2]);
            }
            _ => return is_between(name),
        }
        true
    })?;
    let updates = updates(b, &found, &[&found.first])?;
    if b.target == Target::Cuda {
        return on_gpu(Rule::Adagrad, updates);
    }
    let [p, h, g, rate, eps] = [0, 1, 2, 3, 4].map(Expr::input);
    let h = h + g.clone() * g.clone();
    let program = compiled(&[p - rate * (g / (h.clone().sqrt() + eps)), h])?;
    Ok(Built::Kernel(Kernel::new(move |run| {
        let numbers = run.numbers.of_step("Adagrad", run.step);
        updates.iter().try_for_each(|update| update.run(run, &program, &numbers))
    })))
}

/// `m += (1 - beta1) (g - m); v = beta2 v + (1 - beta2) g^2; p -= rate / (1 - beta1^t) m / (sqrt v / sqrt(1 - beta2^t) + eps)`. AdamW first
/// multiplies p by `1 - rate decay`.
fn adam(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let decays = b.name().contains("AdamW");
    let found = lists(b, |name, args, lists| {
        match name {
            "aten::_foreach_lerp_" | "aten::lerp_" => {
                lists.first.extend(args[0]);
                lists.gradients.extend(args[1]);
            }
            "aten::_foreach_addcmul_" | "aten::addcmul_" => lists.second.extend(args[0]),
            "aten::_foreach_addcdiv_" | "aten::addcdiv_" => lists.parameters.extend(args[0]),
            "aten::_fused_adam_" | "aten::_fused_adamw_" => {
                lists.parameters.extend(args[0]);
                lists.gradients.extend(args[1]);
                lists.first.extend(args[2]);
                lists.second.extend(args[3]);
            }
            _ => return is_between(name),
        }
        true
    })?;
    let updates = updates(b, &found, &[&found.first, &found.second])?;
    if b.target == Target::Cuda {
        return on_gpu(Rule::Adam, updates);
    }
    let class = if decays { "AdamW" } else { "Adam" };
    let [p, m, v, g] = [0, 1, 2, 3].map(Expr::input);
    let [take1, keep2, take2, rate, root, eps, keep] = [4, 5, 6, 7, 8, 9, 10].map(Expr::input);
    let m = m.clone() + take1 * (g.clone() - m);
    let v = keep2 * v + take2 * (g.clone() * g);
    let change = rate * (m.clone() / (v.clone().sqrt() / root + eps));
    let program = compiled(&[p * keep - change, m, v])?;
    Ok(Built::Kernel(Kernel::new(move |run| {
        let numbers = run.numbers.of_step(class, run.step);
        updates.iter().try_for_each(|update| update.run(run, &program, &numbers))
    })))
}

/// The updates of dense parameters on a GPU.
fn on_gpu(rule: Rule, updates: Vec<Update>) -> Result<Built, Refusal> {
    let all = updates.iter().flat_map(|update| update.changed.iter().chain([&update.gradient]));
    for arg in all {
        in_order(arg)?;
    }
    Ok(Built::Kernel(Kernel::on_gpu(move |gpu| {
        let work = DenseStep::new(gpu.stream.device(), rule)?;
        Ok(Box::new(move |gpu| {
            let mut parameters = Vec::with_capacity(updates.len());
            for update in &updates {
                let gradient = update.gradient.device_row(&gpu.memory)?;
                let mut changed = update.changed.iter().map(|arg| arg.device_row_mut(&mut gpu.memory));
                let Some(weights) = changed.next() else { continue };
                let states = changed.collect::<Result<Vec<_>, _>>()?;
                parameters.push(Parameter { weights: weights?, gradient, states });
            }
            Ok(work.run(gpu.stream, gpu.device_numbers, &parameters)?)
        }))
    })))
}

/// Whether an op is one of those between the ones that are read.
fn is_between(name: &str) -> bool {
    let name = name.trim_start_matches("aten::").trim_start_matches("_foreach_");
    matches!(name, "sqrt" | "add_" | "mul" | "mul_" | "div" | "div_")
}

fn compiled(outputs: &[Expr]) -> Result<Program, Refusal> {
    Program::new(outputs).map_err(|source| source.to_string())
}

/// The updates of all parameters.
fn updates(b: &mut Binder<'_, '_>, lists: &Lists, states: &[&Vec<TensorId>]) -> Result<Vec<Update>, Refusal> {
    let count = lists.parameters.len();
    if lists.gradients.len() != count || states.iter().any(|list| list.len() != count) {
        return Err("its parameters, gradients and states differ in number".to_owned());
    }
    let one = |at: usize, b: &mut Binder<'_, '_>| {
        let states: Vec<TensorId> = states.iter().map(|list| list[at]).collect();
        Update::new(b, lists.parameters[at], lists.gradients[at], &states)
    };
    (0..count).map(|at| one(at, b)).collect()
}

/// Update of one parameter: a program over the parameter, its states, its gradient, and numbers.
struct Update {
    /// Changed tensors: the parameter, then its states.
    changed: Vec<Arg>,
    gradient: Arg,
}

impl Update {
    fn new(
        b: &mut Binder<'_, '_>,
        parameter: TensorId,
        gradient: TensorId,
        states: &[TensorId],
    ) -> Result<Update, Refusal> {
        if b.value(gradient).is_sparse() {
            return Err("it takes a sparse gradient; use SGD, or `operators`, or `sparse = false`".to_owned());
        }
        let all = [parameter].into_iter().chain(states.iter().copied());
        let changed = all.map(|tensor| b.tensor(tensor, Access::Change)).collect::<Result<Vec<_>, _>>()?;
        let gradient = b.tensor(gradient, Access::Read)?;
        changed.iter().chain([&gradient]).try_for_each(|arg| of_type(arg, Dtype::F32))?;
        Ok(Update { changed, gradient })
    }

    fn run(
        &self,
        run: &mut Run<'_, '_>,
        program: &Program,
        numbers: &[f32],
    ) -> Result<(), crate::error::Failure> {
        let mut inputs: Vec<Input<'_>> = (0..self.changed.len()).map(Input::InPlace).collect();
        inputs.push(Input::View(self.gradient.floats(&run.memory)?));
        for number in numbers {
            inputs.push(Input::View(View::from_slice(std::slice::from_ref(number), &[])?));
        }
        let mut outputs = Vec::with_capacity(self.changed.len());
        for changed in &self.changed {
            outputs.push(changed.floats_mut(&mut run.memory)?);
        }
        Ok(program.run(run.cpu, &inputs, &mut outputs)?)
    }
}
