//! The most device memory that a step needs, in a line.

use steptime::answers::PeakMemory;

use super::format::grouped;

/// Kinds that are named.
const KINDS: usize = 3;
/// Below this share of the whole a kind is not worth a word.
const WORTH: f64 = 0.005;

/// All of it, and what most of it is for, the largest first.
pub fn line(peak: &PeakMemory) -> String {
    let mut kinds: Vec<(&str, f64)> = peak.kinds().filter(|(_, mb)| *mb > WORTH * peak.total()).collect();
    kinds.sort_by(|a, b| b.1.total_cmp(&a.1));
    let kinds: Vec<String> =
        kinds.iter().take(KINDS).map(|(kind, mb)| format!("{kind} {}", whole(*mb))).collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
    format!("peak memory: {} MB{kinds}", whole(peak.total()))
}

/// Before a change and after it.
pub fn both(before: &PeakMemory, after: &PeakMemory) -> String {
    format!("peak memory: {} to {} MB{}", whole(before.total()), whole(after.total()), of(after))
}

/// What most of it is for.
fn of(peak: &PeakMemory) -> String {
    let most = peak.kinds().max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, mb)| *mb > 0.0);
    most.map_or_else(String::new, |(kind, mb)| format!(", {} of it {kind}", whole(mb)))
}

fn whole(mb: f64) -> String {
    grouped(mb.round() as u64)
}
