//! Which parts of a model are sharded each by itself.

use std::fmt;
use std::str::FromStr;

use rustc_hash::FxHashMap;
use steptime_graph::{ModuleId, Modules};
use steptime_step::{OpId, Step};

use crate::checkpoint;
use crate::error::Error;
use crate::rule::Facts;
use crate::selection::{Selection, matches};

/// The blocks of a model: what `fully_shard` is called for, beside the whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Blocks {
    /// Modules of the class that is called most often, of those with modules inside; where modules are not known, stretches of the
    /// forward pass that come again.
    #[default]
    Repeated,
    /// All modules so deep inside the model: 1 are those that it calls itself.
    Depth(usize),
    /// Modules by their paths, `*` for any letters: of those inside one another the outermost.
    Modules(String),
}

/// How a depth is told.
const DEPTH: &str = "depth:";

impl FromStr for Blocks {
    type Err = Error;

    fn from_str(text: &str) -> Result<Blocks, Error> {
        if let Some(depth) =
            text.strip_prefix(DEPTH).and_then(|depth| depth.parse().ok()).filter(|&depth| depth > 0)
        {
            return Ok(Blocks::Depth(depth));
        }
        match text.parse() {
            Ok(Selection::Module(path)) => Ok(Blocks::Modules(path)),
            _ => Err(Error::NoBlocks { text: text.to_owned() }),
        }
    }
}

impl fmt::Display for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Blocks::Repeated => f.write_str("repeated"),
            Blocks::Depth(depth) => write!(f, "{DEPTH}{depth}"),
            Blocks::Modules(path) => write!(f, "module:{path}"),
        }
    }
}

/// The blocks that the ops of a forward pass are of.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Their names.
    pub names: Vec<String>,
    /// For each op its block.
    pub of: Vec<Option<usize>>,
    /// What they are, in words.
    pub what: String,
}

impl Blocks {
    /// Finds them among the ops of the forward pass.
    ///
    /// # Errors
    /// Where none are as they are told, or no module of the step is known.
    pub(super) fn find(&self, step: &Step, forward: &[OpId], facts: &Facts<'_>) -> Result<Found, Error> {
        let modules = facts.modules.filter(|modules| !modules.list.is_empty());
        match (self, modules) {
            (Blocks::Repeated, Some(modules)) => {
                let class = most_called(modules);
                let is = |at: ModuleId| Some(&modules.list[at].class) == class.as_ref();
                let found = of_modules(step, forward, modules, &is);
                Ok(if found.names.len() > 1 { found } else { of_repeats(step) })
            }
            (Blocks::Repeated, None) => Ok(of_repeats(step)),
            (_, None) => Err(Error::NoModules),
            (Blocks::Depth(depth), Some(modules)) => {
                let is = |at: ModuleId| around(modules, at).count() == depth + 1;
                some(of_modules(step, forward, modules, &is), self)
            }
            (Blocks::Modules(path), Some(modules)) => {
                let is = |at: ModuleId| matches(path, &modules.list[at].path);
                some(of_modules(step, forward, modules, &is), self)
            }
        }
    }
}

fn some(found: Found, asked: &Blocks) -> Result<Found, Error> {
    if found.names.is_empty() { Err(Error::NoSuchModule { text: asked.to_string() }) } else { Ok(found) }
}

/// A module and those around it.
fn around(modules: &Modules, at: ModuleId) -> impl Iterator<Item = ModuleId> {
    std::iter::successors(Some(at), |&at| modules.list[at].parent)
}

/// The class with modules inside of which most modules are; of several the first.
fn most_called(modules: &Modules) -> Option<String> {
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

/// The ops that the outermost of some modules ran. The model itself is no block.
fn of_modules(step: &Step, forward: &[OpId], modules: &Modules, is: &impl Fn(ModuleId) -> bool) -> Found {
    let mut places: FxHashMap<ModuleId, usize> = FxHashMap::default();
    let mut found = Found { names: Vec::new(), of: Vec::with_capacity(forward.len()), what: String::new() };
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

/// Stretches of the forward pass that come again.
fn of_repeats(step: &Step) -> Found {
    let (ops, rows) = checkpoint::repeated(step);
    let mut found =
        Found { names: Vec::new(), of: vec![None; ops], what: "stretches that come again".to_owned() };
    for places in rows.into_iter().flatten() {
        found.of[places].fill(Some(found.names.len()));
        found.names.push(found.names.len().to_string());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_told_by_depth_or_by_their_modules() {
        assert_eq!("depth:2".parse(), Ok(Blocks::Depth(2)));
        assert_eq!("module:Net.blocks.*".parse(), Ok(Blocks::Modules("Net.blocks.*".to_owned())));
        for wrong in ["depth:0", "depth:x", "module:", "aten::relu", "ops[3]", ""] {
            assert!(wrong.parse::<Blocks>().is_err(), "{wrong}");
        }
        assert_eq!(Blocks::Depth(2).to_string(), "depth:2");
    }
}
