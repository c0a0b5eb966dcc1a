//! Doubt: a step that needs more memory than the GPU has, or nearly all of it, so that it does not run, or may not.

use steptime_cost::device::DeviceSpec;
use steptime_step::Peak;

use super::Doubt;
use crate::memory;

/// Kind of the doubt, for programs.
const KIND: &str = "memory";

/// Puts the doubt first in the list, where the step needs too much memory.
pub(crate) fn first(doubts: &mut Vec<Doubt>, peak: Option<&Peak>, spec: Option<&DeviceSpec>) {
    doubts.retain(|doubt| doubt.kind != KIND);
    let found = peak.zip(spec).and_then(|(peak, spec)| doubt(peak, spec));
    doubts.splice(0..0, found);
}

/// The doubt, where tensors need more memory than there is, or leave too little for the rest. It does not widen the interval.
pub(crate) fn doubt(peak: &Peak, spec: &DeviceSpec) -> Option<Doubt> {
    let (needs, has) = (peak.total(), spec.memory.bytes);
    if memory::fits(Some(peak), Some(spec)) != Some(false) {
        return None;
    }
    let end = if needs > has {
        "the step would run out of memory"
    } else {
        "with the CUDA context and fragmentation, the step may run out of memory"
    };
    let gb = |bytes: u64| bytes as f64 / 1e9;
    let text = format!(
        "its tensors need {:.1} GB at once, and {} has {:.1} GB: {end}",
        gb(needs),
        spec.name,
        gb(has)
    );
    Some(Doubt { kind: KIND, text, below: 0.0, above: 0.0, no_estimate: false })
}
