//! `steptime view`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use crate::{failure, root, stdout, steptime, text};

const EXAMPLE: &str = "examples/dlrm_default_2048";

#[test]
fn a_page_is_one_file_that_loads_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.html");
    assert_eq!(stdout(&["view", EXAMPLE, "--device", "h200", "-o", text(&path)]), "");
    let page = std::fs::read_to_string(&path).expect("a page");
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    assert!(page.contains("<title>dlrm_default_2048 - steptime</title>"));
    assert!(page.contains("connect-src 'none'"));
    for outside in [" src=", "href=\"http", "@import", "url(http"] {
        assert!(!page.contains(outside), "{outside}");
    }
    // The same input gives the same page.
    let again = folder.path().join("again.html");
    stdout(&["view", EXAMPLE, "--device", "h200", "-o", text(&again)]);
    assert_eq!(page, std::fs::read_to_string(&again).expect("a page"));
}

#[test]
fn every_kind_of_input_has_a_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.html");
    for input in [
        &["examples/dlrm_default_2048/et.json.gz", "--device", "a100"][..],
        &["examples/dlrm_default_2048/kineto.json.gz"],
        &["examples/models/two_towers.toml", "--device", "h200"],
        &[EXAMPLE, "--against", "examples/dlrm_default_fused_2048"],
    ] {
        let output = ["-o", text(&path)];
        stdout(&[&["view"], input, &output].concat());
        let length = std::fs::metadata(&path).expect("a page").len();
        assert!(length > 100_000, "{input:?}: {length}");
        std::fs::remove_file(&path).expect("removed");
    }
}

#[test]
fn nothing_is_left_where_a_page_cannot_be_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.html");
    let error = failure(&["view", "examples/dlrm_default_2048/et.json.gz", "-o", text(&path)]);
    assert!(error.contains("--device h200"), "{error}");
    assert!(!path.exists());
    let nowhere = folder.path().join("no/such/report.html");
    let error = failure(&["view", EXAMPLE, "-o", text(&nowhere)]);
    assert!(error.starts_with("error: cannot write ") && error.contains("report.html"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn a_page_does_not_replace_what_it_is_made_of() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("kineto.json.gz");
    std::fs::copy(root().join(EXAMPLE).join("kineto.json.gz"), &trace).expect("a copy");
    let error = failure(&["view", text(&trace), "-o", text(&trace)]);
    assert!(error.contains("it is read by the same command"), "{error}");
}

#[test]
fn a_taken_port_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let error = failure(&["view", EXAMPLE, "--port", &port.to_string(), "--no-open"]);
    assert_eq!(
        error,
        format!("error: port {port} is taken: name another, or --port 0 for any that is free\n")
    );
}

#[test]
fn a_port_and_a_file_exclude_each_other() {
    steptime(&["view", EXAMPLE, "-o", "report.html", "--port", "0"]).assert().code(2);
    steptime(&["view", EXAMPLE, "-o", "report.html", "--no-open"]).assert().code(2);
}

/// The program serving a page.
struct ServerProcess {
    child: Child,
    host: String,
    path: String,
}

impl ServerProcess {
    /// Serves the page of an input.
    fn new(args: &[&str]) -> ServerProcess {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("steptime"))
            .current_dir(root())
            .args([&["view"], args, &["--port", "0", "--no-open"]].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("its output");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let address = line.trim().rsplit_once("http://").expect("an address").1;
        let (host, path) = address.split_once('/').expect("a path");
        ServerProcess { child, host: host.to_owned(), path: path.to_owned() }
    }

    /// The reply to a request that begins with `begin`: its status, and its body.
    fn reply(&self, begin: &str, body: &str) -> (String, String) {
        let (host, length) = (&self.host, body.len());
        let mut stream = TcpStream::connect(host).expect("it listens");
        let request = format!(
            "{begin} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).expect("written");
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).expect("read");
        let reply = String::from_utf8_lossy(&reply).into_owned();
        let (head, body) = reply.split_once("\r\n\r\n").expect("a head");
        (head.split(' ').nth(1).expect("a status").to_owned(), body.to_owned())
    }

    fn page(&self) -> String {
        self.reply(&format!("GET /{}", self.path), "").1
    }

    fn post(&self, what: &str, body: &str) -> (String, String) {
        self.reply(&format!("POST /{}{what}", self.path), body)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.child.kill().expect("it ends");
        self.child.wait().expect("it ended");
    }
}

/// The data of a page: its head and its block, one line each.
fn data(page: &str) -> String {
    let part = |id: &str| {
        let begin = format!("<script type=\"text/plain\" id=\"{id}\">");
        let (_, rest) = page.split_once(begin.as_str()).expect("a part");
        rest.split_once('<').expect("its end").0.to_owned()
    };
    format!("{}\n{}\n", part("head"), part("block"))
}

/// The data of a page written to a file.
fn written(args: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.html");
    stdout(&[&["view"], args, &["-o", text(&path)]].concat());
    let page = std::fs::read_to_string(&path).expect("a page");
    assert!(!page.contains("id=\"devices\""), "a file has GPUs to choose from");
    data(&page)
}

#[test]
fn a_served_page_answers_changes() {
    let served = ServerProcess::new(&[EXAMPLE]);
    let page = served.page();
    assert!(page.contains("data-mode=\"served\"") && page.contains("id=\"devices\""), "{page:.200}");
    let (status, changed) = served.post("whatif", r#"{"batch": 8192, "cuda-graph": true}"#);
    assert_eq!(status, "200");
    assert!(changed.contains(r#""command":"whatif""#), "{changed:.400}");
    let (status, refused) = served.post("whatif", r#"{"fuse": ["everything"]}"#);
    assert_eq!(status, "422");
    assert!(refused.contains("embedding-bags"), "{refused:.400}");
}

/// The data served for a GPU are those of `--device`, independent of the page's initial GPU.
#[test]
fn a_gpu_that_is_chosen_is_the_one_of_the_command_line() {
    let (recorded, t4) = (written(&[EXAMPLE]), written(&[EXAMPLE, "--device", "t4"]));
    assert_ne!(recorded, t4);
    for begin in [&[EXAMPLE][..], &[EXAMPLE, "--device", "T4"], &[EXAMPLE, "--device", "a100"]] {
        let served = ServerProcess::new(begin);
        // Predicted once, then kept.
        for _ in 0..2 {
            assert!(
                served.post("data", r#"{"device": null}"#) == ("200".to_owned(), recorded.clone()),
                "{begin:?}"
            );
            if begin.last() != Some(&"T4") {
                assert!(
                    served.post("data", r#"{"device": "t4"}"#) == ("200".to_owned(), t4.clone()),
                    "{begin:?}"
                );
            }
        }
        // A request without a GPU is for the page's initial one.
        assert!(served.post("data", "{}").1 == data(&served.page()), "{begin:?}");
        assert!(data(&served.page()) == written(begin), "{begin:?}");
    }
}

#[test]
fn a_change_is_of_the_gpu_that_is_chosen() {
    let served = ServerProcess::new(&[EXAMPLE]);
    let step = |reply: &(String, String)| {
        let (_, rest) = reply.1.split_once("\"after\":{\"step_ms\":").expect("a step");
        rest.split_once(',').expect("its end").0.parse::<f64>().expect("a number")
    };
    for device in [None, Some("t4")] {
        let on = device.map_or(vec![], |name| vec!["--device", name]);
        let known = stdout(&[&["whatif", EXAMPLE, "--batch", "8192", "--json"], &on[..]].concat());
        let known: serde_json::Value = serde_json::from_str(&known).expect("JSON");
        let request = serde_json::json!({"batch": 8192, "device": device}).to_string();
        let reply = served.post("whatif", &request);
        assert_eq!(reply.0, "200", "{device:?}");
        assert_eq!(known["after"]["step_ms"], step(&reply), "{device:?}");
    }
}

#[test]
fn what_is_no_gpu_to_choose_is_refused_in_words() {
    let served = ServerProcess::new(&["examples/dlrm_default_2048/et.json.gz", "--device", "profiles/t4"]);
    for (request, words) in [
        (r#"{"device": "voodoo2"}"#, "no GPU \"voodoo2\" to choose: there are profiles/t4, h200, h100,"),
        // Only the folder named on the command line is read, and no other.
        (r#"{"device": "profiles/h100"}"#, "no GPU \"profiles/h100\""),
        (r#"{"device": "../../../../etc"}"#, "no GPU"),
        (r#"{"device": null}"#, "no GPU times in the input to show as recorded"),
        (r#"{"device": 4}"#, "the name of a GPU, or null"),
        (r#"{"device": "t4", "batch": 1}"#, "`batch` is not a key"),
        ("[]", "invalid type"),
        ("{", "EOF"),
    ] {
        let (status, said) = served.post("data", request);
        assert_eq!(status, "422", "{request}: {said:.200}");
        assert!(said.contains(words) && said.lines().count() == 1, "{request}: {said}");
    }
    assert_eq!(served.post("whatif", r#"{"device": "voodoo2", "batch": 1}"#).0, "422");
    assert_eq!(served.post("data", r#"{"device": "profiles/t4"}"#), ("200".to_owned(), data(&served.page())));
}

/// Concurrent requests get the same answers.
#[test]
fn several_may_choose_at_once() {
    let served = ServerProcess::new(&[EXAMPLE]);
    let names = ["l4", "t4", "l4", "t4", "v100", "l4"];
    let found: Vec<_> = std::thread::scope(|scope| {
        let ask = |name: &'static str| {
            let served = &served;
            scope.spawn(move || served.post("data", &serde_json::json!({"device": name}).to_string()))
        };
        names.map(ask).into_iter().map(|thread| thread.join().expect("an answer")).collect()
    });
    for (name, (status, got)) in names.iter().zip(&found) {
        assert_eq!(status, "200", "{name}");
        assert!(*got == written(&[EXAMPLE, "--device", name]), "{name}");
    }
}
