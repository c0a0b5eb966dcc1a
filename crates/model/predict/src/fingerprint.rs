//! Identity of a recording, independent of its name.

use std::fmt;

use steptime_trace::{Nanos, Trace};

/// A number that identifies a recording: a hash of the times of its calls and device activities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// Hashes a trace: FNV-1a over the duration of each call and each device activity, in file order.
    #[must_use]
    pub fn from_trace(trace: &Trace) -> Fingerprint {
        let times = trace.calls.dur.iter().chain(&trace.activities.dur);
        let hash = times.fold(0xcbf2_9ce4_8422_2325, |hash: u64, &Nanos(time)| {
            (hash ^ time as u64).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Fingerprint(hash)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(times: &[i64]) -> Trace {
        let mut trace = Trace::default();
        trace.calls.dur = times.iter().copied().map(Nanos).collect();
        trace
    }

    #[test]
    fn every_time_and_its_place_count() {
        let of = |times: &[i64]| Fingerprint::from_trace(&trace(times));
        assert_eq!(of(&[1, 2, 3]), of(&[1, 2, 3]));
        assert_ne!(of(&[1, 2, 3]), of(&[1, 3, 2]));
        assert_ne!(of(&[1, 2, 3]), of(&[1, 2, 4]));
        assert_eq!(of(&[7]).to_string().len(), 16);
    }
}
