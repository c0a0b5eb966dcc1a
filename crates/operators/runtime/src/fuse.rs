//! Instructions joined to one: the gradients of a linear layer, with the slope of the ReLU behind it.
//!
//! PyTorch's backward pass of a layer is up to four ops in a row: the slope of the ReLU, the gradients of input and weight, the sum for the bias.
//! One kernel computes all of them from the gradient of the output, which it reads once for each product and never stores with the slope.

use steptime_ops::gemm::{Activation, Gradients, linear_backward};
use steptime_tensor::Layout;

use crate::arg::Arg;
use crate::binder::Use;
use crate::gpu::{GpuLayer, RowsOf};
use crate::kernel::Kernel;
use crate::piece::{Bindings, Piece};
use crate::program::Instruction;
use crate::slices::Access;
use crate::target::Target;

/// Name of the joined instruction.
const NAME: &str = "steptime::linear_backward";

/// Joins the gradients of linear layers; with `separate` those of weights remain instructions of their own, which run beside exchanges.
pub(crate) fn linear_layers(
    instructions: Vec<Instruction>,
    target: Target,
    separate: bool,
) -> Vec<Instruction> {
    let mut all: Vec<Instruction> = Vec::with_capacity(instructions.len());
    let mut rest: Vec<Option<Instruction>> = instructions.into_iter().map(Some).collect();
    for at in 0..rest.len() {
        let found =
            Layer::find(&rest, at).filter(|layer| target == Target::Cpu || layer.multiplies_by_rows());
        let found = found.filter(|layer| !separate || layer.y.is_some());
        let taken = found.as_ref().map_or(1, |layer| layer.count);
        let parts: Vec<Instruction> = rest[at..at + taken].iter_mut().filter_map(Option::take).collect();
        match found {
            Some(layer) => all.extend(layer.joined(parts, target, separate)),
            None => all.extend(parts),
        }
    }
    all
}

/// The gradients of a layer `y = activation(x W^T + b)`, some of which may be absent.
#[derive(Debug)]
struct Layer {
    /// Number of instructions.
    count: usize,
    /// The gradient of the output, and the output where a ReLU computed it.
    dy: Piece,
    y: Option<Piece>,
    /// The gradient of the output with the slope, which a GPU stores.
    dz: Piece,
    /// Input of the layer, and gradient of the weight.
    weight: Option<[Piece; 2]>,
    /// The position of the instruction that computes the gradient of the weight.
    weight_at: usize,
    /// Weight, and gradient of the input.
    input: Option<[Piece; 2]>,
    bias: Option<Piece>,
}

fn transposed(layout: &Layout) -> Option<Layout> {
    layout.transpose(0, 1).ok()
}

/// A matrix whose rows are contiguous: itself, or its transpose.
fn by_rows(piece: Piece) -> Piece {
    let turned = transposed(&piece.one.arg.layout).filter(|_| {
        let strides = piece.one.arg.layout.strides();
        strides.first() == Some(&1) && strides.get(1).is_some_and(|&stride| stride != 1)
    });
    match turned {
        Some(layout) => {
            let arg = Arg { layout, ..piece.one.arg.clone() };
            Piece { one: Use { arg, ..piece.one }, ..piece }
        }
        None => piece,
    }
}

impl Layer {
    /// The layer whose gradients begin at an instruction, where at least two of its ops can be joined.
    fn find(all: &[Option<Instruction>], at: usize) -> Option<Layer> {
        let first = all[at].as_ref()?;
        let own = Piece::all(first);
        let (gate, dz) = match (&*first.name, &own[..]) {
            ("aten::threshold_backward", [dy, y, dz]) => (Some([dy.clone(), y.clone()]), dz.clone()),
            ("aten::mm", [dz, ..]) => (None, by_rows(dz.clone())),
            _ => return None,
        };
        if dz.one.arg.shape().len() != 2 {
            return None;
        }
        let [dy, y] = gate.map_or([Some(dz.clone()), None], |[dy, y]| [Some(dy), Some(y)]);
        let mut layer = Layer {
            count: usize::from(y.is_some()),
            dy: dy?,
            y,
            dz: dz.clone(),
            weight: None,
            weight_at: 0,
            input: None,
            bias: None,
        };
        while let Some(next) = all.get(at + layer.count).and_then(Option::as_ref) {
            if !layer.adds(next, &dz) {
                break;
            }
            layer.count += 1;
        }
        let joined = layer.weight.is_some() && layer.count > 1;
        let stays = layer.y.is_some() && layer.is_used_later(all, at, &dz);
        (joined && !stays && layer.is_plain()).then_some(layer)
    }

    /// Adds an instruction, where it computes one of the gradients from `dz`.
    fn adds(&mut self, next: &Instruction, dz: &Piece) -> bool {
        let own = Piece::all(next);
        let is_dz = |piece: &Piece, layout: Option<&Layout>| {
            piece.memory == dz.memory && Some(&piece.one.arg.layout) == layout
        };
        let straight = &dz.one.arg.layout;
        match (&*next.name, &own[..]) {
            ("aten::mm", [left, right, to]) if is_dz(left, Some(straight)) && self.input.is_none() => {
                self.input = Some([right.clone(), to.clone()]);
                true
            }
            ("aten::mm", [left, right, to])
                if is_dz(left, transposed(straight).as_ref()) && self.weight.is_none() =>
            {
                self.weight = Some([right.clone(), to.clone()]);
                self.weight_at = self.count;
                true
            }
            ("aten::sum", [from, to]) if is_dz(from, Some(straight)) && self.bias.is_none() => {
                let (sums, width) = (to.one.arg.len(), straight.shape()[1]);
                let fits = sums == width && to.one.arg.layout.is_contiguous();
                self.bias = fits.then(|| to.clone());
                fits
            }
            _ => false,
        }
    }

    /// Whether an instruction after the layer reads the gradient with the slope.
    fn is_used_later(&self, all: &[Option<Instruction>], at: usize, dz: &Piece) -> bool {
        let later = all[at + self.count..].iter().flatten();
        let mut uses = later.flat_map(Piece::all).filter(|piece| piece.memory == dz.memory);
        uses.next().is_some_and(|piece| piece.one.access != Access::Write)
    }

    /// Whether shapes are those of a layer, and no result shares memory with an operand.
    fn is_plain(&self) -> bool {
        let [batch, outputs] = [0, 1].map(|at| self.dy.one.arg.shape()[at]);
        let shaped = |piece: &Piece, shape: [usize; 2]| piece.one.arg.shape() == shape;
        let Some([x, dw]) = &self.weight else { return false };
        let Some(&inputs) = x.one.arg.shape().get(1) else { return false };
        let weights = shaped(x, [batch, inputs]) && shaped(dw, [outputs, inputs]);
        let others = self
            .input
            .as_ref()
            .is_none_or(|[w, dx]| shaped(w, [outputs, inputs]) && shaped(dx, [batch, inputs]));
        let reads = [Some(&self.dy), self.y.as_ref(), Some(x), self.input.as_ref().map(|[w, _]| w)];
        let writes = [Some(dw), self.input.as_ref().map(|[_, dx]| dx), self.bias.as_ref()];
        let apart = writes
            .into_iter()
            .flatten()
            .all(|to| reads.into_iter().flatten().all(|from| from.memory != to.memory));
        weights && others && apart
    }

    /// Whether all matrices have neighbouring rows or columns, and those that it stores neighbouring rows, as a GPU's products need.
    fn multiplies_by_rows(&self) -> bool {
        let [x, dw] = self.weight.as_ref().map_or([None, None], |[x, dw]| [Some(x), Some(dw)]);
        let [w, dx] = self.input.as_ref().map_or([None, None], |[w, dx]| [Some(w), Some(dx)]);
        let matrix = |piece: &Piece| RowsOf::new(&piece.one.arg);
        let by_rows = |piece: &Piece| matrix(piece).is_some_and(|rows| !rows.transposed);
        [x, w].into_iter().flatten().all(|piece| matrix(piece).is_some())
            && [Some(&self.dy), self.y.as_ref(), Some(&self.dz), dw, dx].into_iter().flatten().all(by_rows)
    }

    /// One instruction in place of several, and the one of the weight's gradient if that remains `separate`.
    fn joined(mut self, mut parts: Vec<Instruction>, target: Target, separate: bool) -> Vec<Instruction> {
        let of_weight = separate.then(|| parts.remove(self.weight_at));
        if separate {
            self.weight = None;
        }
        let mut bindings = Bindings::default();
        let mut bound = |piece: Piece| bindings.add(&piece);
        let (dy, y) = (bound(self.dy), self.y.map(&mut bound));
        let [input, weight] = [self.input, self.weight].map(|pair| pair.map(|pair| pair.map(&mut bound)));
        let bias = self.bias.map(&mut bound);
        let dz = (target == Target::Cuda && y.is_some()).then(|| bound(self.dz));
        let activation = if y.is_some() { Activation::Relu } else { Activation::Identity };
        let gpu = GpuLayer::new(&dy, y.as_ref(), dz.as_ref(), weight.as_ref(), input.as_ref(), bias.as_ref());
        let on_cpu = Kernel::new(move |run| {
            let gradient = dy.matrix(&run.memory, 0)?;
            let output = y.as_ref().map_or(Ok(gradient), |y| y.matrix(&run.memory, 0))?;
            // Without the gradient of the input the weight is not read: any matrix of its shape will do.
            let Some([x, dw]) = &weight else { return Ok(()) };
            let x = x.matrix(&run.memory, 0)?;
            let w = match &input {
                Some([w, _]) => w.matrix(&run.memory, 0)?,
                None => steptime_ops::gemm::MatRef::with_strides(&[0.0], gradient.cols(), x.cols(), 0, 0)?,
            };
            let dx = input.as_ref().map(|[_, dx]| dx.matrix_mut(&mut run.memory)).transpose()?;
            let dw = Some(dw.matrix_mut(&mut run.memory)?);
            let db = bias.as_ref().map(|bias| bias.row_mut(&mut run.memory)).transpose()?;
            let gradients = Gradients { x: dx, weight: dw, bias: db };
            Ok(linear_backward(run.cpu, gradient, output, x, w, activation, gradients)?)
        });
        let kernel = match gpu.filter(|_| target == Target::Cuda) {
            Some(layer) => Kernel::Gpu(Box::new(layer)),
            None => on_cpu,
        };
        let first = parts.into_iter().next();
        let (op, place) = first.map_or_else(Default::default, |first| (first.op, first.place));
        let (at, order) = (Vec::new(), Vec::new());
        let Bindings { slots, uses } = bindings;
        let joined = Instruction { op, name: NAME.to_owned(), place, slots, uses, at, order, kernel };
        [joined].into_iter().chain(of_weight).collect()
    }
}
