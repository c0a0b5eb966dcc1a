//! The order of a gather, its compile-time parameters, and its grid.

use steptime_launch::gather_plan::{Launch as Launched, Problem};
use steptime_launch::{Gpu, Lanes};

use super::row_layout::{device_name, layout};
use super::{Ints, ROWS, Table};
use crate::{Error, Grid, Source};

/// Threads of a block.
const THREADS: u32 = 128;

/// Order in which a gather reads its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GatherOrder {
    /// One whole row after the other.
    Rows,
    /// All lookups for the first columns, then all for the next: `slice` bytes of a row at a time, rounded to the
    /// number of bytes that a warp holds.
    Columns {
        /// Bytes of a row in a slice.
        slice: usize,
    },
    /// Grouped by row: lookups are sorted pairs of row and place.
    Grouped,
}

impl GatherOrder {
    /// The order with the least expected time on this GPU, and the reason.
    #[must_use]
    pub fn choose(problem: &Problem, gpu: &Gpu) -> (GatherOrder, String) {
        let choice = problem.choose(gpu);
        let order = match choice.launch {
            Launched::Rows | Launched::ColumnsFirst { .. } => GatherOrder::Rows,
            Launched::LookupsFirst { slice } => GatherOrder::Columns { slice: slice as usize },
            Launched::Sorted => GatherOrder::Grouped,
        };
        (order, choice.reason)
    }
}

/// Source and partition of a gather.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) source: Source,
    pub(super) lanes: Lanes,
    pub(super) unroll: usize,
    pub(super) columns_first: bool,
    pub(super) store: usize,
}

impl Launch {
    pub(super) fn new(table: &Table<'_>, order: GatherOrder, width: usize, stride: usize) -> Launch {
        let slice = match order {
            GatherOrder::Columns { slice } => slice,
            GatherOrder::Rows | GatherOrder::Grouped => 1024,
        };
        let row = layout(table.dim(), table.element(), table.align());
        let lanes = Lanes::aligned(&row).in_slices(slice);
        let unroll = (64 / (lanes.bytes * lanes.passes)).clamp(1, 4);
        let columns_first = !matches!(order, GatherOrder::Columns { .. });
        let store = 1 << stride.trailing_zeros().min(2);
        let grouped = order == GatherOrder::Grouped;
        let index = if grouped { "u64" } else { Ints::device_name(width) };
        let source = Source::new("gather.cu", format!("{ROWS}{}", include_str!("gather.cu")))
            .option("--fmad=false")
            .define("D", table.dim())
            .define("ELEMENT", device_name(table.element()))
            .define("BYTES", lanes.bytes)
            .define("LANES", lanes.lanes)
            .define("PASSES", lanes.passes)
            .define("UNROLL", unroll)
            .define("SLICES", lanes.ranges)
            .define("COLUMNS_FIRST", u8::from(columns_first))
            .define("THREADS", THREADS)
            .define("INDEX", index)
            .define("GROUPED", u8::from(grouped))
            .define("STORE", store)
            .define("CACHE_ROWS", 1);
        Launch { source, lanes, unroll, columns_first, store }
    }

    pub(super) fn grid(&self, lookups: usize) -> Result<Grid, Error> {
        let of_block = THREADS as usize / 32 * self.lanes.groups() * self.unroll;
        let slices = self.lanes.ranges;
        let (along, across) = if self.columns_first { (slices, 1) } else { (1, slices) };
        let blocks =
            lookups.div_ceil(of_block).checked_mul(along).filter(|&blocks| blocks <= i32::MAX as usize);
        match blocks {
            Some(blocks) if across <= 65535 => Ok(Grid::plane(blocks as u32, across as u32, THREADS)),
            _ => Err(Error::Unsupported {
                what: format!("a gather of {lookups} rows in {slices} slices"),
                remedy: "cut the lookups into parts",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use steptime_ops::embedding::Element;

    use super::*;
    use crate::{Slice, TestCompiler};

    fn table(dim: usize, element: Element, pitch: usize) -> Table<'static> {
        // SAFETY: nothing is launched.
        let bytes = unsafe { Slice::from_raw(1 << 20, 100 * pitch) };
        Table::borrow("t", bytes, [100, dim], element, pitch).unwrap()
    }

    #[test]
    fn the_order_is_that_of_the_grids_axes() {
        let wide = table(4096, Element::F32, 16384);
        let columns = Launch::new(&wide, GatherOrder::Columns { slice: 1024 }, 8, 4096);
        assert_eq!((columns.lanes.ranges, columns.lanes.passes, columns.unroll), (16, 2, 2));
        assert_eq!(columns.grid(16384).unwrap().blocks, [2048, 16, 1]);
        let rows = Launch::new(&wide, GatherOrder::Rows, 8, 4096);
        assert_eq!(rows.grid(16384).unwrap().blocks, [2048 * 16, 1, 1]);
        let narrow = Launch::new(&table(8, Element::F32, 32), GatherOrder::Rows, 8, 8);
        assert_eq!((narrow.lanes.lanes, narrow.lanes.ranges, narrow.unroll), (2, 1, 4));
        assert!(columns.grid(1 << 42).is_err());
    }

    #[test]
    fn all_orders_of_all_elements_compile() {
        let Some(compiler) = TestCompiler::new() else { return };
        let orders = [GatherOrder::Rows, GatherOrder::Columns { slice: 512 }, GatherOrder::Grouped];
        for element in Element::ALL {
            for dim in [1, 33, 64, 515] {
                for order in orders {
                    let pitch = element.row_bytes(dim).next_multiple_of(element.align());
                    let launch = Launch::new(&table(dim, element, pitch), order, 4, dim);
                    let built = compiler.build(&launch.source);
                    assert!(built.cubin.len() > 1000);
                }
            }
        }
    }
}
