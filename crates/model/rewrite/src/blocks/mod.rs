//! Blocks of a model: modules that are sharded or recomputed separately.

mod block_assignment;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use steptime_graph::ModuleId;
use steptime_step::{OpId, StepIr};

pub(crate) use self::block_assignment::BlockAssignment;
use self::block_assignment::{by_modules, by_repeats, most_called};
use crate::error::Error;
use crate::rule::Facts;
use crate::selection::{Selection, matches};

/// The blocks of a model: units of `fully_shard`, beside the whole model, or of `checkpoint`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Blocks {
    /// Repeated parts, as each rule finds them.
    #[default]
    Repeated,
    /// The whole model as one block.
    Whole,
    /// All modules at this depth inside the model; 1 selects those that the model calls itself.
    Depth(usize),
    /// Modules by their paths, where `*` matches any letters; of nested ones the outermost.
    Modules(Vec<String>),
}

/// Text of the whole model, and prefix of a depth.
const WHOLE: &str = "whole";
const DEPTH: &str = "depth:";
/// Separator of paths.
const AND: char = ',';

impl FromStr for Blocks {
    type Err = Error;

    fn from_str(text: &str) -> Result<Blocks, Error> {
        if text == WHOLE {
            return Ok(Blocks::Whole);
        }
        if let Some(depth) =
            text.strip_prefix(DEPTH).and_then(|depth| depth.parse().ok()).filter(|&depth| depth > 0)
        {
            return Ok(Blocks::Depth(depth));
        }
        let path = |part: &str| match part.parse() {
            Ok(Selection::Module(path)) => Ok(path),
            _ => Err(Error::NoBlocks { text: text.to_owned() }),
        };
        text.split(AND).map(path).collect::<Result<_, _>>().map(Blocks::Modules)
    }
}

impl fmt::Display for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Blocks::Repeated => f.write_str("repeated"),
            Blocks::Whole => f.write_str(WHOLE),
            Blocks::Depth(depth) => write!(f, "{DEPTH}{depth}"),
            Blocks::Modules(paths) => {
                let paths: Vec<String> =
                    paths.iter().map(|path| Selection::Module(path.clone()).to_string()).collect();
                f.write_str(&paths.join(&AND.to_string()))
            }
        }
    }
}

impl Blocks {
    /// Finds the blocks among the ops of the forward pass. Repeated blocks are modules of the most often called class that has inner modules; where
    /// modules are unknown, they are the stretches of the forward pass that `again` returns, each as the range of its ops.
    ///
    /// # Errors
    /// Where no module matches, or no module of the step is known.
    pub(crate) fn find(
        &self,
        step: &StepIr,
        forward: &[OpId],
        facts: &Facts<'_>,
        again: impl Fn() -> Vec<Range<usize>>,
    ) -> Result<BlockAssignment, Error> {
        let modules = facts.modules.filter(|modules| !modules.list.is_empty());
        match (self, modules) {
            (Blocks::Whole, _) => Ok(BlockAssignment::none(forward.len())),
            (Blocks::Repeated, Some(modules)) => {
                let class = most_called(modules);
                let is = |at: ModuleId| Some(&modules.list[at].class) == class.as_ref();
                let found = by_modules(step, forward, modules, &is);
                Ok(if found.names.len() > 1 { found } else { by_repeats(forward.len(), again()) })
            }
            (Blocks::Repeated, None) => Ok(by_repeats(forward.len(), again())),
            (_, None) => Err(Error::NoModules),
            (Blocks::Depth(depth), Some(modules)) => {
                let is = |at: ModuleId| block_assignment::around(modules, at).count() == depth + 1;
                self.some(by_modules(step, forward, modules, &is))
            }
            (Blocks::Modules(paths), Some(modules)) => {
                for path in paths {
                    if !modules.list.iter().any(|module| matches(path, &module.path)) {
                        return Err(Error::NoSuchModule { text: path.clone() });
                    }
                }
                let is = |at: ModuleId| paths.iter().any(|path| matches(path, &modules.list[at].path));
                self.some(by_modules(step, forward, modules, &is))
            }
        }
    }

    fn some(&self, found: BlockAssignment) -> Result<BlockAssignment, Error> {
        if found.names.is_empty() { Err(Error::NoSuchModule { text: self.to_string() }) } else { Ok(found) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_the_whole_a_depth_or_modules() {
        assert_eq!("whole".parse(), Ok(Blocks::Whole));
        assert_eq!("depth:2".parse(), Ok(Blocks::Depth(2)));
        let paths = |paths: &[&str]| Ok(Blocks::Modules(paths.iter().map(|&path| path.to_owned()).collect()));
        assert_eq!("module:Net.blocks.*".parse(), paths(&["Net.blocks.*"]));
        assert_eq!("module:Net.down.*,module:Net.up.*".parse(), paths(&["Net.down.*", "Net.up.*"]));
        for wrong in [
            "depth:0",
            "depth:x",
            "module:",
            "aten::relu",
            "ops[3]",
            "",
            "module:Net.a,",
            "module:Net.a,depth:1",
        ] {
            assert!(wrong.parse::<Blocks>().is_err(), "{wrong}");
        }
        for text in ["whole", "depth:2", "module:Net.down.*,module:Net.up.*"] {
            assert_eq!(text.parse::<Blocks>().map(|blocks| blocks.to_string()), Ok(text.to_owned()));
        }
    }
}
