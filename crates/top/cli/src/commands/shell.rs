//! `steptime completions` and `steptime man`.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use super::Failure;
use crate::commands::Cli;
use crate::console::Console;
use crate::output;

/// Prints a completion script.
pub fn completions(shell: Shell, console: &Console<'_>) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "steptime", &mut script);
    Ok(console.print(&String::from_utf8(script)?)?)
}

/// Writes `steptime.1` and a page for each command beside it.
pub fn manual(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|source| {
        format!("cannot make the folder {}: {source}; name one that can be made", folder.display())
    })?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    page(folder, "steptime", &command)
}

fn page(folder: &Path, name: &str, command: &clap::Command) -> Result<(), Failure> {
    let manual = clap_mangen::Man::new(command.clone()).title(name.to_uppercase());
    output::write_file(&folder.join(format!("{name}.1")), |mut out| manual.render(&mut out))?;
    for inner in command.get_subcommands() {
        page(folder, &format!("{name}-{}", inner.get_name()), inner)?;
    }
    Ok(())
}
