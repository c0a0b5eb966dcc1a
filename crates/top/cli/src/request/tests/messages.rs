use clap::CommandFactory;

use super::commands;
use crate::commands::Cli;
use crate::request::{name, terms};

#[test]
fn every_option_is_named_as_an_argument_in_messages() {
    let all = commands(&Cli::command(), "");
    assert!(all.len() > 20);
    for (command, definition) in &all {
        let python = |words: &str| terms::python(words, Some(definition));
        for argument in definition.get_arguments().filter(|argument| argument.get_long().is_some()) {
            let long = argument.get_long().unwrap_or_default();
            let (named, valued) = (name(argument), argument.get_action().takes_values());
            let term = if valued { format!("{named}=") } else { format!("{named}=True") };
            assert_eq!(
                python(&format!("it needs --{long}: give it")),
                format!("it needs {term}: give it"),
                "{command}"
            );
            assert_eq!(python(&format!("--{long} is wrong")), format!("{term} is wrong"), "{command}");
            if valued {
                assert_eq!(
                    python(&format!("add `--{long} FILE`.")),
                    format!("add `{named}=FILE`."),
                    "{command}"
                );
            }
            for value in argument.get_possible_values().iter().filter(|_| valued) {
                let value = value.get_name();
                assert_eq!(
                    python(&format!("(--{long} {value})")),
                    format!("({named}='{value}')"),
                    "{command}"
                );
            }
        }
    }
}

#[test]
fn messages_name_arguments_of_python() {
    for (words, expected) in [
        ("choose one with --rank N", "choose one with rank=N"),
        (
            "--host-speed needs a host profile: add --host default or --host FILE",
            "host_speed= needs a host profile: add host='default' or host=FILE",
        ),
        ("name a GPU to predict for (--device h200), or", "name a GPU to predict for (device='h200'), or"),
        ("--weak leaves 8 to each", "weak=True leaves 8 to each"),
        ("as --blocks module:Net.down.*,module:Net.up.*", "as blocks='module:Net.down.*,module:Net.up.*'"),
        (
            "a change, such as --batch, --fuse or --cuda-graph, or --plan; `steptime whatif --help` lists all",
            "a change, such as batch=, fuse= or cuda_graph=True, or plan=; `help(steptime.what_if)` lists all",
        ),
        ("use `whatif --plan x.toml`", "use `whatif --plan x.toml`"),
        ("(python -m steptime.measure --minutes 2)", "(python -m steptime.measure --minutes 2)"),
        ("`a--host`, x--host and --hosts", "`a--host`, x--host and --hosts"),
        ("an odd ` and --lone", "an odd ` and lone=True"),
    ] {
        assert_eq!(terms::python(words, None), expected);
    }
}
