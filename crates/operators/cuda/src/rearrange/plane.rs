//! The plane of a transpose.

use std::fmt::Write;

use steptime_tensor::JoinedLayouts;

use super::Plan;
use crate::Source;

/// Number of elements below which a side of a plane counts as narrow.
const NARROW: usize = 32;

/// Columns are neighbours in the input, and rows are neighbours in the output. All other dimensions number planes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plane {
    plan: Plan,
    column: usize,
}

impl Plane {
    /// The plane of these layouts, if there is one that is worth tiles.
    pub(super) fn new(plan: &Plan) -> Option<Plane> {
        let JoinedLayouts { shape, strides } = &plan.joined;
        let last = shape.len().checked_sub(1)?;
        let (from, to) = (&strides[0], &strides[1]);
        let long = |axis: usize| (4..1 << 31).contains(&shape[axis]);
        let column = (0..last).find(|&axis| from[axis] == 1 && long(axis))?;
        // Smaller planes fit the first-level cache as a whole.
        let large = shape[column].saturating_mul(shape[last]) >= 1024;
        let found = from[last] > 1 && to[last] == 1 && long(last) && large;
        found.then(|| Plane { plan: plan.clone(), column })
    }

    /// Bytes of an element.
    pub(super) fn size(&self) -> usize {
        self.plan.size
    }

    /// Columns and rows.
    pub(super) fn sides(&self) -> [usize; 2] {
        let shape = &self.plan.joined.shape;
        [shape[self.column], shape[shape.len() - 1]]
    }

    /// Whether a side is so short that vectors gain nothing.
    pub(super) fn narrow(&self) -> bool {
        self.sides().iter().any(|side| side.next_power_of_two() < NARROW)
    }

    /// Offsets that are added to the position of a line's first element, in the input or in the output.
    fn steps(&self, operand: usize) -> impl Iterator<Item = usize> {
        let Plan { joined: JoinedLayouts { shape, strides }, offsets, .. } = &self.plan;
        let along = [self.column, shape.len() - 1][operand];
        let others = (0..shape.len()).filter(move |&axis| axis != along);
        others.map(move |axis| strides[operand][axis]).chain([offsets[operand]])
    }

    /// Elements of vectors that begin and end where lines do, on both sides: a power of two, at most 16.
    pub(super) fn together(&self) -> usize {
        let all = self.steps(0).chain(self.steps(1)).chain(self.sides()).fold(0, |all, one| all | one);
        1 << all.trailing_zeros().min(4)
    }

    /// Whether lines of the output begin at multiples of `bytes` bytes from its beginning.
    pub(super) fn lines_begin_at(&self, bytes: usize) -> bool {
        self.steps(1).all(|step| (step * self.plan.size).is_multiple_of(bytes))
    }

    /// Number of tiles of these columns and rows, in all planes; rows begin `before` the first one.
    pub(super) fn tiles(&self, [columns, rows]: [usize; 2], before: usize) -> usize {
        let shape = &self.plan.joined.shape;
        let tiles = |(axis, &size): (usize, &usize)| match axis {
            axis if axis == self.column => size.div_ceil(columns),
            axis if axis == shape.len() - 1 => (size + before).div_ceil(rows),
            _ => size,
        };
        shape.iter().enumerate().map(tiles).product()
    }

    /// Adds the layouts' constants to a source.
    pub(super) fn define(&self, source: Source) -> Source {
        let JoinedLayouts { shape, strides } = &self.plan.joined;
        let (row, column) = (shape.len() - 1, self.column);
        let mut axes = String::new();
        for axis in (0..row).rev().filter(|&axis| axis != column) {
            let _ = write!(axes, "AXIS({}u,{}ull,{}ull)", shape[axis], strides[0][axis], strides[1][axis]);
        }
        source
            .define("ELEMENT", super::device_name(self.plan.size))
            .define("COLUMNS", format!("{}u", shape[column]))
            .define("ROWS", format!("{}u", shape[row]))
            .define("READ", strides[0][row])
            .define("WRITE", strides[1][column])
            .define("FROM", self.plan.offsets[0])
            .define("TO", self.plan.offsets[1])
            .define("AXES", axes)
    }
}
