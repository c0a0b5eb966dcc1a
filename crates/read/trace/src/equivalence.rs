//! Equality of results for every way in which the bytes are delivered.

use crate::byte_source::{Slice, Stream};
use crate::complete_bytes::CompleteBytes;
use crate::document::{self, Document, Kinds, Plan};
use crate::kineto::{Builder, Trace, read_pieces, split};
use crate::list::{End, read_list};
use crate::progress::Progress;
use crate::shared_window::Window;
use proptest::prelude::*;
use std::path::Path;

fn plan() -> Plan<'static> {
    Plan { path: Path::new("test"), wanted: Kinds { kineto: true, execution: true }, threads: 1 }
}

/// Returns the debug output: it has every column, and shows all NaNs alike.
fn shown<E: std::fmt::Debug>(result: &Result<Option<Document>, E>) -> String {
    format!("{result:?}")
}

fn whole(bytes: &[u8]) -> String {
    shown(&document::read(&mut Slice::new(bytes, &Progress::silent()), plan()))
}

fn in_blocks(bytes: &[u8], block: usize) -> String {
    shown(&document::read(&mut Stream::with_block(bytes, block), plan()))
}

fn in_windows(bytes: &[u8], block: usize) -> String {
    let progress = Progress::silent();
    shown(&document::read(
        &mut Window::with_block(CompleteBytes::from_bytes(bytes, &progress), 0, block),
        plan(),
    ))
}

fn serially(list: &[u8]) -> (End, Trace) {
    let mut builder = Builder::default();
    let progress = Progress::silent();
    let end = read_list(&mut Slice::new(list, &progress), 1, u64::MAX, &mut builder);
    (end.unwrap_or(End::Lost), builder.finish())
}

fn in_pieces(list: &[u8], count: usize) -> (End, Trace) {
    let mut builder = Builder::default();
    let progress = Progress::silent();
    let whole = CompleteBytes::from_bytes(list, &progress);
    let starts = split(whole, 1, count as u64).unwrap_or_else(|| vec![1]);
    let end = read_pieces(whole, &starts, &mut builder);
    (end.unwrap_or(End::Lost), builder.finish())
}

/// Returns one event of any kind, possibly malformed.
fn event() -> impl Strategy<Value = String> {
    let sound = (0..6u8, 0..5u8, 0..3u8, 0..1000u32).prop_map(|(kind, name, track, time)| {
        let (category, args) = [
            ("cpu_op", r#""External id": 4, "Input Dims": [[2, 3], [[1], []]], "Input type": ["float", "TensorList"]"#),
            ("cpu_op", r#""Collective name": "allreduce", "Group size": 2"#),
            ("cuda_runtime", r#""correlation": 9"#),
            ("kernel", r#""correlation": 9, "grid": [1, 2, 3], "Collective name": "send", "dtype": "Float""#),
            ("cuda_sync", r#""cuda_sync_kind": "Stream Sync", "stream": 7"#),
            ("mystery", ""),
        ][kind as usize];
        format!(
            r#"{{"ph": "X", "cat": "{category}", "name": "n{name}", "pid": 1, "tid": {track}, "ts": {time}.5, "dur": 2, "args": {{{args}}}}}"#
        )
    });
    let odd = prop::sample::select(vec![
        r#"{"ph": "s", "id": 7}"#,
        r#"{"name": "thread_name", "ph": "M", "pid": 1, "tid": 2, "args": {"name": "worker"}}"#,
        r#"{"ph": "X", "name": "unclosed", "args": {"a": 1}"#,
        r#"{"ph": "X", "name": "quote, "pid": 1}"#,
        r#"{"ph": "X", "cat": "cpu_op", "name": "{\"ph\": 1}", "pid": 1, "tid": "x", "ts": 1, "dur": 1}"#,
        "7",
        "}",
        "]",
        "@",
    ]);
    prop_oneof![8 => sound, 1 => odd.prop_map(str::to_owned)]
}

fn list() -> impl Strategy<Value = String> {
    let comma = prop_oneof![9 => Just(",\n  "), 1 => Just(" "), 1 => Just(",,")];
    proptest::collection::vec((event(), comma), 0..40).prop_map(|events| {
        let items: String = events.into_iter().flat_map(|(event, comma)| [event, comma.to_owned()]).collect();
        format!("[{}]", items.trim_end_matches([',', '\n', ' ']))
    })
}

proptest! {
    #[test]
    fn pieces_join_as_if_read_in_one_go(list in list(), count in 2usize..9) {
        prop_assert_eq!(in_pieces(list.as_bytes(), count), serially(list.as_bytes()));
    }

    #[test]
    fn blocks_do_not_show(list in list(), block in 1usize..200, cut in any::<prop::sample::Index>()) {
        let json = format!("{{\"schemaVersion\": 1, \"traceEvents\": {list}, \"distributedInfo\": {{\"rank\": 3}}}}");
        let cut = &json.as_bytes()[..cut.index(json.len())];
        for bytes in [json.as_bytes(), cut] {
            prop_assert_eq!(in_blocks(bytes, block), whole(bytes));
            prop_assert_eq!(in_windows(bytes, block), whole(bytes));
        }
    }

    #[test]
    fn blocks_do_not_show_in_execution_traces(
        block in 1usize..300,
        change in proptest::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let mut json = include_bytes!("../tests/data/et_1.1.0.json").to_vec();
        if let Some((place, byte)) = change {
            let place = place.index(json.len());
            json[place] = byte;
        }
        prop_assert_eq!(in_blocks(&json, block), whole(&json));
    }
}
