//! The kernels of `cache.cu`, their arguments and their launches.

use bytemuck::{Pod, Zeroable};

use super::policy::{Policy, Sets, WAYS};
use crate::embedding::Sizes;
use crate::geometry::Geometry;
use crate::{Device, Error, Grid, Kernel, Source};

/// Threads of a block.
const THREADS: u32 = 256;

/// Blocks that move rows: enough for the link's rate, so that other kernels get the rest of the GPU.
const TRAVELLERS: u32 = 64;

/// Largest number of rounds in which a warp that moves rows looks at one set a round, so that all warps together move
/// rows that are near each other on the host. With more sets a warp looks at several sets a round.
const ROUNDS: u32 = 128;

/// One array whose rows travel between host and device.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub(super) struct Plane {
    host: u64,
    slots: u64,
    host_pitch: u32,
    slot_pitch: u32,
    vectors: u32,
    unit_and_group: u32,
}

impl Plane {
    /// Nothing to move.
    pub(super) const NONE: Plane =
        Plane { host: 0, slots: 0, host_pitch: 0, slot_pitch: 0, vectors: 0, unit_and_group: 0 };

    /// Rows `pitch` bytes apart on both sides, moved whole.
    pub(super) fn new(host: u64, slots: u64, pitch: usize) -> Plane {
        let fits = |unit: &u64| (host | slots | pitch as u64).is_multiple_of(*unit);
        let unit = [16, 4, 1].into_iter().find(fits).unwrap_or(1) as u32;
        let vectors = pitch as u32 / unit;
        let group = vectors.next_power_of_two().clamp(1, 32);
        let pitch = pitch as u32;
        Plane {
            host,
            slots,
            host_pitch: pitch,
            slot_pitch: pitch,
            vectors,
            unit_and_group: unit | group << 8,
        }
    }
}

/// Kernel argument for a table.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub(super) struct DeviceTable {
    rows: u32,
    sets: u32,
    span: u32,
    first_set: u32,
    first_word: u64,
    pub(super) planes: [Plane; 2],
}

/// Offsets of the tables' sets and bits, one table after the other, and the number of sets and words of all.
pub(super) fn lay_out(all: &[Sets]) -> (Vec<DeviceTable>, usize, usize) {
    let (mut first_set, mut first_word) = (0, 0);
    let mut tables = Vec::with_capacity(all.len());
    for sets in all {
        tables.push(DeviceTable {
            rows: sets.rows,
            sets: sets.sets,
            span: sets.span,
            first_set: first_set as u32,
            first_word: first_word as u64,
            planes: [Plane::NONE; 2],
        });
        first_set += sets.sets as usize;
        first_word += sets.keys().div_ceil(32);
    }
    (tables, first_set, first_word)
}

pub(super) fn source(policy: Policy, sizes: &Sizes) -> Source {
    let whole = |width| if width == 4 { "int" } else { "long long" };
    Source::new("cache.cu", include_str!("cache.cu"))
        .define("LFU", u8::from(policy == Policy::Lfu))
        .define("INDEX", whole(sizes.index_width))
        .define("OFFSET", whole(sizes.offset_width))
}

/// The grids of all kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grids {
    pub(super) lookups: Grid,
    pub(super) sets: Grid,
    pub(super) travel: Grid,
    /// Number of sets that a warp of `travel` looks at together.
    pub(super) each: u32,
    pub(super) slots: Grid,
}

impl Grids {
    pub(super) fn new(all: &[Sets], lookups: usize, multiprocessors: u32) -> Grids {
        let tables = all.len() as u32;
        let most = all.iter().map(|sets| sets.sets).max().unwrap_or(0);
        let sets: usize = all.iter().map(|sets| sets.sets as usize).sum();
        let fill = 8 * multiprocessors;
        let blocks = lookups.div_ceil(all.len().max(1)).div_ceil(THREADS as usize).min(fill as usize);
        let warps = THREADS / 32;
        let travellers = (TRAVELLERS / tables.max(1)).max(1);
        Grids {
            lookups: Grid::plane(blocks as u32, tables, THREADS),
            sets: Grid::plane(most.div_ceil(warps).clamp(1, fill), tables, THREADS),
            travel: Grid::plane(travellers, tables, THREADS),
            each: most.div_ceil(travellers * warps * ROUNDS).clamp(1, 32),
            slots: Grid::line((sets * WAYS).div_ceil(THREADS as usize) as u32, THREADS),
        }
    }
}

/// All kernels, compiled.
#[derive(Debug)]
pub(super) struct Kernels {
    pub(super) mark: Kernel,
    pub(super) plan: Kernel,
    pub(super) translate: Kernel,
    pub(super) travel: Kernel,
    pub(super) collect: Kernel,
}

impl Kernels {
    pub(super) fn new(device: &Device, policy: Policy, sizes: &Sizes) -> Result<Kernels, Error> {
        if device.capability().major < 8 {
            return Err(Error::TooOld {
                what: "this GPU's compute capability",
                found: device.capability().to_string(),
                needed: "8.0".into(),
                remedy: "a row cache runs on GPUs of the Ampere generation or later",
            });
        }
        let module = device.load(&source(policy, sizes))?;
        Ok(Kernels {
            mark: module.kernel("mark")?,
            plan: module.kernel("plan")?,
            translate: module.kernel("translate")?,
            travel: module.kernel("travel")?,
            collect: module.kernel("collect")?,
        })
    }

    pub(super) fn geometry(&self, grids: &Grids, narrowest: f64) -> Result<Vec<Geometry>, Error> {
        let own =
            "indices by `mark` and `translate`; the first offset of each table is kept within the lookups";
        let of = |kernel: &Kernel, name, grid, axes, lanes: &str, busy, divergence| {
            let registers = Some(kernel.registers()?);
            Ok::<_, Error>(Geometry {
                kernel: name,
                grid,
                axes,
                registers,
                lanes: lanes.into(),
                busy,
                bounds: own,
                divergence,
            })
        };
        Ok(vec![
            of(
                &self.mark,
                "mark",
                grids.lookups,
                "x lookups, y tables",
                "a lookup each",
                1.0,
                "lookups out of range, and bits that are not set yet",
            )?,
            of(
                &self.plan,
                "plan",
                grids.sets,
                "x sets, y tables",
                "a place of a set each",
                1.0,
                "none within a warp but for the victim's own lane; sets that are not wanted end at once",
            )?,
            of(
                &self.translate,
                "translate",
                grids.lookups,
                "x lookups, y tables",
                "8 lanes x 4 places a lookup, 4 lookups side by side",
                1.0,
                "lanes of lookups out of range idle",
            )?,
            of(
                &self.travel,
                "travel",
                grids.travel,
                "x sets, y tables",
                "up to 32 lanes x 16 B a row, narrow rows side by side",
                narrowest,
                "groups without a row idle while the set's last rows travel",
            )?,
            of(&self.collect, "collect", grids.slots, "x places", "a place each", 1.0, "none")?,
        ])
    }
}

impl Plane {
    /// Share of lanes that move something.
    pub(super) fn busy(&self) -> f64 {
        let group = self.unit_and_group >> 8;
        f64::from(self.vectors) / f64::from(self.vectors.next_multiple_of(group.max(1)).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestCompiler;

    #[test]
    fn rows_move_in_the_largest_units_that_fit() {
        let of = |host, slots, pitch| {
            let plane = Plane::new(host, slots, pitch);
            (plane.unit_and_group & 255, plane.unit_and_group >> 8, plane.vectors)
        };
        assert_eq!(of(4096, 512, 512), (16, 32, 32));
        assert_eq!(of(4096, 512, 48), (16, 4, 3));
        assert_eq!(of(4096, 516, 512), (4, 32, 128));
        assert_eq!(of(4096, 512, 7), (1, 8, 7));
        assert_eq!(of(4096, 512, 4), (4, 1, 1));
        assert!((Plane::new(0, 0, 48).busy() - 0.75).abs() < 1e-9);
    }

    #[test]
    fn tables_lie_one_after_the_other() {
        let all = [Sets::new(1000, 100), Sets::new(10, 10), Sets::new(64, 64)];
        let (tables, sets, words) = lay_out(&all);
        let places: Vec<_> = tables.iter().map(|table| (table.first_set, table.first_word)).collect();
        assert_eq!(places, [(0, 0), (5, 32), (6, 33)]);
        assert_eq!((sets, words), (9, 36));
        let grids = Grids::new(&all, 10_000, 132);
        assert_eq!((grids.lookups.blocks, grids.slots.blocks), ([14, 3, 1], [2, 1, 1]));
        let each = |slots| Grids::new(&[Sets::new(1 << 30, slots)], 1 << 22, 132).each;
        assert_eq!((each(1 << 20), each(1 << 24), each(1 << 29)), (1, 9, 32));
    }

    #[test]
    fn kernels_compile_for_both_policies() {
        let Some(compiler) = TestCompiler::new() else { return };
        for (policy, index_width, offset_width) in [(Policy::Lru, 8, 4), (Policy::Lfu, 4, 8)] {
            let sizes = Sizes { bags: 1, lookups: 1, index_width, offset_width, weighted: false, stride: 0 };
            compiler.build(&source(policy, &sizes));
        }
    }
}
