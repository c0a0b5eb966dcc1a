//! Ops of the forward pass by the blocks that ran them.

use std::ops::Range;

use rustc_hash::FxHashMap;
use steptime_graph::{ModuleId, Modules};
use steptime_step::{OpId, StepIr};

/// Assignment of the ops of a forward pass to blocks.
#[derive(Debug, Default)]
pub(crate) struct BlockAssignment {
    pub names: Vec<String>,
    /// Block of each op.
    pub of: Vec<Option<usize>>,
    /// Classes of the blocks, or another description, in words.
    pub what: String,
}

impl BlockAssignment {
    /// No blocks, for a forward pass of this number of ops.
    pub fn none(ops: usize) -> BlockAssignment {
        BlockAssignment { of: vec![None; ops], ..BlockAssignment::default() }
    }
}

/// A module and its ancestors.
pub(super) fn around(modules: &Modules, at: ModuleId) -> impl Iterator<Item = ModuleId> {
    std::iter::successors(Some(at), |&at| modules.list[at].parent)
}

/// The class with inner modules that has the most modules; of several the first.
pub(super) fn most_called(modules: &Modules) -> Option<String> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for at in modules.list.keys() {
        let holds = modules.list.iter().any(|module| module.parent == Some(at));
        let class = modules.list[at].class.as_str();
        let inner = |at: &ModuleId| modules.list[*at].parent.is_some();
        let nested =
            around(modules, at).skip(1).filter(inner).any(|outer| modules.list[outer].class == class);
        if !holds || nested || !inner(&at) {
            continue;
        }
        match counts.iter_mut().find(|(known, _)| *known == class) {
            Some((_, count)) => *count += 1,
            None => counts.push((class, 1)),
        }
    }
    let most = counts.iter().map(|(_, count)| *count).max().filter(|&most| most > 1)?;
    counts.iter().find(|(_, count)| *count == most).map(|(class, _)| (*class).to_owned())
}

/// The ops run by the outermost modules for which `is` holds. The model itself is not a block.
pub(super) fn by_modules(
    step: &StepIr,
    forward: &[OpId],
    modules: &Modules,
    is: &impl Fn(ModuleId) -> bool,
) -> BlockAssignment {
    let mut places: FxHashMap<ModuleId, usize> = FxHashMap::default();
    let mut found = BlockAssignment { of: Vec::with_capacity(forward.len()), ..BlockAssignment::default() };
    let mut classes: Vec<&str> = Vec::new();
    for &op in forward {
        let module = step.recorded(op).and_then(|op| modules.of.get(op).copied().flatten());
        let inner = |at: &ModuleId| modules.list[*at].parent.is_some() && is(*at);
        let block = module.and_then(|module| around(modules, module).filter(inner).last());
        found.of.push(block.map(|block| {
            *places.entry(block).or_insert_with(|| {
                let module = &modules.list[block];
                let inside = module.path.split_once('.').map_or(module.path.as_str(), |(_, inside)| inside);
                found.names.push(inside.to_owned());
                if !classes.contains(&module.class.as_str()) {
                    classes.push(&module.class);
                }
                found.names.len() - 1
            })
        }));
    }
    found.what = classes.join(" and ");
    found
}

/// Repeated stretches of a forward pass of this number of ops.
pub(super) fn by_repeats(ops: usize, stretches: Vec<Range<usize>>) -> BlockAssignment {
    let mut found = BlockAssignment { what: "repeated stretches".to_owned(), ..BlockAssignment::none(ops) };
    for places in stretches {
        found.of[places].fill(Some(found.names.len()));
        found.names.push(found.names.len().to_string());
    }
    found
}
