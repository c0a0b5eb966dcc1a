//! Compile-time parameters of the backward kernels.

use steptime_launch::{SPANS_FROM, UpdateLanes, WINDOW};
use steptime_ops::embedding::backward::{Rounding, RowRule};
use steptime_ops::embedding::{Element, Pooling};

use super::group_kernels::GROUPED;
use super::row_device::BlockPartition;
use super::{Ints, Payload, Sizes, Tables};
use crate::float::FLOATS;
use crate::geometry::Geometry;
use crate::{Float, Grid, Source};

/// The kernels' source, in parts.
const PARTS: [&str; 7] = [
    FLOATS,
    GROUPED,
    include_str!("row_lanes.cuh"),
    include_str!("row_elements.cuh"),
    include_str!("row_gradients.cuh"),
    include_str!("row_step.cuh"),
    include_str!("backward.cu"),
];

/// Tables that share one compilation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowKind {
    pub(super) dim: usize,
    pub(super) element: Element,
    pub(super) pooling: Pooling,
    pub(super) lanes: UpdateLanes,
    /// Whether the number of lookups is so small that memory latency dominates, and not bandwidth.
    few: bool,
    /// Whether it is so small that `update_rows` does all the work, and the longest rows fill no more than one block.
    pub(super) together: bool,
}

/// Lanes of rows so narrow that many of their lookups take turns in few warps.
const FEW_LANES: usize = 8;

/// Launch parameters of `update_runs`.
struct Runs {
    /// Number of lookups of a row that are loaded at once.
    ahead: usize,
    /// Number of resident blocks of a multiprocessor, which bounds registers.
    held: usize,
    /// Number of blocks of the grid for each multiprocessor.
    blocks: u32,
}

/// Number of windows of a span where lookups are not few. It is small enough that a table has at least a span, and that
/// the chunks of the first span, whose time no windows hide, are little work.
const SPAN: u32 = 512;

impl RowKind {
    /// The kind of a table, for these sizes.
    pub(super) fn new(tables: &Tables<'_>, at: usize, sizes: &Sizes) -> RowKind {
        let (table, pooling) = (tables.table(at), tables.pooling(at));
        let (dim, element) = (table.dim(), table.element());
        let column = if pooling == Pooling::None { 0 } else { tables.column(at) };
        let aligned = |vector: usize| {
            [dim, sizes.stride, column].iter().all(|all| all.is_multiple_of(vector))
                && table.align().is_multiple_of(vector * element.align())
        };
        let lanes = UpdateLanes::new(dim, aligned);
        let together = lanes.together(sizes.lookups);
        RowKind { dim, element, pooling, lanes, few: sizes.lookups < SPANS_FROM, together }
    }

    /// Share of lanes that load something.
    fn busy(&self) -> f64 {
        let UpdateLanes { vector, lanes, loads } = self.lanes;
        self.dim as f64 / (loads * vector * lanes) as f64
    }

    /// Number of lookups that are loaded at once, resident blocks of 256 threads of a multiprocessor, and lookups of a
    /// full chunk that are loaded at once.
    fn batch(&self, rule: RowRule) -> (usize, usize, usize) {
        let ahead = match self.lanes.loads {
            1 => 8,
            2 => 4,
            _ => 2,
        };
        let plain = matches!(rule, RowRule::Sgd { momentum: 0.0 });
        match (self.lanes.loads, rule) {
            (1, _) if self.together => (if plain { 4 } else { 2 }, 2, 16),
            (1, _) if self.few && self.lanes.lanes <= FEW_LANES && !plain => (2, 2, 16),
            (1, _) if plain && self.few => (4, 3, ahead),
            (1, _) if plain => (3, 4, ahead),
            (1, _) => (2, 4, ahead),
            (2, _) => (2, 2, ahead),
            (_, RowRule::Adam { .. }) => (1, 1, ahead),
            (_, _) => (1, 2, ahead),
        }
    }

    /// Rows of a whole warp load as many lookups at once as registers allow. A batch has many rows of fewer lanes with
    /// some tens of lookups: there, more rows at once matter more than more lookups of each.
    fn runs(&self) -> Runs {
        match self.lanes.loads {
            1 if self.lanes.lanes < steptime_launch::WARP => Runs { ahead: 16, held: 4, blocks: 8 },
            1 => Runs { ahead: 32, held: 3, blocks: 5 },
            2 => Runs { ahead: 16, held: 3, blocks: 5 },
            _ => Runs { ahead: 8, held: 3, blocks: 5 },
        }
    }

    /// Lookups of the longest rows that a group of `update_rows` processes together with others.
    pub(super) fn short(&self) -> usize {
        if self.together || self.lanes.lanes <= FEW_LANES { self.lanes.lanes } else { self.lanes.lanes / 2 }
    }

    /// Source of this kind, as kind `number` of several, for gradients of elements `G`.
    pub(super) fn source<G: Float>(
        &self,
        number: usize,
        rule: RowRule,
        rounding: Rounding,
        payload: Payload,
        sizes: &Sizes,
    ) -> Source {
        let (batch, blocks, ahead) = self.batch(rule);
        let own = self.own(rule, sizes.weighted);
        let runs = self.runs();
        let receives = match (self.pooling, payload) {
            (Pooling::None, _) => 1,
            (_, Payload::Bag) => 0,
            _ => 2,
        };
        let rule = match rule {
            RowRule::Sgd { momentum: 0.0 } => 0,
            RowRule::Sgd { .. } => 1,
            RowRule::Adagrad { .. } => 2,
            RowRule::RowWiseAdagrad { .. } => 3,
            RowRule::Adam { .. } => 4,
            RowRule::PartialRowWiseAdam { .. } => 5,
        };
        let element = match self.element {
            Element::F16 => 1,
            Element::Bf16 => 2,
            _ => 0,
        };
        Source::new("backward.cu", PARTS.concat())
            .option("--fmad=false")
            .define("WINDOW", format!("{WINDOW}u"))
            .define("GRADIENT", G::DEVICE_NAME)
            .define("DIM", self.dim)
            .define("ELEMENT", element)
            .define("RULE", rule)
            .define("RECEIVES", receives)
            .define("WEIGHTED", u8::from(sizes.weighted))
            .define("MEAN", u8::from(self.pooling == Pooling::Mean))
            .define("MAX", u8::from(self.pooling == Pooling::Max))
            .define("STOCHASTIC", u8::from(element != 0 && rounding != Rounding::Nearest))
            .define("VECTOR", self.lanes.vector)
            .define("GROUP", self.lanes.lanes)
            .define("BATCH", batch)
            .define("CHUNK_AHEAD", ahead)
            .define("TOGETHER", u8::from(self.together))
            .define("OWN", u8::from(own))
            .define("RUN_AHEAD", runs.ahead)
            .define("RUN_BLOCKS", runs.held)
            .define("SHORT", self.short())
            .define("CLASS", number)
            .define("UPDATE_BLOCKS", blocks)
            .define("INDEX", Ints::device_name(sizes.index_width))
            .define("OFFSET", Ints::device_name(sizes.offset_width))
    }

    /// Whether a group of `update_rows` steps rows of up to a window of lookups itself. With few lookups it is better
    /// to load many lookups of such rows at once, as `update_runs` does. Otherwise it pays where its registers neither
    /// spill nor leave a multiprocessor with fewer blocks.
    fn own(&self, rule: RowRule, weighted: bool) -> bool {
        let row_wise = matches!(rule, RowRule::RowWiseAdagrad { .. } | RowRule::PartialRowWiseAdam { .. });
        self.together || (!self.few && self.lanes.loads <= 2 && !row_wise && !weighted)
    }

    /// Partition of the blocks, and the grids of `update_rows` and `update_runs`.
    pub(super) fn grids(&self, windows: usize, multiprocessors: u32) -> (BlockPartition, Grid, Grid) {
        let windows = windows as u32;
        let lanes = self.lanes.lanes as u32;
        let groups = WINDOW as u32 / lanes;
        let (span, chunks) = if self.few {
            (windows, windows.div_ceil(groups).min(4 * multiprocessors))
        } else {
            (SPAN, SPAN.div_ceil(2 * groups))
        };
        // A block looks at one window per lane.
        let dealt = BlockPartition { chunks: chunks.max(span.div_ceil(32)), span, windows };
        let runs = (windows * WINDOW as u32 / self.short() as u32).div_ceil(128 / lanes);
        let runs = Grid::line(runs.clamp(1, self.runs().blocks * multiprocessors), 128);
        (dealt, Grid::line(dealt.blocks(), WINDOW as u32), runs)
    }

    /// Launch geometry of its kernels.
    pub(super) fn geometry(&self, rule: RowRule, windows: usize, multiprocessors: u32) -> Vec<Geometry> {
        let (dealt, rows, runs) = self.grids(windows, multiprocessors);
        let (batch, ..) = self.batch(rule);
        let lanes = |lookups| {
            format!(
                "D = {} {}: {} lanes x {} x {} columns a row, {} rows side by side, {lookups}",
                self.dim,
                self.element,
                self.lanes.lanes,
                self.lanes.loads,
                self.lanes.vector,
                32 / self.lanes.lanes
            )
        };
        let one = |kernel, grid, axes, lanes, divergence| Geometry {
            kernel,
            grid,
            axes,
            registers: None,
            lanes,
            busy: self.busy(),
            bounds: "lookups of rows that are not there sort last and end the table",
            divergence,
        };
        let mut all = vec![
            one(
                "update_rows",
                rows,
                "x chunks of long rows, then windows of 256 lookups, span by span",
                format!(
                    "{}; {} blocks for the chunks of {} windows",
                    lanes(format!("{batch} lookups in flight each")),
                    dealt.chunks,
                    dealt.span
                ),
                "ragged bags cost nothing; warps whose lookups belong to rows begun earlier end at once",
            ),
            one(
                "update_runs",
                runs,
                "x rows of many lookups",
                lanes(format!("{} lookups in flight each", self.runs().ahead)),
                "groups of a warp stay together until the longest row of theirs is done",
            ),
        ];
        if self.together {
            all.truncate(1);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;
    use crate::embedding::Table;
    use crate::{Slice, TestCompiler};

    fn tables(dim: usize, element: Element, pitch: usize) -> Tables<'static> {
        // SAFETY: only its address and length are used.
        let memory = unsafe { Slice::from_raw(4096, 100 * pitch) };
        Tables::new(vec![Table::borrow("t", memory, [100, dim], element, pitch).unwrap()], Pooling::Sum)
    }

    fn sizes(stride: usize) -> Sizes {
        Sizes { bags: 9, lookups: 1 << 20, index_width: 8, offset_width: 4, weighted: false, stride }
    }

    #[test]
    fn lanes_follow_columns_and_alignment() {
        let kind = |dim, element, pitch, stride| {
            let kind = RowKind::new(&tables(dim, element, pitch), 0, &sizes(stride));
            (kind.lanes.vector, kind.lanes.lanes, kind.lanes.loads)
        };
        assert_eq!(kind(128, Element::F32, 512, 128), (4, 32, 1));
        assert_eq!(kind(128, Element::F32, 512, 130), (2, 32, 2));
        assert_eq!(kind(128, Element::F16, 264, 128), (4, 32, 1));
        assert_eq!(kind(32, Element::Bf16, 64, 32), (4, 8, 1));
        assert_eq!(kind(7, Element::F32, 28, 7), (1, 8, 1));
        assert_eq!(kind(4, Element::F32, 16, 4), (4, 4, 1));
        assert_eq!(kind(260, Element::F32, 1040, 260), (4, 32, 3));
    }

    #[test]
    fn every_window_has_its_blocks() {
        let kind = RowKind::new(&tables(128, Element::F32, 512), 0, &sizes(128));
        for windows in [1, 7, 858, 16_400, 1_000_000] {
            let (BlockPartition { chunks, span, .. }, rows, runs) = kind.grids(windows, 132);
            assert!(chunks * 32 >= span && runs.blocks[0] >= 1);
            assert_eq!(rows.blocks[0], (windows as u32).div_ceil(span) * chunks + windows as u32);
        }
        let all = kind.geometry(RowRule::SGD, 16_400, 132);
        let [rows, runs] = all.as_slice() else { panic!("{all:?}") };
        assert!(rows.to_string().contains("3 lookups in flight") && runs.to_string().contains("128 threads"));
    }

    #[test]
    fn few_lookups_take_one_launch() {
        let kind = |lookups| RowKind::new(&tables(32, Element::F32, 128), 0, &Sizes { lookups, ..sizes(32) });
        let (together, apart) = (kind(16_384), kind(16_385));
        assert!(together.together && !apart.together);
        assert_eq!(together.geometry(RowRule::SGD, 68, 132).len(), 1);
        assert_eq!(apart.geometry(RowRule::SGD, 68, 132).len(), 2);
        assert_eq!((together.batch(RowRule::SGD), apart.batch(RowRule::ADAM)), ((4, 2, 16), (2, 2, 16)));
    }

    #[test]
    fn groups_step_long_rows_themselves_where_registers_allow() {
        let kind = |lookups, dim| {
            RowKind::new(&tables(dim, Element::F32, 4 * dim), 0, &Sizes { lookups, ..sizes(dim) })
        };
        let many = kind(SPANS_FROM, 128);
        assert!(many.own(RowRule::SGD, false) && many.own(RowRule::ADAM, false));
        assert!(!many.own(RowRule::SGD, true) && !many.own(RowRule::ROW_WISE_ADAGRAD, false));
        assert!(
            !kind(SPANS_FROM - 1, 128).own(RowRule::SGD, false)
                && !kind(SPANS_FROM, 512).own(RowRule::SGD, false)
        );
        assert!(kind(100, 128).own(RowRule::ROW_WISE_ADAGRAD, true));
    }

    #[test]
    fn kernels_compile_for_every_rule_and_type() {
        let Some(compiler) = TestCompiler::new() else { return };
        let (beta1, beta2, eps) = (0.9, 0.999, 1e-8);
        let cases = [
            (RowRule::SGD, 128, Element::F32, Pooling::Sum, Payload::Bag, false),
            (RowRule::Sgd { momentum: 0.9 }, 36, Element::F16, Pooling::Mean, Payload::Bag, false),
            (RowRule::Adagrad { eps }, 7, Element::Bf16, Pooling::None, Payload::Position, false),
            (RowRule::ROW_WISE_ADAGRAD, 32, Element::F32, Pooling::Max, Payload::PositionAndBag, false),
            (RowRule::ADAM, 260, Element::F32, Pooling::Sum, Payload::PositionAndBag, true),
            (
                RowRule::PartialRowWiseAdam { beta1, beta2, eps },
                1030,
                Element::F16,
                Pooling::Mean,
                Payload::PositionAndBag,
                true,
            ),
        ];
        for (rule, dim, element, pooling, payload, weighted) in cases {
            let tables = tables(dim, element, dim * 4).with_pooling(0, pooling).unwrap();
            let rounding = Rounding::Stochastic { seed: 1 };
            for lookups in [99, 99_999] {
                let sizes = Sizes { weighted, lookups, ..sizes(dim) };
                let kind = RowKind::new(&tables, 0, &sizes);
                compiler.build(&kind.source::<f32>(0, rule, rounding, payload, &sizes));
            }
            let sizes = Sizes { weighted, ..sizes(dim) };
            let kind = RowKind::new(&tables, 0, &sizes);
            compiler.build(&kind.source::<bf16>(0, rule, rounding, payload, &sizes));
        }
    }
}
