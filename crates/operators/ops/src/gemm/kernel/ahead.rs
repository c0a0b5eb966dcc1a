//! What a sweep asks for from farther away while it adds, a little at a time.

/// Lines of a vector's size that are asked for at a time.
pub(super) const LINES: usize = 2;

/// Floats in a line.
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
    /// Nothing.
    pub(crate) const NONE: Region = Region { start: std::ptr::null(), rows: 0, len: 0, stride: 0 };

    /// `len` floats from `start` on.
    pub(crate) fn run(start: *const f32, len: usize) -> Region {
        Region { start, rows: 1, len, stride: 0 }
    }
}

/// Two regions on their way, one after the other. They are asked for only, never read, so that they may lie anywhere.
pub(crate) struct Ahead {
    at: *const f32,
    end: *const f32,
    now: Region,
    then: Region,
}

impl Ahead {
    /// First this, then that.
    pub(crate) fn new(first: Region, second: Region) -> Ahead {
        let mut ahead = Ahead { at: first.start, end: first.start, now: first, then: second };
        ahead.enter();
        ahead
    }

    /// Goes to the first row of what is now asked for, or of what comes then.
    #[inline(always)]
    fn enter(&mut self) {
        if self.now.rows == 0 {
            self.now = self.then;
            self.then = Region::NONE;
        }
        self.at = self.now.start;
        self.end = self.at.wrapping_add(self.now.len);
    }

    /// Where to ask now, and on to the next lines. Nowhere in particular, once all is asked for.
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
        let mut ahead = Ahead::new(first, Region::run(place(300), 32));
        for expected in [0, 32, 100, 132, 300] {
            assert_eq!(ahead.next(), place(expected));
        }
        let mut only = Ahead::new(Region::NONE, Region::run(place(5), 1));
        assert_eq!(only.next(), place(5));
    }
}
