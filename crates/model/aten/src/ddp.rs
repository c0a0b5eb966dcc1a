//! Gradient buckets of `DistributedDataParallel`.

/// Size from which the first bucket is full, in bytes.
const FIRST: u64 = 1 << 20;
/// Size from which the other buckets are full, in bytes (`bucket_cap_mb`).
const OTHERS: u64 = 25 << 20;

/// Distributes gradients to buckets in the order in which they arrive, given the bytes of each. This is how PyTorch fills buckets after its first
/// step.
/// `full` is the size in bytes from which a bucket is full, if the script sets it (`bucket_cap_mb`).
#[must_use]
pub fn buckets(bytes: impl IntoIterator<Item = u64>, full: Option<u64>) -> Vec<Vec<usize>> {
    let mut buckets: Vec<Vec<usize>> = Vec::new();
    let (mut open, mut size) = (Vec::new(), 0_u64);
    for (at, bytes) in bytes.into_iter().enumerate() {
        open.push(at);
        size = size.saturating_add(bytes);
        let limit = full.unwrap_or(if buckets.is_empty() { FIRST } else { OTHERS });
        if size >= limit {
            buckets.push(std::mem::take(&mut open));
            size = 0;
        }
    }
    if !open.is_empty() {
        buckets.push(open);
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::buckets;

    /// Eight layers of 1024 x 1024 and one of 1024 x 1, as distributed by PyTorch 2.11 in a recording: 1,050,625 and 7,347,200 elements.
    #[test]
    fn the_first_bucket_is_small() {
        let layers = [1, 1024].into_iter().chain([1024, 1 << 20].into_iter().cycle().take(16));
        let sizes: Vec<u64> = layers.collect();
        let dealt = buckets(sizes.iter().map(|elements| elements * 4), None);
        let elements: Vec<u64> = dealt.iter().map(|own| own.iter().map(|&at| sizes[at]).sum()).collect();
        assert_eq!(elements, [1_050_625, 7_347_200]);
        assert_eq!(buckets([8, 8, 8], Some(16)), [vec![0, 1], vec![2]]);
        assert!(buckets([], None).is_empty());
    }
}
