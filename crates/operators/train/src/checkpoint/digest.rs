//! Hashes of files and texts.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use twox_hash::xxhash3_128;

/// An XXH3 hash of 128 bits, written `xxh3-128:` and 32 hexadecimal digits: it detects damage, not forgery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Digest(u128);

const PREFIX: &str = "xxh3-128:";

impl Digest {
    /// Hash of bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Digest(xxhash3_128::Hasher::oneshot(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{:032x}", self.0)
    }
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix(PREFIX).filter(|digits| digits.len() == 32);
        let value = digits.and_then(|digits| u128::from_str_radix(digits, 16).ok());
        value.map(Digest).ok_or_else(|| format!("{text:?} is not a hash: {PREFIX} and 32 hexadecimal digits"))
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl TryFrom<String> for Digest {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// Hash of bytes that arrive in parts.
#[derive(Clone)]
pub struct Hasher(xxhash3_128::Hasher);

impl Default for Hasher {
    fn default() -> Self {
        Hasher(xxhash3_128::Hasher::new())
    }
}

impl Hasher {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    /// Hash of all bytes so far.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest(self.0.finish_128())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_the_hash_of_the_whole() {
        let bytes: Vec<u8> = (0..5000u32).map(|i| ((i * i) >> 3) as u8).collect();
        let mut hasher = Hasher::default();
        bytes.chunks(77).for_each(|part| hasher.update(part));
        assert_eq!(hasher.digest(), Digest::new(&bytes));
        assert_eq!(hasher.digest().to_string().parse(), Ok(hasher.digest()));
    }

    #[test]
    fn the_empty_hash_is_the_published_one() {
        assert_eq!(Digest::new(b"").to_string(), "xxh3-128:99aa06d3014798d86001c324468d497f");
    }

    #[test]
    fn other_texts_are_no_hash() {
        for text in [
            "",
            "xxh3-128:",
            "xxh3-128:0",
            "md5:99aa06d3014798d86001c324468d497f",
            "xxh3-128:+9aa06d3014798d86001c324468d497f1",
        ] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
