//! Reports of Nsight Systems, exported to SQLite by `nsys export --type sqlite`.

mod ranges;
mod tables;

use crate::error::Error;
use crate::kineto::{
    Activity, ActivityKind, Builder, Call, CallLibrary, DeviceProperties, LaunchShape, Stream, Thread,
    ThreadId, Trace,
};
use crate::other_profilers::{self, Origin};
use crate::strings::NameId;
use crate::units::{Bytes, Nanos};
use rusqlite::{Connection, OpenFlags};
use rustc_hash::FxHashMap;
use std::path::Path;
use tables::{Row, Tables};

/// First bytes of an SQLite file.
pub(crate) const MAGIC: &[u8] = b"SQLite format 3\0";

/// Reads an export.
///
/// # Errors
/// If the file cannot be read, is not an export, or has the kernels of several processes.
pub(crate) fn read(path: &Path) -> Result<Trace, Error> {
    let failed = |error: rusqlite::Error| Error::Export { path: path.to_owned(), problem: error.to_string() };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    let length = std::fs::metadata(path).map_err(Error::io(path))?.len();
    let tables = Tables::read(&connection, length).map_err(failed)?;
    if !tables.is_export() {
        let problem =
            "it is a database, and holds none of the tables of `nsys export --type sqlite`".to_owned();
        return Err(Error::Export { path: path.to_owned(), problem });
    }
    let mut reader =
        Reader { builder: Builder::default(), texts: FxHashMap::default(), names: FxHashMap::default() };
    tables.strings(|id, text| _ = reader.texts.insert(id, text)).map_err(failed)?;
    let processes = tables.processes().map_err(failed)?;
    if processes.len() > 1 {
        return Err(Error::SeveralProcesses { path: path.to_owned(), processes });
    }
    reader.fill(&tables, processes.first().copied()).map_err(failed)?;
    let mut trace = reader.builder.finish();
    trace.origin = Origin::Nsight;
    trace.devices = tables.devices().map_err(failed)?;
    Ok(trace)
}

struct Reader {
    builder: Builder,
    /// Texts of the export, by their ids.
    texts: FxHashMap<i64, String>,
    /// Interned names of the texts in use.
    names: FxHashMap<i64, NameId>,
}

impl Reader {
    fn fill(&mut self, tables: &Tables<'_>, process: Option<i64>) -> rusqlite::Result<()> {
        let is_own = |row: &Row<'_>| {
            process.is_none_or(|own| process_of(row.number("globalPid")).is_none_or(|p| p == own))
        };
        tables.each("CUPTI_ACTIVITY_KIND_KERNEL", |row| {
            if is_own(row) {
                let name = self.name(row.number("demangledName").or(row.number("shortName")));
                self.activity(row, ActivityKind::Kernel, name);
            }
        })?;
        tables.each("CUPTI_ACTIVITY_KIND_MEMCPY", |row| {
            if is_own(row) {
                let name = self.builder.trace.names.intern(copy(row));
                self.activity(row, ActivityKind::Memcpy, name);
            }
        })?;
        tables.each("CUPTI_ACTIVITY_KIND_MEMSET", |row| {
            if is_own(row) {
                let name = self.builder.trace.names.intern(other_profilers::MEMSET);
                self.activity(row, ActivityKind::Memset, name);
            }
        })?;
        tables.each("CUPTI_ACTIVITY_KIND_RUNTIME", |row| self.call(row, process))?;
        let mut all = Vec::new();
        tables.each("NVTX_EVENTS", |row| all.extend(ranges::Range::from_row(row, &self.texts)))?;
        all.retain(|range| process.is_none_or(|own| process_of(Some(range.thread)) == Some(own)));
        for op in ranges::ops(all) {
            let thread = self.thread(op.thread);
            let name = self.builder.trace.names.intern(&op.name);
            self.builder.trace.ops.push(op.row(name, thread));
        }
        tables.each("ThreadNames", |row| {
            let name = row.number("nameId").and_then(|id| self.texts.get(&id));
            if let (Some(name), Some(global)) = (name, row.number("globalTid")) {
                self.builder.thread_names.push((place(global), name.clone()));
            }
        })
    }

    fn activity(&mut self, row: &Row<'_>, kind: ActivityKind, name: NameId) {
        let (Some(start), Some(end)) = (row.time("start"), row.time("end")) else { return };
        let small =
            |column: &str| row.number(column).and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
        let shape = LaunchShape {
            grid: ["gridX", "gridY", "gridZ"].map(small),
            block: ["blockX", "blockY", "blockZ"].map(small),
            registers: small("registersPerThread"),
            shared_memory: small("staticSharedMemory").saturating_add(small("dynamicSharedMemory")),
        };
        let stream = self
            .builder
            .stream_id(Stream { device: small("deviceId"), stream: row.number("streamId").unwrap_or(-1) });
        let launch = self.builder.shape(shape);
        self.builder.trace.activities.push(Activity {
            kind,
            name,
            stream,
            start,
            dur: (end - start).max(Nanos::ZERO),
            correlation: unsigned(row, "correlationId"),
            external_id: 0,
            bytes: unsigned(row, "bytes"),
            launch,
            graph_node: unsigned(row, "graphNodeId"),
        });
    }

    /// Adds a call of the runtime or the driver: both are in one table, with a version suffix in their names.
    fn call(&mut self, row: &Row<'_>, process: Option<i64>) {
        let (Some(start), Some(end), Some(global)) =
            (row.time("start"), row.time("end"), row.number("globalTid"))
        else {
            return;
        };
        let text = row.number("nameId").and_then(|id| self.texts.get(&id)).map_or("", String::as_str);
        let name = without_version(text);
        let Some(api) = CallLibrary::from_function(name)
            .filter(|_| process.is_none_or(|own| process_of(Some(global)) == Some(own)))
        else {
            return;
        };
        let name = self.builder.trace.names.intern(name);
        let thread = self.thread(global);
        self.builder.trace.calls.push(Call {
            api,
            name,
            thread,
            start,
            dur: (end - start).max(Nanos::ZERO),
            correlation: unsigned(row, "correlationId"),
            external_id: 0,
        });
    }

    fn thread(&mut self, global: i64) -> ThreadId {
        let (pid, tid) = place(global);
        self.builder.thread_id(Thread { pid, tid, name: None })
    }

    fn name(&mut self, id: Option<i64>) -> NameId {
        let id = id.unwrap_or(-1);
        let text = self.texts.get(&id).map_or("kernel without a name", String::as_str);
        let names = &mut self.builder.trace.names;
        *self.names.entry(id).or_insert_with(|| names.intern(text))
    }
}

/// Returns the process and the thread of a global thread id: 24 bits each, below the numbers of machine and host.
fn place(global: i64) -> (i64, i64) {
    ((global >> 24) & 0xff_ffff, global & 0xff_ffff)
}

/// Returns the process of a global id.
fn process_of(global: Option<i64>) -> Option<i64> {
    global.map(|global| place(global).0)
}

fn unsigned(row: &Row<'_>, column: &str) -> u64 {
    row.number(column).and_then(|number| u64::try_from(number).ok()).unwrap_or(0)
}

/// Returns a function's name without its ABI version: `cudaLaunchKernel_v7000`, `cudaMemcpyAsync_ptsz_v7000`.
fn without_version(name: &str) -> &str {
    let stem = match name.rsplit_once("_v") {
        Some((stem, version)) if version.len() > 3 && version.bytes().all(|digit| digit.is_ascii_digit()) => {
            stem
        }
        _ => name,
    };
    stem.trim_end_matches("_ptsz")
}

/// Returns the name of a copy, from its kind (1 to the device, 2 from it) and the kinds of both memories (0 pageable, 1 pinned).
fn copy(row: &Row<'_>) -> &'static str {
    let pinned = |column: &str| match row.number(column) {
        Some(0) => Some(false),
        Some(1) => Some(true),
        _ => None,
    };
    match row.number("copyKind") {
        Some(1) => other_profilers::to_device(pinned("srcKind")),
        Some(2) => other_profilers::to_host(pinned("dstKind")),
        _ => other_profilers::WITHIN_DEVICE,
    }
}

/// Reads a GPU of the table of targets.
fn device(row: &Row<'_>) -> DeviceProperties {
    let small = |column: &str| row.number(column).and_then(|number| u32::try_from(number).ok());
    let bytes = |column: &str| row.number(column).and_then(|number| u64::try_from(number).ok()).map(Bytes);
    DeviceProperties {
        id: small("cuDevice").or(small("id")).unwrap_or(0),
        name: row.text("name").unwrap_or_default(),
        total_global_mem: bytes("totalMemory"),
        compute_major: small("computeMajor"),
        compute_minor: small("computeMinor"),
        num_sms: small("smCount"),
        warp_size: small("threadsPerWarp"),
        max_threads_per_block: small("maxThreadsPerBlock"),
        regs_per_block: small("maxRegistersPerBlock"),
        shared_mem_per_block: bytes("maxShmemPerBlock"),
        l2_cache: bytes("l2CacheSize"),
        ..DeviceProperties::default()
    }
}
