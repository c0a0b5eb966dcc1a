//! Descriptions, valid and invalid.

use steptime_eager::{Error, Initial, Model, Role};
use steptime_trace::ExecutionTrace;

const GOOD: &str = "model = 'dlrm'\nbatch = 64\ndense = 13\nbottom_mlp = [32, 16]\ntop_mlp = [8, 1]\n\
                    tables = [{ rows = 100, columns = 16, lookups = 4 }]\n";

fn names(trace: &ExecutionTrace) -> Vec<&str> {
    (0..trace.nodes.len()).map(|row| trace.name(trace.nodes.name[row])).collect()
}

fn count(trace: &ExecutionTrace, name: &str) -> usize {
    names(trace).into_iter().filter(|&other| other == name).count()
}

/// The error of `GOOD` with one change.
fn refused(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    match Model::parse(&GOOD.replace(from, to)) {
        Ok(_) => panic!("{to} is no model"),
        Err(problem) => problem.to_string(),
    }
}

#[test]
fn what_cannot_be_a_model_is_refused_and_named() {
    let cases = [
        ("rows = 100", "rows = 0", "`tables[0].rows` is 0: a table has one row or more"),
        (
            "rows = 100",
            "rows = 1_000_000_000_000_000_000",
            "`tables[0].rows` is 1000000000000000000: the maximum is 1099511627776",
        ),
        ("rows = 100", "rows = -7", "`tables[0].rows` is -7"),
        ("columns = 16", "columns = 0", "`tables[0].columns` is 0"),
        ("lookups = 4", "lookups = 0", "`tables[0].lookups` is 0"),
        ("lookups = 4", "count = 0", "`tables[0].count` is 0"),
        ("lookups = 4", "count = 100_000", "`tables[0].count` is 100000"),
        ("batch = 64", "batch = 0", "`batch` is 0: a step takes one sample or more"),
        ("batch = 64", "batch = 9223372036854775807", "`batch` is 9223372036854775807"),
        ("batch = 64", "batch = 1_000_000_000_000", "more than 10^13 elements"),
        ("[8, 1]", "[8, 0, 1]", "`top_mlp[1]` is 0"),
        ("[8, 1]", "[8, 2]", "a dlrm model needs `top_mlp`: widths of its layers, of which the last is 1"),
        (
            "[{ rows = 100, columns = 16, lookups = 4 }]",
            "[]",
            "a dlrm model needs `tables`: one embedding table or more",
        ),
        ("bottom_mlp = [32, 16]", "", "a dlrm model needs `bottom_mlp`"),
        ("dense = 13", "", "a dlrm model needs `dense`"),
        ("'dlrm'", "'two_towers'", "a two_towers model needs `tables.tower`"),
        ("'dlrm'", "'deepfm'", "a deepfm model has no `bottom_mlp`: leave it out"),
        ("batch = 64", "batch = 64\ncross_layers = 2", "a dlrm model has no `cross_layers`"),
        ("batch = 64", "batch = 64\nsparse = true\noptimizer = { name = 'adam' }", "set sparse = false"),
        ("batch = 64", "batch = 64\noptimizer = { name = 'adma' }", "did you mean `adam`?"),
        ("batch = 64", "btach = 64", "did you mean `batch`?"),
        ("rows = 100", "rwos = 100", "did you mean `rows`?"),
        ("batch = 64", "batch = 'many'", "invalid type: string \"many\""),
        ("batch = 64", "batch = 64.5", "invalid type: floating point"),
        ("batch = 64\n", "", "missing field `batch`"),
        ("batch = 64", "batch =", "line 2"),
    ];
    for (from, to, expected) in cases {
        let said = refused(from, to);
        assert!(said.contains(expected), "{to}: {said}");
    }
}

#[test]
fn an_unknown_key_is_shown_with_its_line() {
    assert!(
        refused("dense = 13", "dence = 13").contains("line 3"),
        "{}",
        refused("dense = 13", "dence = 13")
    );
}

#[test]
fn a_file_that_is_not_there_is_an_error_that_names_it() {
    let error = Model::read("no/such/model.toml".as_ref()).expect_err("no file");
    assert!(
        matches!(&error, Error::Read { .. }) && error.to_string().contains("no/such/model.toml"),
        "{error}"
    );
}

#[test]
fn tables_need_not_be_equal() {
    let text = GOOD.replace(
        "lookups = 4 }",
        "lookups = 4 }, { rows = 7, columns = 8 }, { rows = 9, columns = 32, count = 2 }",
    );
    let trace = Model::parse(&text).expect("a model").record();
    // Three are projected to the width of the bottom MLP's last layer.
    assert_eq!(count(&trace, "aten::embedding_bag"), 4);
    assert_eq!(count(&trace, "aten::linear"), 4 + 3);
    assert_eq!(count(&trace, "MmBackward0"), 3);
}

#[test]
fn initial_elements_of_tables_do_not_change_the_step() {
    let initial = |text: &str| {
        let named = Model::parse(text).unwrap().named();
        let table = named.tensors.iter().find(|tensor| tensor.name == "tables.0.weight").unwrap();
        (table.role.clone(), named.trace)
    };
    let (normal, trace) = initial(GOOD);
    let (uniform, same) = initial(&GOOD.replace("batch", "table_init = 'uniform'\nbatch"));
    assert_eq!(normal, Role::Parameter(Initial::Normal));
    assert_eq!(uniform, Role::Parameter(Initial::Uniform { bound: 0.1 }), "of 100 rows");
    assert_eq!(trace, same);
    assert_eq!(normal, initial(&GOOD.replace("batch", "table_init = 'normal'\nbatch")).0);
}

#[test]
fn every_op_has_its_schema() {
    for name in
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/models")).expect("examples")
    {
        let path = name.expect("a file").path();
        let trace = Model::read(&path).expect("a model").record();
        for row in 0..trace.nodes.len() {
            let name = trace.name(trace.nodes.name[row]);
            assert!(!name.starts_with("aten::") || trace.is_operator(row), "{}: {name}", path.display());
        }
    }
}

#[test]
fn every_optimizer_updates_every_parameter() {
    let optimizers = [
        ("sgd", "loop", "aten::add_", 6),
        ("adam", "loop", "aten::lerp_", 5),
        ("adam", "foreach", "aten::_foreach_addcdiv_", 1),
        ("adamw", "foreach", "aten::_foreach_mul_", 2),
        ("adam", "fused", "aten::_fused_adam_", 1),
        ("adamw", "fused", "aten::_fused_adamw_", 1),
        ("sgd", "fused", "aten::_fused_sgd_", 1),
        ("adagrad", "fused", "aten::_fused_adagrad_", 1),
        ("adagrad", "foreach", "aten::_foreach_addcmul_", 1),
        ("adagrad", "loop", "aten::addcdiv_", 5),
    ];
    for (name, form, op, expected) in optimizers {
        let text = GOOD.replace("bottom_mlp = [32, 16]", "bottom_mlp = [16]");
        let text = format!(
            "{}sparse = false\noptimizer = {{ name = '{name}', form = '{form}' }}\n",
            text.replace("[8, 1]", "[1]")
        );
        let trace = Model::parse(&text).expect("a model").record();
        // One more addition joins gradients of a tensor with several uses.
        assert!(count(&trace, op) >= expected, "{name} {form}: {} of {op}", count(&trace, op));
        assert_eq!(count(&trace, "torch::autograd::AccumulateGrad"), 5, "{name} {form}");
    }
}

#[test]
fn the_step_is_the_same_each_time() {
    let model = Model::parse(GOOD).expect("a model");
    assert_eq!(model.record(), model.record());
    assert_eq!(
        (model.batch(), model.parameters()),
        (64, 13 * 32 + 32 + 32 * 16 + 16 + 1600 + 17 * 8 + 8 + 8 + 1)
    );
}
