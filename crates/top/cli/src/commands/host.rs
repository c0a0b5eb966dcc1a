//! `steptime host fit` and `steptime host show`.

mod report;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::Deserialize;
use steptime_cost::HostProfile;
use steptime_predict::{Step, fit_host_profile};
use steptime_trace::Want;

use super::{Failure, host_source, load};
use crate::cli::OutputFile;
use crate::console::Console;
use crate::{output, progress};

/// `steptime host`.
#[derive(Debug, Subcommand, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Host {
    /// Fit a host profile on recordings
    #[command(after_help = "EXAMPLE
    steptime host fit examples -o my-host.toml")]
    Fit {
        /// Recordings, or folders of recordings
        #[arg(required = true, value_name = "RECORDING")]
        recordings: Vec<PathBuf>,
        /// Recordings from other hosts: they add op durations, rescaled to this host's speed
        #[arg(long, num_args = 1.., value_name = "RECORDING")]
        others: Vec<PathBuf>,
        /// The profile to write
        #[arg(short, long, value_name = "FILE")]
        output: OutputFile,
    },
    /// Show a host profile
    #[command(after_help = "EXAMPLE
    steptime host show
    steptime host show my-host.toml")]
    Show {
        /// The profile [default: the one that ships with steptime]
        file: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub fn run(args: &Host, console: &Console<'_>) -> Result<(), Failure> {
    match args {
        Host::Fit { recordings, others, output } => fit(recordings, others, output, console),
        Host::Show { file, json } => show(file.as_deref(), *json, console),
    }
}

fn fit(
    recordings: &[PathBuf],
    others: &[PathBuf],
    path: &Path,
    console: &Console<'_>,
) -> Result<(), Failure> {
    output::check_writable(path)?;
    let loaded = load::recordings(recordings, Want::TIMING)?;
    let elsewhere = if others.is_empty() { Vec::new() } else { load::recordings(others, Want::TIMING)? };
    let all = loaded.iter().chain(&elsewhere);
    for (name, words) in all.filter_map(|step| Some((&step.name, step.repairs.as_ref()?))) {
        output::warn(&format!("{name}: {words}"));
    }
    let recordings: Vec<&Step> = loaded.iter().collect();
    let elsewhere: Vec<&Step> = elsewhere.iter().collect();
    let fitted = progress::spin("fitting", || fit_host_profile(&recordings, &elsewhere))?;
    let text = fitted.profile.to_text();
    output::write_file(path, |out| out.write_all(text.as_bytes()))?;
    for warning in &fitted.warnings {
        output::warn(warning);
    }
    console.print(&report::fitted(&fitted.profile, path))?;
    Ok(())
}

fn show(file: Option<&Path>, json: bool, console: &Console<'_>) -> Result<(), Failure> {
    let read = file.map(HostProfile::read).transpose()?;
    let profile = match &read {
        Some(profile) => profile,
        None => host_source::shipped()?,
    };
    if json {
        // The file itself, as JSON.
        let file: toml::Value = toml::from_str(&profile.to_text())?;
        return Ok(console.print_json(&file)?);
    }
    let name = file
        .map_or_else(|| "the profile that ships with steptime".to_owned(), |path| path.display().to_string());
    Ok(console.print(&report::profile_text(profile, &name))?)
}
