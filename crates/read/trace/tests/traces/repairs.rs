//! Defects of a file are repaired and counted, or rejected with reasons.

use steptime_trace::{Error, Note, Trace, read_execution_trace, read_kineto};

const A: &str = r#"{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 2, "ts": 1.5, "dur": 2}"#;
const B: &str = r#"{"ph": "X", "cat": "cpu_op", "name": "b", "pid": 1, "tid": 2, "ts": 4, "dur": 2, "args": {"External id": 3}}"#;

/// Reads `json` and compares the names of its ops and its repairs.
fn check(json: &str, names: &[&str], repairs: &[(Note, u64)]) -> Trace {
    let trace = read_kineto(json.as_bytes()).unwrap_or_else(|error| panic!("{json}: {error}"));
    let found: Vec<_> = trace.ops.name.iter().map(|&name| trace.name(name)).collect();
    assert_eq!(found, names, "{json}");
    for (note, count) in repairs {
        assert_eq!(trace.notes.count(*note), *count, "{json}: {note:?} of {:?}", trace.notes);
    }
    let total: u64 = repairs.iter().map(|(_, count)| count).sum();
    assert_eq!(trace.notes.repairs(), total, "{json}: {:?}", trace.notes);
    trace
}

#[test]
fn sound_documents_need_no_repair() {
    check(&format!("[{A},{B}]"), &["a", "b"], &[]);
    check(
        &format!("\u{feff} {{\"x\": [1, {{}}], \"traceEvents\": [{A},\n{B}], \"y\": 2}}\n"),
        &["a", "b"],
        &[],
    );
    check("{\"traceEvents\": []}", &[], &[]);
    check(&format!("{{\"traceEvents\": [{A}], \"traceEvents\": [{B}]}}"), &["a", "b"], &[]);
}

#[test]
fn commas() {
    check(&format!("[{A} {B}]"), &["a", "b"], &[(Note::MissingComma, 1)]);
    check(&format!("[{A},,{B},]"), &["a", "b"], &[(Note::SurplusComma, 2)]);
    let inside = A.replace("\"a\",", "\"a\"");
    check(&format!("[{inside},{B}]"), &["a", "b"], &[(Note::MissingComma, 1)]);
}

#[test]
fn cut_off_anywhere() {
    let whole = format!("{{\"traceEvents\": [{A},{B}]}}");
    for end in whole.find('[').unwrap() + 1..whole.len() {
        let trace = read_kineto(&whole.as_bytes()[..end]).unwrap();
        assert_eq!(trace.notes.count(Note::Truncated), 1, "{end}");
        assert_eq!(trace.notes.tally(Note::Truncated).first, end as u64);
        assert!(trace.ops.len() <= 2);
    }
}

#[test]
fn broken_events_are_left_out_and_no_more() {
    let without_brace = B.strip_suffix("}}").unwrap();
    check(&format!("[{A},{without_brace},{A}]"), &["a", "a"], &[(Note::SkippedItem, 1)]);
    let without_quote = B.replace("\"b\"", "\"b");
    let trace = check(&format!("[{A},\n{without_quote},{A}]"), &["a", "a"], &[(Note::SkippedItem, 1)]);
    assert_eq!(trace.notes.tally(Note::SkippedItem).first as usize, A.len() + 3);
    check(&format!("[{A},{{1: 2}},{B}]"), &["a", "b"], &[(Note::SkippedItem, 1)]);
    check(&format!("[{A},@@@@,{B}]"), &["a", "b"], &[(Note::SkippedItem, 1)]);
    check(&format!("[{A},7,null,\"x\",[1],{B}]"), &["a", "b"], &[(Note::WrongType, 4)]);
    check(&format!("[{A},{B},@@@"), &["a", "b"], &[(Note::SkippedItem, 1)]);
}

#[test]
fn fields() {
    let with = |from: &str, to: &str| format!("[{}]", A.replace(from, to));
    let trace = check(&with("\"a\"", "\"a\nb\""), &["a\nb"], &[(Note::ControlCharacter, 1)]);
    let place = with("\"a\"", "\"a\nb\"").find('\n').unwrap();
    assert_eq!(trace.notes.tally(Note::ControlCharacter).first, place as u64);
    check(&with("1.5", "NaN"), &[], &[(Note::NotANumber, 1), (Note::MissingField, 1)]);
    check(&with("1.5", "\"1.2e3\""), &["a"], &[]);
    check(&with("1.5", "[1]"), &[], &[(Note::WrongType, 1), (Note::MissingField, 1)]);
    check(&with("2}", "-2}"), &["a"], &[(Note::NegativeDuration, 1)]);
    check(&with(", \"dur\": 2", ""), &["a"], &[(Note::MissingDuration, 1)]);
    check(&with("\"tid\": 2, ", ""), &[], &[(Note::MissingField, 1)]);
    check(&with("\"X\"", "\"Q\""), &[], &[]);
    check(&with("2}", "2, \"args\": 7}"), &["a"], &[]);
    check(&with("2}", "2, \"args\": {\"External id\": {\"a\": 1}}}"), &["a"], &[(Note::WrongType, 1)]);
}

#[test]
fn text_that_is_not_utf8() {
    let mut json = format!("[{A}]").into_bytes();
    let at = json.windows(3).position(|three| three == b"\"a\"").unwrap() + 1;
    json[at] = 0xff;
    let trace = read_kineto(&json).unwrap();
    assert_eq!(trace.name(trace.ops.name[0]), "\u{fffd}");
    assert_eq!(trace.notes.count(Note::InvalidUtf8), 1);
}

#[test]
fn around_the_list() {
    check(&format!("{{\"traceEvents\": [{A}]}} extra"), &["a"], &[(Note::TrailingData, 1)]);
    check(&format!("{{\"traceEvents\": [{A}], @}}"), &["a"], &[(Note::BrokenTail, 1)]);
    let deep = "[".repeat(200_000);
    check(&format!("{{\"traceEvents\": [{A}, {{\"args\": {deep}}}"), &["a"], &[(Note::SkippedItem, 1)]);
}

#[test]
fn refusals_say_where_and_what_to_do() {
    let check = |bytes: &[u8], parts: &[&str]| {
        let message = read_kineto(bytes).unwrap_err().to_string();
        parts.iter().for_each(|part| assert!(message.contains(part), "{message}"));
    };
    check(b"", &["is empty", "record the trace again"]);
    check(b" \n ", &["is empty"]);
    check(b"<!DOCTYPE html><html>", &["not a JSON trace", "byte 0", "<!DOCTYPE html>"]);
    check(b"\xff\xfe{\0", &["not a JSON trace"]);
    check(b"{\"a\": 1}", &["neither `traceEvents` nor `nodes`", "byte 8"]);
    check(b"{\"a\": ", &["byte 6", "ends before any event"]);
    check(b"{\"a\" 1}", &["byte 1", "not JSON"]);
    check(b"{\"traceEvents\": 7}", &["neither"]);
    check(b"{\"schema\": \"1.1.1\", \"nodes\": []}", &["is an execution trace, not a Kineto trace"]);
}

#[test]
fn schemas_of_the_future() {
    let json = r#"{"schema": "2.7.0", "nodes": [{"id": 1, "name": "x"}]}"#;
    assert_eq!(read_execution_trace(json.as_bytes()).unwrap().notes.count(Note::UnknownSchema), 1);
    let json = r#"{"schema": "9.0.0", "nodes": [{"key": 1}]}"#;
    let error = read_execution_trace(json.as_bytes()).unwrap_err();
    assert!(
        matches!(error, Error::UnsupportedSchema { ref schema, offset: 30, .. } if schema == "9.0.0"),
        "{error:?}"
    );
}

#[test]
fn strings_of_megabytes_are_no_names() {
    let long = "x".repeat(17 << 20);
    let named = A.replace("\"a\"", &format!("\"{long}\""));
    let shown = B.replace("\"External id\": 3", &format!("\"Kernel\": \"{long}\""));
    let trace = read_kineto(format!("[{named},{shown}]").as_bytes()).expect("a trace");
    assert_eq!(trace.notes.count(Note::LongString), 1, "one that is read, the other is stepped over");
    assert!(trace.names.iter().all(|(_, name)| name.len() < 100));
}
