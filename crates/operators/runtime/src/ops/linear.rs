//! Linear layers, with and without an activation.

use steptime_aten::Dtype;
use steptime_ops::gemm::{Activation, linear};

use super::products;
use crate::arg::Arg;
use crate::binder::{Binder, Built, Refusal, in_order, of_type};
use crate::kernel::Kernel;
use crate::row::{Row, runs};
use crate::target::Target;

pub(super) const ROWS: &[Row] = &[
    runs("aten::linear", whole),
    runs("aten::addmm", |b| product(b, Activation::Identity)),
    runs("aten::_addmm_activation", activated),
];

/// `linear(input, weight, bias)`.
fn whole(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    b.takes_halves = true;
    let (x, weight) = (b.floats(0)?, b.floats(1)?);
    let bias = if b.id(2).is_ok() { Some(b.floats(2)?) } else { None };
    let y = b.writes(0)?;
    layer(b.target, x, weight, bias, Activation::Identity, y)
}

/// `_addmm_activation(self, mat1, mat2, beta, alpha, use_gelu)`.
fn activated(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let last = b.call()?.inputs.len().saturating_sub(1);
    if last >= 5 && b.int(last)? != 0 {
        return Err("its activation is GELU: leave out `fuse-linear`".to_owned());
    }
    product(b, Activation::Relu)
}

/// `addmm(self, mat1, mat2, beta, alpha)`, where `self` is a bias.
fn product(b: &mut Binder<'_, '_>, activation: Activation) -> Result<Built, Refusal> {
    if [3, 4].into_iter().any(|at| !b.is_none(at) && b.number(at) != Ok(1.0)) {
        return Err("its factors are not 1".to_owned());
    }
    b.takes_halves = true;
    let (bias, x, turned) = (b.floats(0)?, b.floats(1)?, b.floats(2)?);
    if bias.shape().len() != 1 {
        return Err("it adds a matrix; a bias has one dimension".to_owned());
    }
    let y = b.writes(0)?;
    let weight =
        Arg { layout: turned.layout.transpose(0, 1).map_err(|source| source.to_string())?, ..turned };
    layer(b.target, x, weight, Some(bias), activation, y)
}

/// `y = activation(x W^T + bias)`.
fn layer(
    target: Target,
    x: Arg,
    weight: Arg,
    bias: Option<Arg>,
    activation: Activation,
    y: Arg,
) -> Result<Built, Refusal> {
    if x.shape().len() != 2 {
        return Err("its input is not a matrix".to_owned());
    }
    bias.as_ref().map_or(Ok(()), in_order)?;
    if target == Target::Cuda {
        let weight =
            Arg { layout: weight.layout.transpose(0, 1).map_err(|source| source.to_string())?, ..weight };
        return Ok(Built::Kernel(products::on_gpu(x, weight, bias, activation, y)?));
    }
    of_type(&y, Dtype::F32)?;
    Ok(Built::Kernel(Kernel::new(move |run| {
        let (x, weight) = (x.matrix(&run.memory, 0)?, weight.matrix(&run.memory, 0)?);
        let bias = bias.as_ref().map(|bias| bias.row(&run.memory)).transpose()?;
        Ok(linear(run.cpu, x, weight, bias, activation, y.matrix_mut(&mut run.memory)?)?)
    })))
}
