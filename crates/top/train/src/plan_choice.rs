//! The choice of a plan: by name, or from a file.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use steptime_aten::optimizer::Form;
use steptime_rewrite::{
    Accumulate, Bf16, ConcatInPlace, CudaGraph, DenseOperators, FuseBiasGradients, FuseCasts,
    FuseCrossEntropy, FuseEmbeddingBags, FuseLinear, FusePointwise, NoSync, Operators, Optimizer,
    PrefetchInputs, Reorder, Rule,
};
use toml::{Table, Value};

use crate::error::Error;
use crate::processor::Precision;

/// Changes of the step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanChoice {
    /// The step of PyTorch eager.
    None,
    /// All rules that shorten the step on its device.
    Best,
    /// Rules of a file, as for `steptime whatif --plan`.
    File(PathBuf),
}

impl FromStr for PlanChoice {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<PlanChoice, Infallible> {
        Ok(match text {
            "none" => PlanChoice::None,
            "best" => PlanChoice::Best,
            path => PlanChoice::File(path.into()),
        })
    }
}

impl fmt::Display for PlanChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanChoice::None => f.write_str("none"),
            PlanChoice::Best => f.write_str("best"),
            PlanChoice::File(path) => path.display().fmt(f),
        }
    }
}

/// Changes that a program runs, in words.
const RUN: &str = "operators = \"steptime\" or \"steptime-dense\"; fuse = \"linear\", \"optimizer\", \"elementwise\", \"embedding-bags\", \"bias-gradients\", \
                   \"cross-entropy\", \"concat\" or \"casts\"; prefetch-inputs, reorder, no-sync and cuda-graph; accumulate = BATCHES";

impl PlanChoice {
    /// The rules with those of a precision, in the order in which they are applied.
    ///
    /// # Errors
    /// Where the file cannot be read, or has a change that no program runs.
    pub fn rules(&self, precision: Precision) -> Result<Vec<Box<dyn Rule>>, Error> {
        let mut rules: Vec<Box<dyn Rule>> = match self {
            PlanChoice::None => Vec::new(),
            PlanChoice::Best => {
                vec![
                    Box::new(Operators),
                    Box::new(DenseOperators),
                    Box::new(FuseLinear),
                    Box::new(Optimizer { form: Form::Fused }),
                ]
            }
            PlanChoice::File(path) => {
                let invalid = |reason: String| Error::Plan { path: path.clone(), reason };
                let text = std::fs::read_to_string(path).map_err(|error| {
                    invalid(format!("{error}; a plan is none, best, or a TOML file of changes"))
                })?;
                let table: Table =
                    text.parse().map_err(|error: toml::de::Error| invalid(error.to_string()))?;
                read(&table).map_err(invalid)?
            }
        };
        if precision == Precision::Bf16 {
            rules.retain(|rule| rule.name() != FuseCasts.name());
            rules.extend([Box::new(Bf16) as Box<dyn Rule>, Box::new(FuseCasts)]);
        }
        rules.sort_by_key(|rule| (rule.stage(), rule.name()));
        Ok(rules)
    }
}

/// Reads the rules of a table.
fn read(table: &Table) -> Result<Vec<Box<dyn Rule>>, String> {
    let mut rules: Vec<Box<dyn Rule>> = Vec::new();
    for (key, value) in table {
        let is_wanted =
            || value.as_bool().ok_or_else(|| format!("`{key}` is true or false, and not {value}"));
        let own: Option<Box<dyn Rule>> = match &*key.replace('_', "-") {
            "operators" if value.as_str() == Some("steptime") => Some(Box::new(Operators)),
            "operators" if value.as_str() == Some("steptime-dense") => Some(Box::new(DenseOperators)),
            "operators" => return Err(format!("`{key}` is not {value} in a run: steptime-train runs {RUN}")),
            "fuse" => {
                let several = value.as_array().map_or_else(|| vec![value], |all| all.iter().collect());
                rules.extend(several.into_iter().map(fused).collect::<Result<Vec<_>, _>>()?);
                None
            }
            "prefetch-inputs" => is_wanted()?.then(|| Box::new(PrefetchInputs) as _),
            "reorder" => is_wanted()?.then(|| Box::new(Reorder) as _),
            "no-sync" => is_wanted()?.then(|| Box::new(NoSync) as _),
            "cuda-graph" => is_wanted()?.then(|| Box::new(CudaGraph) as _),
            "accumulate" => {
                let batches = value.as_integer().and_then(|count| u32::try_from(count).ok());
                let batches = batches.filter(|&batches| batches > 0);
                let batches = batches.ok_or_else(|| {
                    format!("`{key}` is the number of batches of an update, and not {value}")
                })?;
                Some(Box::new(Accumulate { batches }))
            }
            "batch" | "dtype" => {
                return Err(format!("`{key}` is an option of the command line: --{key}"));
            }
            "set" => return Err(format!("`{key}`: sizes are those of the model's description")),
            other => return Err(format!("`{other}` is not run: steptime-train runs {RUN}")),
        };
        rules.extend(own);
    }
    Ok(rules)
}

/// The rule of a fusion.
fn fused(name: &Value) -> Result<Box<dyn Rule>, String> {
    Ok(match name.as_str() {
        Some("linear") => Box::new(FuseLinear),
        Some("optimizer") => Box::new(Optimizer { form: Form::Fused }),
        Some("elementwise") => Box::new(FusePointwise),
        Some("embedding-bags") => Box::new(FuseEmbeddingBags),
        Some("bias-gradients") => Box::new(FuseBiasGradients),
        Some("cross-entropy") => Box::new(FuseCrossEntropy),
        Some("concat") => Box::new(ConcatInPlace),
        Some("casts") => Box::new(FuseCasts),
        _ => return Err(format!("`fuse` has no {name}: steptime-train runs {RUN}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Result<Vec<&'static str>, String> {
        read(&text.parse().expect("TOML")).map(|rules| rules.iter().map(|rule| rule.name()).collect())
    }

    #[test]
    fn a_plan_has_the_keys_of_whatif() {
        let all = names("operators = 'steptime'\nfuse = ['linear', 'optimizer']\nno-sync = false").unwrap();
        assert_eq!(all, ["fuse-linear", "fuse-optimizer", "operators"]);
        assert_eq!(names("operators = 'steptime-dense'").unwrap(), ["operators-dense"]);
        assert_eq!(
            names("fuse = 'concat'\nprefetch_inputs = true").unwrap(),
            ["concat-in-place", "prefetch-inputs"]
        );
    }

    #[test]
    fn what_no_program_runs_is_refused_with_what_it_runs() {
        for (text, words) in [
            ("operators = 'fbgemm'", "operators = \"steptime\""),
            ("streams = 2", "`streams` is not run: steptime-train runs operators"),
            ("fuse = ['relu']", "`fuse` has no \"relu\""),
            ("batch = 8", "--batch"),
            ("cuda-graph = 1", "true or false"),
            ("accumulate = 0", "the number of batches of an update, and not 0"),
            ("accumulate = true", "the number of batches of an update, and not true"),
        ] {
            let reason = names(text).expect_err("it is refused");
            assert!(reason.contains(words), "{text}: {reason}");
        }
    }
}
