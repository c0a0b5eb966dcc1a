//! What is asked of a GPU.

/// What the gather plan asks of a GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gpu {
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of the second-level cache that hold data which comes back later.
    pub cache_bytes: f64,
    /// What a large copy within the device reaches, read plus written, GB/s.
    pub memory_gb_s: f64,
    /// The duration of the shortest kernel, µs.
    pub floor_us: f64,
    /// What was measured of gathers on it.
    pub gather: GatherRates,
}

/// What was measured of gathers on a GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GatherRates {
    /// Lookups under way on one multiprocessor, at most: those of the next slice start while the last ones of a slice
    /// are.
    pub under_way: f64,
    /// How much room in the cache the output takes, of its bytes: it is stored to be evicted first.
    pub output_room: f64,
    /// The share of the copy rate at which memory moves almost nothing but writes of rows in no order: rows scattered
    /// over memory make it turn more often than a copy does.
    pub writes_only: f64,
    /// What is added to that share where all that moves is read, in proportion.
    pub with_reads: f64,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The GPU that the reads and times in these tests were measured on, as `profiles/h200` has it.
    pub fn h200() -> Gpu {
        Gpu {
            multiprocessors: 132,
            cache_bytes: 39_007_027.0,
            memory_gb_s: 4241.44,
            floor_us: 1.056,
            gather: GatherRates { under_way: 8.0, output_room: 0.75, writes_only: 0.87, with_reads: 0.17 },
        }
    }
}
