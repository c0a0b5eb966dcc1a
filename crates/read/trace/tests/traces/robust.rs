//! No input makes the reader panic, and cutting or changing a valid file leaves counts.

use proptest::prelude::*;
use steptime_trace::{Document, read, read_from};

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

const FIXTURES: [&str; 7] =
    ["old.json", "new.json", "amd.json", "graph.json", "nccl.json", "et_1.0.0.json", "et_1.1.1.json"];

/// Returns the debug output, which is equal for documents that are equal up to NaN.
fn shown(document: &Document) -> String {
    format!("{document:?}")
}

fn repairs(document: &Document) -> u64 {
    match document {
        Document::Kineto(trace) => trace.notes.repairs(),
        Document::Execution(trace) => trace.notes.repairs(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }

    #[test]
    fn any_json_like_text(text in r#"[\[\]{}:,"a-c0-9. \n\\-]{0,200}"#) {
        let _ = read(text.as_bytes());
        let _ = read(format!("{{\"traceEvents\": [{text}").as_bytes());
        let _ = read(format!("{{\"schema\": \"1.0.0\", \"nodes\": [{{\"id\": 1, \"inputs\": {text}").as_bytes());
    }

    #[test]
    fn cut_anywhere(which in 0..FIXTURES.len(), cut in any::<prop::sample::Index>()) {
        let bytes = fixture(FIXTURES[which]);
        let end = cut.index(bytes.trim_ascii_end().len());
        if let Ok(document) = read(&bytes[..end]) {
            prop_assert!(repairs(&document) > 0);
        }
    }

    #[test]
    fn changed_anywhere(
        which in 0..FIXTURES.len(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        removed in proptest::option::of((any::<prop::sample::Index>(), 0usize..300)),
    ) {
        let mut bytes = fixture(FIXTURES[which]);
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Some((place, count)) = removed {
            let start = place.index(bytes.len());
            bytes.drain(start..(start + count).min(bytes.len()));
        }
        match (read(&bytes), read_from(&bytes[..])) {
            (Ok(whole), Ok(streamed)) => prop_assert_eq!(shown(&whole), shown(&streamed)),
            (whole, streamed) => prop_assert_eq!(whole.is_ok(), streamed.is_ok()),
        }
    }
}

/// Invalid input must not be searched repeatedly: a lot of it takes no longer than valid input.
#[test]
fn hostile_input_takes_linear_time() {
    let patterns = [
        "{",
        "[",
        "\"",
        "{\"ph\":",
        "{\"ph\":\"X\",\"args\":{",
        "{1},",
        "7,",
        "{\"id\":1",
        "{\"name\":\"x\",",
        "@",
        "{\"id\":1,@},",
        "{\"ph\":\"X\"},@",
        "{\"args\":[{",
        "\\",
        "{\"a\":\"\\u00",
        "{\"attrs\":[{\"name\":",
        "}{",
        "{\"ph\":1]",
    ];
    for pattern in patterns {
        for head in ["[", "{\"traceEvents\": [", "{\"schema\": \"1.0.0\", \"nodes\": [", ""] {
            let text = format!("{head}{}", pattern.repeat((1 << 18) / pattern.len()));
            let start = std::time::Instant::now();
            let _ = read(text.as_bytes());
            let _ = read_from(text.as_bytes());
            let seconds = start.elapsed().as_secs_f64();
            assert!(seconds < 5.0, "{seconds} s for {head}{pattern}…");
        }
    }
}
