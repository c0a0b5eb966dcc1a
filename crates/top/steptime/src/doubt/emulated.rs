//! Types that a GPU has no units for: PyTorch emulates them there.

use std::f64::consts::LN_2;

use steptime_aten::Dtype;
use steptime_aten::kernel::Precision;

use super::Doubt;
use crate::device::Launch;
use crate::sources::Kernels;

/// The doubt, where products are in bfloat16 and the GPU has no units for it. Matrix products were measured so; of convolutions and attention
/// nothing was, and twice as long is allowed for.
pub(crate) fn doubt(kernels: &Kernels<'_>, launches: &[Launch]) -> Option<Doubt> {
    let Kernels::Device { profile, .. } = kernels else { return None };
    let lacks = profile.spec.lacks(Dtype::Bf16)?;
    let is_emulated = |launch: &&Launch| launch.call.kernel.precision() == Some(Precision::Bf16);
    let count = launches.iter().filter(is_emulated).count();
    let text = format!(
        "{lacks}: PyTorch emulates bfloat16 there, and {count} products, convolutions and attentions run without tensor cores"
    );
    (count > 0).then_some(Doubt { kind: "emulated", text, below: 0.0, above: LN_2, no_estimate: false })
}
