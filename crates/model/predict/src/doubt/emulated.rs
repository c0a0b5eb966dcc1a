//! Doubt: data types that a GPU has no units for, so that PyTorch emulates them.

use steptime_aten::Dtype;
use steptime_aten::kernel::Precision;

use super::Doubt;
use crate::pricing::Launch;
use crate::time_sources::Kernels;
use crate::uncertainty::uncertainty;

/// The doubt, where products are in bfloat16 and the GPU has no units for it. Only matrix products were measured so; convolutions and attention
/// were not, and may take `doubts.emulated.factor` times as long.
pub(crate) fn doubt(kernels: &Kernels<'_>, launches: &[Launch]) -> Option<Doubt> {
    let Kernels::Device { profile, .. } = kernels else { return None };
    let lacks = profile.spec.lacks(Dtype::Bf16)?;
    let is_emulated = |launch: &&Launch| launch.call.kernel.precision() == Some(Precision::Bf16);
    let count = launches.iter().filter(is_emulated).count();
    let text = format!(
        "{lacks}: PyTorch emulates bfloat16 there, and {count} products, convolutions and attentions run without tensor cores"
    );
    let above = uncertainty().doubts.emulated.factor.ln();
    (count > 0).then_some(Doubt { kind: "emulated", text, below: 0.0, above, no_estimate: false })
}
