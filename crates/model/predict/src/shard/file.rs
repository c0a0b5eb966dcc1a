//! Plans as files: TorchRec's `ShardingPlan`, and HugeCTR's matrices.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use steptime_eager::{Cache, Model, Sharding, TableLayout, TableShard, TableSize};

/// TorchRec's name for rows in the host's memory with a cache on the GPU.
const CACHED: &str = "fused_uvm_caching";
/// Its earlier name, and the one for tables without an optimizer.
const ALSO_CACHED: [&str; 2] = ["batched_fused_uvm_caching", "quant_uvm_caching"];
/// Its names for rows in the GPU's memory.
const ON_GPU: [&str; 7] =
    ["dense", "fused", "quant", "sparse", "batched_dense", "batched_fused", "batched_quant"];
/// Default share of rows in FBGEMM's caches.
const USUAL_SHARE: f64 = 0.2;

/// File format of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// TorchRec's serialized `ShardingPlan`.
    TorchRec,
    /// HugeCTR's `shard_matrix` and `shard_strategy`.
    HugeCtr,
}

/// Error of reading or writing a plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The file is not a plan.
    #[error("{}: {what}", path.display())]
    Plan {
        /// The file.
        path: PathBuf,
        /// The problem, and the contents of a plan.
        what: String,
    },
    /// The format cannot express the placement.
    #[error("table {table} {how}, which HugeCTR's matrices cannot express: write the plan as torchrec")]
    NoWord {
        /// The table.
        table: usize,
        /// Its placement.
        how: &'static str,
    },
}

/// The name of a table in a plan.
fn name(table: usize) -> String {
    format!("t_{table}")
}

/// Converts the placement of a model's tables to a file's contents. `module` is the path of the tables' module in the model that reads it.
///
/// # Errors
/// Fails where the format cannot express the placement.
pub fn write_plan(model: &Model, format: Format, module: &str) -> Result<Value, PlanError> {
    let homes = model.homes();
    match format {
        Format::TorchRec => {
            let all = homes.iter().zip(model.tables()).enumerate();
            let tables: Map<String, Value> =
                all.map(|(at, (home, size))| (name(at), torchrec(home, &size, model))).collect();
            let mut plan = Map::new();
            plan.insert(module.to_owned(), Value::Object(tables));
            Ok(json!({ "plan": plan }))
        }
        Format::HugeCtr => hugectr(&homes, model.gpus()),
    }
}

fn torchrec(home: &TableLayout, size: &TableSize, model: &Model) -> Value {
    let gpus = model.gpus();
    let TableLayout::Parts(parts) = home else {
        let ranks: Vec<u32> = (0..gpus).collect();
        return json!({ "sharding_type": "data_parallel", "compute_kernel": "dense", "ranks": ranks, "shards": null });
    };
    let kind = match home.cutting(gpus) {
        Sharding::Rows => "row_wise",
        Sharding::Grid if parts.iter().all(|part| part.size[1] == size.columns) => "table_row_wise",
        Sharding::Grid => "grid_shard",
        Sharding::Columns => "column_wise",
        Sharding::Whole | Sharding::Copies => "table_wise",
    };
    // GPUs are numbered from 0 in each node.
    let node = model.nodes().map_or(gpus, |nodes| gpus / nodes.max(1)).max(1);
    let shard = |part: &TableShard| {
        let placement = format!("rank:{}/cuda:{}", part.gpu, part.gpu % node);
        json!({ "shard_offsets": part.offset, "shard_sizes": part.size, "placement": placement })
    };
    let ranks: Vec<u32> = parts.iter().map(|part| part.gpu).collect();
    let shards: Vec<Value> = parts.iter().map(shard).collect();
    match home.caches().next() {
        None => json!({ "sharding_type": kind, "compute_kernel": "fused", "ranks": ranks, "shards": shards }),
        Some((part, cache)) => {
            let share = cache.rows as f64 / part.size[0].max(1) as f64;
            json!({
                "sharding_type": kind, "compute_kernel": CACHED, "ranks": ranks, "shards": shards,
                "cache_params": { "load_factor": share },
            })
        }
    }
}

/// HugeCTR splits the rows of a table that several GPUs list.
fn hugectr(homes: &[TableLayout], gpus: u32) -> Result<Value, PlanError> {
    let mut matrix: Vec<Vec<String>> = vec![Vec::new(); gpus as usize];
    let (mut parted, mut copied) = (Vec::new(), Vec::new());
    for (table, home) in homes.iter().enumerate() {
        match home {
            TableLayout::Everywhere => {
                matrix.iter_mut().for_each(|own| own.push(name(table)));
                copied.push(name(table));
            }
            TableLayout::Parts(_) if home.caches().next().is_some() => {
                let how = "is in host memory behind a cache";
                return Err(PlanError::NoWord { table, how });
            }
            TableLayout::Parts(parts) if parts.iter().any(|part| part.offset[1] > 0) => {
                return Err(PlanError::NoWord { table, how: "is cut into columns" });
            }
            TableLayout::Parts(parts) => {
                parts.iter().for_each(|part| matrix[part.gpu as usize].push(name(table)));
                parted.push(name(table));
            }
        }
    }
    let mut strategy = vec![json!(["mp", parted])];
    if !copied.is_empty() {
        strategy.push(json!(["dp", copied]));
    }
    Ok(json!({ "shard_matrix": matrix, "shard_strategy": strategy }))
}

/// Reads the placement of a model's tables from a plan in either format, with its number of GPUs. The misses of caches of tables in hosts'
/// memory are not in it: [`missing`](super::missing) computes them.
///
/// # Errors
/// Fails where the file cannot be read, is not a plan, or is a plan of other tables.
pub fn read_plan(path: &Path, model: &Model) -> Result<(u32, Vec<TableLayout>), PlanError> {
    read_plan_of(path, &model.tables())
}

/// Size limit of a plan, in bytes.
const LONGEST: u64 = 64 << 20;

/// Reads a plan of tables of these sizes.
///
/// # Errors
/// As [`read_plan`].
pub fn read_plan_of(path: &Path, sizes: &[TableSize]) -> Result<(u32, Vec<TableLayout>), PlanError> {
    let text = steptime_trace::read_text(path, LONGEST)
        .map_err(|source| PlanError::Read { path: path.into(), source })?;
    let wrong = |what: String| PlanError::Plan { path: path.into(), what };
    let value: Value = serde_json::from_str(&text).map_err(|error| wrong(format!("not JSON: {error}")))?;
    let read = if value.get("shard_matrix").is_some() {
        from_hugectr(&value, sizes)
    } else {
        from_torchrec(&value, sizes)
    };
    read.map_err(wrong)
}

fn from_torchrec(value: &Value, sizes: &[TableSize]) -> Result<(u32, Vec<TableLayout>), String> {
    let wanted = "a plan is {\"plan\": {MODULE: {TABLE: {\"sharding_type\", \"ranks\", \"shards\"}}}}, as TorchRec writes it, \
                  or {\"shard_matrix\", \"shard_strategy\"}, as HugeCTR takes it";
    let modules = value.get("plan").unwrap_or(value).as_object().ok_or(wanted)?;
    let mut homes: Vec<Option<TableLayout>> = vec![None; sizes.len()];
    let mut gpus = 0;
    for (table, said) in modules.values().filter_map(Value::as_object).flatten() {
        let at = number(table, sizes.len())?;
        let kind =
            said.get("sharding_type").and_then(Value::as_str).ok_or_else(|| format!("{table}: {wanted}"))?;
        if kind == "data_parallel" {
            let ranks = said.get("ranks").and_then(Value::as_array).map_or(0, Vec::len);
            gpus = gpus.max(u32::try_from(ranks).unwrap_or(0));
            homes[at] = Some(TableLayout::Everywhere);
            continue;
        }
        let shards =
            said.get("shards").and_then(Value::as_array).ok_or_else(|| format!("{table} has no `shards`"))?;
        let parts: Result<Vec<TableShard>, String> = shards.iter().map(part).collect();
        let parts = parts.map_err(|what| format!("{table}: {what}"))?;
        gpus = parts.iter().map(|part| part.gpu + 1).fold(gpus, u32::max);
        let share = share(said).map_err(|what| format!("{table}: {what}"))?;
        let cache = |part: &TableShard| {
            let rows = (share? * part.size[0] as f64).round() as i64;
            Some(Cache { rows: rows.clamp(1, part.size[0].max(1)), misses: 0 })
        };
        homes[at] = Some(TableLayout::Parts(parts).cached(cache));
    }
    Ok((gpus, all(homes)?))
}

/// Share of a table's rows in the cache on the GPU; `None` where the GPU has all rows.
fn share(said: &Value) -> Result<Option<f64>, String> {
    let kernel = said.get("compute_kernel").and_then(Value::as_str).unwrap_or("fused");
    if ON_GPU.contains(&kernel) {
        return Ok(None);
    }
    if kernel != CACHED && !ALSO_CACHED.contains(&kernel) {
        return Err(format!(
            "compute kernel `{kernel}` is not known: rows are on the GPU (fused, dense) or in host memory behind a cache ({CACHED})"
        ));
    }
    let factor = said.get("cache_params").and_then(|cache| cache.get("load_factor"));
    let Some(factor) = factor.filter(|factor| !factor.is_null()) else { return Ok(Some(USUAL_SHARE)) };
    let share = factor.as_f64().filter(|share| *share > 0.0 && *share <= 1.0);
    share.map(Some).ok_or_else(|| {
        format!("`load_factor` of `cache_params` is {factor}: it is the share of rows that the cache holds, above 0 and at most 1")
    })
}

fn part(shard: &Value) -> Result<TableShard, String> {
    let pair = |key: &str| {
        let numbers: Vec<i64> =
            shard.get(key).and_then(Value::as_array)?.iter().filter_map(Value::as_i64).collect();
        <[i64; 2]>::try_from(numbers).ok()
    };
    let (offset, size) = pair("shard_offsets").zip(pair("shard_sizes")).ok_or(
        "a shard has `shard_offsets` and `shard_sizes`, two numbers each, and a `placement`, as \"rank:3/cuda:3\"",
    )?;
    let placement = shard.get("placement").and_then(Value::as_str).unwrap_or_default();
    let rank = placement.strip_prefix("rank:").and_then(|rest| rest.split('/').next()?.parse().ok());
    let gpu =
        rank.ok_or_else(|| format!("placement `{placement}` names no rank, as \"rank:3/cuda:3\" does"))?;
    Ok(TableShard { gpu, offset, size, cache: None, wanted: None })
}

fn from_hugectr(value: &Value, sizes: &[TableSize]) -> Result<(u32, Vec<TableLayout>), String> {
    let list = |value: &Value| -> Option<Vec<String>> {
        value
            .as_array()?
            .iter()
            .map(|item| Some(item.as_str().map_or_else(|| item.to_string(), str::to_owned)))
            .collect()
    };
    let matrix: Option<Vec<Vec<String>>> =
        value.get("shard_matrix").and_then(Value::as_array).and_then(|rows| rows.iter().map(list).collect());
    let matrix = matrix.ok_or("`shard_matrix` is a list of tables for each GPU")?;
    let gpus = u32::try_from(matrix.len()).map_err(|_| "`shard_matrix` has too many GPUs")?;
    let strategies = value.get("shard_strategy").and_then(Value::as_array);
    let copied: Vec<String> = strategies
        .into_iter()
        .flatten()
        .filter(|pair| pair.get(0).and_then(Value::as_str) == Some("dp"))
        .filter_map(|pair| list(pair.get(1)?))
        .flatten()
        .collect();
    let mut on: Vec<Vec<u32>> = vec![Vec::new(); sizes.len()];
    let mut everywhere = vec![false; sizes.len()];
    for (gpu, row) in (0..gpus).zip(&matrix) {
        for table in row {
            let at = number(table, sizes.len())?;
            on[at].push(gpu);
            everywhere[at] |= copied.contains(table);
        }
    }
    let home = |at: usize| match on[at][..] {
        _ if everywhere[at] => Some(TableLayout::Everywhere),
        [] => None,
        [gpu] => Some(TableLayout::whole(gpu, sizes[at].rows, sizes[at].columns)),
        _ => Some(TableLayout::by_grid(&on[at..=at], sizes[at].rows, sizes[at].columns)),
    };
    Ok((gpus, all((0..sizes.len()).map(home).collect())?))
}

/// Number at the end of a table's name.
fn number(table: &str, tables: usize) -> Result<usize, String> {
    let digits = table.len() - table.bytes().rev().take_while(u8::is_ascii_digit).count();
    let known = table[digits..].parse().ok().filter(|&at| at < tables);
    known.ok_or_else(|| {
        format!(
            "table `{table}` is not of this model: names end in a number from 0 to {}, as t_0",
            tables.saturating_sub(1)
        )
    })
}

fn all(homes: Vec<Option<TableLayout>>) -> Result<Vec<TableLayout>, String> {
    if let Some(at) = homes.iter().position(Option::is_none) {
        return Err(format!("table t_{at} is not placed: a plan names every table of the model"));
    }
    Ok(homes.into_iter().flatten().collect())
}
