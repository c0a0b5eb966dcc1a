//! Single kernels: one query per line, one answer per line.

use serde_json::{Value, json};

use crate::steptime;

/// The answers to some queries, including errors.
fn ask(device: &str, queries: &[Value]) -> Vec<Value> {
    let lines: Vec<String> = queries.iter().map(Value::to_string).collect();
    answers(device, &lines.join("\n"), 0)
}

fn answers(device: &str, lines: &str, code: i32) -> Vec<Value> {
    let output = steptime(&["kernels", "predict", "--device", device, "--json"])
        .write_stdin(lines)
        .assert()
        .code(code)
        .get_output()
        .stdout
        .clone();
    let text = String::from_utf8(output).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn total(answer: &Value) -> f64 {
    answer["total_us"].as_f64().unwrap_or_else(|| panic!("no total in {answer}"))
}

/// Queries of many families.
fn many() -> Vec<Value> {
    let image = json!([32, 64, 56, 56]);
    vec![
        json!({"op": "aten::addmm", "shapes": [[1024], [2048, 512], [512, 1024]], "dtype": "float"}),
        json!({"op": "mm", "shapes": [[2048, 512], [512, 1024]], "dtype": "bf16"}),
        json!({"op": "aten::bmm", "shapes": [[64, 27, 128], [64, 128, 27]], "dtype": "half"}),
        json!({"op": "aten::linear", "shapes": [[2048, 512], [1024, 512], [1024]], "pass": "backward"}),
        json!({"op": "aten::conv2d", "shapes": [image, [64, 64, 3, 3]], "args": {"padding": [1, 1]}}),
        json!({"op": "aten::conv2d", "shapes": [image, [64, 64, 3, 3]], "pass": "backward"}),
        json!({"op": "aten::embedding_bag", "shapes": [[1000000, 64], [20480], [2048]], "args": [false, 0, true]}),
        json!({"op": "aten::embedding_bag", "shapes": [[1000000, 64], [20480], [2048]], "pass": "backward"}),
        json!({"op": "aten::embedding", "shapes": [[50257, 768], [8, 1024]]}),
        json!({"op": "aten::index", "shapes": [[2048, 27, 27], [null, [351], [351]]]}),
        json!({"op": "aten::index_put_", "shapes": [[4096, 512], [[1000]], [1000, 512]], "args": [true]}),
        json!({"op": "aten::index_add_", "shapes": [[100000, 64], [2000], [2000, 64]], "args": [0]}),
        json!({"op": "aten::cat", "shapes": [[[2048, 64], [2048, 128]]], "args": [1]}),
        json!({"op": "aten::add", "shapes": [[2048, 1024], [2048, 1024]], "strides": [[1024, 1], [0, 1]]}),
        json!({"op": "aten::relu", "shapes": [[2048, 1024]], "pass": "backward"}),
        json!({"op": "aten::gelu", "shapes": [[8, 1024, 3072]], "dtype": "bfloat16"}),
        json!({"op": "aten::layer_norm", "shapes": [[8192, 768], [768], [768]], "args": [[768]]}),
        json!({"op": "aten::softmax", "shapes": [[96, 1024, 1024]], "args": [-1]}),
        json!({"op": "aten::batch_norm", "shapes": [image, [64], [64], [64], [64]], "args": [true, 0.1, 1e-5, true]}),
        json!({"op": "aten::max_pool2d", "shapes": [image], "args": [[3, 3], [2, 2], [1, 1]]}),
        json!({"op": "aten::cross_entropy_loss", "shapes": [[8192, 50257], [8192]]}),
        json!({"op": "aten::dropout", "shapes": [[8192, 768]], "args": [0.1, true]}),
        json!({"op": "aten::sum", "shapes": [[2048, 1024]], "args": [[0], true]}),
        json!({"op": "aten::scaled_dot_product_attention", "shapes": [[8, 12, 512, 64], [8, 12, 512, 64], [8, 12, 512, 64]], "dtype": "half"}),
        json!({"op": "aten::_foreach_add_", "shapes": [[[1024, 512], [64]], [[1024, 512], [64]]], "args": [-0.1]}),
        json!({"op": "aten::copy_", "shapes": [[2048, 1024], [2048, 1024]], "dtype": ["bf16", "float"]}),
        json!({"op": "aten::sort", "shapes": [[1000000]]}),
        json!({"op": "aten::topk", "shapes": [[2048, 1000]], "args": [10]}),
    ]
}

#[test]
fn many_ops_have_a_time_on_every_kind_of_profile() {
    for (device, source) in [("h200", "fitted"), ("a100", "transferred")] {
        let queries = many();
        let answers = ask(device, &queries);
        assert_eq!(answers.len(), queries.len());
        for (query, answer) in queries.iter().zip(&answers) {
            assert!(total(answer) > 0.0, "{query}: {answer}");
            let kernels = answer["kernels"].as_array().expect("kernels");
            let mut sum = 0.0;
            for kernel in kernels {
                let [time, low, high] =
                    [&kernel["time_us"], &kernel["interval_us"][0], &kernel["interval_us"][1]]
                        .map(|value| value.as_f64().unwrap_or(f64::NAN));
                assert!(0.0 < low && low <= time && time <= high, "{query}: {kernel}");
                assert_eq!(kernel["source"], source, "{query}: {kernel}");
                assert!(kernel["family"].is_string());
                sum += time;
            }
            assert!((sum - total(answer)).abs() < 1e-6 * sum, "{answer}");
        }
    }
}

/// Queries of our own ops.
fn own() -> Vec<Value> {
    let bags = json!([[[1_000_000, 64], [300, 16]], [20480], [2049]]);
    let trained = json!([[1024, 80], [[1_000_000, 64], [300, 16]], [20480], [2049]]);
    vec![
        json!({"op": "steptime::embedding_bag", "shapes": bags, "args": {"mode": 1, "bits": 32}}),
        json!({"op": "steptime::embedding_bag", "shapes": bags, "args": {"mode": 0, "bits": 8},
            "dtype": ["uint8", "int32", "int32"]}),
        json!({"op": "steptime::embedding_bag_backward_sgd", "shapes": trained, "args": [0, 1]}),
        json!({"op": "steptime::embedding_bag_backward_adam", "shapes": trained, "args": [0, 1]}),
        json!({"op": "steptime::gather", "shapes": [[8192, 4096], [16384]], "args": [1024, 0]}),
        json!({"op": "steptime::interaction", "shapes": [[2048, 27, 128]]}),
        json!({"op": "steptime::interaction", "shapes": [[2048, 27, 128]], "pass": "backward"}),
    ]
}

#[test]
fn our_own_ops_are_known_on_every_kind_of_profile() {
    for device in ["h200", "v100"] {
        let queries = own();
        for (query, answer) in queries.iter().zip(ask(device, &queries)) {
            let kernels = answer["kernels"].as_array().expect("kernels");
            assert_eq!(kernels.len(), 1, "{query}: {answer}");
            assert!(total(&answer) > 1.0, "{query}: {answer}");
            let family = kernels[0]["family"].as_str().unwrap_or_default();
            assert!(["fused_embedding_bag", "tiled_gather", "interaction"].contains(&family), "{answer}");
            assert_ne!(kernels[0]["source"], "fallback", "{query}: {answer}");
        }
    }
    let [sgd, adam] = [2, 3].map(|at| total(&ask("h200", &own()[at..=at])[0]));
    assert!(sgd < adam, "{sgd} {adam}");
}

#[test]
fn what_is_in_the_cache_is_not_slower() {
    let cold = [many(), own()].concat();
    let mut warm = cold.clone();
    warm.iter_mut().for_each(|query| query["cache"] = "warm".into());
    for ((query, cold), warm) in cold.iter().zip(ask("h200", &cold)).zip(ask("h200", &warm)) {
        assert!(total(&warm) <= 1.2 * total(&cold), "{query}: cold {cold}, warm {warm}");
    }
}

#[test]
fn more_takes_longer() {
    let product =
        |m: u64, dtype: &str| json!({"op": "aten::mm", "shapes": [[m, 4096], [4096, 4096]], "dtype": dtype});
    let answers = ask(
        "h200",
        &[product(4096, "float"), product(8192, "float"), product(4096, "tf32"), product(4096, "bf16")],
    );
    let [once, twice, tf32, bf16] = [0, 1, 2, 3].map(|at| total(&answers[at]));
    assert!((1.6..2.5).contains(&(twice / once)), "{once} and {twice}");
    assert!(bf16 < tf32 && tf32 < 0.5 * once, "{once}, {tf32}, {bf16}");
    let bag = |indices: Value| json!({"op": "aten::embedding_bag", "shapes": [[5000000, 128], [204800], [2048]], "indices": indices});
    let answers = ask("h200", &[bag("uniform".into()), bag(json!({"zipf": 1.2}))]);
    assert!(total(&answers[1]) < total(&answers[0]), "{answers:?}");
}

#[test]
fn views_and_empty_tensors_launch_nothing() {
    for query in [
        json!({"op": "aten::transpose", "shapes": [[2048, 1024]], "args": [0, 1]}),
        json!({"op": "aten::add", "shapes": [[0, 4], [0, 4]]}),
    ] {
        let answer = &ask("h200", &[query])[0];
        assert_eq!((total(answer), answer["kernels"].as_array().map(Vec::len)), (0.0, Some(0)));
    }
}

#[test]
fn an_op_that_is_not_known_is_priced_by_its_bytes() {
    let answer =
        &ask("h200", &[json!({"op": "mine::fused", "shapes": [[4096, 4096]], "id": 7, "note": "x"})])[0];
    let kernel = &answer["kernels"][0];
    assert_eq!(kernel["source"], "fallback");
    let [low, high] = [0, 1].map(|at| kernel["interval_us"][at].as_f64().unwrap_or(f64::NAN));
    assert!(high / low > 4.0, "{kernel}");
    assert_eq!((&answer["id"], &answer["ignored"]), (&7.into(), &json!(["note"])));
}

#[test]
fn types_that_a_device_lacks_are_errors() {
    let mm =
        |dtype: &str| json!({"op": "aten::mm", "shapes": [[64, 64], [64, 64]], "dtype": dtype}).to_string();
    for (device, dtype, words) in [
        ("v100", "bfloat16", Some("has no bfloat16: devices from 8.0 on do")),
        ("v100", "tf32", Some("has no TF32")),
        ("p100", "half", None),
        ("a100", "bfloat16", None),
        ("a100", "tf32", None),
        ("a100", "float8_e4m3fn", Some("has no 8-bit floats: devices from 8.9 on do")),
        ("h200", "float8_e4m3fn", None),
    ] {
        let answer = &answers(device, &mm(dtype), if words.is_some() { 1 } else { 0 })[0];
        match words {
            Some(words) => {
                assert!(
                    answer["error"].as_str().is_some_and(|error| error.contains(words)),
                    "{device} {dtype}: {answer}"
                );
            }
            None => assert!(total(answer) > 0.0, "{device} {dtype}: {answer}"),
        }
    }
}

#[test]
fn every_line_is_answered() {
    let lines = [
        ("not JSON", "a query is an object"),
        (r#"{"op":"aten::mm""#, "EOF"),
        (r#"{"op":"aten::mm"}"#, "shapes"),
        (
            r#"{"op":"nonsense","shapes":[[4]]}"#,
            "names are those of PyTorch's operators, such as aten::addmm",
        ),
        (r#"{"op":"aten::addmm","shapes":[[4],[4,4]]}"#, "takes 3 tensors, and 2 shapes are given"),
        (r#"{"op":"aten::mm","shapes":[[-4,4],[4,4]]}"#, "list of sizes"),
        (r#"{"op":"aten::mm","shapes":[[1000000000000000000,4],[4,4]]}"#, "list of sizes"),
        (r#"{"op":"aten::mm","shapes":[[1e18,4],[4,4]]}"#, "list of sizes"),
        (
            r#"{"op":"aten::mm","shapes":[[512,512],[511,512]]}"#,
            "[512, 512] times [511, 512]: the first has 512 columns, the second 511 rows; both must be the same",
        ),
        (
            r#"{"op":"aten::add","shapes":[[8,8],[8,8]],"dtype":"float8_e4m3fn"}"#,
            "NVIDIA A100 (Ampere, compute capability 8.0) has no 8-bit floats",
        ),
        (r#"{"op":"aten::mm","shapes":[[4000000000000,1],[1,4000000000000]]}"#, "no GPU does"),
        (r#"{"op":"aten::mm","shapes":[[NaN,4],[4,4]]}"#, "line 13"),
        (r#"{"op":"aten::mm","shapes":[[4,4],[4,4]],"strides":[[1],[1]]}"#, "one for each dimension"),
        (r#"{"op":"aten::mm","shapes":[[4,4],[4,4]],"dtype":"quaternion"}"#, "type of elements"),
        (r#"{"op":"aten::mm","shapes":[[4,4],[4,4]],"cache":"lukewarm"}"#, "cold, warm"),
        (r#"{"op":"aten::mm","shapes":[[4,4],[4,4]],"pass":"sideways"}"#, "forward or backward"),
        (r#"{"op":"aten::mm","shapes":[[4,4],[4,4]],"indices":{"zipf":-1}}"#, "between 0 and 8"),
        (
            r#"{"op":"aten::conv2d","shapes":[[1,3,8,8],[4,3,3,3]],"args":{"pad":1}}"#,
            "it has stride, padding",
        ),
    ];
    let mut text: String = "\n".into();
    for (line, _) in lines {
        text.push_str(line);
        text.push('\n');
    }
    text.push_str(r#"{"op":"aten::mm","shapes":[[4,4],[4,4]]}"#);
    let answers = answers("a100", &text, 1);
    assert_eq!(answers.len(), lines.len() + 1);
    for ((line, words), answer) in lines.iter().zip(&answers) {
        assert!(answer["error"].as_str().is_some_and(|error| error.contains(words)), "{line}: {answer}");
    }
    assert!(total(&answers[lines.len()]) > 0.0);
}
