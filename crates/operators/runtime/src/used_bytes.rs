//! Memory of the tensors of a program.

use std::collections::BTreeMap;

use steptime_step::{TensorId, UsedBytes};

use crate::bytes::Bytes;
use crate::program::Program;

impl Program {
    /// Bytes of the tensors that its instructions use, by region.
    #[must_use]
    pub fn used_bytes(&self) -> BTreeMap<TensorId, UsedBytes> {
        let mut all = BTreeMap::new();
        for instruction in &self.instructions {
            for (one, bytes) in instruction.uses.iter().zip(Bytes::of_uses(instruction)) {
                if let Some(bytes) = bytes {
                    let merged = |known: &mut UsedBytes| *known = bytes.used.merged(known);
                    all.entry(one.tensor).and_modify(merged).or_insert_with(|| bytes.used);
                }
            }
        }
        all
    }
}
