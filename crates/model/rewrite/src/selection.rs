//! Ops that a change is told of: by name, or by number.

use std::fmt;
use std::str::FromStr;

use rustc_hash::FxHashSet;
use steptime_step::{OpId, Step};

use crate::error::Error;

/// Ops of a step: `aten::dropout` are all of that name, `aten::*norm*` all whose name has these parts, `ops[17]` is the 17th of
/// the recording, counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All of a name; `*` stands for any letters.
    Named(String),
    /// One of the recording.
    Numbered(u32),
}

impl FromStr for Selection {
    type Err = Error;

    fn from_str(text: &str) -> Result<Selection, Error> {
        let text = text.trim();
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
        }
    }
}

impl Selection {
    /// The ops that any of these names, in the order in which they begin. What is inside one of them is not named again.
    ///
    /// # Errors
    /// Where one names none.
    pub(crate) fn find(all: &[Selection], step: &Step) -> Result<Vec<OpId>, Error> {
        let running = step.running();
        let mut chosen = FxHashSet::default();
        for selection in all {
            let mut found = running.iter().filter(|&&op| selection.names(step, op)).peekable();
            if found.peek().is_none() {
                return Err(Error::NoSuchOp { text: selection.to_string() });
            }
            chosen.extend(found.copied());
        }
        let outermost = |op: &OpId| !step.around(*op).skip(1).any(|around| chosen.contains(&around));
        Ok(running.into_iter().filter(|op| chosen.contains(op)).filter(outermost).collect())
    }

    fn names(&self, step: &Step, op: OpId) -> bool {
        match self {
            Selection::Named(pattern) => matches(pattern, &step.ops[op].name),
            Selection::Numbered(number) => usize::from(op) == *number as usize,
        }
    }
}

/// Whether a name has the parts of a pattern, in order; `*` stands for what is between them.
fn matches(pattern: &str, name: &str) -> bool {
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
    fn numbers_stand_in_brackets() {
        assert_eq!("ops[17]".parse(), Ok(Selection::Numbered(17)));
        assert_eq!(" aten::mm ".parse(), Ok(Selection::Named("aten::mm".to_owned())));
        for wrong in ["ops[x]", "ops[-1]", " "] {
            assert!(wrong.parse::<Selection>().is_err(), "{wrong}");
        }
        assert_eq!(Selection::Numbered(17).to_string(), "ops[17]");
    }
}
