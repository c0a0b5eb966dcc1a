//! Malicious inputs: each is answered or refused, soon and without harm.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use assert_cmd::Command;

use crate::{steptime, text};

/// Far more than any of these takes, and far less than work quadratic in its size would.
const SOON: Duration = Duration::from_secs(60);

/// The program, with a time limit.
fn soon(args: &[&str]) -> Command {
    let mut command = steptime(args);
    command.timeout(SOON);
    command
}

/// A Kineto trace of events, each as `"key": value` pairs.
fn trace(folder: &Path, name: &str, events: impl Iterator<Item = String>) -> PathBuf {
    let path = folder.join(name);
    let mut json = String::from("{\"traceEvents\":[");
    for (at, event) in events.enumerate() {
        let comma = if at == 0 { "" } else { "," };
        write!(json, "{comma}{{\"ph\":\"X\",{event}}}").expect("a string");
    }
    json.push_str("]}");
    std::fs::write(&path, json).expect("written");
    path
}

/// An op, the call in it, and the kernel it launches.
fn launch(op: &str, [ts, dur]: [f64; 2], correlation: usize) -> [String; 3] {
    let host = "\"pid\":1,\"tid\":1";
    let link = format!("\"correlation\":{correlation}");
    let (call, kernel) = (ts + 0.2, ts + 0.4);
    [
        format!("\"cat\":\"cpu_op\",\"name\":\"{op}\",{host},\"ts\":{ts},\"dur\":{dur}"),
        format!(
            "\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",{host},\"ts\":{call},\"dur\":0.1,\
             \"args\":{{{link}}}"
        ),
        format!(
            "\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":{kernel},\"dur\":0.2,\
             \"args\":{{\"stream\":7,\"device\":0,{link}}}"
        ),
    ]
}

#[test]
fn time_grows_with_the_size_of_a_trace_not_with_its_square() {
    const COUNT: usize = 100_000;
    let folder = tempfile::tempdir().expect("a folder");
    // Half of the supported depth, one nest after the other.
    const DEEP: usize = 120;
    let nested = (0..COUNT).flat_map(|i| {
        let (nest, at) = (i / DEEP, i % DEEP);
        launch("a", [(3 * nest * DEEP + at) as f64, (2 * (DEEP - at)) as f64], i + 1)
    });
    let nested = trace(folder.path(), "nested.json", nested);
    let named = (0..COUNT).flat_map(|i| launch(&format!("op{i}"), [i as f64, 0.9], i + 1));
    let named = trace(folder.path(), "named.json", named);
    let alike = (0..COUNT).flat_map(|i| launch("a", [(20 * (i / DEEP)) as f64, 10.0], 7));
    let alike = trace(folder.path(), "alike.json", alike);
    for path in [&nested, &named, &alike] {
        let path = text(path);
        soon(&["inspect", path]).assert().success();
        soon(&["predict", path]).assert().success();
        soon(&["predict", path, "--method", "paper"]).assert().success();
    }
}

/// A step of one op named `name`, with the call and the kernel that it launches.
fn step(folder: &Path, file: &str, name: &str) -> PathBuf {
    let name = serde_json::to_string(name).expect("JSON");
    trace(folder, file, launch(name.trim_matches('"'), [1.0, 5.0], 1).into_iter())
}

#[test]
fn nothing_in_a_name_reaches_the_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = "\u{1b}]0;owned\u{7}\u{1b}[31mmm\nstep 0.001 ms\r\u{9b}2J\u{202e}";
    let path = step(folder.path(), "e\u{1b}[2J\nstep 7 ms.json", name);
    let harmless = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).expect("UTF-8");
        let steers = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.chars().any(steers), "{text:?}");
        assert!(
            !text.lines().any(|line| line.starts_with("step 0.001") || line.starts_with("step 7")),
            "{text}"
        );
        text
    };
    for args in [&["predict"][..], &["inspect"], &["validate", "--replay-only"], &["predict", "--rank", "3"]]
    {
        let output = steptime(&[args, &[text(&path)]].concat()).output().expect("it runs");
        harmless(&[output.stdout, output.stderr].concat());
    }
    // Strings in JSON keep their meaning.
    let output = steptime(&["inspect", "--json", text(&path)]).output().expect("it runs");
    let json: serde_json::Value = serde_json::from_str(&harmless(&output.stdout)).expect("JSON");
    assert!(
        json.to_string().contains(serde_json::to_string(name).expect("JSON").trim_matches('"')),
        "{json}"
    );
    let queries = format!("{{\"op\":{},\"shapes\":[[4]]}}\n", serde_json::to_string(name).expect("JSON"));
    let output = steptime(&["kernels", "predict", "--device", "h200"]).write_stdin(queries).output();
    harmless(&output.expect("it runs").stdout);
}

#[test]
fn an_activity_of_a_call_that_waits_is_launched_by_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let host =
        "\"cat\":\"Runtime\",\"name\":\"cudaDeviceSynchronize\",\"pid\":1,\"tid\":2,\"ts\":1,\"dur\":9";
    let device = "\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy DtoH\",\"pid\":0,\"tid\":7,\"ts\":3,\"dur\":4";
    let events = [host, device].map(|event| format!("{event},\"args\":{{\"correlation\":8}}"));
    let path = trace(folder.path(), "wait.json", events.into_iter());
    let answer = crate::json(&["predict", text(&path)]);
    let idle: Vec<f64> = answer["idle_ms"]
        .as_object()
        .expect("causes")
        .values()
        .filter_map(serde_json::Value::as_f64)
        .collect();
    assert!(!idle.is_empty() && idle.iter().all(|&ms| (0.0..1.0).contains(&ms)), "{answer}");
}

#[test]
fn a_step_that_launched_nothing_is_no_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let op = "\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":0".to_owned();
    let kernel = "\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":0,\"dur\":0".to_owned();
    let path = trace(folder.path(), "nothing.json", [op, kernel].into_iter());
    for method in ["simulate", "paper", "kernel-sum"] {
        let error = crate::failure(&["predict", text(&path), "--method", method]);
        assert!(error.contains("none of its 1 GPU activities was launched within a step"), "{error}");
    }
}

#[test]
fn a_query_names_files_only_where_it_may() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("secret");
    std::fs::write(&file, "a secret\n").expect("written");
    let query =
        serde_json::json!({"op": "aten::embedding_bag", "shapes": [[100, 8], [10], [2]], "indices": file});
    let ask = |flags: &[&str], line: String| {
        let args = [&["kernels", "predict", "--device", "h200"], flags].concat();
        let output = steptime(&args).write_stdin(line).output().expect("it runs");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let refused = ask(&[], query.to_string());
    assert!(refused.contains("--files") && !refused.contains("a secret"), "{refused}");
    assert!(ask(&["--files"], query.to_string()).contains("is not an index"));
}

#[test]
fn a_query_without_end_is_refused() {
    let mut endless = steptime(&["kernels", "predict", "--device", "h200"]);
    let output = endless.write_stdin(vec![b' '; 17 << 20]).timeout(SOON).output().expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && error.contains("longer than 16 MiB"), "{error}");
}

#[test]
fn two_traces_of_one_rank_are_told_of() {
    let folder = tempfile::tempdir().expect("a folder");
    for file in ["rank0.json", "rank-0.json", "rank1.json"] {
        step(folder.path(), file, "aten::mm");
    }
    for command in [&["predict"][..], &["inspect"], &["predict", "--rank", "0"]] {
        let error = crate::failure(&[command, &[text(folder.path())]].concat());
        assert!(error.contains("rank0") && error.contains("rank-0"), "{error}");
    }
}

#[cfg(unix)]
mod files {
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    use std::process::Stdio;

    use super::*;

    fn fifo(path: &Path) {
        assert!(std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
    }

    #[test]
    fn what_is_no_file_in_a_folder_is_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        step(folder.path(), "trace.json", "aten::mm");
        fifo(&folder.path().join("pipe.json"));
        symlink("nowhere", folder.path().join("link.json")).expect("a link");
        let output = soon(&["inspect", text(folder.path())]).assert().success().get_output().stdout.clone();
        let output = String::from_utf8(output).expect("UTF-8");
        assert!(output.contains("pipe.json is not a trace and was left out"), "{output}");
        assert!(output.contains("link.json is not a trace and was left out"), "{output}");
        soon(&["predict", text(folder.path())]).assert().success();
    }

    #[test]
    fn an_output_takes_the_place_of_nothing_but_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let input = step(folder.path(), "in.json", "aten::mm");
        let timeline =
            |to: &Path| soon(&["predict", text(&input), "--timeline", text(to)]).output().expect("it runs");
        let is_trace = |path: &Path| std::fs::read_to_string(path).expect("text").contains("traceEvents");

        // A pipe receives the output, and stays a pipe.
        fifo(&at("pipe"));
        let pipe = at("pipe");
        let reader = std::thread::spawn(move || {
            let mut read = String::new();
            std::fs::File::open(pipe).and_then(|mut file| file.read_to_string(&mut read)).map(|_| read)
        });
        assert!(timeline(&at("pipe")).status.success());
        assert!(reader.join().expect("read").expect("text").contains("traceEvents"));
        assert!(std::fs::metadata(at("pipe")).expect("it").file_type().is_fifo());

        // A link leads to the file, existing or not.
        for (link, file) in [("link", "file"), ("early", "late")] {
            symlink(file, at(link)).expect("a link");
            if file == "file" {
                std::fs::write(at(file), "old").expect("written");
                std::fs::set_permissions(at(file), PermissionsExt::from_mode(0o640)).expect("a mode");
            }
            assert!(timeline(&at(link)).status.success());
            assert!(std::fs::symlink_metadata(at(link)).expect("it").is_symlink() && is_trace(&at(file)));
        }
        assert_eq!(std::fs::metadata(at("file")).expect("it").permissions().mode() & 0o777, 0o640);

        // A file that is read-only, and one that is read, stay as they are.
        std::fs::write(at("locked"), "old").expect("written");
        std::fs::set_permissions(at("locked"), PermissionsExt::from_mode(0o444)).expect("a mode");
        assert!(String::from_utf8_lossy(&timeline(&at("locked")).stderr).contains("read-only"));
        assert_eq!(std::fs::read_to_string(at("locked")).expect("text"), "old");
        let before = std::fs::read(&input).expect("bytes");
        symlink("in.json", at("other")).expect("a link");
        for same in [&input, &at("other")] {
            let error = String::from_utf8_lossy(&timeline(same).stderr).into_owned();
            assert!(error.contains("read by the same command"), "{error}");
        }
        assert_eq!(std::fs::read(&input).expect("bytes"), before);
    }

    /// A program that writes a timeline of the input to `out`.
    fn writer(input: &Path, out: &Path) -> std::process::Child {
        std::process::Command::new(env!("CARGO_BIN_EXE_steptime"))
            .args(["predict", text(input), "--timeline", text(out)])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it runs")
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("a folder");
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect()
    }

    #[test]
    fn a_killed_writer_leaves_the_file_whole_and_a_stopped_one_leaves_nothing_beside_it() {
        const TIMES: u32 = 24;
        let inputs = tempfile::tempdir().expect("a folder");
        let events = (0..2000).flat_map(|i| launch("aten::mm", [f64::from(i) * 9.0, 5.0], i as usize + 1));
        let input = trace(inputs.path(), "in.json", events);
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("out.json");
        let start = std::time::Instant::now();
        assert!(writer(&input, &out).wait().expect("it ends").success());
        let whole = (std::fs::read(&out).expect("written"), start.elapsed());
        for (signal, keeps) in [("KILL", true), ("TERM", false), ("INT", false), ("HUP", false)] {
            for at in 0..TIMES {
                std::fs::write(&out, "old").expect("written");
                let mut child = writer(&input, &out);
                std::thread::sleep(whole.1 * at / TIMES);
                let pid = child.id().to_string();
                let _ = std::process::Command::new("kill")
                    .args(["-s", signal, &pid])
                    .stderr(Stdio::null())
                    .status();
                child.wait().expect("it ends");
                let found = std::fs::read(&out).expect("a file");
                assert!(found == b"old" || found == whole.0, "{} bytes", found.len());
                assert!(
                    keeps || names(folder.path()) == ["out.json"],
                    "{signal}: {:?}",
                    names(folder.path())
                );
            }
            // Leftovers of killed programs are removed when they are old enough.
            for left in names(folder.path()).iter().filter(|name| *name != "out.json") {
                let file =
                    std::fs::File::options().append(true).open(folder.path().join(left)).expect("a file");
                let hour = Duration::from_secs(3600);
                file.set_modified(std::time::SystemTime::now() - hour).expect("a time");
            }
            assert!(writer(&input, &out).wait().expect("it ends").success());
            assert_eq!(names(folder.path()), ["out.json"]);
        }
    }

    #[test]
    fn a_trace_may_be_cut_while_it_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let events = (0..100_000).flat_map(|i| launch("aten::mm", [f64::from(i) * 9.0, 5.0], i as usize + 1));
        let path = trace(folder.path(), "in.json", events);
        let whole = std::fs::read(&path).expect("bytes");
        for wait in 0..12 {
            std::fs::write(&path, &whole).expect("written");
            let child = std::process::Command::new(env!("CARGO_BIN_EXE_steptime"))
                .args(["inspect", text(&path)])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            std::thread::sleep(Duration::from_millis(4 * wait));
            std::fs::File::options()
                .write(true)
                .open(&path)
                .and_then(|file| file.set_len(4096))
                .expect("cut");
            let ended = child.expect("it runs").wait().expect("it ends");
            assert!(ended.code().is_some(), "{ended}");
        }
    }

    #[test]
    fn answers_end_when_nobody_reads_them() {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_steptime"))
            .args(["kernels", "predict", "--device", "h200"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut queries = child.stdin.take().expect("a pipe");
        // Endless: it ends with the program.
        let asking = std::thread::spawn(move || {
            use std::io::Write;
            while writeln!(queries, r#"{{"op":"aten::relu","shapes":[[512,512]]}}"#).is_ok() {}
        });
        let mut line = String::new();
        let mut answers = BufReader::new(child.stdout.take().expect("a pipe"));
        answers.read_line(&mut line).expect("an answer");
        drop(answers);
        asking.join().expect("asked");
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    }
}
