//! Models written in Rust: layers, tables, and a function that computes the loss.

use steptime_aten::Dtype;

use crate::backward;
use crate::eager::Eager;
use crate::error::Problem;
use crate::model::script;
use crate::ops::embedding_bag::{Bags, embedding_bag};
use crate::ops::{activation, arithmetic, copy, linear, loss, reduce, views};
use crate::optimizer::{Form, Optimizer, Rule};
use crate::role::{Initial, NamedStep, NamedTensor, Role};
use crate::tensor::Tensor;

/// A linear layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinearLayer {
    weight: usize,
    bias: usize,
}

/// An embedding table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddingTable {
    weight: usize,
}

/// A tensor of the step, known by its shape alone.
#[derive(Debug, Clone)]
pub struct Value(Tensor);

impl Value {
    /// Sizes of its dimensions.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.0.shape
    }
}

/// The parameters of a model under construction.
pub struct Layers<'e> {
    e: &'e mut Eager,
}

impl Layers<'_> {
    /// A linear layer with a bias: parameters `NAME.weight`, `[outputs, inputs]`, and `NAME.bias`.
    pub fn linear(&mut self, name: &str, inputs: i64, outputs: i64) -> LinearLayer {
        let initial = Initial::Uniform { bound: 1.0 / (inputs.max(1) as f64).sqrt() };
        self.e.within(name, |e| {
            let weight = e.parameter("weight", &[outputs, inputs], initial);
            LinearLayer { weight, bias: e.parameter("bias", &[outputs], initial) }
        })
    }

    /// An embedding table: the parameter `NAME.weight`, `[rows, columns]`.
    pub fn table(&mut self, name: &str, rows: i64, columns: i64) -> EmbeddingTable {
        let weight = self.e.within(name, |e| e.parameter("weight", &[rows, columns], Initial::Normal));
        EmbeddingTable { weight }
    }
}

/// The forward pass of a step.
pub struct Forward<'e> {
    e: &'e mut Eager,
    /// Whether gradients of tables have only the looked-up rows.
    sparse: bool,
}

impl Forward<'_> {
    /// An input of floats.
    pub fn input(&mut self, name: &str, shape: &[i64]) -> Value {
        let there = self.e.host(shape, Dtype::F32);
        self.e.name(&there, name, Role::Input);
        Value(copy::to_device(self.e, &there))
    }

    /// The sums of the rows of `bags` bags with `lookups` indices in all: `[bags, columns]`. The inputs of a table `NAME` are `NAME.indices` and
    /// `NAME.offsets`.
    pub fn bags(&mut self, table: EmbeddingTable, bags: i64, lookups: i64) -> Value {
        let parameter = &self.e.parameters[table.weight];
        let (weight, name) = (parameter.tensor.clone(), parameter.name.trim_end_matches("weight").to_owned());
        let mut bring = |kind: &str, size: i64| {
            let there = self.e.host(&[size], Dtype::I64);
            self.e.named.push(NamedTensor { id: there.id, name: format!("{name}{kind}"), role: Role::Input });
            copy::to_device(self.e, &there)
        };
        let (indices, offsets) = (bring("indices", lookups), bring("offsets", bags));
        let of = Bags { mean: false, sparse: self.sparse };
        Value(embedding_bag(self.e, &weight, &indices, &offsets, of))
    }

    /// A linear layer of `[batch, inputs]`: `[batch, outputs]`.
    ///
    /// # Errors
    /// Where the input has another width.
    pub fn linear(&mut self, layer: LinearLayer, x: &Value) -> Result<Value, Problem> {
        let of = |at: usize| self.e.parameters[at].tensor.clone();
        let (weight, bias) = (of(layer.weight), of(layer.bias));
        fits(
            "a linear layer",
            x.shape().len() == 2 && x.shape()[1] == weight.shape[1],
            x,
            &Value(weight.clone()),
        )?;
        Ok(Value(linear::linear(self.e, &x.0, &weight, Some(&bias))))
    }

    /// `max(x, 0)`.
    pub fn relu(&mut self, x: &Value) -> Value {
        Value(activation::relu(self.e, &x.0))
    }

    /// `1 / (1 + e^-x)`.
    pub fn sigmoid(&mut self, x: &Value) -> Value {
        Value(activation::sigmoid(self.e, &x.0))
    }

    /// A sum of two tensors of one shape.
    ///
    /// # Errors
    /// Where the shapes differ.
    pub fn add(&mut self, a: &Value, b: &Value) -> Result<Value, Problem> {
        fits("a sum", a.shape() == b.shape(), a, b)?;
        Ok(Value(arithmetic::add(self.e, &a.0, &b.0)))
    }

    /// An elementwise product of two tensors of one shape.
    ///
    /// # Errors
    /// Where the shapes differ.
    pub fn mul(&mut self, a: &Value, b: &Value) -> Result<Value, Problem> {
        fits("a product", a.shape() == b.shape(), a, b)?;
        Ok(Value(arithmetic::mul(self.e, &a.0, &b.0)))
    }

    /// The sums of the rows of `[batch, width]`: `[batch, 1]`.
    ///
    /// # Errors
    /// Where it is not a matrix.
    pub fn sum(&mut self, x: &Value) -> Result<Value, Problem> {
        fits("a sum of rows", x.shape().len() == 2, x, x)?;
        Ok(Value(reduce::sum(self.e, &x.0, 1, true)))
    }

    /// Columns side by side: `[batch, sum of widths]`.
    ///
    /// # Errors
    /// Where there is no part, or the parts have different numbers of rows.
    pub fn cat(&mut self, parts: &[Value]) -> Result<Value, Problem> {
        let first =
            parts.first().ok_or_else(|| Problem::Conflict("a concatenation needs a part".to_owned()))?;
        for part in parts {
            let same =
                part.shape().len() == 2 && first.shape().len() == 2 && part.shape()[0] == first.shape()[0];
            fits("a concatenation", same, first, part)?;
        }
        let parts: Vec<Tensor> = parts.iter().map(|part| part.0.clone()).collect();
        Ok(Value(views::cat(self.e, &parts)))
    }

    /// The mean of squared differences.
    ///
    /// # Errors
    /// Where the shapes differ.
    pub fn mse(&mut self, x: &Value, target: &Value) -> Result<Value, Problem> {
        fits("a loss", x.shape() == target.shape(), x, target)?;
        Ok(Value(loss::mse(self.e, &x.0, &target.0)))
    }

    /// The mean of binary cross-entropies of logits.
    ///
    /// # Errors
    /// Where the shapes differ.
    pub fn bce_with_logits(&mut self, x: &Value, target: &Value) -> Result<Value, Problem> {
        fits("a loss", x.shape() == target.shape(), x, target)?;
        Ok(Value(loss::bce_with_logits(self.e, &x.0, &target.0)))
    }
}

/// Records a step of a model written in Rust: `layers` makes its parameters, and `loss` computes the loss of a batch from them. Backward pass and
/// optimizer follow as for described models.
///
/// # Errors
/// The first error of `loss`.
pub fn record<L>(
    rule: Rule,
    layers: impl FnOnce(&mut Layers<'_>) -> L,
    loss: impl Fn(&mut Forward<'_>, &L) -> Result<Value, Problem>,
) -> Result<NamedStep, Problem> {
    let mut e = Eager::new(None);
    let layers = layers(&mut Layers { e: &mut e });
    let optimizer = Optimizer::new(&mut e, rule, Form::Foreach);
    for first in [true, false] {
        let result =
            e.label("## forward ##", |e| loss(&mut Forward { e, sparse: rule == Rule::Sgd }, &layers))?.0;
        e.name(&result, "loss", Role::Loss);
        optimizer.zero_grad(&mut e);
        e.label("## backward ##", |e| backward::run(e, &result));
        e.label("## optimizer ##", |e| optimizer.step(e));
        if first {
            e.restart();
        }
    }
    let (tensors, trace) = (script::named(&mut e, &optimizer), e.log.finish());
    Ok(NamedStep { tensors, trace, ranks: 1, shards: Vec::new() })
}

fn fits(what: &str, fits: bool, one: &Value, other: &Value) -> Result<(), Problem> {
    if fits {
        return Ok(());
    }
    Err(Problem::Conflict(format!(
        "{what} of {:?} and {:?}: the shapes do not fit",
        one.shape(),
        other.shape()
    )))
}
