//! Matrix products in TF32, as after `torch.backends.cuda.matmul.allow_tf32 = True`.

use steptime_aten::kernel::{Kernel, Precision};
use steptime_aten::{Lowering, Settings};
use steptime_step::{Patch, StepIr};

use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// Runs 32-bit matrix products on tensor cores, with 10 bits of mantissa.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tf32;

impl Rule for Tf32 {
    fn name(&self) -> &'static str {
        "tf32"
    }

    fn stage(&self) -> Stage {
        Stage::Rounding
    }

    fn effort(&self) -> &'static str {
        "one line: torch.set_float32_matmul_precision(\"high\")"
    }

    fn risk(&self) -> &'static str {
        "products have 10 bits of mantissa: check that the loss still falls"
    }

    fn patches(&self, step: &StepIr, facts: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let mut patch = Patch::new(self.name());
        for op in step.running() {
            let Some(lowered) = step.lower(op, facts.ops) else { continue };
            if let Lowering::Kernel(kernel) = &*lowered
                && let Kernel::Gemm(gemm) = &kernel.kernel
                && gemm.precision == Precision::F32
                && let Some(mut call) = step.ops[op].call.as_deref().cloned()
            {
                call.settings = Settings { matmul_tf32: true, ..call.settings };
                patch.change.push((op, call));
            }
        }
        if patch.is_empty() {
            let reason = "no matrix product is in 32-bit floating point".to_owned();
            return Err(Error::NothingToDo { reason });
        }
        patch.why = format!("{} matrix products in TF32", patch.change.len());
        Ok(vec![patch])
    }
}
