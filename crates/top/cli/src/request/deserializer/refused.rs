//! Reasons why arguments are refused.

use std::fmt;

use serde::de::{Error, Expected, Unexpected};
use serde_json::Value;

use super::literal::literal;

/// Reason why arguments are refused.
#[derive(Debug)]
pub struct Refused {
    words: String,
    /// Whether the words contain the argument.
    named: bool,
}

impl Refused {
    /// Returns the reason with the argument that it is about.
    pub fn about(self, argument: &str, value: Option<&Value>) -> Refused {
        match value {
            _ if self.named => self,
            Some(value) => {
                Refused { words: format!("{argument}={}: {}", literal(value), self.words), named: true }
            }
            None => Refused { words: format!("{argument}: {}", self.words), named: true },
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl std::error::Error for Refused {}

impl Error for Refused {
    fn custom<T: fmt::Display>(words: T) -> Refused {
        Refused { words: words.to_string(), named: false }
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Refused {
        Refused::custom(format!("must be {}", kind(&expected.to_string())))
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Refused {
        Refused::custom(format!("must be {}", kind(&expected.to_string())))
    }

    fn unknown_variant(_: &str, known: &'static [&'static str]) -> Refused {
        Refused::custom(format!("must be one of {}", known.join(", ")))
    }
}

/// Returns a type of Rust as a kind of value.
fn kind(expected: &str) -> String {
    match expected {
        "u16" => format!("a whole number from 0 to {}", u16::MAX),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u64" | "usize" => "a whole number, 0 or more".to_owned(),
        "a nonzero usize" => "a whole number, 1 or more".to_owned(),
        "a boolean" => "True or False".to_owned(),
        "a string" | "path string" => "a text".to_owned(),
        other => other.to_owned(),
    }
}
