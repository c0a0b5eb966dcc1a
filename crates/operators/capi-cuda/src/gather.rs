//! Rows of one table, without pooling.

use std::ffi::c_int;

use steptime_cuda::Device;
use steptime_cuda::embedding::{Gather as Op, GatherOrder, GatherRows, Ints, Tables};
use steptime_launch::gather_plan::{Launch, Problem};
use steptime_launch::{GatherRates, Gpu, Indices, Popularity};
use steptime_ops::embedding::{Bounds, Pooling};

use crate::addresses::{given, on, taken};
use crate::error::{Failure, code, free, handle};
use crate::pointers::{alive, alive_mut};
use crate::tables::GpuTables;

/// A gather with f32 outputs, whose rows are D floats apart.
pub struct Gather {
    device: Device,
    tables: Tables<'static>,
    op: Op,
    grouped: bool,
}

/// Compiles a gather from the first of `tables`, for indices of 64 bits. `slice` is 0 for row order, N > 0 for columns
/// in slices of N bytes, and -1 for sorted pairs of row (upper half) and place. Null on failure. To be freed with
/// [`steptime_gpu_gather_free`].
///
/// # Safety
///
/// The handle is alive; the arrays of `tables` have as many elements as stated; the rows live until the handle is
/// freed, and do not change while kernels read them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_gather_new(
    gpu: *const Device,
    tables: *const GpuTables,
    slice: i64,
) -> *mut Gather {
    handle(|| {
        // SAFETY: as the caller promises.
        let (device, tables) = unsafe { (alive(gpu)?.clone(), alive(tables)?.tables(Pooling::Sum, false)?) };
        if tables.is_empty() {
            return Err("there is no table".into());
        }
        let order = match slice {
            0 => GatherOrder::Rows,
            ..0 => GatherOrder::Grouped,
            slice => GatherOrder::Columns { slice: usize::try_from(slice)? },
        };
        let table = tables.table(0);
        let op = Op::new(&device, table, order, 8, table.dim(), Bounds::Error)?;
        Ok(Gather { device, tables, op, grouped: order == GatherOrder::Grouped })
    })
}

/// The device profile with the measured values of the plan, and the constants for profiles without them.
const MEASURED: &str = include_str!("../../../../profiles/h200/profile.toml");
const CONSTANTS: &str = include_str!("../../../../profiles/constants.toml");

/// GPU properties that the plan needs. Size of the second-level cache and number of multiprocessors come from the
/// driver; memory bandwidth and the share of the cache that holds returning rows come from the measured GPU.
fn gpu(l2_bytes: usize, multiprocessors: u32) -> Result<Gpu, Failure> {
    let (profile, constants): (toml::Table, toml::Table) = (MEASURED.parse()?, CONSTANTS.parse()?);
    let device = profile.get("device").ok_or("the profile has no device")?;
    let plan = device.get("constants").and_then(|constants| constants.get("gather_plan"));
    let plan = plan.or(constants.get("gather_plan")).ok_or("there are no constants of gathers")?;
    let number = |table: &toml::Value, name: &str| {
        let value = table.get(name);
        let number =
            value.and_then(|value| value.as_float().or(value.as_integer().map(|whole| whole as f64)));
        number.ok_or_else(|| format!("the profile has no number {name}"))
    };
    let of = |group: &str, name: &str| device.get(group).map_or(Err(group.to_owned()), |of| number(of, name));
    Ok(Gpu {
        multiprocessors,
        cache_bytes: (of("l2", "effective_bytes")? / of("l2", "bytes")? * l2_bytes as f64).floor(),
        memory_gb_s: of("memory", "rate_gb_s")?,
        floor_us: of("launch", "floor_us")?,
        gather: GatherRates {
            under_way: number(plan, "under_way")?,
            output_room: number(plan, "output_room")?,
            writes_only: number(plan, "writes_only")?,
            with_reads: number(plan, "with_reads")?,
        },
    })
}

/// Bytes of the slice with the least expected time, 0 for row order: never sorted pairs.
fn slice(problem: &Problem, gpu: &Gpu) -> u64 {
    let chosen = problem.choose(gpu);
    let unsorted = || {
        let all = problem.launches(gpu).into_iter().filter(|one| one.launch != Launch::Sorted);
        all.min_by(|a, b| a.time_us.total_cmp(&b.time_us))
    };
    let sorted = chosen.launch == Launch::Sorted;
    match if sorted { unsorted().unwrap_or(chosen) } else { chosen }.launch {
        Launch::LookupsFirst { slice } => slice as u64,
        Launch::Rows | Launch::ColumnsFirst { .. } | Launch::Sorted => 0,
    }
}

/// Writes to `out` the `slice` with the least expected time on this GPU for a gather of `lookups` lookups from `rows`
/// rows of `dim` floats, 0 for row order. `zipf` is the exponent of the distribution of the indices, 0 where all rows
/// are accessed equally often. 0 for success.
///
/// # Safety
///
/// The handle is alive; `out` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_gather_slice(
    gpu: *const Device,
    rows: u64,
    dim: u64,
    lookups: u64,
    zipf: f64,
    out: *mut i64,
) -> c_int {
    code(|| {
        // SAFETY: as the caller promises.
        let (gpu, out) = unsafe { (alive(gpu)?, alive_mut(out)?) };
        if rows == 0 || dim == 0 {
            return Err(format!("a table of {rows} rows of {dim} floats: it has at least one of each").into());
        }
        let indices = if zipf == 0.0 { Indices::Uniform } else { Indices::zipf(zipf)? };
        let popularity = Popularity::new(rows as f64, &indices);
        let problem = Problem { rows, row_bytes: dim.saturating_mul(4), lookups, popularity };
        let gpu = self::gpu(gpu.l2_bytes(), gpu.multiprocessors())?;
        *out = i64::try_from(slice(&problem, &gpu))?;
        Ok(())
    })
}

/// Launches the gather: `lookups` indices or pairs at `wanted`, `lookups` x D floats at `out`. 0 for success.
///
/// # Safety
///
/// The handle is alive; the addresses are those of as many elements on the GPU as stated; no other code uses those of
/// `out`; the stream lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_gather(
    gather: *const Gather,
    stream: u64,
    lookups: usize,
    wanted: u64,
    out: u64,
) -> c_int {
    code(|| {
        // SAFETY: as the caller promises.
        let gather = unsafe { alive(gather) }?;
        let (table, floats) = (gather.tables.table(0), lookups.saturating_mul(gather.tables.columns()));
        // SAFETY: as above.
        let (stream, mut out) = unsafe { (on(&gather.device, stream), taken(out, floats)?) };
        // SAFETY: as above.
        let wanted = unsafe { rows(gather, lookups, wanted) }?;
        Ok(gather.op.run(&stream, table, wanted, &mut out)?)
    })
}

/// Waits for the stream and fails where an index of the lookups gathered last, which must be these, is out of range.
/// 0 for success.
///
/// # Safety
///
/// As that of [`steptime_gpu_gather`]; the handle is used by no other thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_gather_check(
    gather: *mut Gather,
    stream: u64,
    lookups: usize,
    wanted: u64,
) -> c_int {
    code(|| {
        // SAFETY: as the caller promises.
        let gather = unsafe { alive_mut(gather) }?;
        // SAFETY: as above.
        let (stream, wanted) = unsafe { (on(&gather.device, stream), rows(gather, lookups, wanted)?) };
        let Gather { op, tables, .. } = gather;
        op.check(&stream, tables.table(0), wanted)?;
        Ok(())
    })
}

/// # Safety
///
/// There are as many indices or pairs.
unsafe fn rows<'a>(gather: &Gather, lookups: usize, wanted: u64) -> Result<GatherRows<'a>, Failure> {
    // SAFETY: as the caller promises.
    Ok(unsafe {
        if gather.grouped {
            GatherRows::Sorted(given(wanted, lookups)?)
        } else {
            GatherRows::Indices(Ints::I64(given(wanted, lookups)?))
        }
    })
}

/// Frees a handle.
///
/// # Safety
///
/// `gather` is null, or came from [`steptime_gpu_gather_new`] and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gpu_gather_free(gather: *mut Gather) {
    // SAFETY: as the caller promises.
    unsafe { free(gather) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_narrow_where_rows_come_back_and_do_not_all_fit() {
        let gpu = gpu(60 << 20, 132).unwrap();
        assert!((36e6..40e6).contains(&gpu.cache_bytes));
        let of = |rows, dim: u64, lookups| {
            let popularity = Popularity::new(rows as f64, &Indices::Uniform);
            slice(&Problem { rows, row_bytes: 4 * dim, lookups, popularity }, &gpu)
        };
        assert!((128..=2048).contains(&of(8192, 4096, 16384)));
        assert_eq!(of(1000, 128, 100_000), 0);
        assert_eq!(of(100_000_000, 128, 100_000), 0);
        // Sorting would be best.
        assert!(of(2_000_000, 128, 16_000_000) <= 512);
    }
}
