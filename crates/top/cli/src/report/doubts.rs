//! What an answer assumes and what speaks against it, a paragraph each.

use steptime::answers::DoubtSaid;

use super::width::{prose, wrapped};

/// All of it, in its order: the worst first.
pub fn text(doubts: &[DoubtSaid]) -> String {
    doubts.iter().map(|doubt| wrapped(&format!("! {}", doubt.text), prose(), 2) + "\n").collect()
}
