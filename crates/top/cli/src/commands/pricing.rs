//! How kernels are priced: what was typed, looked up.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use steptime::aten::Settings;
use steptime::cost::device::{DeviceProfile, Indices, ModelChoice};
use steptime::{Kernels, Question, Step};

use super::Failure;
use crate::cli::{Models, Pricing};

/// A device profile, and how to use it.
pub struct Priced {
    /// The profile.
    pub profile: DeviceProfile,
    /// Which of its models.
    pub models: ModelChoice,
    /// How indices of lookups are distributed.
    pub indices: Indices,
    /// PyTorch's settings.
    pub settings: Settings,
}

impl Priced {
    /// Looks up a device by what was typed.
    pub fn find(name: &str, pricing: &Pricing) -> Result<Priced, Failure> {
        Ok(Priced {
            profile: steptime::device(name)?,
            models: models(pricing.models),
            indices: pricing.indices.as_deref().map_or(Ok(Indices::Unknown), indices)?,
            settings: settings(pricing),
        })
    }

    /// For a prediction.
    pub fn kernels(&self) -> Kernels<'_> {
        Kernels::Device {
            profile: &self.profile,
            models: self.models,
            indices: self.indices.clone(),
            settings: self.settings,
        }
    }
}

/// A question about a step, its kernels to be priced so.
pub fn ask<'s>(step: &'s Step, pricing: &Pricing) -> Result<Question<'s>, Failure> {
    let indices = pricing.indices.as_deref().map_or(Ok(Indices::Unknown), indices)?;
    Ok(step.predict().models(models(pricing.models)).indices(indices).settings(settings(pricing)))
}

/// The models that were asked for.
pub fn models(choice: Models) -> ModelChoice {
    match choice {
        Models::Best => ModelChoice::Best,
        Models::Paper => ModelChoice::Paper,
        Models::Analytic => ModelChoice::Analytic,
        Models::Learnt => ModelChoice::Learnt,
    }
}

/// PyTorch's settings that were asked for.
pub fn settings(pricing: &Pricing) -> Settings {
    Settings { matmul_tf32: pricing.tf32, ..Settings::default() }
}

/// Reads `uniform`, `zipf:1.05`, or a file of indices.
pub fn indices(text: &str) -> Result<Indices, Failure> {
    if text == "uniform" {
        return Ok(Indices::Uniform);
    }
    if let Some(exponent) = text.strip_prefix("zipf:") {
        let exponent: f64 = exponent
            .parse()
            .map_err(|_| format!("{text}: a number must come after zipf:, as in zipf:1.05"))?;
        return zipf(exponent);
    }
    histogram(Path::new(text), u64::MAX)
}

/// A Zipf distribution, checked.
pub fn zipf(exponent: f64) -> Result<Indices, Failure> {
    if exponent.is_finite() && (0.0..=8.0).contains(&exponent) {
        Ok(Indices::Zipf(exponent))
    } else {
        Err(format!("a Zipf exponent of {exponent} makes no sense: it lies between 0 and 8, mostly near 1")
            .into())
    }
}

/// The longest file of indices that is read.
const LONGEST: u64 = 4 << 30;

/// How often each row is looked up, from a file with one index below `rows` a line.
pub fn histogram(path: &Path, rows: u64) -> Result<Indices, Failure> {
    let text = steptime::trace::read_text(path, LONGEST).map_err(|source| {
        format!(
            "{}: {source}; --indices takes uniform, zipf:A, or a file with one index a line",
            path.display()
        )
    })?;
    let mut counts: HashMap<u64, u64> = HashMap::new();
    for (at, line) in text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty()) {
        let place = || format!("{}, line {}", path.display(), at + 1);
        let index: u64 = line
            .parse()
            .map_err(|_| format!("{}: {line:?} is not an index (a whole number from 0)", place()))?;
        if index >= rows {
            return Err(format!("{}: index {index} is no row of a table of {rows}", place()).into());
        }
        *counts.entry(index).or_default() += 1;
    }
    let total: u64 = counts.values().sum();
    if total == 0 {
        return Err(format!("{}: there is no index in it", path.display()).into());
    }
    let mut shares: Vec<f32> =
        counts.into_values().map(|count| (count as f64 / total as f64) as f32).collect();
    shares.sort_by(|a, b| b.total_cmp(a));
    Ok(Indices::Histogram(Arc::from(shares)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn distributions_are_read() {
        assert!(matches!(indices("uniform"), Ok(Indices::Uniform)));
        assert!(matches!(indices("zipf:1.05"), Ok(Indices::Zipf(a)) if a == 1.05));
        assert!(indices("zipf:x").is_err());
        assert!(indices("zipf:-1").is_err());
        assert!(indices("/no/such/file").is_err());
    }

    #[test]
    fn a_file_of_indices_becomes_a_histogram() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "7\n3\n7\n\n7").unwrap();
        let Ok(Indices::Histogram(shares)) = indices(&file.path().display().to_string()) else { panic!() };
        assert_eq!(shares[..], [0.75, 0.25]);
        writeln!(file, "x").unwrap();
        let error = indices(&file.path().display().to_string()).unwrap_err().to_string();
        assert!(error.contains("line 6"), "{error}");
    }
}
