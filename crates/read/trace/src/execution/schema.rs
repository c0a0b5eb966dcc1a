//! Version of an execution trace's layout.

use std::fmt;

/// Schema such as `1.1.1-chakra.0.0.4`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Schema {
    /// Major version: readers of one cannot read another.
    pub major: u32,
    /// Minor version. 0: without descriptions of process groups; 1: with them.
    pub minor: u32,
    /// Patch version: additions.
    pub patch: u32,
    /// Version of the Chakra schema that it follows, for example `0.0.4`.
    pub chakra: Option<String>,
}

impl Schema {
    /// Parses `1.0.0` or `1.1.1-chakra.0.0.4`; missing or invalid numbers count as zero.
    #[must_use]
    pub fn parse(text: &str) -> Schema {
        let (version, suffix) = match text.split_once('-') {
            Some((version, suffix)) => (version, Some(suffix)),
            None => (text, None),
        };
        let mut numbers = version.split('.').map(|number| number.trim().parse().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        Schema {
            major: next(),
            minor: next(),
            patch: next(),
            chakra: suffix.map(|suffix| suffix.trim_start_matches("chakra.").to_owned()),
        }
    }

    /// Whether this reader supports the schema.
    #[must_use]
    pub fn is_known(&self) -> bool {
        matches!((self.major, self.minor, self.patch), (1, 0, 0..=4) | (1, 1, 0..=1))
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}.{}", self.major, self.minor, self.patch)?;
        match &self.chakra {
            Some(chakra) => write!(out, "-chakra.{chakra}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_prints() {
        for text in ["1.0.0", "1.1.1-chakra.0.0.4"] {
            let schema = Schema::parse(text);
            assert_eq!(schema.to_string(), text);
            assert!(schema.is_known());
        }
        assert!(!Schema::parse("2.0.0").is_known());
        assert!(!Schema::parse("").is_known());
        assert_eq!(Schema::parse("x.y").to_string(), "0.0.0");
    }
}
