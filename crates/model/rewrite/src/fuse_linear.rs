//! Linear layers with the ReLU that follows, as one product with an epilogue.

use steptime_aten::Arg;
use steptime_aten::kernel::{Epilogue, Kernel};
use steptime_graph::HostThreadId;
use steptime_step::{NewOp, OpId, Patch, Place, StepIr, TensorId, Uses};

use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;
use crate::selection::Among;

/// A product with a bias, without and with an activation.
const PRODUCT: &str = "aten::addmm";
const ACTIVATED: &str = "aten::_addmm_activation";
/// The Python function that runs it, with its own backward pass.
const FUNCTION: &str = "LinearReLU";
/// Additional host time of a function written in Python over an op of PyTorch, in units of a small op with autograd: in four layers of two
/// recordings, 1 to 9. The backward pass takes as long as before.
const PYTHON: f64 = 5.0;

/// Computes the ReLU in the epilogue of the preceding product. The backward pass runs the same kernels.
#[derive(Debug, Clone, Copy, Default)]
pub struct FuseLinear;

impl Rule for FuseLinear {
    fn name(&self) -> &'static str {
        "fuse-linear"
    }

    fn stage(&self) -> Stage {
        Stage::Products
    }

    fn effort(&self) -> &'static str {
        "medium: an autograd.Function around torch._addmm_activation, in place of each linear layer and its ReLU"
    }

    fn risk(&self) -> &'static str {
        "none for the results; torch._addmm_activation is not a public function"
    }

    fn patches(&self, step: &StepIr, facts: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        self.among(step, facts, &Among::ALL)
    }
}

impl FuseLinear {
    /// Fuses chosen layers only.
    pub(crate) fn among(&self, step: &StepIr, facts: &Facts<'_>, among: &Among) -> Result<Vec<Patch>, Error> {
        let uses = Uses::find(step);
        let mut patch = Patch::new(self.name());
        let (mut layers, mut others) = (0, 0);
        for op in step.running() {
            let outermost = step.ops[op].thread == HostThreadId::MAIN && step.outermost(op) == op;
            let forward = outermost && among.has(step, op);
            let Some(product) = forward.then(|| product(step, op, facts)).flatten() else { continue };
            match Layer::find(step, &uses, op, product) {
                Some(layer) => {
                    layer.fuse(step, &mut patch);
                    layers += 1;
                }
                None => others += 1,
            }
        }
        if layers == 0 {
            let reason = match others {
                0 => format!("no {PRODUCT} adds a bias"),
                _ => format!(
                    "no ReLU follows any of {others} linear layers: the gradient of another activation needs its input"
                ),
            };
            return Err(Error::NothingToDo { reason });
        }
        patch.why = format!(
            "{layers} linear layers and the ReLU after each become one product per layer; {others} without a ReLU"
        );
        Ok(vec![patch])
    }
}

/// The product with a bias, where it is the only computation of an op.
fn product(step: &StepIr, op: OpId, facts: &Facts<'_>) -> Option<OpId> {
    let mut found = step.subtree(op).into_iter().filter_map(|op| {
        let lowered = step.lower(op, facts.ops)?;
        let kernel = &lowered.kernel()?.kernel;
        let biased = matches!(kernel, Kernel::Gemm(gemm) if gemm.epilogue == Epilogue::Bias);
        Some((op, step.ops[op].name == PRODUCT && biased))
    });
    let (product, biased) = found.next()?;
    (biased && found.next().is_none()).then_some(product)
}

/// A linear layer and its ReLU, both outermost ops.
struct Layer {
    linear: OpId,
    product: OpId,
    relu: OpId,
    /// Output of the layer, and output of the ReLU.
    between: TensorId,
    result: TensorId,
}

impl Layer {
    fn find(step: &StepIr, uses: &Uses, linear: OpId, product: OpId) -> Option<Layer> {
        let between = step.ops[linear].call.as_deref()?.gives().next()?;
        let mut after =
            uses.consumers(between).iter().map(|&op| step.outermost(op)).filter(|&op| op != linear);
        let relu = after.next()?;
        let name = &step.ops[relu].name;
        let result = step.ops[relu].call.as_deref()?.gives().next()?;
        let alone = result == between || after.all(|op| op == relu);
        let same = step.tensors[result].value.shape == step.tensors[between].value.shape;
        let is_relu = matches!(&**name, "aten::relu" | "aten::relu_");
        (is_relu && alone && same).then_some(Layer { linear, product, relu, between, result })
    }

    fn fuse(&self, step: &StepIr, patch: &mut Patch) {
        let mut tensor = |id| if id == self.between { self.result } else { id };
        let again = NewOp::repeat(step, self.linear, &mut tensor);
        // The function calls the ops that the layer called.
        let inner = if self.linear == self.product { vec![again] } else { again.children };
        let children = inner.into_iter().map(|op| self.activated(op)).collect();
        patch.insert.push((Place::Before(self.linear), NewOp::around(FUNCTION, children).taking(PYTHON)));
        patch.remove.extend([self.linear, self.relu]);
    }

    /// The same op, where the product also computes the activation.
    fn activated(&self, mut op: NewOp) -> NewOp {
        if op.again == Some(self.product) {
            ACTIVATED.clone_into(&mut op.name);
            op.call.iter_mut().for_each(|call| call.inputs.push(Arg::Bool(false)));
        }
        op.children = op.children.into_iter().map(|child| self.activated(child)).collect();
        op
    }
}
