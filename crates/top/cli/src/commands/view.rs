//! `steptime view`.

mod browser;

use steptime::rewrite::Rule;
use steptime::{Change, Question};
use steptime_view::{Mode, Server, Subject, Viewed, page};

use super::Failure;
use super::what_if::{self, plan, rules, told};
use crate::cli::View;
use crate::console::Console;
use crate::{output, progress};

/// Runs it.
pub fn run(args: &View, console: &Console<'_>) -> Result<(), Failure> {
    // What cannot be had is said before the work is done.
    let server = args.output.is_none().then(|| Server::bind(args.port)).transpose()?;
    let step = what_if::open(console, &args.input, &args.whom)?;
    let other = args.against.as_deref().map(|path| what_if::open(console, path, &args.whom)).transpose()?;
    let question = what_if::question(&step, &args.whom)?;
    let against = other
        .as_ref()
        .map(|step| Ok::<_, Failure>((step, what_if::question(step, &args.whom)?)))
        .transpose()?;
    let against = against.as_ref().map(|(step, question)| Subject { step, question });
    let subject = Subject { step: &step, question: &question };
    let viewed = progress::spin("simulating", || Viewed::of(&subject, against.as_ref()))?;
    match (&args.output, server) {
        (Some(path), _) => {
            let html = page(&viewed, Mode::File)?;
            Ok(output::write_file(path, |out| out.write_all(html.as_bytes()))?)
        }
        (None, Some(server)) => serve(args, console, &server, &question, &viewed),
        (None, None) => Ok(()),
    }
}

/// Serves the page, and answers the changes that are tried on it, until the process is told to end.
fn serve(
    args: &View,
    console: &Console<'_>,
    server: &Server,
    question: &Question<'_>,
    viewed: &Viewed,
) -> Result<(), Failure> {
    let html = page(viewed, Mode::Served)?;
    let asked = question.what_ifs();
    let answer = |text: &[u8]| {
        let asked = asked.as_ref().map_err(ToString::to_string)?;
        // A question is a plan in JSON: the same names as on the command line.
        let table: toml::Table = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        let changes = plan::parse(&table)?;
        told(&changes)?;
        let rules = rules(&changes);
        let rules: Vec<&dyn Rule> = rules.iter().map(|rule| &**rule).collect();
        if rules.is_empty() && changes.host_speed.is_none() {
            return Err("nothing to change".to_owned());
        }
        let change = Change { rules: &rules, host_times: changes.host_speed };
        steptime_view::what_if(asked, &change).map_err(|error| error.to_string())
    };
    let address = server.address();
    console.print(&format!("{} is at {address}\nCtrl-C ends it.\n", viewed.title()))?;
    if !args.no_open && browser::open(&address).is_err() {
        output::warn("no browser was found to open it with");
    }
    server.run(&html, &answer);
    Ok(())
}
