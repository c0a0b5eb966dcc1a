//! `steptime host fit` and `steptime host show`.

use std::path::{Path, PathBuf};

use steptime::cost::HostProfile;
use steptime::trace::Want;
use steptime::{Step, fit_host_profile};

use super::{Failure, load, source};
use crate::cli::Host;
use crate::report::host;
use crate::{output, progress};

/// Runs either.
pub fn run(args: &Host) -> Result<(), Failure> {
    match args {
        Host::Fit { recordings, others, output } => fit(recordings, others, output),
        Host::Show { file } => show(file.as_deref()),
    }
}

fn fit(recordings: &[PathBuf], others: &[PathBuf], path: &Path) -> Result<(), Failure> {
    let inputs: Vec<PathBuf> = [load::expand(recordings)?, load::expand(others)?].concat();
    output::spares(path, inputs.iter().map(PathBuf::as_path))?;
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
    output::print(&host::fitted(&fitted.profile, path))?;
    Ok(())
}

fn show(file: Option<&Path>) -> Result<(), Failure> {
    let text = match file {
        Some(path) => host::shown(&HostProfile::read(path)?, &path.display().to_string()),
        None => host::shown(source::shipped()?, "the profile that ships with steptime"),
    };
    output::print(&text)?;
    Ok(())
}
