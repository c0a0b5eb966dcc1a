use clap::{CommandFactory, Parser};
use serde_json::{Value, json};

use super::{commands, read};
use crate::commands::Cli;
use crate::request::name;

/// Arguments without which a command or an option is refused.
const COMPANIONS: [(&str, &[(&str, &str)]); 18] = [
    ("recorded_batch", &[("batch", "8")]),
    ("batch_dim", &[("batch", "8")]),
    ("format", &[("output", "out.json")]),
    ("lent", &[("device", "h200")]),
    ("corrections", &[("device", "h200"), ("lent", "h100")]),
    ("parallel", &[("world", "2")]),
    ("planner", &[("model", "m.toml")]),
    ("model", &[("planner", "torchrec")]),
    ("predict blocks", &[("world", "2")]),
    ("shard:", &[("device", "h200")]),
    ("collectives:", &[("device", "h200")]),
    ("sweep:", &[("grid", "g.toml"), ("output", "o.parquet")]),
    ("ingest:", &[("output", "lake")]),
    ("kernels predict:", &[("device", "h200")]),
    ("device fit:", &[("output", "folder")]),
    ("device transfer:", &[("output", "folder")]),
    ("host fit:", &[("output", "h.toml")]),
    ("gather-plan:", &[("rows", "8"), ("dim", "8"), ("lookups", "8")]),
];

/// Returns the value of an option in a test.
fn sample(option: &str) -> &'static str {
    match option {
        "blocks" => "module:Net.down.*",
        "set" => "tables[0].rows=5",
        "among" | "remove" | "on_stream" => "aten::mm,ops[17]",
        "host" => "own",
        "indices" => "zipf:1.05",
        "shard" => "2/4",
        "fail_above" => "5%",
        "bytes" => "64KiB,1MiB",
        "op" => "all_reduce",
        "gpus" | "nodes" => "4",
        "checkpoint" | "global_batch" | "batch" | "recorded_batch" | "batch_dim" | "streams"
        | "accumulate" | "data_parallel" => "8",
        "host_speed" | "memory" | "host_memory" | "zipf" => "1.5",
        "price" => "2",
        "device" | "kernels" | "onto" | "lent" | "from" => "h200",
        "rows" | "dim" | "lookups" | "most" | "seed" | "port" | "world" | "bucket_mb" | "gpus_per_node"
        | "workers" | "step" | "rank" => "7",
        _ => "file",
    }
}

#[test]
fn every_option_is_read_as_on_the_command_line() {
    let ignored = ["query", "train", "bench", "gemm", "completions", "man"];
    let all = commands(&Cli::command(), "");
    let mut compared = 0;
    for (command, definition) in all.iter().filter(|(command, _)| !ignored.contains(&command.as_str())) {
        for option in definition.get_arguments().filter(|argument| argument.get_long().is_some()) {
            let option_name = name(option);
            let with =
                |key: &str| COMPANIONS.iter().find(|(of, _)| *of == key).map_or(&[][..], |(_, with)| *with);
            let mut given: Vec<(String, String)> = Vec::new();
            let own = with(&option_name).iter().chain(with(&format!("{command} {option_name}")));
            let all = own.chain(with(&format!("{command}:")));
            given.extend(all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
            if command == "shard" && !["gpus", "evaluate"].contains(&option_name.as_str()) {
                given.push(("gpus".into(), "4".into()));
            }
            if command == "gather-plan" && option_name == "explain" {
                given.clear();
            }
            for operand in definition.get_positionals().filter(|operand| operand.is_required_set()) {
                given.push((name(operand), format!("in-{}", name(operand))));
            }
            let defined = |key: &String| definition.get_arguments().any(|argument| name(argument) == *key);
            given.retain(|(key, _)| *key != option_name && defined(key));
            let value =
                match option.get_possible_values().last().filter(|_| option.get_action().takes_values()) {
                    Some(value) => value.get_name().to_owned(),
                    None => sample(&option_name).to_owned(),
                };
            let value = if command == "choose" && option_name == "price" || option_name == "plan" {
                "file.toml".to_owned()
            } else {
                value
            };
            given.push((option_name, value));
            assert_same(command, definition, &given);
            compared += 1;
        }
    }
    assert!(compared > 120, "{compared}");
}

/// Asserts that the given arguments, as words and by name, are the same command.
fn assert_same(command: &str, definition: &clap::Command, given: &[(String, String)]) {
    let mut words: Vec<String> =
        std::iter::once("steptime").chain(command.split(' ')).map(str::to_owned).collect();
    let mut named = json!({});
    for (key, value) in given {
        let argument =
            definition.get_arguments().find(|argument| name(argument) == *key).expect("an argument");
        let plain =
            |text: &str| text.parse::<serde_json::Number>().map_or_else(|_| Value::from(text), Value::from);
        let many = argument.get_value_delimiter().is_some()
            || matches!(argument.get_action(), clap::ArgAction::Append);
        named[key] = match argument.get_action().takes_values() {
            false => true.into(),
            true if many => value.split(argument.get_value_delimiter().unwrap_or(',')).map(plain).collect(),
            true => plain(value),
        };
        words.push(match (argument.get_long(), argument.get_action().takes_values()) {
            (Some(long), true) => format!("--{long}={value}"),
            (Some(long), false) => format!("--{long}"),
            (None, _) => value.clone(),
        });
    }
    let typed = Cli::try_parse_from(&words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
    let named = read(command, &named).unwrap_or_else(|error| panic!("{command} {named}: {error}"));
    assert_eq!(format!("{named:?}"), format!("{:?}", typed.command), "{words:?}");
}
