//! Expressions compiled to steps over blocks.

use super::ElementwiseError;
use super::expr::{Binary, Expr, Unary};
use super::graph::{Graph, Id, Value};

/// Source of a step's operand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Source {
    /// An input, by its index.
    Input(usize),
    /// A constant.
    Constant(f32),
    /// An earlier step's result, by its register.
    Register(usize),
}

/// Operation of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Takes the first operand.
    Unary(Unary),
    /// Takes the first two operands.
    Binary(Binary),
    /// `a b + c`
    MulAdd,
    /// A copy, for outputs that are an input, a constant, or another output.
    Copy,
}

/// Destination of a step's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A register, for later steps.
    Register(usize),
    /// An output, by its index.
    Output(usize),
}

/// One operation on a block. Operands that the operation does not take repeat the first.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// The operation.
    pub op: Op,
    /// Its operands.
    pub operands: [Source; 3],
    /// Destination of its result.
    pub target: Target,
}

/// Compiled expressions: one output for each.
#[derive(Debug, Clone)]
pub struct Program {
    pub(super) steps: Vec<Step>,
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    pub(super) registers: usize,
    /// Operands of each operation, before products and sums are joined: inputs by index, `None` for results.
    operations: Vec<Vec<Option<usize>>>,
}

/// Cost of running a program, compared with running its operations one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Operations on one element, times elements; a function counts as one.
    pub flops: u64,
    /// Bytes that must move in one pass: each input read once, each output written once.
    pub fused_bytes: u64,
    /// Bytes that move if each operation reads its operands from memory and writes its result there.
    pub unfused_bytes: u64,
}

impl Cost {
    /// Operations per byte, in one pass.
    #[must_use]
    pub fn fused_intensity(&self) -> f64 {
        self.flops as f64 / self.fused_bytes as f64
    }

    /// Operations per byte, one operation at a time.
    #[must_use]
    pub fn unfused_intensity(&self) -> f64 {
        self.flops as f64 / self.unfused_bytes as f64
    }
}

impl Program {
    /// Compiles expressions, one for each output. Common parts are computed once.
    ///
    /// # Errors
    ///
    /// `outputs` is empty.
    pub fn new(outputs: &[Expr]) -> Result<Program, ElementwiseError> {
        if outputs.is_empty() {
            return Err(ElementwiseError::NoOutput);
        }
        let mut graph = Graph::default();
        let roots: Vec<Id> = outputs.iter().map(|expr| graph.add(expr)).collect();
        let values = &graph.values;
        let input = |id: Id| if let Value::Input(index) = values[id] { Some(index) } else { None };
        let is_constant = |id: &Id| matches!(values[*id], Value::Constant(_));
        let operations = values.iter().filter(|value| value.is_computed());
        let operations =
            operations.map(|value| value.operands().filter(|id| !is_constant(id)).map(input).collect());
        let (steps, registers) = Compiler::new(values, &roots).compile();
        let inputs = (0..values.len()).filter_map(input).max().map_or(0, |last| last + 1);
        Ok(Program { steps, inputs, outputs: roots.len(), registers, operations: operations.collect() })
    }

    /// Operations in order, for code generators of other devices.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Number of inputs: one more than the largest index in the expressions.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Number of outputs.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The cost for outputs of `len` elements and inputs of these lengths, before they are broadcast; an input that is
    /// not listed has `len`.
    #[must_use]
    pub fn cost(&self, len: usize, inputs: &[usize]) -> Cost {
        let size = |index: usize| inputs.get(index).copied().unwrap_or(len) as u64;
        let len = len as u64;
        let unfused = self
            .operations
            .iter()
            .map(|operands| operands.iter().map(|operand| operand.map_or(len, size)).sum::<u64>() + len);
        let fused = (0..self.inputs).map(size).sum::<u64>() + self.outputs as u64 * len;
        Cost {
            flops: self.operations.len() as u64 * len,
            fused_bytes: 4 * fused,
            unfused_bytes: 4 * unfused.sum::<u64>(),
        }
    }
}

/// State of a compilation: results that are still needed, and the registers that hold them.
struct Compiler<'a> {
    values: &'a [Value],
    roots: &'a [Id],
    uses: Vec<usize>,
    places: Vec<Option<Source>>,
    free: Vec<usize>,
    registers: usize,
    steps: Vec<Step>,
}

impl<'a> Compiler<'a> {
    fn new(values: &'a [Value], roots: &'a [Id]) -> Compiler<'a> {
        let mut uses = vec![0; values.len()];
        values
            .iter()
            .flat_map(|value| value.operands())
            .chain(roots.iter().copied())
            .for_each(|id| uses[id] += 1);
        let places = values
            .iter()
            .map(|value| match *value {
                Value::Input(index) => Some(Source::Input(index)),
                Value::Constant(bits) => Some(Source::Constant(f32::from_bits(bits))),
                _ => None,
            })
            .collect();
        Compiler { values, roots, uses, places, free: Vec::new(), registers: 0, steps: Vec::new() }
    }

    fn compile(mut self) -> (Vec<Step>, usize) {
        let joined: Vec<bool> = (0..self.values.len()).map(|id| self.is_joined(id)).collect();
        for (id, &value) in self.values.iter().enumerate() {
            match value {
                _ if joined[id] => {}
                Value::Input(_) | Value::Constant(_) => {}
                Value::Unary(op, a) => self.step(id, Op::Unary(op), &[a]),
                Value::Binary(Binary::Add, a, b) if joined[a] => self.mul_add(id, a, b),
                Value::Binary(Binary::Add, a, b) if joined[b] => self.mul_add(id, b, a),
                Value::Binary(op, a, b) => self.step(id, Op::Binary(op), &[a, b]),
            }
        }
        // Results that several outputs share, and outputs that are an input or a constant.
        for (output, &root) in self.roots.iter().enumerate() {
            if self.output_of(root) != Some(output)
                && let Some(source) = self.places[root]
            {
                self.steps.push(Step { op: Op::Copy, operands: [source; 3], target: Target::Output(output) });
            }
        }
        (self.steps, self.registers)
    }

    /// Whether this is a product that only one sum uses, the first of its two such operands.
    fn is_joined(&self, id: Id) -> bool {
        let single = |id: Id| matches!(self.values[id], Value::Binary(Binary::Mul, ..)) && self.uses[id] == 1;
        single(id)
            && self.values.iter().any(|&value| match value {
                Value::Binary(Binary::Add, a, b) => a == id || (b == id && !single(a)),
                _ => false,
            })
    }

    fn mul_add(&mut self, id: Id, product: Id, other: Id) {
        let factors: Vec<Id> = self.values[product].operands().collect();
        self.step(id, Op::MulAdd, &[factors[0], factors[1], other]);
    }

    /// The output into which a result is computed, if that is its only use.
    fn output_of(&self, id: Id) -> Option<usize> {
        let outputs = self.roots.iter().filter(|&&root| root == id).count();
        let own = self.values[id].is_computed() && outputs == 1;
        let used = self.values.iter().flat_map(|value| value.operands()).any(|operand| operand == id);
        if own && !used { self.roots.iter().position(|&root| root == id) } else { None }
    }

    fn step(&mut self, id: Id, op: Op, operands: &[Id]) {
        let sources: Vec<Source> = operands.iter().filter_map(|&operand| self.places[operand]).collect();
        // The target is allocated before operands are freed: a step never writes its own operands.
        let target = match self.output_of(id) {
            Some(output) => Target::Output(output),
            None => {
                let register = self.free.pop().unwrap_or_else(|| {
                    self.registers += 1;
                    self.registers - 1
                });
                self.places[id] = Some(Source::Register(register));
                Target::Register(register)
            }
        };
        for &operand in operands {
            self.uses[operand] -= 1;
            if let (0, Some(Source::Register(register))) = (self.uses[operand], self.places[operand]) {
                self.free.push(register);
            }
        }
        let at = |index: usize| sources.get(index).copied().unwrap_or(sources[0]);
        self.steps.push(Step { op, operands: [at(0), at(1), at(2)], target });
    }
}
