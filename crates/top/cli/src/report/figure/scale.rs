//! Scales of an axis: ticks where the points are.

use std::sync::Arc;

use kuva::TickFormat;
use kuva::render::layout::Layout;

use crate::report::format::grouped;

/// Ratio of values above which an axis is logarithmic.
const WIDE: f64 = 30.0;
/// Maximum relative difference of two ratios, or of two distances, that count as equal.
const EQUAL: f64 = 1e-9;

/// Positions of values along an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// Proportional to the values.
    Linear,
    /// Logarithmic, with ticks at decades.
    Logarithmic,
    /// Each value is the last one times a ratio: 1, 2, 4 or 512, 1024, 2048.
    Geometric {
        /// Least value.
        first: f64,
        /// Ratio of neighbours.
        ratio: f64,
    },
    /// Each value is the last one and a distance: 1, 2, 3 or 100, 150, 200.
    Even {
        /// Least value.
        first: f64,
        /// Distance of neighbours.
        distance: f64,
    },
}

impl Scale {
    /// Returns the scale of given values, with a tick at each if they are a series.
    pub fn from_points(values: impl Iterator<Item = f64>) -> Scale {
        let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let [first, second, ..] = values[..] else { return Scale::Linear };
        let all = |holds: &dyn Fn(f64, f64) -> bool| values.windows(2).all(|pair| holds(pair[0], pair[1]));
        let (distance, ratio) = (second - first, second / first);
        if all(&|a, b| (b - a - distance).abs() <= EQUAL * b.abs()) {
            return Scale::Even { first, distance };
        }
        if first > 0.0 && all(&|a, b| (b / a / ratio - 1.0).abs() <= EQUAL) {
            return Scale::Geometric { first, ratio };
        }
        Scale::from_range(first, values[values.len() - 1])
    }

    /// Returns the scale of a range: logarithmic if its ends are positive and far apart.
    pub fn from_range(least: f64, most: f64) -> Scale {
        if least > 0.0 && most > least * WIDE { Scale::Logarithmic } else { Scale::Linear }
    }

    /// Returns the position of a value.
    pub fn place(self, value: f64) -> f64 {
        match self {
            Scale::Geometric { first, ratio } => (value / first).ln() / ratio.ln(),
            Scale::Even { first, distance } => (value - first) / distance,
            Scale::Linear | Scale::Logarithmic => value,
        }
    }

    fn value(self, place: f64) -> f64 {
        match self {
            Scale::Geometric { first, ratio } => first * ratio.powf(place),
            Scale::Even { first, distance } => first + place * distance,
            Scale::Linear | Scale::Logarithmic => place,
        }
    }

    fn ticks(self) -> TickFormat {
        TickFormat::Custom(Arc::new(move |place| number(self.value(place))))
    }

    /// Returns a layout with this scale along x; `last` is the largest value.
    pub fn along_x(self, layout: Layout, last: f64) -> Layout {
        let layout = layout.with_x_tick_format(self.ticks());
        match self {
            Scale::Linear => layout,
            Scale::Logarithmic => layout.with_log_x(),
            Scale::Geometric { .. } | Scale::Even { .. } => layout
                .with_x_axis_min(0.0)
                .with_x_axis_max(self.place(last).round().max(1.0))
                .with_x_tick_step(1.0),
        }
    }

    /// Returns a layout with this scale along y.
    pub fn along_y(self, layout: Layout) -> Layout {
        let layout = layout.with_y_tick_format(self.ticks());
        if self == Scale::Logarithmic { layout.with_log_y() } else { layout }
    }
}

/// Formats a value as in reports: `16,384`, `2.5`, `0.05`.
pub fn number(value: f64) -> String {
    let value = (value * 1e6).round() / 1e6;
    if value >= 1e3 && value < u64::MAX as f64 { grouped(value.round() as u64) } else { format!("{value}") }
}

#[cfg(test)]
mod tests {
    use super::{Scale, number};

    #[test]
    fn each_point_of_a_series_has_a_tick() {
        let batches = Scale::from_points([2048.0, 512.0, 1024.0, 512.0].into_iter());
        assert_eq!(batches, Scale::Geometric { first: 512.0, ratio: 2.0 });
        assert!((batches.place(2048.0) - 2.0).abs() < 1e-12);
        let gpus = Scale::from_points([1.0, 2.0, 3.0].into_iter());
        assert_eq!((gpus, gpus.place(3.0)), (Scale::Even { first: 1.0, distance: 1.0 }, 2.0));
    }

    #[test]
    fn other_points_have_an_axis_of_their_range() {
        assert_eq!(Scale::from_points([1.0, 2.0, 5.0].into_iter()), Scale::Linear);
        assert_eq!(Scale::from_points([1.0, 2.0, 5000.0].into_iter()), Scale::Logarithmic);
        assert_eq!(Scale::from_points([0.0, 2.0, 5000.0].into_iter()), Scale::Linear);
        assert_eq!(Scale::from_points(std::iter::empty()), Scale::Linear);
    }

    #[test]
    fn ticks_are_written_as_in_reports() {
        assert_eq!([16384.0, 2.5, 0.05, 1e7].map(number), ["16,384", "2.5", "0.05", "10,000,000"]);
    }
}
