//! `steptime view`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

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

#[test]
fn a_served_page_answers_changes() {
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("steptime"))
        .current_dir(root())
        .args(["view", EXAMPLE, "--port", "0", "--no-open"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    let out = child.stdout.take().expect("its output");
    BufReader::new(out).read_line(&mut line).expect("a line");
    let address = line.trim().rsplit_once("http://").expect("an address").1.to_owned();
    let (host, path) = address.split_once('/').expect("a path");
    let ask = |request: String| {
        let mut stream = TcpStream::connect(host).expect("it listens");
        stream.write_all(request.as_bytes()).expect("written");
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).expect("read");
        String::from_utf8_lossy(&reply).into_owned()
    };
    let post = |body: &str| {
        let length = body.len();
        ask(format!(
            "POST /{path}whatif HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        ))
    };
    let page = ask(format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
    let changed = post(r#"{"batch": 8192, "cuda-graph": true}"#);
    let refused = post(r#"{"fuse": ["everything"]}"#);
    child.kill().expect("it ends");
    child.wait().expect("it ended");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("data-mode=\"served\""), "{page:.200}");
    assert!(
        changed.starts_with("HTTP/1.1 200") && changed.contains(r#""command":"whatif""#),
        "{changed:.400}"
    );
    assert!(refused.starts_with("HTTP/1.1 422") && refused.contains("embedding-bags"), "{refused:.400}");
}
