//! `steptime view`.

mod browser;
mod gpus;
mod subjects;

use std::path::PathBuf;
use std::sync::OnceLock;

use clap::Args;
use serde::Deserialize;
use steptime_view::{Mode, Server, StepViews, page};

use self::gpus::{Gpus, OnFirstUse};
use self::subjects::Subjects;
use super::{Failure, what_if};
use crate::cli::{OutputFile, Target};
use crate::console::Console;
use crate::{output, progress};

/// `steptime view`.
#[derive(Debug, Args, Deserialize)]
#[command(after_help = "EXAMPLE
    steptime view examples/dlrm_default_2048
    steptime view examples/dlrm_default_2048 -o report.html
    steptime view before/ --against after/ --device h200 -o report.html

Without -o the page is served to this machine only, at an address with a token, until Ctrl-C; other GPUs and changes can be tried on \
it. With -o the page is one file that loads nothing and makes no request.")]
pub struct View {
    /// A recording, a trace, an execution trace, or the description of a model (.toml)
    pub input: PathBuf,
    /// Another recording to compare with it
    #[arg(long, value_name = "INPUT")]
    pub against: Option<PathBuf>,
    /// Write the page to a file
    #[arg(short, long, value_name = "FILE.html")]
    pub output: Option<OutputFile>,
    /// Port to serve on; 0 for any free one
    #[arg(long, value_name = "N", default_value_t = 7878, conflicts_with = "output")]
    pub port: u16,
    /// Do not open a browser
    #[arg(long, conflicts_with = "output")]
    pub no_open: bool,
    /// Device, host and part of the input.
    #[command(flatten)]
    pub whom: Target,
}

pub fn run(args: &View, console: &Console<'_>) -> Result<(), Failure> {
    // A port that is not available is reported before the work.
    let server = args.output.is_none().then(|| Server::bind(args.port)).transpose()?;
    let step = what_if::open(console, &args.input, &args.whom)?;
    let other = args.against.as_deref().map(|path| what_if::open(console, path, &args.whom)).transpose()?;
    let recorded = Subjects::recorded(&step, other.as_deref(), &args.whom)?;
    let named = args.whom.device.as_deref().map(|name| recorded.on(name)).transpose()?;
    let viewed = progress::spin("simulating", || named.as_ref().unwrap_or(&recorded).viewed())?;
    match (&args.output, server) {
        (Some(path), _) => {
            let html = page(&viewed, Mode::File)?;
            Ok(output::write_file(path, |out| out.write_all(html.as_bytes()))?)
        }
        (None, Some(server)) => serve(args, console, &server, &recorded, named, &viewed),
        (None, None) => Ok(()),
    }
}

/// Serves the page, and answers requests for other GPUs and changes, until the process ends.
fn serve<'s>(
    args: &View,
    console: &Console<'_>,
    server: &Server,
    recorded: &Subjects<'s>,
    named: Option<Subjects<'s>>,
    viewed: &StepViews,
) -> Result<(), Failure> {
    let devices = gpus::devices(recorded, args.whom.device.as_deref());
    let asked: Vec<OnFirstUse<Subjects<'s>>> = devices.all.iter().map(|_| OnceLock::new()).collect();
    if let Some(named) = named {
        let _ = asked[devices.chosen].set(Ok(named));
    }
    let answers = Gpus::new(&devices, recorded, viewed, &asked);
    let html = page(viewed, Mode::Served(&devices))?;
    let address = server.address();
    console.print(&format!("{} is at {address}\nCtrl-C ends it.\n", viewed.title()))?;
    if !args.no_open && browser::open(&address).is_err() {
        output::warn("no browser was found to open it with");
    }
    server.run(&html, &answers);
    Ok(())
}
