//! The kernels that group lookups, and their compile-time parameters.

use steptime_launch::{SortWay, WINDOW};

use super::group_plan::{GroupPlan, SORTERS};
use super::{Ints, Payload, Sizes};
use crate::{Error, Kernel, Module, Source};

/// Common beginning of the device code of all kernels over grouped lookups.
pub(super) const GROUPED: &str = include_str!("grouped.cuh");

/// The kernels of one sorting method.
#[derive(Debug)]
pub(super) enum Kernels {
    /// All digits of a table in shared memory.
    Table { sort: Kernel },
    /// Tables cut into buckets, which are then sorted.
    Buckets { partition: Kernel, sort: Kernel },
    /// One pass over all lookups for each digit.
    Passes {
        count_indices: Kernel,
        scan: Kernel,
        scatter_indices: Kernel,
        count_pairs: Kernel,
        scatter_pairs: Kernel,
    },
}

impl Kernels {
    /// Loads the kernels of a plan.
    pub(super) fn load(module: &Module, plan: &GroupPlan) -> Result<Kernels, Error> {
        let kernel = |name: &str, shared: u32| {
            let kernel = module.kernel(name)?;
            kernel.allow_shared(shared)?;
            Ok::<_, Error>(kernel)
        };
        Ok(match plan.sort.way {
            SortWay::Table => Kernels::Table { sort: kernel("sort_tables", plan.shared())? },
            SortWay::Buckets(_) => Kernels::Buckets {
                partition: kernel("partition", plan.shared())?,
                sort: kernel("sort_buckets", GroupPlan::shared_of_bucket())?,
            },
            SortWay::Passes => Kernels::Passes {
                count_indices: kernel("count_indices", 0)?,
                scan: kernel("scan", 0)?,
                scatter_indices: kernel("scatter_indices", plan.shared())?,
                count_pairs: kernel("count_pairs", 0)?,
                scatter_pairs: kernel("scatter_pairs", plan.shared())?,
            },
        })
    }

    /// All kernels, in the order in which they run.
    pub(super) fn all(&self) -> Vec<&Kernel> {
        match self {
            Kernels::Table { sort } => vec![sort],
            Kernels::Buckets { partition, sort } => vec![partition, sort],
            Kernels::Passes { count_indices, scan, scatter_indices, count_pairs, scatter_pairs } => {
                vec![count_indices, scan, scatter_indices, count_pairs, scatter_pairs]
            }
        }
    }
}

/// Common beginning of all sorting methods.
const PARTS: [&str; 4] = [
    GROUPED,
    include_str!("group_tiles.cuh"),
    include_str!("group_rank.cuh"),
    include_str!("group_read.cuh"),
];

/// Cutting into buckets, and sorting the buckets.
const BUCKETS: &str = concat!(include_str!("group_bucket.cuh"), include_str!("group_buckets.cu"));

/// The source for a plan.
pub(super) fn source(plan: &GroupPlan, sizes: &Sizes, payload: Payload) -> Source {
    let (name, way) = match plan.sort.way {
        SortWay::Table => ("group_table.cu", include_str!("group_table.cu")),
        SortWay::Buckets(_) => ("group_buckets.cu", BUCKETS),
        SortWay::Passes => ("group_passes.cu", include_str!("group_passes.cu")),
    };
    let source = Source::new(name, PARTS.concat() + way)
        .option("--fmad=false")
        .define("WINDOW", format!("{WINDOW}u"))
        .define("THREADS", plan.sort.threads)
        .define("ITEMS", plan.sort.items)
        .define("BITS", plan.sort.bits)
        .define("INDEX", Ints::device_name(sizes.index_width))
        .define("OFFSET", Ints::device_name(sizes.offset_width))
        .define("POSITIONS", u8::from(payload != Payload::Bag));
    let SortWay::Buckets(buckets) = plan.sort.way else { return source };
    let values = plan.values(payload);
    source
        .define("SORTERS", SORTERS)
        .define("BUCKETS", format!("{buckets}u"))
        .define("KEY_BITS", values.key)
        .define("KEPT_BITS", values.kept)
        .define("CUT_BITS", values.cut)
        .define("RUN_LANES", plan.run_lanes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestCompiler;

    #[test]
    fn the_kernels_compile_for_every_type_and_size() {
        let Some(compiler) = TestCompiler::new() else { return };
        for (rows, lookups, longest) in [
            (1000, 10_240, 2560),
            (10_131_227, 200_000, 8192),
            (1 << 20, 1 << 22, 1 << 18),
            (9, 1 << 22, 1 << 22),
        ] {
            let plan = GroupPlan::new(&[rows], 512, lookups, longest).unwrap();
            for (width, payload) in [(4, Payload::Bag), (8, Payload::PositionAndBag)] {
                let sizes = Sizes {
                    bags: 512,
                    lookups,
                    index_width: width,
                    offset_width: width,
                    weighted: false,
                    stride: 0,
                };
                compiler.build(&source(&plan, &sizes, payload));
            }
        }
    }
}
