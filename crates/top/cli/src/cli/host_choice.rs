//! Source of host times.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::{Deserialize, Deserializer};

use crate::cli::checked;

/// Source of host times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostChoice {
    /// The recording itself.
    Own,
    /// The profile that ships with steptime.
    Default,
    /// A profile fitted on all other architectures.
    LeaveOneOut,
    /// A profile.
    File(PathBuf),
}

impl HostChoice {
    /// Returns the choice as typed on the command line.
    pub fn label(&self) -> String {
        match self {
            HostChoice::Own => "own".into(),
            HostChoice::Default => "default".into(),
            HostChoice::LeaveOneOut => "leave-one-out".into(),
            HostChoice::File(path) => path.display().to_string(),
        }
    }
}

pub fn any_host(text: &str) -> Result<HostChoice, String> {
    Ok(match text {
        "" => return Err("a file name is missing".into()),
        "own" => HostChoice::Own,
        "default" => HostChoice::Default,
        "leave-one-out" => HostChoice::LeaveOneOut,
        file => HostChoice::File(file.into()),
    })
}

pub fn one_host(text: &str) -> Result<HostChoice, String> {
    match any_host(text)? {
        HostChoice::LeaveOneOut => Err("it needs several recordings: use `steptime validate`".into()),
        choice => Ok(choice),
    }
}

pub fn required_host<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HostChoice, D::Error> {
    checked::one(deserializer, any_host)
}

pub fn optional_host<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<HostChoice>, D::Error> {
    checked::optional(deserializer, one_host)
}

/// The state of the process to predict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessChoice {
    /// As noted in meta.json, else profiled
    Auto,
    /// A profiler has run in it before
    Profiled,
    /// No profiler has ever run in it
    Fresh,
}
