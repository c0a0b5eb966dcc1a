//! Chains of functions: results of one are operands of the next.

use std::ops::Range;

use super::function::{Function, Type};
use crate::Error;

/// Functions of one element of each input, one after the other.
///
/// Values are numbered: the inputs first, then the results of each call. A value of 16 bits is rounded where it is computed, so that a chain has
/// the bits of its functions run one by one.
#[derive(Debug, Clone)]
pub struct Chain {
    pub(super) inputs: usize,
    /// Type of each value.
    pub(super) values: Vec<Type>,
    pub(super) calls: Vec<Call>,
    /// Values that are stored.
    pub(super) outputs: Vec<usize>,
}

/// A function with its operands.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) function: Function,
    pub(super) operands: Vec<usize>,
    pub(super) results: Range<usize>,
}

impl Chain {
    /// A chain without functions, whose inputs have these types.
    #[must_use]
    pub fn new(inputs: &[Type]) -> Chain {
        Chain { inputs: inputs.len(), values: inputs.to_vec(), calls: Vec::new(), outputs: Vec::new() }
    }

    /// One function, all of whose results are stored.
    ///
    /// # Errors
    ///
    /// Types that are not those of the function.
    pub fn from_function(function: Function, inputs: &[Type], results: &[Type]) -> Result<Chain, Error> {
        let mut chain = Chain::new(inputs);
        let operands: Vec<usize> = (0..inputs.len()).collect();
        chain.outputs = chain.call(function, &operands, results)?.collect();
        Ok(chain)
    }

    /// Adds a function of earlier values. Returns the numbers of its results.
    ///
    /// # Errors
    ///
    /// Values that the chain does not have; types that are not those of the function.
    pub fn call(
        &mut self,
        function: Function,
        operands: &[usize],
        results: &[Type],
    ) -> Result<Range<usize>, Error> {
        let types = operands.iter().map(|&value| self.value(value)).collect::<Result<Vec<_>, _>>()?;
        function.check(&types, results)?;
        let first = self.values.len();
        self.values.extend(results);
        let results = first..self.values.len();
        self.calls.push(Call { function, operands: operands.to_vec(), results: results.clone() });
        Ok(results)
    }

    /// Adds an output that stores a value.
    ///
    /// # Errors
    ///
    /// A value that the chain does not have.
    pub fn store(&mut self, value: usize) -> Result<(), Error> {
        self.value(value)?;
        self.outputs.push(value);
        Ok(())
    }

    fn value(&self, value: usize) -> Result<Type, Error> {
        self.values.get(value).copied().ok_or(Error::Size {
            what: "the values of a chain of functions",
            found: self.values.len(),
            needed: value + 1,
        })
    }

    /// Types of the operands in memory: inputs, then outputs.
    pub(super) fn operands(&self) -> Vec<Type> {
        let inputs = self.values[..self.inputs].iter().copied();
        inputs.chain(self.outputs.iter().map(|&value| self.values[value])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbered_in_order() {
        let mut chain = Chain::new(&[Type::F32, Type::Bf16]);
        let test = chain.call(Function::AtLeast(0.0), &[0], &[Type::Bool]).unwrap();
        assert_eq!(test, 2..3);
        let choice = chain.call(Function::Where, &[2, 0, 1], &[Type::Bf16]).unwrap();
        assert_eq!(choice, 3..4);
        chain.store(3).unwrap();
        assert_eq!(chain.operands(), [Type::F32, Type::Bf16, Type::Bf16]);
        assert!(chain.store(4).is_err() && chain.call(Function::Convert, &[9], &[Type::F32]).is_err());
        assert!(chain.call(Function::Where, &[0, 0, 1], &[Type::F32]).is_err(), "a float is no truth value");
    }
}
