//! Kernel pricing from command-line options.

use std::path::Path;
use std::sync::Arc;

use steptime_aten::Settings;
use steptime_cost::HostProfile;
use steptime_cost::device::{DeviceProfile, ModelChoice};
use steptime_launch::{Indices, IndicesError};
use steptime_predict::{Kernels, Query, QueryFor, Step};

use super::Failure;
use crate::cli::{HostChoice, Models, Pricing};

/// A device profile, and how to use it.
pub struct DevicePricing {
    pub profile: DeviceProfile,
    /// Choice among its models.
    pub models: ModelChoice,
    /// Distribution of lookup indices.
    pub indices: Indices,
    /// PyTorch's settings.
    pub settings: Settings,
}

impl DevicePricing {
    /// Looks up a device by name or folder.
    pub fn find(name: &str, pricing: &Pricing) -> Result<DevicePricing, Failure> {
        Ok(DevicePricing {
            profile: steptime_predict::device(name)?,
            models: models(pricing.models),
            indices: pricing.indices.as_deref().map_or(Ok(Indices::Unknown), indices)?,
            settings: settings(pricing),
        })
    }

    /// Returns the kernel pricing of a prediction.
    pub fn kernels(&self) -> Kernels<'_> {
        Kernels::Device {
            profile: &self.profile,
            models: self.models,
            indices: self.indices.clone(),
            settings: self.settings,
        }
    }
}

/// Returns a question about a step, with the given kernel pricing, and host if one is given.
pub fn ask<'s>(step: &'s Step, pricing: &Pricing, host: Option<&HostChoice>) -> Result<Query<'s>, Failure> {
    QueryOptions::read(None, pricing, host)?.query(step)
}

/// Options for the same question about several steps, read once.
pub struct QueryOptions<'a> {
    device: Option<(&'a str, Arc<DeviceProfile>)>,
    pricing: &'a Pricing,
    indices: Indices,
    host: Option<&'a HostChoice>,
    read: Option<(HostProfile, String)>,
}

impl<'a> QueryOptions<'a> {
    /// Reads the options: a GPU, or the recorded one; a host, or each step's own host times.
    pub fn read(
        device: Option<&'a str>,
        pricing: &'a Pricing,
        host: Option<&'a HostChoice>,
    ) -> Result<QueryOptions<'a>, Failure> {
        let indices = pricing.indices.as_deref().map_or(Ok(Indices::Unknown), indices)?;
        let read = match host {
            Some(HostChoice::File(path)) => {
                Some((steptime_predict::read_host(path)?, path.display().to_string()))
            }
            _ => None,
        };
        let device = match device {
            Some(name) => Some((name, Arc::new(steptime_predict::device(name)?))),
            None => None,
        };
        Ok(QueryOptions { device, pricing, indices, host, read })
    }

    /// Returns the distribution of lookup indices.
    pub fn indices(&self) -> &Indices {
        &self.indices
    }
}

impl QueryFor for QueryOptions<'_> {
    type Error = Failure;

    fn query<'s>(&self, step: &'s Step) -> Result<Query<'s>, Failure> {
        let question = step
            .predict()
            .models(models(self.pricing.models))
            .indices(self.indices.clone())
            .settings(settings(self.pricing));
        let question = match (self.host, &self.read) {
            (None, _) => question,
            (_, Some((profile, name))) => question.on_host_read(profile.clone(), name),
            (Some(HostChoice::Own), _) => question.on_its_own_host(),
            (Some(_), _) => question.on_a_typical_host(),
        };
        Ok(match &self.device {
            Some((name, profile)) => question.on_read(name, Arc::clone(profile)),
            None => question,
        })
    }
}

/// Returns the chosen models.
pub fn models(choice: Models) -> ModelChoice {
    match choice {
        Models::Best => ModelChoice::Best,
        Models::Paper => ModelChoice::Paper,
        Models::Analytic => ModelChoice::Analytic,
        Models::Learnt => ModelChoice::Learnt,
    }
}

/// Returns the chosen PyTorch settings.
pub fn settings(pricing: &Pricing) -> Settings {
    Settings { matmul_tf32: pricing.tf32, ..Settings::default() }
}

/// Reads a distribution of [`Indices`], or a file of indices: `file:PATH`, or a path alone that is not a distribution.
pub fn indices(text: &str) -> Result<Indices, Failure> {
    if let Some(path) = text.strip_prefix("file:") {
        return counted(Path::new(path), u64::MAX);
    }
    match text.parse() {
        Err(IndicesError::Name { .. }) => counted(Path::new(text), u64::MAX),
        other => Ok(other?),
    }
}

/// Maximum size of a file of indices, in bytes.
const LONGEST: u64 = 512 << 20;

/// Counts the lookups of each row in a file with one index below `rows` per line.
pub fn counted(path: &Path, rows: u64) -> Result<Indices, Failure> {
    let place = path.display();
    let text = steptime_trace::read_text(path, LONGEST).map_err(|source| {
        format!("{place}: {source}; --indices takes uniform, zipf:A, folded-zipf:A, or a file with one index per line")
    })?;
    Indices::counted(&text, rows).map_err(|error| format!("{place}: {error}").into())
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
        assert!(matches!(indices("folded-zipf:1.2"), Ok(Indices::FoldedZipf(a)) if a == 1.2));
        assert!(indices("/no/such/file").is_err());
        let error = indices("file:uniform").unwrap_err().to_string();
        assert!(error.starts_with("uniform: "), "{error}");
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
