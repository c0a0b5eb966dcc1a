//! Properties of a GPU that the closed forms need.

/// Properties of a GPU that the gather plan needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gpu {
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of the second-level cache that hold data which comes back later.
    pub cache_bytes: f64,
    /// Rate of a large copy within the device, read plus written, GB/s.
    pub memory_gb_s: f64,
    /// Duration of the shortest kernel, µs.
    pub floor_us: f64,
    /// Measured rates of gathers on it.
    pub gather: GatherRates,
}

/// Measured rates of gathers on a GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GatherRates {
    /// Lookups in flight on one multiprocessor, at most: those of the next slice start while the last ones of a slice run.
    pub under_way: f64,
    /// Cache room that the output takes, as a share of its bytes: it is stored to be evicted first.
    pub output_room: f64,
    /// Share of the copy rate that memory reaches if almost all traffic is writes of rows in no order: rows scattered
    /// over memory make it turn more often than a copy does.
    pub writes_only: f64,
    /// Addition to that share if all traffic is reads; in proportion otherwise.
    pub with_reads: f64,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// GPU on which the reads and times in these tests were measured, with the values of `profiles/h200`.
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
