//! Execution traces by other tools: linked with the GPU's rows, with collectives of old schemas, one for each rank of a job.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::{failure, json, stdout, text};

/// Builder of an execution trace of schema 1.0.1: products of 4096 x 4096 halves, each of the last one's result.
#[derive(Default)]
struct Nodes {
    json: String,
    next: u64,
    products: u64,
}

const NUMBERS: u64 = 4096 * 4096;

impl Nodes {
    fn new() -> Nodes {
        let mut nodes = Nodes { next: 1, ..Nodes::default() };
        nodes.node("[pytorch|profiler|execution_trace|process]", 0, "", "[]", "[]", "[]", "[]", "");
        nodes.node("[pytorch|profiler|execution_trace|thread]", 1, "", "[]", "[]", "[]", "[]", "");
        nodes
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of a node, in the order of the file")]
    fn node(
        &mut self,
        name: &str,
        parent: u64,
        schema: &str,
        inputs: &str,
        shapes: &str,
        types: &str,
        outputs: &str,
        more: &str,
    ) -> u64 {
        let id = self.next;
        self.next += 1;
        let comma = if self.json.is_empty() { "" } else { "," };
        let (tid, results) =
            if name.contains("process") { (0, 0) } else { (1, usize::from(outputs != "[]")) };
        let (result_shapes, result_types) =
            if results > 0 { (r#"[[4096, 4096]]"#, r#"["Tensor(c10::Half)"]"#) } else { ("[]", "[]") };
        let _ = write!(
            self.json,
            r#"{comma}{{"name": "{name}", "id": {id}, "rf_id": {id}, "parent": {parent}, "fw_parent": 0, "seq_id": -1, "scope": 0, "tid": {tid}, "fw_tid": 0, "op_schema": "{schema}", "inputs": {inputs}, "input_shapes": {shapes}, "input_types": {types}, "outputs": {outputs}, "output_shapes": {result_shapes}, "output_types": {result_types}{more}}}"#
        );
        id
    }

    /// The result of the last product.
    fn tensor(&self) -> String {
        let at = 1000 + 2 * self.products;
        format!(r#"[{at}, {}, 0, {NUMBERS}, 2, "cuda:0"]"#, at + 1)
    }

    fn product(&mut self) -> u64 {
        let takes = self.tensor();
        self.products += 1;
        let gives = format!("[{}]", self.tensor());
        let weight = format!(r#"[900, 901, 0, {NUMBERS}, 2, "cuda:0"]"#);
        let (inputs, half) = (format!("[{takes}, {weight}]"), r#""Tensor(c10::Half)""#);
        let schema = "aten::mm(Tensor self, Tensor mat2) -> Tensor";
        let types = format!("[{half}, {half}]");
        self.node("aten::mm", 2, schema, &inputs, "[[4096, 4096], [4096, 4096]]", &types, &gives, "")
    }

    /// A kernel that a linker wrote after its op.
    fn kernel(&mut self, parent: u64) {
        let more =
            r#", "ph": "X", "cat": "kernel", "ts": 1000020, "dur": 9.5, "pid": 0, "args": {"stream": 7}"#;
        self.node("ampere_sgemm_64x32", parent, "", "[]", "[]", "[]", "[]", more);
        let at = self.json.rfind(r#""tid": 1"#).expect("a thread");
        self.json.replace_range(at..at + 8, r#""tid": 7"#);
    }

    /// An all-reduce of the last product's result over `ranks`, and the wait for it.
    fn all_reduce(&mut self, ranks: &str, sequence: u64) {
        let tensor = self.tensor();
        let schema = "c10d::allreduce_(Tensor[] tensors, __torch__.torch.classes.c10d.ProcessGroup process_group, int timeout) -> (Tensor[], __torch__.torch.classes.c10d.Work)";
        let inputs = format!(r#"[[{tensor}], "<Object>", -1]"#);
        let asked = self.node(
            "c10d::allreduce_",
            2,
            schema,
            &inputs,
            "[[[4096, 4096]], [], []]",
            r#"["GenericList[Tensor(c10::Half)]", "String", "Int"]"#,
            "[]",
            "",
        );
        if ranks.is_empty() {
            return;
        }
        let inputs = format!(r#"[[{tensor}], {sequence}, 93825114103440, 0, "allreduce", [], []{ranks}]"#);
        let types = r#"["GenericList[Tensor(c10::Half)]", "Int", "Int", "Int", "String", "GenericList[]", "GenericList[]", "Int", "Int", "Int"]"#;
        let noted = self.node(
            "record_param_comms",
            asked,
            "",
            &inputs,
            "[[[4096, 4096]], [], [], [], [], [], [], []]",
            types,
            "[]",
            "",
        );
        self.node("nccl:all_reduce", noted, "", "[]", "[]", "[]", "[]", "");
        let inputs = format!(r#"[{sequence}, 0, 0, "wait", [], [], 1]"#);
        let types = r#"["Int", "Int", "Int", "String", "GenericList[]", "GenericList[]", "Int"]"#;
        self.node("record_param_comms", 2, "", &inputs, "[[], [], [], [], [], [], []]", types, "[]", "");
    }

    fn write(&self, path: &Path) {
        let text = format!(r#"{{"schema": "1.0.1", "pid": 7, "nodes": [{}]}}"#, self.json);
        std::fs::write(path, text).expect("a file");
    }
}

/// A trace of `products` products, each followed by the nodes of `after`.
fn trace(path: &Path, products: u64, mut after: impl FnMut(&mut Nodes, u64, u64)) {
    let mut nodes = Nodes::new();
    for at in 0..products {
        let id = nodes.product();
        after(&mut nodes, at, id);
    }
    nodes.write(path);
}

fn step_ms(answer: &Value) -> f64 {
    answer["step_ms"].as_f64().expect("a number")
}

#[test]
fn rows_of_the_gpu_in_a_linked_trace_are_no_host_ops() {
    let folder = tempfile::tempdir().expect("a folder");
    let [linked, plain] = ["linked.json", "plain.json"].map(|name| folder.path().join(name));
    trace(&linked, 3, |nodes, _, id| nodes.kernel(id));
    trace(&plain, 3, |_, _, _| ());
    let [of_linked, of_plain] =
        [&linked, &plain].map(|path| json(&["predict", text(path), "--device", "a100"]));
    assert_eq!(of_linked["step_ms"], of_plain["step_ms"]);
    assert_eq!(of_linked["ops"], of_plain["ops"]);
    let inspected = json(&["inspect", text(&linked)]);
    let found = &inspected["execution"]["linked"];
    assert_eq!((&found["activities"], &found["timed"]), (&3.into(), &3.into()));
    assert!((found["device_ms"].as_f64().expect("a number") - 0.0285).abs() < 1e-9, "{found}");
    assert_eq!(inspected["execution"]["nodes"], 5);
    let said = stdout(&["inspect", text(&linked)]);
    assert!(said.contains("3 kernels and copies that a linker wrote into it"), "{said}");
}

#[test]
fn collectives_of_old_schemas_are_priced_and_awaited() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    trace(&path("none.json"), 4, |_, _, _| ());
    for (name, ranks) in [("old.json", ", 8"), ("later.json", ", 0, 1, 8")] {
        trace(&path(name), 4, |nodes, at, _| nodes.all_reduce(ranks, 330 + at));
    }
    let predict = |name: &str| json(&["predict", text(&path(name)), "--device", "a100"]);
    let [none, old, later] = ["none.json", "old.json", "later.json"].map(predict);
    // The model of collectives alone: 0.34 to 0.38 ms for 32 MiB over eight A100s.
    let each = (step_ms(&old) - step_ms(&none)) / 4.0;
    assert!((0.34..0.38).contains(&each), "{each} ms an all-reduce");
    assert_eq!(old["step_ms"], later["step_ms"]);
    let doubt = old["doubts"].as_array().into_iter().flatten().find(|doubt| doubt["kind"] == "ranks");
    assert!(doubt.is_some_and(|doubt| doubt["text"].to_string().contains("one rank of 8")), "{old}");
}

#[test]
fn collectives_that_cannot_be_priced_are_counted_in_a_doubt() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("unknown.json");
    trace(&path, 2, |nodes, at, _| nodes.all_reduce("", at));
    let answer = json(&["predict", text(&path), "--device", "a100"]);
    let doubts = answer["doubts"].as_array().expect("doubts");
    let said = doubts.iter().find(|doubt| doubt["kind"] == "ranks").expect("a doubt")["text"].to_string();
    assert!(said.contains("2 all_reduce are not counted at all"), "{said}");
}

#[test]
fn a_folder_of_execution_traces_is_a_job() {
    let folder = tempfile::tempdir().expect("a folder");
    let nested = folder.path().join("nested");
    for (rank, products) in [(0, 2), (1, 8)] {
        let reduced = |nodes: &mut Nodes, at: u64, _: u64| {
            if at + 1 == products {
                nodes.all_reduce(", 2", 5);
            }
        };
        let inner = nested.join(format!("rank{rank}"));
        std::fs::create_dir_all(&inner).expect("a folder");
        trace(&inner.join("et.json"), products, reduced);
        let flat = folder.path().join("flat");
        std::fs::create_dir_all(&flat).expect("a folder");
        trace(&flat.join(format!("rank{rank}.json")), products, reduced);
    }
    let alone = json(&["predict", text(&folder.path().join("flat")), "--rank", "1", "--device", "a100"]);
    for name in ["flat", "nested"] {
        let answer = json(&["predict", text(&folder.path().join(name)), "--device", "a100"]);
        assert_eq!(
            (&answer["world"], &answer["collectives"][0]["op"]),
            (&2.into(), &"all_reduce".into()),
            "{name}"
        );
        assert!(
            step_ms(&answer) >= 0.999 * step_ms(&alone),
            "{name}: {} {}",
            answer["step_ms"],
            alone["step_ms"]
        );
        let waits = answer["ranks"][0]["waits_ms"].as_f64().expect("a number");
        assert!(waits > 2.0, "{name}: the first rank waits {waits} ms for six products of 0.54 ms");
    }
}

#[test]
fn ranks_that_do_not_match_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for rank in 0..2_u64 {
        trace(&folder.path().join(format!("rank{rank}.json")), 2, |nodes, at, _| {
            if at <= rank {
                nodes.all_reduce(", 2", at);
            }
        });
    }
    let error = failure(&["predict", text(folder.path()), "--device", "a100"]);
    assert!(error.contains("takes part in 1 collectives of the step, rank 1 in 2"), "{error}");
}
