//! Derivation of all sizes that depend on the growing ones.

use steptime_aten::OpSet;
use steptime_step::StepIr;

use super::batch_inputs::Seeds;
use super::dimension_sizes::{Forms, Trust};
use super::links::{self, Dim, Link, TensorOrigins};
use super::size_formula::Form;
use super::unlinked_tensors::{OpIndex, Similarity};

/// Propagates the seeds through all ops; `from` is the recorded growing size.
pub(super) fn solve(step: &StepIr, ops: &OpSet, seeds: &Seeds, from: u64) -> Forms {
    let mut forms = Forms::new(step, from);
    let made = TensorOrigins::find(step);
    let running = step.running();
    let links: Vec<Link> = running.iter().flat_map(|&op| links::find(step, op, ops, &made)).collect();
    let near = OpIndex::new(step, running);
    forms.seed(step, seeds);
    close(&mut forms, step, &links, &near, seeds);
    if seeds.samples {
        forms.trust = Trust::Shares;
        close(&mut forms, step, &links, &near, seeds);
    }
    forms.trust = Trust::Fixed;
    close(&mut forms, step, &links, &near, seeds);
    if seeds.samples && forms.guess(step, seeds) {
        close(&mut forms, step, &links, &near, seeds);
    }
    forms.astray = astray(&forms, &links);
    forms
}

/// Follows links until nothing changes. Ambiguous views are then resolved in the usual way, one at a time.
fn follow(forms: &mut Forms, step: &StepIr, links: &[Link], seeds: &Seeds) {
    loop {
        let mut moved = true;
        while moved {
            moved = false;
            for link in links.iter().chain(links.iter().rev()) {
                moved |= forms.follow(step, link, seeds);
            }
        }
        forms.usual = true;
        moved = links.iter().any(|link| forms.follow(step, link, seeds));
        forms.usual = false;
        if !moved {
            return;
        }
    }
}

/// Follows links, and adopts sizes of similar tensors, until nothing changes.
fn close(forms: &mut Forms, step: &StepIr, links: &[Link], near: &OpIndex, seeds: &Seeds) {
    loop {
        follow(forms, step, links, seeds);
        forms.usual = true;
        let loose = forms.trust == Trust::Fixed;
        let found = near.adopt(step, forms, if loose { Similarity::Sizes } else { Similarity::Shapes });
        forms.usual = false;
        let mut adopted = false;
        for (dim, form) in found {
            adopted |= forms.set(step, dim, Some(form), seeds);
        }
        if !adopted {
            return;
        }
    }
}

/// Number of ops with a known sample dimension for which another dimension grows.
fn astray(forms: &Forms, links: &[Link]) -> usize {
    let grows = |dim: Dim| forms.at(dim).is_some_and(Form::grows);
    let astray = |link: &&Link| match link {
        Link::Samples(samples, others) => !grows(*samples) && others.iter().any(|&other| grows(other)),
        _ => false,
    };
    links.iter().filter(astray).count()
}
