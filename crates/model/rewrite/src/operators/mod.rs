//! The operators of `steptime.operators` for PyTorch's.

mod copies;
mod dot;
mod gradient;
mod groups;
mod inputs;
mod interaction;
mod interaction_backward;
mod joined;
mod lookups;
mod one_call;
mod places;
mod results;
mod state;
mod trail;
mod trained;
mod views;

use steptime_step::{Patch, Step};

use self::inputs::Made;
use crate::error::Error;
use crate::rule::{Facts, Rule};

/// Embedding bags, rows of embedding tables and dot interaction by the operators of `steptime.operators`.
///
/// Lookups whose results are put side by side become one call, with their gradients and the updates of their tables. Those
/// of other tables are a call each.
#[derive(Debug, Clone, Copy, Default)]
pub struct Operators;

impl Rule for Operators {
    fn name(&self) -> &'static str {
        "operators"
    }

    fn effort(&self) -> &'static str {
        "medium: EmbeddingBags and interaction of steptime.operators, indices one table after the other"
    }

    fn risk(&self) -> &'static str {
        "tables take their step in the backward pass: no clipping, and Adam moves only rows that were looked up"
    }

    fn patches(&self, step: &Step, facts: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let mut now = step.clone();
        let mut patches = Vec::new();
        let (groups, mut left) = groups::of(step);
        let mut made = Made::default();
        for group in &groups {
            let mut more = made.clone();
            let Some(patch) = one_call::patch(&now, group, &mut more, self.name()) else {
                let table = lookups::described(step, group.members[0].lookup.table);
                left.push(format!("the gradient of {table} comes another way than is known"));
                continue;
            };
            now.apply(&patch, facts.ops)?;
            made = more;
            patches.push(patch);
        }
        for patch in interaction::patches(&now, self.name()) {
            now.apply(&patch, facts.ops)?;
            patches.push(patch);
        }
        left.dedup();
        match patches.last_mut() {
            Some(last) if !left.is_empty() => last.why += &format!("; as it was: {}", left.join(", ")),
            Some(_) => {}
            None if left.is_empty() => {
                let reason = "no embedding table is looked up, and no dot interaction is computed".to_owned();
                return Err(Error::NothingToDo { reason });
            }
            None => return Err(Error::NothingToDo { reason: left.join(", ") }),
        }
        Ok(patches)
    }
}
