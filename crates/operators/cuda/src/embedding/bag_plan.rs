//! Compile-time parameters of a launch of bags, and its grid.

use std::fmt::Write;

use steptime_launch::{BAG_THREADS, Lanes, Streams, WARPS_WANTED, bag_blocks};
use steptime_ops::embedding::{Bounds, Element, EmbeddingError, Pooling};

use super::row_layout::{device_name, layout};
use super::{Ints, ROWS, Sizes, Tables};
use crate::float::FLOATS;
use crate::geometry::Geometry;
use crate::{Error, Float, Grid, Source};

/// Device code for rows whose values begin at odd addresses.
const SHIFTED: &str = include_str!("shifted.cuh");

/// Tables that share one piece of device code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) dim: usize,
    pub(super) element: Element,
    pub(super) pooling: Pooling,
    pub(super) lanes: Lanes,
    streams: Streams,
}

/// Raises the number of rows in flight if few warps leave multiprocessors with free registers: up to four
/// times as many, but not more than the average length of a bag.
fn deeper(streams: Streams, lanes: &Lanes, [bags, lookups]: [usize; 2], multiprocessors: u32) -> Streams {
    let warps = bags.div_ceil(lanes.groups()).max(1);
    let deeper = (multiprocessors as usize * WARPS_WANTED / warps).min(4);
    if streams.together > 1 || deeper < 2 {
        return streams;
    }
    let row = lanes.bytes * lanes.passes;
    let most = (deeper * 128 / row).clamp(1, 8 * deeper);
    let length = lookups.div_ceil(bags.max(1)).max(1);
    Streams { in_flight: most.min(length).max(streams.in_flight), ..streams }
}

impl Kind {
    fn new(tables: &Tables<'_>, at: usize, sizes: &Sizes, multiprocessors: u32) -> Kind {
        let table = tables.table(at);
        let (dim, element, pooling) = (table.dim(), table.element(), tables.pooling(at));
        let lanes = Lanes::for_bags(&layout(dim, element, table.align()));
        let bags = tables.len() * sizes.bags;
        let streams = Streams::new(&lanes, bags, sizes.lookups, multiprocessors);
        let streams = if element.is_quantized() {
            streams
        } else {
            deeper(streams, &lanes, [bags, sizes.lookups], multiprocessors)
        };
        Kind { dim, element, pooling, lanes, streams }
    }

    fn code(&self, number: usize) -> String {
        let pooling = match self.pooling {
            Pooling::Sum => "SUM",
            Pooling::Mean => "MEAN",
            Pooling::Max => "MAX",
            Pooling::None => "NONE",
        };
        let Lanes { bytes, lanes, passes, shifted, .. } = self.lanes;
        let Streams { together, in_flight } = self.streams;
        let (dim, element) = (self.dim, device_name(self.element));
        format!(
            "CLASS({number},{dim},{element},{pooling},{bytes},{lanes},{passes},{together},{in_flight},{shifted})"
        )
    }

    /// Number of blocks per multiprocessor, which bounds registers: 16 where the code fits 64 registers.
    fn blocks(&self) -> u32 {
        let held = self.lanes.bytes * self.lanes.passes * self.streams.in_flight;
        match held {
            0..=128 if !self.element.is_quantized() && self.streams.together == 1 => 16,
            257.. if !self.element.is_quantized() => 4,
            _ => 8,
        }
    }
}

/// The tables' kinds, and the source and the grid of one launch for all of them.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) kinds: Vec<Kind>,
    pub(super) kind_of: Vec<u32>,
    /// The source without the type of the output.
    source: Source,
    pub(super) grid: Grid,
    /// Number of elements of the output that are stored at once.
    pub(super) store: usize,
}

impl Launch {
    /// A launch for a GPU with this many multiprocessors.
    pub(super) fn new(
        tables: &Tables<'_>,
        sizes: &Sizes,
        bounds: Bounds,
        multiprocessors: u32,
    ) -> Result<Launch, Error> {
        let unsupported = |what, remedy| Err(Error::Unsupported { what, remedy });
        if tables.is_empty() || tables.len() > 1000 {
            return unsupported(format!("a launch for {} tables", tables.len()), "give 1 to 1000 tables");
        }
        if sizes.bags > i32::MAX as usize / 2 {
            return unsupported(
                format!("{} bags", sizes.bags),
                "cut the batch into parts of fewer than 2^30 bags",
            );
        }
        check_pooling(tables, sizes)?;
        let mut kinds: Vec<Kind> = Vec::new();
        let mut kind_of = Vec::new();
        for at in 0..tables.len() {
            let kind = Kind::new(tables, at, sizes, multiprocessors);
            let place = kinds.iter().position(|known| *known == kind).unwrap_or(kinds.len());
            if place == kinds.len() {
                kinds.push(kind);
            }
            kind_of.push(place as u32);
        }
        let columns = (0..tables.len()).map(|table| tables.column(table)).filter(|&column| column > 0);
        let spacing = columns.chain([sizes.stride]).fold(0, |all: usize, one| all | one);
        let store = 1 << spacing.trailing_zeros().min(2);
        let mut classes = String::new();
        kinds.iter().enumerate().for_each(|(number, kind)| _ = write!(classes, "{}", kind.code(number)));
        let held = kinds.iter().map(Kind::blocks).min().unwrap_or(16);
        let source = Source::new("bag.cu", [FLOATS, ROWS, SHIFTED, include_str!("bag.cu")].concat())
            .option("--fmad=false")
            .define("TABLES", tables.len())
            .define("THREADS", BAG_THREADS)
            .define("MIN_BLOCKS", held)
            .define("INDEX", Ints::device_name(sizes.index_width))
            .define("OFFSET", Ints::device_name(sizes.offset_width))
            .define("WEIGHTED", u8::from(sizes.weighted))
            .define("BOUNDS", bounds as u8)
            .define("STORE", store)
            .define("CACHE_ROWS", 1)
            .define("CLASSES", classes);
        let blocks =
            kinds.iter().map(|kind| bag_blocks(&kind.lanes, kind.streams, sizes.bags)).max().unwrap_or(0);
        let ranges = kinds.iter().map(|kind| kind.lanes.ranges).max().unwrap_or(1);
        if ranges > 65535 {
            return unsupported("rows this wide".into(), "cut the table by columns");
        }
        let grid = Grid {
            blocks: [blocks as u32, tables.len() as u32, ranges as u32],
            threads: [BAG_THREADS as u32, 1, 1],
            shared: 0,
        };
        Ok(Launch { kinds, kind_of, source, grid, store })
    }

    /// The source for an output of elements `D`.
    pub(super) fn source<D: Float>(&self) -> Source {
        self.source.clone().define("RESULT", D::DEVICE_NAME)
    }

    /// Launch geometry, without registers.
    pub(super) fn geometry(&self) -> Geometry {
        let mut lanes = String::new();
        let mut busy = f64::INFINITY;
        for kind in &self.kinds {
            let Lanes { bytes, lanes: held, passes, ranges, shifted, .. } = kind.lanes;
            let groups = kind.lanes.groups();
            let _ = write!(
                lanes,
                "{}D = {} {}: {held} lanes x {passes} x {bytes} B a row{}{}, {groups} bags side by side x {} in a row, \
             {} rows in flight each",
                if lanes.is_empty() { "" } else { "; " },
                kind.dim,
                kind.element,
                if shifted { " shifted into place" } else { "" },
                if ranges > 1 { format!(" in {ranges} ranges of columns") } else { String::new() },
                kind.streams.together,
                kind.streams.in_flight,
            );
            busy = busy.min(kind.lanes.busy());
        }
        Geometry {
            kernel: "bag_forward",
            grid: self.grid,
            axes: "x bags of a table, y tables, z ranges of columns",
            registers: None,
            lanes,
            busy,
            bounds: "offsets and indices by the kernel, each index once; what is wrong goes to a report",
            divergence: "groups of a warp run until the longest of their bags ends; the others' loads repeat one row",
        }
    }
}

/// Checks that one output can hold these poolings.
fn check_pooling(tables: &Tables<'_>, sizes: &Sizes) -> Result<(), Error> {
    let apart = tables.pooling(0) == Pooling::None;
    for (table, rows) in tables.iter().enumerate() {
        let why = match tables.pooling(table) {
            Pooling::Max if sizes.weighted => "the maximum takes no per-sample weights: leave them out",
            pooling if (pooling == Pooling::None) != apart => {
                "one row for each lookup and one for each bag do not fit one output: run those tables apart"
            }
            Pooling::None if rows.dim() != tables.table(0).dim() => {
                "all tables of a sequence have as many columns as the first: look up the others apart"
            }
            _ => continue,
        };
        return Err(EmbeddingError::Pooling { table, name: rows.name().to_owned(), why }.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;
    use crate::embedding::Table;
    use crate::{Slice, TestCompiler};

    fn table(dim: usize, element: Element, pitch: usize) -> Table<'static> {
        // SAFETY: nothing is launched.
        let bytes = unsafe { Slice::from_raw(1 << 20, 100 * pitch) };
        Table::borrow("t", bytes, [100, dim], element, pitch).unwrap()
    }

    fn sizes(bags: usize, lookups: usize, stride: usize) -> Sizes {
        Sizes { bags, lookups, index_width: 8, offset_width: 8, weighted: false, stride }
    }

    #[test]
    fn few_bags_have_more_rows_in_flight() {
        let in_flight = |dim: usize, bags, length| {
            let sizes = sizes(bags, bags * length, dim);
            let kind = Kind::new(
                &Tables::new(vec![table(dim, Element::F32, 4 * dim)], Pooling::Sum),
                0,
                &sizes,
                132,
            );
            (kind.streams.in_flight, kind.blocks())
        };
        assert_eq!(in_flight(8, 4096, 96), (32, 4));
        assert_eq!(in_flight(8, 4096, 3).0, 3);
        assert_eq!(in_flight(96, 512, 59), (10, 4));
        assert_eq!(in_flight(128, 8192, 32), (8, 16));
    }

    #[test]
    fn long_bags_have_a_group_each_and_short_ones_share_one() {
        let tables = || Tables::new((0..16).map(|_| table(128, Element::F32, 512)).collect(), Pooling::Sum);
        let kind =
            |lookups: usize| Kind::new(&tables(), 0, &sizes(8192, 16 * 8192 * lookups, 2048), 132).streams;
        let (long, short) = (kind(32), kind(1));
        assert_eq!((long.together, long.in_flight, short.together, short.in_flight), (1, 8, 8, 4));
        let small = Tables::new(vec![table(32, Element::F32, 128)], Pooling::Sum);
        assert_eq!(Kind::new(&small, 0, &sizes(512, 512 * 5, 32), 132).streams.together, 1);
        let launch = Launch::new(&tables(), &sizes(8192, 16 * 8192 * 32, 2048), Bounds::Error, 132).unwrap();
        assert_eq!(launch.grid.blocks, [4096, 16, 1]);
        assert_eq!((launch.kinds.len(), launch.store), (1, 4));
        assert!((launch.geometry().busy - 1.0).abs() < 1e-9);
    }

    #[test]
    fn poolings_that_do_not_fit_one_output_are_refused() {
        let two = || vec![table(8, Element::F32, 32), table(4, Element::F32, 16)];
        let launch = |tables: &Tables<'_>, weighted| {
            let sizes = Sizes { weighted, ..sizes(4, 8, 12) };
            Launch::new(tables, &sizes, Bounds::Error, 132).map(|_| ()).map_err(|error| error.to_string())
        };
        let mixed = Tables::new(two(), Pooling::Sum).with_pooling(1, Pooling::None).unwrap();
        assert!(launch(&mixed, false).unwrap_err().contains("apart"));
        assert!(launch(&Tables::new(two(), Pooling::None), false).unwrap_err().contains("columns"));
        assert!(launch(&Tables::new(two(), Pooling::Max), true).unwrap_err().contains("weights"));
        assert!(launch(&Tables::new(two(), Pooling::Max), false).is_ok());
        assert!(launch(&Tables::new(Vec::new(), Pooling::Sum), false).is_err());
    }

    /// Compiles every element and pooling, with column counts that fill lanes and some that do not.
    #[test]
    fn all_kinds_of_tables_compile() {
        let Some(compiler) = TestCompiler::new() else { return };
        let build = |tables: &Tables<'_>, sizes: &Sizes, bounds| {
            let launch = Launch::new(tables, sizes, bounds, 132).unwrap();
            // Tables with a mean are compiled for an output of 16 bits too.
            if tables.pooling(0) == Pooling::Mean {
                compiler.build(&launch.source::<bf16>());
            }
            compiler.build(&launch.source::<f32>()).cubin.len()
        };
        let mut mixed = Vec::new();
        for element in Element::ALL {
            for dim in [1, 7, 64, 130, 515] {
                mixed.push(table(dim, element, element.row_bytes(dim).next_multiple_of(element.align())));
                mixed.push(table(dim, element, element.row_bytes(dim).next_multiple_of(16)));
            }
        }
        for (pooling, weighted, bounds) in [
            (Pooling::Sum, false, Bounds::Error),
            (Pooling::Mean, true, Bounds::Ignore),
            (Pooling::Max, false, Bounds::WarnAndZero),
        ] {
            for part in mixed.chunks_exact_mut(10) {
                let names: Vec<_> =
                    part.iter().map(|table| (table.dim(), table.element(), table.pitch())).collect();
                let tables =
                    names.into_iter().map(|(dim, element, pitch)| super::tests::table(dim, element, pitch));
                let tables = Tables::new(tables.collect(), pooling);
                let sizes = Sizes { weighted, index_width: 4, ..sizes(4096, 4096 * 30, 3000) };
                assert!(build(&tables, &sizes, bounds) > 1000);
            }
        }
        for element in Element::ALL {
            let tables = Tables::new(
                vec![table(33, element, element.row_bytes(33).next_multiple_of(4))],
                Pooling::None,
            );
            assert!(build(&tables, &sizes(1 << 20, 1 << 20, 33), Bounds::Ignore) > 1000);
        }
    }
}
