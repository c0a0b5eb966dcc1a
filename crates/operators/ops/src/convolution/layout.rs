//! The order of a tensor's elements in memory.

/// Innermost dimension of an image. Shapes are written in the order of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// Images `[N, C, H, W]`, weights `[O, C / groups, KH, KW]`.
    #[default]
    ChannelsFirst,
    /// Images `[N, H, W, C]`, weights `[O, KH, KW, C / groups]`.
    ChannelsLast,
}

impl Layout {
    /// The shape, in the order of memory, of outer size `n`, channels and an image.
    pub(super) fn shape(self, n: usize, channels: usize, [h, w]: [usize; 2]) -> [usize; 4] {
        match self {
            Layout::ChannelsFirst => [n, channels, h, w],
            Layout::ChannelsLast => [n, h, w, channels],
        }
    }

    /// Elements from one (outer, channel, row, column) to the next.
    pub(super) fn strides(self, channels: usize, [h, w]: [usize; 2]) -> Strides {
        match self {
            Layout::ChannelsFirst => Strides { outer: channels * h * w, channel: h * w, row: w, col: 1 },
            Layout::ChannelsLast => {
                Strides { outer: channels * h * w, channel: 1, row: w * channels, col: channels }
            }
        }
    }
}

/// Elements from one place to the next, along each size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Strides {
    pub(super) outer: usize,
    pub(super) channel: usize,
    pub(super) row: usize,
    pub(super) col: usize,
}
