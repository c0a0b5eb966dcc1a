use clap::Parser;
use serde_json::{Value, json};

use super::{read, refused};
use crate::cli::{Fuse, HostChoice, Models};
use crate::commands::Cli;
use crate::commands::Command;

#[test]
fn arguments_that_are_not_given_have_the_defaults_of_the_command_line() {
    for (command, words, named) in [
        ("choose", &["x"][..], json!({"input": "x"})),
        ("predict", &["x"], json!({"input": "x", "device": null, "tf32": false})),
        ("whatif", &["x"], json!({"input": "x", "fuse": []})),
        ("explain", &["x"], json!({"input": "x"})),
        ("inspect", &["x"], json!({"input": "x"})),
        ("roofline", &["x"], json!({"input": "x"})),
        ("compare", &["x", "y"], json!({"a": "x", "b": "y"})),
        ("validate", &["x"], json!({"recordings": ["x"]})),
        ("view", &["x"], json!({"input": "x"})),
        ("scale", &["x"], json!({"model": "x"})),
        ("shard", &["x", "--gpus=2", "--device=h200"], json!({"model": "x", "gpus": 2, "device": "h200"})),
        ("collectives", &["--device=h200"], json!({"device": "h200"})),
        ("sweep", &["x", "--grid=g", "-o=p"], json!({"input": "x", "grid": "g", "output": "p"})),
        ("ingest", &["x", "-o=p"], json!({"runs": ["x"], "output": "p"})),
        ("gather-plan", &["--explain"], json!({"explain": true})),
        ("kernels predict", &["--device=h200"], json!({"device": "h200"})),
        ("device fit", &["x", "-o=p"], json!({"sweeps": ["x"], "output": "p"})),
        ("device score", &["x"], json!({"tables": ["x"]})),
        ("device transfer", &["x", "-o=p"], json!({"tables": ["x"], "output": "p"})),
        ("device list", &[], json!({})),
        ("device show", &["h200"], json!({"name": "h200"})),
        ("host show", &[], json!({})),
        ("host fit", &["x", "-o=p"], json!({"recordings": ["x"], "output": "p"})),
    ] {
        let typed = Cli::parse_from(
            std::iter::once("steptime").chain(command.split(' ')).chain(words.iter().copied()),
        );
        let named = read(command, &named).unwrap_or_else(|error| panic!("{command}: {error}"));
        assert_eq!(format!("{named:?}"), format!("{:?}", typed.command), "{command}");
    }
}

#[test]
fn values_have_their_types() {
    let named = json!({
        "input": "x", "batch": 8192, "recorded_batch": 2048, "set": ["tables[0].rows=5"], "fuse": ["linear", "optimizer"],
        "checkpoint": true, "blocks": ["module:A.*", "module:B.*"], "remove": "aten::mm,aten::relu", "host_speed": 0.5,
        "host": "own", "models": "paper", "step": 3,
    });
    let Ok(Command::WhatIf(args)) = read("whatif", &named) else { panic!() };
    assert_eq!((args.change.batch, args.change.recorded_batch), (Some(8192), Some(2048)));
    assert_eq!(args.change.fuse, [Fuse::Linear, Fuse::Optimizer]);
    assert_eq!((args.change.checkpoint, args.change.host_speed), (Some(0), Some(0.5)));
    assert_eq!((args.change.set.len(), args.change.remove.len()), (1, 2));
    assert_eq!(
        args.change.blocks.as_ref().map(ToString::to_string).as_deref(),
        Some("module:A.*,module:B.*")
    );
    assert_eq!((&args.whom.host, args.whom.pricing.models), (&Some(HostChoice::Own), Models::Paper));
    assert_eq!(args.whom.part.step, Some(3));
    let Ok(Command::Predict(args)) = read("predict", &json!({"input": "x", "method": "kernel-sum"})) else {
        panic!()
    };
    assert_eq!(format!("{:?}", args.method), "KernelSum");
}

#[test]
fn a_wrong_value_is_refused_with_its_argument() {
    let refused = |named: Value| {
        let mut named = named;
        named["input"] = "x".into();
        refused("whatif", &named)
    };
    for (named, expected) in [
        (json!({"batch": 0}), "batch=0: a batch is a whole number of samples, 1 or more"),
        (json!({"batch": "many"}), "batch='many': must be a whole number, 0 or more"),
        (json!({"batch": 1.5}), "batch=1.5: must be a whole number, 0 or more"),
        (json!({"step": -1}), "step=-1: must be a whole number from 0 to 4294967295"),
        (json!({"cuda_graph": "yes"}), "cuda_graph='yes': must be True or False"),
        (json!({"dtype": "fp4"}), "dtype='fp4': must be one of tf32, bf16, fp16"),
        (json!({"dtype": 16}), "dtype=16: must be one of tf32, bf16, fp16"),
        (json!({"device": 3}), "device=3: must be a text"),
        (
            json!({"fuse": ["linear", "all"]}),
            "fuse=['linear', 'all']: must be one of embedding-bags, optimizer, elementwise, linear, casts, bias-gradients, cross-entropy, concat",
        ),
        (
            json!({"host_speed": 100}),
            "host_speed=100: it is a factor between 0.05 and 50: 1.7 for a host 1.7 times as slow",
        ),
        (json!({"data_parallel": 0}), "data_parallel=0: 0 is not in 1..=1048576"),
        (json!({"checkpoint": "some"}), "checkpoint='some': must be True, or the number of segments"),
        (json!({"set": "rows"}), "set='rows': it takes PATH=VALUE, as tables[0].rows=1000000"),
        (
            json!({"host": "leave-one-out"}),
            "host='leave-one-out': it needs several recordings: use `steptime validate`",
        ),
        (json!({"recorded_batch": 5}), "batch= is required"),
    ] {
        assert_eq!(refused(named), expected);
    }
}

#[test]
fn an_unknown_name_is_refused_with_the_near_one() {
    let words = refused("whatif", &json!({"input": "x", "bacth": 3}));
    assert_eq!(words, "bacth is not an argument of whatif: is batch meant?");
    let words = refused("inspect", &json!({"input": "x", "zzzzzzzzzz": null}));
    assert_eq!(words, "zzzzzzzzzz is not an argument of inspect: there are input, json, csv, step, rank");
    assert_eq!(refused("inpsect", &json!({})), "there is no command \"inpsect\"");
    assert!(refused("train", &json!({})).contains("must be one of"), "{}", refused("train", &json!({})));
    assert!(refused("device", &json!({})).contains("device fit"), "{}", refused("device", &json!({})));
}

#[test]
fn rules_between_arguments_are_those_of_the_command_line() {
    for (command, named, expected) in [
        (
            "gather-plan",
            json!({"rows": 1, "dim": 1, "lookups": 1, "zipf": 1.0, "indices": "f"}),
            "zipf= excludes indices=: give one of them",
        ),
        ("gather-plan", json!({"rows": 1}), "dim= and lookups= is required"),
        ("shard", json!({"model": "x", "device": "h200"}), "gpus= is required"),
        ("predict", json!({}), "input is required"),
        (
            "device fit",
            json!({"sweeps": ["x"], "output": "y", "onto": "h200", "spec": "s"}),
            "spec= excludes onto=: give one of them",
        ),
    ] {
        assert_eq!(refused(command, &named), expected);
    }
}
