//! Selection of ops by name, by number, or by the module that ran them.

use std::fmt;
use std::str::FromStr;

use rustc_hash::FxHashSet;
use steptime_graph::ModuleId;
use steptime_step::{OpId, StepIr};

use crate::error::Error;
use crate::passes::Passes;
use crate::rule::Facts;

/// Ops of a step: `aten::dropout` selects all of that name, `aten::*norm*` all whose name has these parts, `ops[17]` op 17 of the recording, counted
/// from 0, and `module:DLRM.bottom` those of a module's forward pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All ops of a name; `*` matches any letters.
    Named(String),
    /// Number of one recorded op.
    Numbered(u32),
    /// Ops of the forward pass of modules and of all modules inside them; `*` matches any letters of a path.
    Module(String),
}

/// Prefix of module paths.
const MODULE: &str = "module:";

impl FromStr for Selection {
    type Err = Error;

    fn from_str(text: &str) -> Result<Selection, Error> {
        let text = text.trim();
        match text.strip_prefix(MODULE) {
            Some("") => return Err(Error::NoSelection { text: text.to_owned() }),
            Some(path) => return Ok(Selection::Module(path.to_owned())),
            None => {}
        }
        let number = text.strip_prefix("ops[").and_then(|rest| rest.strip_suffix(']'));
        match number.map(str::parse) {
            Some(Ok(number)) => Ok(Selection::Numbered(number)),
            None if !text.is_empty() => Ok(Selection::Named(text.to_owned())),
            _ => Err(Error::NoSelection { text: text.to_owned() }),
        }
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selection::Named(name) => f.write_str(name),
            Selection::Numbered(number) => write!(f, "ops[{number}]"),
            Selection::Module(path) => write!(f, "{MODULE}{path}"),
        }
    }
}

impl Selection {
    /// The ops that match any of the selections, in the order in which they begin. Ops inside a selected one are left out.
    ///
    /// # Errors
    /// Where a selection matches no op.
    pub(crate) fn find(all: &[Selection], step: &StepIr, facts: &Facts<'_>) -> Result<Vec<OpId>, Error> {
        let running = step.running();
        let mut chosen = FxHashSet::default();
        for selection in all {
            let found = match selection {
                Selection::Module(pattern) => in_modules(pattern, step, facts),
                Selection::Named(_) | Selection::Numbered(_) => {
                    running.iter().copied().filter(|&op| selection.names(step, op)).collect()
                }
            };
            if found.is_empty() {
                return Err(selection.missing(facts));
            }
            chosen.extend(found);
        }
        let outermost = |op: &OpId| !step.around(*op).skip(1).any(|around| chosen.contains(&around));
        Ok(running.into_iter().filter(|op| chosen.contains(op)).filter(outermost).collect())
    }

    fn names(&self, step: &StepIr, op: OpId) -> bool {
        match self {
            Selection::Named(pattern) => matches(pattern, &step.ops[op].name),
            Selection::Numbered(number) => usize::from(op) == *number as usize,
            Selection::Module(_) => false,
        }
    }

    fn missing(&self, facts: &Facts<'_>) -> Error {
        let text = self.to_string();
        match self {
            Selection::Named(_) | Selection::Numbered(_) => Error::NoSuchOp { text },
            Selection::Module(_) if facts.modules.is_none_or(|modules| modules.list.is_empty()) => {
                Error::NoModules
            }
            Selection::Module(path) => {
                let called = facts.modules.into_iter().flat_map(|modules| &modules.list);
                let known = called.into_iter().any(|module| matches(path, &module.path));
                let text = path.clone();
                if known { Error::ModuleWithoutOps { text } } else { Error::NoSuchModule { text } }
            }
        }
    }
}

/// The ops that a rule may change: all, or chosen ones.
pub(crate) struct Among(Option<Vec<OpId>>);

impl Among {
    /// All ops.
    pub(crate) const ALL: Among = Among(None);

    /// Ops that match selections.
    ///
    /// # Errors
    /// As [`Selection::find`].
    pub(crate) fn chosen(all: &[Selection], step: &StepIr, facts: &Facts<'_>) -> Result<Among, Error> {
        Ok(Among(Some(Selection::find(all, step, facts)?)))
    }

    /// Whether an op is a chosen one, is inside one, or has one inside it.
    pub(crate) fn has(&self, step: &StepIr, op: OpId) -> bool {
        let Among(Some(chosen)) = self else { return true };
        chosen.iter().any(|&one| step.is_within(one, op) || step.is_within(op, one))
    }
}

/// The outermost ops of the forward pass that modules ran.
fn in_modules(pattern: &str, step: &StepIr, facts: &Facts<'_>) -> Vec<OpId> {
    let Some(modules) = facts.modules else { return Vec::new() };
    let chosen = |module: ModuleId| {
        let mut around = std::iter::successors(Some(module), |&at| modules.list[at].parent);
        around.any(|at| matches(pattern, &modules.list[at].path))
    };
    let of = |op: OpId| step.recorded(op).and_then(|op| modules.of.get(op).copied().flatten());
    Passes::find(step).forward.into_iter().filter(|&op| of(op).is_some_and(chosen)).collect()
}

/// Whether a name has the parts of a pattern, in order; `*` matches any text between them.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::{Selection, matches};

    #[test]
    fn a_star_stands_for_any_letters() {
        for (pattern, fits) in
            [("aten::relu", true), ("aten::*", true), ("*relu", true), ("*", true), ("a*n*::*u", true)]
        {
            assert_eq!(matches(pattern, "aten::relu"), fits, "{pattern}");
        }
        for pattern in ["aten::rel", "relu*", "*relu_", "aten::relu*u", "", "a*b*u"] {
            assert!(!matches(pattern, "aten::relu"), "{pattern}");
        }
    }

    #[test]
    fn numbers_stand_in_brackets_and_modules_behind_their_kind() {
        assert_eq!("ops[17]".parse(), Ok(Selection::Numbered(17)));
        assert_eq!(" aten::mm ".parse(), Ok(Selection::Named("aten::mm".to_owned())));
        assert_eq!("module:M.0".parse(), Ok(Selection::Module("M.0".to_owned())));
        for wrong in ["module:", "ops[x]", "ops[-1]", " "] {
            assert!(wrong.parse::<Selection>().is_err(), "{wrong}");
        }
        assert_eq!(Selection::Numbered(17).to_string(), "ops[17]");
    }
}
