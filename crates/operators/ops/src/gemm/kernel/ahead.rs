//! Memory that a sweep prefetches during its arithmetic, a little at a time.

/// Number of lines of a vector's size that are prefetched at a time.
pub(super) const LINES: usize = 2;

/// Number of floats in a line.
const LINE: usize = 16;

/// A rectangle of memory: rows of `len` floats, `stride` apart.
#[derive(Clone, Copy)]
pub(crate) struct Region {
    pub(crate) start: *const f32,
    pub(crate) rows: usize,
    pub(crate) len: usize,
    pub(crate) stride: usize,
}

impl Region {
    /// An empty region.
    pub(crate) const NONE: Region = Region { start: std::ptr::null(), rows: 0, len: 0, stride: 0 };

    /// `len` floats from `start` on.
    pub(crate) fn run(start: *const f32, len: usize) -> Region {
        Region { start, rows: 1, len, stride: 0 }
    }
}

/// Two regions to prefetch, one after the other. They are never read, so they may be at any address.
pub(crate) struct PrefetchRegions {
    at: *const f32,
    end: *const f32,
    now: Region,
    then: Region,
}

impl PrefetchRegions {
    /// Prefetches `first`, then `second`.
    pub(crate) fn new(first: Region, second: Region) -> PrefetchRegions {
        let mut ahead = PrefetchRegions { at: first.start, end: first.start, now: first, then: second };
        ahead.enter();
        ahead
    }

    /// Goes to the first row of the current region, or of the next one.
    #[inline(always)]
    fn enter(&mut self) {
        if self.now.rows == 0 {
            self.now = self.then;
            self.then = Region::NONE;
        }
        self.at = self.now.start;
        self.end = self.at.wrapping_add(self.now.len);
    }

    /// Returns the next address to prefetch, and advances. Any address, once both regions are done.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "asked for by AVX-512 alone"))]
    pub(super) fn next(&mut self) -> *const f32 {
        let at = self.at;
        self.at = at.wrapping_add(LINES * LINE);
        if self.at >= self.end && self.now.rows > 0 {
            self.now.rows -= 1;
            self.now.start = self.now.start.wrapping_add(self.now.stride);
            self.enter();
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_both_regions_are_asked_for_in_order() {
        let data = [0.0_f32; 400];
        let place = |at: usize| data.as_ptr().wrapping_add(at);
        let first = Region { start: place(0), rows: 2, len: 40, stride: 100 };
        let mut ahead = PrefetchRegions::new(first, Region::run(place(300), 32));
        for expected in [0, 32, 100, 132, 300] {
            assert_eq!(ahead.next(), place(expected));
        }
        let mut only = PrefetchRegions::new(Region::NONE, Region::run(place(5), 1));
        assert_eq!(only.next(), place(5));
    }
}
