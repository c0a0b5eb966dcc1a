//! A step that needs more memory than the GPU has: it does not run.

use steptime_cost::device::DeviceSpec;
use steptime_step::Peak;

use super::Doubt;

/// What it is, for programs.
const KIND: &str = "memory";

/// Says it before all else, of a step that needs so much.
pub(crate) fn first(doubts: &mut Vec<Doubt>, peak: Option<&Peak>, spec: Option<&DeviceSpec>) {
    doubts.retain(|doubt| doubt.kind != KIND);
    let found = peak.zip(spec).and_then(|(peak, spec)| doubt(peak, spec));
    doubts.splice(0..0, found);
}

/// The doubt, where tensors need more than there is. It is no doubt of the time.
pub(crate) fn doubt(peak: &Peak, spec: &DeviceSpec) -> Option<Doubt> {
    let gb = |bytes: u64| bytes as f64 / 1e9;
    let (needs, has) = (peak.total(), spec.memory.bytes);
    (has > 0 && needs > has).then(|| Doubt {
        kind: KIND,
        text: format!(
            "its tensors need {:.1} GB at once, and {} has {:.1} GB: the step would run out of memory",
            gb(needs),
            spec.name,
            gb(has)
        ),
        below: 0.0,
        above: 0.0,
        no_estimate: false,
    })
}
