//! Peak device memory of a step, in one line.

use steptime_answers::PeakMemory;

use super::format::grouped;

/// Number of kinds to show.
const KINDS: usize = 3;
/// Smallest share of the whole at which a kind is shown.
const WORTH: f64 = 0.005;

/// Returns the peak, and its largest kinds, the largest first.
pub fn line(peak: &PeakMemory) -> String {
    let mut kinds: Vec<(&str, f64)> = peak.kinds().filter(|(_, mb)| *mb > WORTH * peak.total()).collect();
    kinds.sort_by(|a, b| b.1.total_cmp(&a.1));
    let kinds: Vec<String> =
        kinds.iter().take(KINDS).map(|(kind, mb)| format!("{kind} {}", whole(*mb))).collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
    format!("peak memory: {} MB{kinds}", whole(peak.total()))
}

/// Returns the peaks before and after a change.
pub fn both(before: &PeakMemory, after: &PeakMemory) -> String {
    format!("peak memory: {} to {} MB{}", whole(before.total()), whole(after.total()), largest_kind(after))
}

/// Returns the largest kind of a peak.
fn largest_kind(peak: &PeakMemory) -> String {
    let most = peak.kinds().max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, mb)| *mb > 0.0);
    most.map_or_else(String::new, |(kind, mb)| format!(", {} of it {kind}", whole(mb)))
}

fn whole(mb: f64) -> String {
    grouped(mb.round() as u64)
}
