//! Plans: changes from a file.

use std::path::Path;

use clap::ValueEnum;
use toml::{Table, Value};

use crate::cli::{Changes, Fuse, Operators, Precision};
use crate::commands::Failure;
use crate::nearest::nearest;

/// Maximum size of a plan, in bytes.
const LONGEST: u64 = 1 << 20;
/// Keys of a plan: the option names of the command line.
const KEYS: [&str; 21] = [
    "batch",
    "recorded-batch",
    "batch-dim",
    "set",
    "fuse",
    "among",
    "operators",
    "dtype",
    "channels-last",
    "prefetch-inputs",
    "reorder",
    "no-sync",
    "checkpoint",
    "blocks",
    "remove",
    "on-stream",
    "streams",
    "accumulate",
    "data-parallel",
    "cuda-graph",
    "host-speed",
];

/// Reads a plan.
pub fn read(path: &Path) -> Result<Changes, Failure> {
    let place = path.display();
    let text = steptime_trace::read_text(path, LONGEST).map_err(|error| format!("{place}: {error}"))?;
    let table: Table = text.parse().map_err(|error| format!("{place}: {error}"))?;
    parse(&table).map_err(|error| format!("{place}: {error}").into())
}

/// Reads the changes of a table.
pub fn parse(table: &Table) -> Result<Changes, String> {
    let mut changes = Changes::default();
    for (key, value) in table {
        match key.replace('_', "-").as_str() {
            "batch" => changes.batch = Some(whole_number(key, value)?),
            "recorded-batch" => changes.recorded_batch = Some(whole_number(key, value)?),
            "batch-dim" => changes.batch_dim = Some(whole_number(key, value)? as usize),
            "accumulate" => {
                changes.accumulate = Some(u32::try_from(whole_number(key, value)?).unwrap_or(u32::MAX))
            }
            "set" => {
                changes.set = parts(key, value, "PATH=VALUE, as tables[0].rows=1000000", crate::cli::size)?
            }
            "fuse" => {
                changes.fuse =
                    list(value).into_iter().map(|name| choice::<Fuse>(key, name)).collect::<Result<_, _>>()?
            }
            "among" => changes.among = parts(key, value, "the names of ops", crate::cli::selection)?,
            "operators" => changes.operators = Some(choice::<Operators>(key, value)?),
            "dtype" => changes.dtype = Some(choice::<Precision>(key, value)?),
            "channels-last" => changes.channels_last = flag(key, value)?,
            "prefetch-inputs" => changes.prefetch_inputs = flag(key, value)?,
            "reorder" => changes.reorder = flag(key, value)?,
            "no-sync" => changes.no_sync = flag(key, value)?,
            "checkpoint" => changes.checkpoint = segments(key, value)?,
            "blocks" => {
                let named = parts(key, value, "module:PATH, depth:N or whole", |text| Ok(text.to_owned()))?;
                let blocks = named.join(",").parse();
                changes.blocks = Some(blocks.map_err(|error| format!("`{key}`: {error}"))?);
            }
            "remove" => changes.remove = parts(key, value, "the names of ops", crate::cli::selection)?,
            "on-stream" => changes.on_stream = parts(key, value, "the names of ops", crate::cli::selection)?,
            "streams" => changes.streams = Some(whole_number(key, value)? as usize),
            "data-parallel" => {
                changes.data_parallel = Some(u32::try_from(whole_number(key, value)?).unwrap_or(u32::MAX));
            }
            "cuda-graph" => changes.cuda_graph = flag(key, value)?,
            "host-speed" => {
                let times = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
                changes.host_speed = Some(times.ok_or_else(|| format!("`{key}` is a number"))?);
            }
            other => return check_key(other, &[]).map(|()| changes),
        }
    }
    Ok(changes)
}

fn whole_number(key: &str, value: &Value) -> Result<u64, String> {
    let number = value.as_integer().and_then(|number| u64::try_from(number).ok());
    number.ok_or_else(|| format!("`{key}` is a whole number, and not {value}"))
}

fn flag(key: &str, value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| format!("`{key}` is true or false, and not {value}"))
}

/// Reads a number of segments, or a boolean: `true` makes each block a segment, which is 0.
fn segments(key: &str, value: &Value) -> Result<Option<usize>, String> {
    match value.as_bool() {
        Some(wanted) => Ok(wanted.then_some(0)),
        None => Ok(Some(whole_number(key, value)? as usize)),
    }
}

fn list(value: &Value) -> Vec<&Value> {
    value.as_array().map_or_else(|| vec![value], |all| all.iter().collect())
}

/// Reads one value or several, each as on the command line.
fn parts<T>(
    key: &str,
    value: &Value,
    takes: &str,
    read: fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let read = |part: &Value| {
        let text = part.as_str().ok_or_else(|| format!("`{key}` takes {takes}, and not {part}"))?;
        read(text).map_err(|error| format!("`{key}`: {error}"))
    };
    list(value).into_iter().map(read).collect()
}

fn choice<T: ValueEnum>(key: &str, value: &Value) -> Result<T, String> {
    let known = || {
        let names = T::value_variants().iter().filter_map(T::to_possible_value);
        names.map(|value| value.get_name().to_owned()).collect::<Vec<_>>().join(", ")
    };
    let text = value.as_str().ok_or_else(|| format!("`{key}` is one of {}", known()))?;
    T::from_str(text, true).map_err(|_| format!("`{key}` is one of {}, and not {text}", known()))
}

/// Checks that a key is one of a plan or of `more`; the error names the nearest.
pub fn check_key(key: &str, more: &[&str]) -> Result<(), String> {
    let keys = || KEYS.iter().chain(more).copied();
    if keys().any(|known| known == key) {
        return Ok(());
    }
    let meant = nearest(key, keys()).map_or_else(String::new, |known| format!(" (is {known} meant?)"));
    Err(format!("`{key}` is not a change{meant}: there are {}", keys().collect::<Vec<_>>().join(", ")))
}

impl Changes {
    /// Returns the same changes, overridden by those typed on the command line.
    pub fn overridden(self, typed: &Changes) -> Changes {
        Changes {
            batch: typed.batch.or(self.batch),
            recorded_batch: typed.recorded_batch.or(self.recorded_batch),
            batch_dim: typed.batch_dim.or(self.batch_dim),
            accumulate: typed.accumulate.or(self.accumulate),
            set: if typed.set.is_empty() { self.set } else { typed.set.clone() },
            fuse: if typed.fuse.is_empty() { self.fuse } else { typed.fuse.clone() },
            among: if typed.among.is_empty() { self.among } else { typed.among.clone() },
            operators: typed.operators.or(self.operators),
            dtype: typed.dtype.or(self.dtype),
            channels_last: typed.channels_last || self.channels_last,
            prefetch_inputs: typed.prefetch_inputs || self.prefetch_inputs,
            reorder: typed.reorder || self.reorder,
            no_sync: typed.no_sync || self.no_sync,
            checkpoint: typed.checkpoint.or(self.checkpoint),
            blocks: typed.blocks.clone().or(self.blocks),
            remove: if typed.remove.is_empty() { self.remove } else { typed.remove.clone() },
            on_stream: if typed.on_stream.is_empty() { self.on_stream } else { typed.on_stream.clone() },
            streams: typed.streams.or(self.streams),
            data_parallel: typed.data_parallel.or(self.data_parallel),
            cuda_graph: typed.cuda_graph || self.cuda_graph,
            host_speed: typed.host_speed.or(self.host_speed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_has_the_names_of_the_command_line() {
        let changes = parse(&"batch = 8192\ncuda-graph = true\nhost_speed = 0.5".parse().unwrap()).unwrap();
        assert_eq!((changes.batch, changes.cuda_graph, changes.host_speed), (Some(8192), true, Some(0.5)));
        let error = parse(&"bacth = 1".parse().unwrap()).unwrap_err();
        assert!(error.contains("is batch meant?"), "{error}");
        let error = parse(&"dtype = \"fp4\"".parse().unwrap()).unwrap_err();
        assert!(error.contains("tf32"), "{error}");
    }
}
