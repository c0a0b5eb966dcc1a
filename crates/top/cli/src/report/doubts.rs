//! Doubts of an answer: its assumptions and the evidence against it, one paragraph each.

use steptime_answers::DoubtEntry;

use super::width::{prose, wrapped};

/// Returns all doubts in their order: the worst first.
pub fn text(doubts: &[DoubtEntry]) -> String {
    doubts.iter().map(|doubt| wrapped(&format!("! {}", doubt.text), prose(), 2) + "\n").collect()
}
