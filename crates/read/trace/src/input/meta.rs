//! `meta.json`: measurements of the recorder besides the traces.

use crate::error::Error;
use crate::json::{Cursor, Fault};
use crate::number;
use crate::text::read_bytes;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// Numbers by their path in nested objects, `before.op_us`; a single number is a list of one.
pub type Numbers = BTreeMap<String, Vec<f64>>;

/// Facts about a recording; each may be missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// Model name, for example `dlrm_default`.
    pub model: Option<String>,
    /// Samples per step.
    pub batch: Option<u64>,
    /// Whether the recorder guessed `batch` from the shape of a tensor.
    pub batch_guessed: bool,
    /// Samples per step of all ranks together.
    pub global_batch: Option<u64>,
    /// Embedding tables on each rank of a job, by their numbers.
    pub placement: Vec<Vec<u64>>,
    /// Device name, for example `NVIDIA H200`.
    pub device: Option<String>,
    /// Version of PyTorch.
    pub torch: Option<String>,
    /// Processor or architecture of the host.
    pub cpu: Option<String>,
    /// Whether float32 matrix products may run in TF32; `None` if not recorded.
    pub matmul_tf32: Option<bool>,
    /// Number of parameters of the model.
    pub params: Option<u64>,
    /// Median un-profiled step, in milliseconds: the reference for predictions.
    pub step_ms: Option<f64>,
    /// Duration of each un-profiled step, in milliseconds.
    pub steps_ms: Vec<f64>,
    /// Mean step of each measuring window, in milliseconds.
    pub windows_ms: Vec<f64>,
    /// Quantiles of the un-profiled step: (fraction, milliseconds), ascending.
    pub quantiles_ms: Vec<(f64, f64)>,
    /// State of the process when its un-profiled steps were timed: `fresh` if no profiler had run in it.
    pub process: Option<String>,
    /// Peak device memory in use, in bytes.
    pub peak_memory: Option<u64>,
    /// Durations of pieces of host work that the recorder measured on its host.
    pub host_probe: Numbers,
    /// Durations of one fixed piece of host work, measured between steps.
    pub pulses: Numbers,
    /// Warnings of the recorder about data to be read with care.
    pub warnings: Vec<String>,
    /// Calls of modules in the step of the execution trace, in the order in which they began.
    pub modules: Vec<ModuleCall>,
    /// Parameters and buffers of the called modules.
    pub constants: Vec<ConstantTensor>,
    /// Inputs of modules that are the same in each step, so not part of the batch.
    pub kept_inputs: Vec<ConstantTensor>,
    /// Implementation of each optimizer step over parameters on a GPU, in order: `loop`, `foreach` or `fused`.
    pub optimizers: Vec<String>,
    /// Lookups of a step, in order.
    pub lookups: Vec<RecordedLookup>,
    /// Results of the forward pass that the script keeps after the backward pass.
    pub outlives: Vec<KeptResult>,
}

/// Result of an op that the script keeps although no op uses it any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptResult {
    /// Op name, for example `aten::addmm`.
    pub op: String,
    /// Shape of the result.
    pub shape: Vec<i64>,
    /// Its index among the ops of the step with this name and this shape of the result.
    pub number: usize,
    /// Number of such ops.
    pub count: usize,
    /// Whether it is kept until the next step has its own; otherwise it is freed at the end of the step.
    pub until_next: bool,
}

/// Lookup of the step, as counted by the recorder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedLookup {
    /// Op name, for example `aten::embedding`.
    pub op: String,
    /// Access counts of rows, `counts:90/90,12/30`; empty if not known.
    pub counts: String,
}

/// Parameter or buffer of a module. It is on the device before a step, which may only read it, like its batch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConstantTensor {
    /// Shape of the tensor.
    pub shape: Vec<i64>,
    /// Bytes per element.
    pub size: u64,
}

/// Call of a module's forward pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleCall {
    /// Qualified name of the module, for example `DLRM.bottom.0`.
    pub path: String,
    /// Class name, for example `Linear`.
    pub class: String,
    /// Range of autograd's function counter while it ran.
    pub sequences: Range<i64>,
}

impl Meta {
    /// Reads the `meta.json` of a recording's folder.
    ///
    /// # Errors
    /// If the file is missing, is not a JSON object, or has an invalid count.
    pub fn read_of(folder: &Path) -> Result<Meta, Error> {
        Meta::open(&folder.join("meta.json"))
    }

    pub(super) fn open(path: &Path) -> Result<Meta, Error> {
        let bytes = read_bytes(path, LONGEST).map_err(Error::io(path))?;
        let mut cursor = Cursor::new(&bytes);
        let (meta, no_count) = Meta::read(&mut cursor).map_err(|fault| Error::Malformed {
            path: path.to_owned(),
            offset: cursor.at as u64,
            problem: match fault {
                Fault::End => "the file ends too early".to_owned(),
                Fault::Unexpected => "this is not a JSON object".to_owned(),
            },
        })?;
        match no_count {
            Some((field, found)) => Err(Error::NoCount { path: path.to_owned(), field, found }),
            None => Ok(meta),
        }
    }

    /// Reads the object, and returns the first field that must be a count and has another number.
    fn read(cursor: &mut Cursor<'_>) -> Result<(Meta, Option<(String, f64)>), Fault> {
        let mut meta = Meta::default();
        let mut no_count = None;
        if !cursor.enter_object()? {
            return Err(Fault::Unexpected);
        }
        while let Some(key) = cursor.key()? {
            let mut whole = |cursor: &mut Cursor<'_>| -> Result<Option<u64>, Fault> {
                let number = cursor.float()?;
                let count = number.and_then(count);
                if let (Some(number), None, None) = (number, count, &no_count) {
                    no_count = Some((key.decoded(), number));
                }
                Ok(count)
            };
            match key.raw {
                b"model" => meta.model = string(cursor)?,
                b"batch" | b"batch_size" => meta.batch = whole(cursor)?,
                b"batch_source" => {
                    meta.batch_guessed = string(cursor)?.is_some_and(|source| source != "given")
                }
                b"global_batch" => meta.global_batch = whole(cursor)?,
                b"placement" => meta.placement = lists(cursor)?,
                b"device" => meta.device = string(cursor)?,
                b"torch" => meta.torch = string(cursor)?,
                b"cpu" => meta.cpu = string(cursor)?,
                b"matmul_precision" => {
                    meta.matmul_tf32 = match string(cursor)?.as_deref() {
                        Some("tf32") => Some(true),
                        Some("float32") => Some(false),
                        _ => None,
                    };
                }
                b"process" => meta.process = string(cursor)?,
                b"params" => meta.params = whole(cursor)?,
                b"step_ms" => meta.step_ms = cursor.float()?.filter(is_time),
                b"steps_ms" => meta.steps_ms = floats(cursor)?,
                b"windows_ms" => meta.windows_ms = floats(cursor)?,
                b"quantiles_ms" => meta.quantiles_ms = quantiles(cursor)?,
                b"peak_memory" | b"peak_memory_bytes" | b"peak_mem" | b"peak_bytes" => {
                    meta.peak_memory = whole(cursor)?;
                }
                b"host_probe" => numbers(cursor, "", &mut meta.host_probe, DEEPEST)?,
                b"record" => meta.warnings = warnings(cursor)?,
                b"modules" => meta.modules = modules(cursor)?,
                b"constants" => meta.constants = constants(cursor)?,
                b"optimizers" => meta.optimizers = strings(cursor)?,
                b"kept_inputs" => meta.kept_inputs = constants(cursor)?,
                b"lookups" => meta.lookups = lookups(cursor)?,
                b"outlives" => meta.outlives = outlives(cursor)?,
                b"pulses" => numbers(cursor, "", &mut meta.pulses, DEEPEST)?,
                _ => cursor.skip()?,
            }
        }
        Ok((meta, no_count))
    }
}

/// Maximum size of the file, in bytes.
const LONGEST: u64 = 64 << 20;

/// Largest number that is exact in a file.
const MOST: f64 = (1u64 << 53) as f64;

/// Maximum nesting depth of objects; deeper ones are dropped.
const DEEPEST: usize = 4;

/// Reads all finite numbers and lists of numbers of an object and of nested objects.
fn numbers(cursor: &mut Cursor<'_>, prefix: &str, found: &mut Numbers, depth: usize) -> Result<(), Fault> {
    if !cursor.enter_object()? {
        return Ok(());
    }
    while let Some(key) = cursor.key()? {
        let path = format!("{prefix}{}", key.decoded());
        match cursor.peek()? {
            b'{' if depth > 0 => numbers(cursor, &format!("{path}."), found, depth - 1)?,
            b'[' => {
                found.insert(path, floats(cursor)?);
            }
            b'{' => cursor.skip()?,
            _ => {
                let number = cursor.float()?.filter(|number| number.is_finite());
                found.extend(number.map(|number| (path, vec![number])));
            }
        }
    }
    Ok(())
}

fn string(cursor: &mut Cursor<'_>) -> Result<Option<String>, Fault> {
    Ok(cursor.string()?.map(|text| text.decoded()))
}

/// Reads lists of whole numbers. Drops other items.
fn lists(cursor: &mut Cursor<'_>) -> Result<Vec<Vec<u64>>, Fault> {
    let mut found = Vec::new();
    if cursor.enter_array()? {
        while cursor.item()? {
            found.push(floats(cursor)?.into_iter().filter_map(count).collect());
        }
    }
    Ok(found)
}

/// Reads the texts of the list `warnings` of an object.
fn warnings(cursor: &mut Cursor<'_>) -> Result<Vec<String>, Fault> {
    let mut found = Vec::new();
    if cursor.enter_object()? {
        while let Some(key) = cursor.key()? {
            if key.raw != b"warnings" {
                cursor.skip()?;
            } else {
                found = strings(cursor)?;
            }
        }
    }
    Ok(found)
}

/// Reads the texts of a list. Drops other items.
fn strings(cursor: &mut Cursor<'_>) -> Result<Vec<String>, Fault> {
    let mut found = Vec::new();
    if cursor.enter_array()? {
        while cursor.item()? {
            found.extend(string(cursor)?);
        }
    }
    Ok(found)
}

/// Supported version of recorded lookups.
const LOOKUPS: f64 = 1.0;
/// Supported version of recorded lifetimes.
const OUTLIVES: f64 = 1.0;

/// Reads lookups: `{"version": 1, "ops": [["aten::embedding", "counts:90/90"]]}`. Empty for another version.
fn lookups(cursor: &mut Cursor<'_>) -> Result<Vec<RecordedLookup>, Fault> {
    let texts = versioned(cursor, b"ops", LOOKUPS)?.into_iter();
    let lookup = |[op, counts]: [String; 2]| RecordedLookup { op, counts };
    Ok(texts.filter_map(|texts| first(texts).map(lookup)).collect())
}

/// Reads results: `{"version": 1, "results": [["aten::addmm", "64x100", "0/1", "step"]]}`. Empty for another version.
fn outlives(cursor: &mut Cursor<'_>) -> Result<Vec<KeptResult>, Fault> {
    let texts = versioned(cursor, b"results", OUTLIVES)?.into_iter();
    let result = |[op, shape, number, until]: [String; 4]| {
        let sides = shape.split('x').filter(|side| !side.is_empty());
        let shape = sides.map(|side| side.parse().ok()).collect::<Option<_>>()?;
        let (number, count) = number.split_once('/')?;
        let (number, count) = (number.parse().ok()?, count.parse().ok()?);
        Some(KeptResult { op, shape, number, count, until_next: until == "next" })
    };
    Ok(texts.filter_map(|texts| first(texts).and_then(result)).collect())
}

/// Reads the lists of texts under a key of an object with this version; empty for another version.
fn versioned(cursor: &mut Cursor<'_>, list: &[u8], wanted: f64) -> Result<Vec<Vec<String>>, Fault> {
    let (mut found, mut version) = (Vec::new(), None);
    if !cursor.enter_object()? {
        return Ok(found);
    }
    while let Some(key) = cursor.key()? {
        match key.raw {
            b"version" => version = cursor.float()?,
            name if name == list && cursor.peek()? == b'[' => {
                cursor.enter_array()?;
                while cursor.item()? {
                    found.push(strings(cursor)?);
                }
            }
            _ => cursor.skip()?,
        }
    }
    found.retain(|_| version == Some(wanted));
    Ok(found)
}

/// Returns the first `N` texts of a list, if it has as many.
fn first<const N: usize>(mut texts: Vec<String>) -> Option<[String; N]> {
    texts.truncate(N);
    texts.try_into().ok()
}

/// Reads tensors: `[[1, 512], 8]`. Drops other items.
fn constants(cursor: &mut Cursor<'_>) -> Result<Vec<ConstantTensor>, Fault> {
    let mut found = Vec::new();
    if cursor.enter_array()? {
        while cursor.item()? {
            let (mut shape, mut size) = (None, None);
            if cursor.enter_array()? {
                while cursor.item()? {
                    if cursor.peek()? == b'[' {
                        shape = Some(floats(cursor)?.into_iter().map(|side| side as i64).collect());
                    } else {
                        size = cursor.float()?.and_then(count);
                    }
                }
            }
            found.extend(shape.zip(size).map(|(shape, size)| ConstantTensor { shape, size }));
        }
    }
    Ok(found)
}

/// Reads calls of modules: `["DLRM.bottom.0", "Linear", 12, 15]`. Drops other items.
fn modules(cursor: &mut Cursor<'_>) -> Result<Vec<ModuleCall>, Fault> {
    let mut found = Vec::new();
    if cursor.enter_array()? {
        while cursor.item()? {
            if !cursor.enter_array()? {
                continue;
            }
            let (mut texts, mut numbers) = (Vec::new(), Vec::new());
            while cursor.item()? {
                if cursor.peek()? == b'"' {
                    texts.extend(string(cursor)?)
                } else {
                    numbers.extend(cursor.integer()?)
                }
            }
            if let (Ok([path, class]), Ok([start, end])) =
                (<[String; 2]>::try_from(texts), <[i64; 2]>::try_from(numbers))
            {
                found.push(ModuleCall { path, class, sequences: start..end });
            }
        }
    }
    Ok(found)
}

/// Whether a number is a valid step time.
fn is_time(number: &f64) -> bool {
    number.is_finite() && *number > 0.0
}

/// Converts a number to a count. A number with a fraction is not one, and is not rounded to one.
fn count(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..=MOST).contains(&number)).then_some(number as u64)
}

/// Reads the finite numbers of a list.
fn floats(cursor: &mut Cursor<'_>) -> Result<Vec<f64>, Fault> {
    let mut found = Vec::new();
    if cursor.enter_array()? {
        while cursor.item()? {
            found.extend(cursor.float()?.filter(|number| number.is_finite()));
        }
    }
    Ok(found)
}

/// Reads `{"0.5": 3.38, …}`, in ascending order.
fn quantiles(cursor: &mut Cursor<'_>) -> Result<Vec<(f64, f64)>, Fault> {
    let mut found = Vec::new();
    if cursor.enter_object()? {
        while let Some(key) = cursor.key()? {
            let value = cursor.float()?.filter(|number| number.is_finite());
            let fraction = number::float(key.raw).filter(|number| number.is_finite());
            found.extend(fraction.zip(value));
        }
    }
    found.sort_by(|one: &(f64, f64), two| one.0.total_cmp(&two.0));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_precision_that_is_not_known_says_nothing() {
        for (text, allowed) in
            [("\"tf32\"", Some(true)), ("\"float32\"", Some(false)), ("\"banana\"", None), ("7", None)]
        {
            let json = format!("{{\"matmul_precision\": {text}, \"batch\": 8}}");
            let (meta, _) = Meta::read(&mut Cursor::new(json.as_bytes())).unwrap();
            assert_eq!((meta.matmul_tf32, meta.batch), (allowed, Some(8)), "{text}");
        }
    }

    #[test]
    fn takes_what_is_there() {
        let json = br#"{"model": "m", "batch": 8, "step_ms": 3.5, "steps_ms": [3, NaN, 4],
            "quantiles_ms": {"0.9": 4, "0.1": 3}, "record": {"steps": 3, "warnings": ["not steady", 4]}, "unknown": [{}], "params": "many",
            "optimizers": ["loop", 4, "foreach"], "kept_inputs": [[[9, 2], 4]],
            "outlives": {"version": 1, "results": [["aten::addmm", "64x100", "0/2", "next"], ["aten::mm", "64xx", "0", "step"], ["aten::mm"]]},
            "constants": [[[1, 512], 8], [[], 4], [8], 7], "modules": [["M.0", "Linear", 3, 5], ["M", 4], 7, ["M", "M", "x", 4]],
            "host_probe": {"version": 1, "before": {"op_us": 1.5, "name": "x"}, "copies": {"bytes": [4, 8]}}}"#;
        let meta = Meta::read(&mut Cursor::new(json));
        let expect = Meta {
            model: Some("m".into()),
            batch: Some(8),
            step_ms: Some(3.5),
            steps_ms: vec![3.0, 4.0],
            quantiles_ms: vec![(0.1, 3.0), (0.9, 4.0)],
            warnings: vec!["not steady".into()],
            constants: vec![
                ConstantTensor { shape: vec![1, 512], size: 8 },
                ConstantTensor { shape: vec![], size: 4 },
            ],
            optimizers: vec!["loop".into(), "foreach".into()],
            kept_inputs: vec![ConstantTensor { shape: vec![9, 2], size: 4 }],
            outlives: vec![KeptResult {
                op: "aten::addmm".into(),
                shape: vec![64, 100],
                number: 0,
                count: 2,
                until_next: true,
            }],
            modules: vec![ModuleCall { path: "M.0".into(), class: "Linear".into(), sequences: 3..5 }],
            host_probe: [
                ("version", vec![1.0]),
                ("before.op_us", vec![1.5]),
                ("copies.bytes", vec![4.0, 8.0]),
            ]
            .map(|(path, numbers)| (path.to_owned(), numbers))
            .into(),
            ..Meta::default()
        };
        assert_eq!(meta, Ok((expect, None)));
        assert_eq!(Meta::read(&mut Cursor::new(b"7")), Err(Fault::Unexpected));
        let whole = br#"{"batch": null, "step_ms": 0, "peak_memory": 8e9}"#;
        let expect = Meta { peak_memory: Some(8_000_000_000), ..Meta::default() };
        assert_eq!(Meta::read(&mut Cursor::new(whole)), Ok((expect, None)));
    }

    #[test]
    fn a_count_that_is_none_is_refused_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        for (json, field) in [("{\"params\": 3, \"batch\": 1.5}", "batch"), ("{\"params\": -1}", "params")] {
            std::fs::write(folder.path().join("meta.json"), json).expect("written");
            let error = Meta::read_of(folder.path()).expect_err("no count").to_string();
            assert!(error.contains(&format!("`{field}`")) && error.contains("whole number"), "{error}");
        }
    }
}
