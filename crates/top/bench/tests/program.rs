//! The program, from the outside: benchmarks of operators, and plans of matrix products.

use assert_cmd::Command;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;
use steptime_ops::Isa;

/// Every op at a small size, awkward if possible.
const SMALL: [(&str, &str); 8] = [
    ("gather", "E=100,D=33,B=4,S=5"),
    ("bag", "T=3,E=50,D=17,B=9,L=4"),
    ("backward", "T=2,E=50,D=17,B=9,L=4"),
    ("gemm", "M=33,N=17,K=13"),
    ("linear", "B=19,K=13,N=1"),
    ("interaction", "B=5,F=7,D=13"),
    ("elementwise", "B=7,D=33"),
    ("transpose", "M=33,N=18"),
];

fn program(args: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_steptime-bench"));
    program.args(args);
    program
}

fn stdout(args: &[&str]) -> String {
    String::from_utf8(program(args).assert().success().get_output().stdout.clone()).expect("UTF-8")
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(&[args, &["--json"]].concat())).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn every_op_is_right_and_has_a_time() {
    for (op, shape) in SMALL {
        let answer = json(&["cpu", "--op", op, "--shape", shape, "--threads", "2", "--verify", "--time"]);
        assert_eq!((&answer["command"], &answer["threads"]), (&"bench cpu".into(), &2.into()));
        let cases = answer["cases"].as_array().expect("cases");
        let passes = match op {
            "backward" => 5,
            "elementwise" => 3,
            "linear" | "interaction" => 2,
            _ => 1,
        };
        assert_eq!(cases.len(), passes, "{op}");
        for case in cases {
            assert_eq!((&case["op"], &case["path"]), (&op.into(), &answer["path"]));
            assert!(number(&case["largest_error"]) <= 1e-4, "{case}");
            assert!(number(&case["best_ms"]) <= number(&case["median_ms"]), "{case}");
            assert!(number(&case["share"]) > 0.0 && number(&case["bytes"]) > 0.0, "{case}");
            let intensity = number(&case["flops"]) / number(&case["bytes"]);
            assert!((number(&case["intensity"]) - intensity).abs() < 1e-9, "{case}");
            if let Some(unfused) = case["unfused_intensity"].as_f64() {
                assert!(unfused <= intensity, "{case}");
            }
            assert!(["sequential", "random rows", "fma"].contains(&case["bound"].as_str().expect("a bound")));
        }
        assert!(number(&answer["limits"]["fma_gflop_s"]) > 0.0);
    }
}

#[test]
fn sizes_beyond_all_memory_are_refused_before_any_is_asked_for() {
    let largest = |shape: &str| {
        let letters = shape.split(',').filter_map(|size| size.split('=').next());
        letters.map(|letter| format!("{letter}={}", u32::MAX)).collect::<Vec<_>>().join(",")
    };
    let all = SMALL.map(|(op, shape)| (op, largest(shape)));
    // More tables than a list holds, and a number of lookups that overflows 64 bits.
    let alone = [
        ("bag", format!("T={},E=1,D=1,B=1,L=1", u32::MAX)),
        ("backward", format!("T={},E=1,D=1,B=1,L=1", u32::MAX)),
        ("bag", "T=4,E=1,D=1,B=2147483648,L=2147483648".into()),
    ];
    for (op, shape) in all.into_iter().chain(alone) {
        let args = ["cpu", "--op", op, "--shape", &shape, "--threads", "1"];
        program(&args).assert().code(1).stderr(contains("make it smaller"));
    }
}

#[test]
fn every_path_can_be_forced_and_verified() {
    for isa in ["scalar", "neon", "avx2", "avx512"] {
        let known: bool = isa.parse::<Isa>().expect("a name").is_available();
        for (op, shape) in SMALL {
            let args = ["cpu", "--op", op, "--shape", shape, "--isa", isa, "--verify"];
            if known {
                let text = stdout(&args);
                assert!(text.starts_with(&format!("path {isa}, ")) && text.contains("error"), "{text}");
                assert!(!text.contains("GFLOP/s"), "{text}");
            } else {
                program(&args).assert().code(1).stderr(contains("this processor has no"));
            }
        }
    }
}

#[test]
fn indices_follow_their_distribution() {
    let bytes = |init: &str| {
        let shape = "E=10000,D=16,B=100,S=20";
        let answer = json(&["cpu", "--op", "gather", "--shape", shape, "--verify", "--init", init]);
        assert_eq!(answer["init"], init);
        number(&answer["cases"][0]["bytes"])
    };
    assert!(bytes("zipf:1.5") < 0.9 * bytes("uniform"), "frequent rows move once");
}

#[test]
fn sizes_that_make_no_sense() {
    let fails = |args: &[&str], code: i32, words: &str| {
        program(&[&["cpu"], args].concat()).assert().code(code).stdout("").stderr(contains(words));
    };
    fails(&["--op", "gemm", "--shape", "E=4"], 1, "no size E here: give some of M, N, K");
    fails(&["--op", "gemm", "--shape", "M=4000000000,N=4000000000,K=1"], 1, "GiB of memory");
    fails(&["--op", "gemm", "--shape", "M=0"], 2, "is not a size");
    fails(&["--op", "gemm", "--shape", "M"], 2, "is not a size");
    fails(&["--op", "sort"], 2, "possible values");
    fails(&["--shape", "M=4"], 2, "--op");
    fails(&["--init", "zipf:-1"], 2, "zipf:1.05");
    fails(&["--isa", "sse"], 2, "choose scalar, neon, avx2 or avx512");
}

#[test]
fn a_plan_says_what_each_level_reads() {
    let text = stdout(&["gemm", "2048x512x512"]);
    for words in ["C[2048, 512] = A[2048, 512] B[512, 512]", "registers <- L1", "L3 <- memory", "m_r x n_r"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let answer = json(&["gemm", "2048x512x512", "--isa", "avx2"]);
    assert_eq!((&answer["command"], &answer["path"]), (&"gemm plan".into(), &"avx2".into()));
    assert_eq!((&answer["plan"]["m"], &answer["plan"]["k"]), (&2048.into(), &512.into()));
    let read: Vec<f64> = answer["levels"]
        .as_array()
        .expect("levels")
        .iter()
        .map(|level| number(&level["read_bytes"]))
        .collect();
    assert!(read.len() == 4 && read[0] > read[3] && read[3] > 0.0, "{read:?}");
    for bad in ["2048", "2048x512", "0x1x1", "2048x512x512x2", "ax1x1", "-1x2x3"] {
        program(&["gemm", bad]).assert().code(2).stdout("");
    }
}

#[test]
fn a_gpu_that_is_not_there_is_an_error() {
    let no_gpu = contains("no CUDA driver").or(contains("there is no GPU 1000"));
    program(&["cuda", "--gpu", "1000"]).assert().code(1).stderr(no_gpu);
}

#[test]
fn sizes_of_a_gpu_benchmark_are_checked_before_the_gpu_is_looked_for() {
    let cuda = |args: &[&str]| program(&[&["cuda"], args].concat()).assert().failure();
    cuda(&["--shape", "E=7"]).code(2).stderr(contains("--op"));
    cuda(&["--op", "gather", "--shape", "L=7"])
        .code(1)
        .stderr(contains("no size L here: give some of E, D, N"));
    cuda(&["--op", "bag", "--init", "zipf:0.9"]).code(1).stderr(contains("exponent above 1, not 0.9"));
}

#[test]
fn every_command_has_an_example() {
    for command in ["cpu", "cuda", "gemm"] {
        assert!(stdout(&[command, "--help"]).contains(&format!(" steptime-bench {command} ")), "{command}");
    }
    program(&[]).assert().code(2).stdout("");
}
