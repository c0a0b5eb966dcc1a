//! The sizes of a case by their letters.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// Memory limit for operands where the system does not report its free memory.
const UNKNOWN_MEMORY: u64 = 4 << 30;

/// Sizes by their letters, as given: `E=65536,D=768`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedSizes(pub Vec<(String, usize)>);

/// A text that is not a list of sizes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// A part without a letter.
    #[error("{0:?} is not a size: write E=65536")]
    Part(String),
    /// A text that is not a number, or a number that is too large.
    #[error("{0:?} is not a size: give 1 to {max}", max = u32::MAX)]
    Number(String),
}

impl FromStr for TypedSizes {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<TypedSizes, SizeError> {
        let one = |part: &str| {
            let (key, number) = part.split_once('=').ok_or_else(|| SizeError::Part(part.to_owned()))?;
            Ok((key.trim().to_owned(), size(number)?))
        };
        text.split(',').map(one).collect::<Result<_, _>>().map(TypedSizes)
    }
}

/// A size, 1 to `u32::MAX`, so that products of two do not overflow.
///
/// # Errors
///
/// The text is not such a number.
pub fn size(text: &str) -> Result<usize, SizeError> {
    let number = text.trim().parse::<u32>().ok().filter(|&number| number > 0);
    number.map(|number| number as usize).ok_or_else(|| SizeError::Number(text.to_owned()))
}

/// Sizes in the order of their letters.
#[derive(Debug, Clone)]
pub struct Sizes(Vec<(&'static str, usize)>);

impl Sizes {
    /// Sizes of these letters and numbers.
    pub fn new<const N: usize>(sizes: [(&'static str, usize); N]) -> Sizes {
        Sizes(sizes.to_vec())
    }

    /// The given sizes, with defaults for the others.
    pub fn typed(keys: &[(&'static str, usize)], typed: &TypedSizes) -> Result<Sizes, Error> {
        let mut sizes = keys.to_vec();
        for (key, size) in &typed.0 {
            let Some(place) = sizes.iter_mut().find(|(known, _)| known == key) else {
                let known = keys.iter().map(|(key, _)| *key).collect();
                return Err(Error::UnknownSize { letter: key.clone(), known });
            };
            place.1 = *size;
        }
        Ok(Sizes(sizes))
    }

    /// The size of a letter; 0 for an unknown letter.
    pub fn get(&self, key: &str) -> usize {
        self.0.iter().find(|(known, _)| *known == key).map_or(0, |(_, size)| *size)
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.0.iter().map(|(key, size)| format!("{key}={size}")).collect();
        f.write_str(&words.join(","))
    }
}

/// Fails unless this many floats, given as the factors of several products, fit into free memory.
pub fn check_memory(operands: &[&[usize]]) -> Result<(), Error> {
    check_room(operands, steptime_ops::limits::available_memory().unwrap_or(UNKNOWN_MEMORY))
}

/// Fails unless this many floats, given as the factors of several products, fit into `free` bytes.
pub fn check_room(operands: &[&[usize]], free: u64) -> Result<(), Error> {
    let product = |factors: &&[usize]| factors.iter().map(|&factor| factor as f64).product::<f64>();
    let needed = 4.0 * operands.iter().map(product).sum::<f64>();
    let free = free as f64;
    if needed > 0.9 * free { Err(Error::Memory { needed, free }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_replaces_what_is_usual() {
        let typed: TypedSizes = "N=7,M=3".parse().unwrap();
        let sizes = Sizes::typed(&[("M", 1), ("N", 2), ("K", 4)], &typed).unwrap();
        assert_eq!(sizes.to_string(), "M=3,N=7,K=4");
        let error = Sizes::typed(&[("M", 1)], &typed).err().unwrap().to_string();
        assert!(error.contains("no size N here"), "{error}");
        for bad in ["M", "M=0", "M=-1", "M=x", "M=99999999999", ""] {
            assert!(bad.parse::<TypedSizes>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn no_machine_has_so_much_memory() {
        assert!(check_memory(&[&[1 << 30, 1 << 30]]).is_err());
        assert!(check_memory(&[&[16, 16], &[4]]).is_ok());
    }
}
