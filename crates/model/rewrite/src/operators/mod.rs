//! Replacement of PyTorch's operators: by ours, and by FBGEMM's for embedding tables.

mod calls;
mod copies;
mod dense_gradients;
mod dot;
mod fbgemm;
mod gradient;
mod groups;
pub(crate) mod index_origin;
mod inputs;
mod interaction;
mod interaction_backward;
mod library;
pub(crate) mod lookups;
mod one_call;
mod places;
mod repeated_cat;
mod result_consumers;
mod results;
mod stacked;
mod state;
mod steptime_library;
pub(crate) mod table_training;
mod views;

use steptime_step::{Draft, Patch, StepIr, Uses};

pub use self::dense_gradients::DenseOperators;
use self::inputs::InputCache;
use self::library::Library;
use self::state::OptimizerRemoval;
use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// Risk of any library that updates tables itself.
const RISK: &str = "tables are updated in the backward pass: gradients are not clipped, and Adam updates only looked-up rows";

/// Embedding bags, rows of embedding tables and dot interaction by the operators of `steptime.operators`.
///
/// Lookups whose results are concatenated become one call, with their gradients and the updates of their tables. Other tables have one call each.
/// Of two concatenations of the same results the second takes the result of the first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Operators;

impl Rule for Operators {
    fn name(&self) -> &'static str {
        "operators"
    }

    fn stage(&self) -> Stage {
        Stage::Operators
    }

    fn effort(&self) -> &'static str {
        "medium: EmbeddingBags and interaction of steptime.operators, indices concatenated by table"
    }

    fn risk(&self) -> &'static str {
        RISK
    }

    fn patches(&self, step: &StepIr, _: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        steptime_patches(step, Library::Steptime, self.name())
    }
}

/// The patches of a rule with the operators of `steptime.operators`.
fn steptime_patches(step: &StepIr, library: Library, rule: &'static str) -> Result<Vec<Patch>, Error> {
    let Lookups { draft, mut patches, left } = lookups(step, library, rule)?;
    patches.extend(interaction::patches(draft.step(), rule));
    named(patches, left, "no embedding table is looked up, and no dot interaction is computed")
}

/// Embedding bags and rows of embedding tables by FBGEMM's table-batched embeddings, grouped into calls as by [`Operators`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Fbgemm;

impl Rule for Fbgemm {
    fn name(&self) -> &'static str {
        "operators-fbgemm"
    }

    fn stage(&self) -> Stage {
        Stage::Operators
    }

    fn effort(&self) -> &'static str {
        "medium: SplitTableBatchedEmbeddingBagsCodegen of fbgemm_gpu, indices concatenated by table"
    }

    fn risk(&self) -> &'static str {
        RISK
    }

    fn doubt(&self) -> Option<(&'static str, f64)> {
        Some((
            "the host time of FBGEMM's Python module and ops was measured on one host: a host-bound step may be longer or shorter",
            0.2,
        ))
    }

    fn patches(&self, step: &StepIr, _: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let Lookups { patches, left, .. } = lookups(step, Library::Fbgemm, self.name())?;
        named(patches, left, "no embedding table is looked up")
    }
}

/// Groups of lookups, each converted to one call.
struct Lookups {
    draft: Draft,
    patches: Vec<Patch>,
    /// Reasons why other lookups stay as they are.
    left: Vec<String>,
}

fn lookups(step: &StepIr, library: Library, rule: &'static str) -> Result<Lookups, Error> {
    let uses = Uses::find(step);
    let (mut found, _) = lookups::find(step, &uses);
    found.retain(|lookup| library.refuses(step, lookup).is_none());
    let mut patches = stacked::patches(step, &uses, &found, rule);
    let mut draft = Draft::from_step(step);
    for patch in &patches {
        draft.patch(patch)?;
    }
    while let Some(patch) = repeated_cat::patch(draft.step(), draft.uses(), &found, rule) {
        draft.patch(&patch)?;
        patches.push(patch);
    }
    let (groups, mut left) = groups::build(draft.step(), library);
    let mut made = InputCache::default();
    let mut leaving = OptimizerRemoval::find(draft.step(), &groups);
    for group in &groups {
        let known = made.counts();
        let Some(patch) = one_call::patch(&draft, group, &mut made, &mut leaving, library, rule) else {
            made.forget(known);
            leaving.stay(group);
            let table = lookups::described(step, group.members[0].lookup.table);
            left.push(format!("the gradient of {table} is computed in an unsupported way"));
            continue;
        };
        draft.patch(&patch)?;
        patches.push(patch);
    }
    let mut rest = Patch::new(rule);
    leaving.shorten(&mut rest, draft.step());
    if !rest.is_empty() {
        draft.patch(&rest)?;
        rest.why = "optimizers no longer update these tables".to_owned();
        patches.push(rest);
    }
    Ok(Lookups { draft, patches, left })
}

/// The patches, with the reasons of unchanged lookups; `nothing` is the reason where there is neither.
fn named(mut patches: Vec<Patch>, mut left: Vec<String>, nothing: &str) -> Result<Vec<Patch>, Error> {
    left.dedup();
    match patches.last_mut() {
        Some(last) if !left.is_empty() => last.why += &format!("; unchanged: {}", left.join(", ")),
        Some(_) => {}
        None if left.is_empty() => return Err(Error::NothingToDo { reason: nothing.to_owned() }),
        None => return Err(Error::NothingToDo { reason: left.join(", ") }),
    }
    Ok(patches)
}
