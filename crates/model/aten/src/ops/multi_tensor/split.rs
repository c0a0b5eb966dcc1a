//! Number of launches for a list of tensors.

use crate::call::Tensor;

/// Elements per chunk.
pub(crate) const CHUNK: u64 = 65_536;
/// Maximum number of chunks per launch.
pub(super) const CHUNKS: u64 = 320;
/// Maximum number of tensors per launch, by the number of lists.
const TENSORS: [u64; 5] = [110, 64, 48, 36, 30];

/// Division of a list into launches.
#[derive(Default)]
pub(super) struct Split {
    pub(super) launches: u32,
    /// Elements of the longest chunk of each launch, summed.
    pub(super) serial: u64,
}

/// Divides tensors in order, chunk by chunk: a launch is full with its last tensor's last chunk, or with its last chunk.
pub(super) fn split(list: &[Tensor], lists: u64) -> Split {
    let most = TENSORS[(lists.clamp(1, 5) - 1) as usize];
    let (mut done, mut tensors, mut chunks, mut longest) = (Split::default(), 0, 0, 0);
    for numel in list.iter().map(Tensor::numel).filter(|&numel| numel > 0) {
        tensors += 1;
        let mut left = numel;
        while left > 0 {
            if chunks == 0 && left > CHUNK * CHUNKS {
                // Launches that are full of this tensor alone.
                let full = (left - 1) / (CHUNK * CHUNKS);
                done.launches = done.launches.saturating_add(u32::try_from(full).unwrap_or(u32::MAX));
                done.serial = done.serial.saturating_add(full.saturating_mul(CHUNK));
                left -= full * CHUNK * CHUNKS;
                tensors = 1;
            }
            let chunk = left.min(CHUNK);
            left -= chunk;
            chunks += 1;
            longest = longest.max(chunk);
            if chunks == CHUNKS || (tensors == most && left == 0) {
                done.launches = done.launches.saturating_add(1);
                done.serial = done.serial.saturating_add(longest);
                (tensors, chunks, longest) = (u64::from(left > 0), 0, 0);
            }
        }
    }
    done.launches = done.launches.saturating_add(u32::from(chunks > 0));
    done.serial = done.serial.saturating_add(longest);
    done
}
