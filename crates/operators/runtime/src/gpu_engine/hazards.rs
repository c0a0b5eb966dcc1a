//! Order that memory demands: which parts of a step use the same bytes, at least one of them writing.

use crate::bytes::Bytes;

/// The parts of a step so far.
#[derive(Debug, Default)]
pub(super) struct Hazards {
    parts: Vec<Vec<Bytes>>,
    /// Parts that each one waits for, directly or not.
    before: Vec<Vec<bool>>,
}

impl Hazards {
    /// The parts that one with these bytes has to wait for besides those `after` it waits for anyway, without those that others of them wait for.
    pub(super) fn find(&self, bytes: &[Bytes], after: &[usize]) -> Vec<usize> {
        let conflicts =
            |part: &Vec<Bytes>| part.iter().any(|one| bytes.iter().any(|other| one.conflicts(other)));
        let mut covered = vec![false; self.parts.len()];
        let mut found = Vec::new();
        for at in (0..self.parts.len()).rev() {
            if !covered[at] && (after.contains(&at) || conflicts(&self.parts[at])) {
                found.push(at);
                covered.iter_mut().zip(&self.before[at]).for_each(|(covered, before)| *covered |= before);
            }
        }
        found
    }

    /// Adds a part that waits for others.
    pub(super) fn push(&mut self, bytes: Vec<Bytes>, after: &[usize]) {
        let mut before = vec![false; self.parts.len()];
        for &at in after {
            before[at] = true;
            before.iter_mut().zip(&self.before[at]).for_each(|(own, before)| *own |= before);
        }
        self.parts.push(bytes);
        self.before.push(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::tests::bytes;

    #[test]
    fn a_part_waits_for_the_last_of_a_chain_alone() {
        let mut hazards = Hazards::default();
        let (write, read) = (bytes(0..8, true), bytes(0..8, false));
        hazards.push(vec![write], &[]);
        hazards.push(vec![bytes(8..16, true)], &[]);
        let next = hazards.find(&[write], &[]);
        assert_eq!(next, [0]);
        hazards.push(vec![write], &next);
        assert_eq!(hazards.find(&[read], &[]), [2], "part 2 has waited for part 0");
        assert_eq!(hazards.find(&[read], &[1]), [2, 1]);
        assert_eq!(hazards.find(&[bytes(16..24, true)], &[]), [0_usize; 0]);
    }
}
