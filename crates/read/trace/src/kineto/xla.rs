//! Traces of XLA's profiler (`trace.json.gz` of JAX): Chrome's format, without categories.
//!
//! The kind of an event follows from its process and thread: streams of a GPU, `Stream #13(Compute)` of
//! `/device:GPU:0`, or threads of the host. Other lines of a GPU, such as `XLA Ops` and `Steps`, repeat the events of its streams.

use super::uncategorized::UncategorizedEvent;
use super::{
    Activity, ActivityKind, Builder, Call, CallLibrary, HostKind, HostOp, LaunchShape, Origin, Stream,
    Thread, ThreadId,
};
use crate::number;
use crate::other_profilers;
use crate::repairs::Note;
use rustc_hash::FxHashMap;

/// Prefix of the process name of a GPU.
const DEVICE: &str = "/device:GPU:";
/// Prefix of the thread name of a stream.
const STREAM: &str = "Stream #";

impl Builder {
    /// Adds the rows of events without a category if XLA's profiler wrote them; otherwise counts them.
    pub(super) fn place_uncategorized(&mut self) {
        let events = std::mem::take(&mut self.uncategorized);
        let devices: FxHashMap<i64, u32> =
            self.process_names.iter().filter_map(|(pid, name)| Some((*pid, device(name)?))).collect();
        if devices.is_empty() {
            events.iter().for_each(|event| self.trace.notes.add_category("", event.at));
            return;
        }
        self.trace.origin = Origin::Xla;
        let lines: FxHashMap<(i64, i64), String> = self.thread_names.iter().cloned().collect();
        for event in events {
            let line = lines.get(&(event.pid, event.tid)).map_or("", String::as_str);
            match devices.get(&event.pid) {
                None => self.place_on_host(&event),
                Some(&device) => match stream(line) {
                    Some(stream) => self.place_on_device(&event, Stream { device, stream }),
                    None => self.trace.notes.add_category(line, event.at),
                },
            }
        }
    }

    fn place_on_host(&mut self, event: &UncategorizedEvent) {
        let name = self.trace.names.get(event.name);
        if name.starts_with('$') {
            return self.trace.notes.add(Note::PythonFunctions, event.at);
        }
        let mark = event.step.map(other_profilers::step_name);
        let function = if event.correlation == 0 { name } else { function(name) }.to_owned();
        let thread = self.thread_id(Thread { pid: event.pid, tid: event.tid, name: None });
        match CallLibrary::from_function(&function) {
            Some(api) => {
                let name = self.trace.names.intern(&function);
                self.place_call(&UncategorizedEvent { name, ..*event }, api, thread);
            }
            None => {
                let kind = if mark.is_some() { HostKind::Annotation } else { HostKind::Op };
                let name = mark.map_or(event.name, |mark| self.trace.names.intern(&mark));
                let &UncategorizedEvent { start, dur, .. } = event;
                self.trace.ops.push(HostOp {
                    kind,
                    name,
                    thread,
                    start,
                    dur,
                    external_id: 0,
                    record_function_id: 0,
                    sequence: -1,
                    forward_thread: 0,
                });
            }
        }
    }

    fn place_call(&mut self, event: &UncategorizedEvent, api: CallLibrary, thread: ThreadId) {
        let &UncategorizedEvent { name, start, dur, correlation, .. } = event;
        self.trace.calls.push(Call { api, name, thread, start, dur, correlation, external_id: 0 });
    }

    fn place_on_device(&mut self, event: &UncategorizedEvent, stream: Stream) {
        let text = self.trace.names.get(event.name);
        let details = event.details.map_or("", |details| self.trace.names.get(details));
        let (copy, bytes, shape) = (
            copy(text, details),
            number_of(details, "size:").max(number_of(details, "num_bytes:")),
            shape(details),
        );
        let (kind, name) = match copy {
            Some((kind, name)) => (kind, self.trace.names.intern(name)),
            None => (ActivityKind::Kernel, event.name),
        };
        let (stream, launch) = (self.stream_id(stream), self.shape(shape));
        self.trace.activities.push(Activity {
            kind,
            name,
            stream,
            start: event.start,
            dur: event.dur,
            correlation: event.correlation,
            external_id: 0,
            bytes: if kind == ActivityKind::Kernel { 0 } else { bytes },
            launch,
            graph_node: event.graph_node,
        });
    }
}

/// Returns the function of a call: its name, without its graph (`cuGraphLaunch (CudaGraph:85)`). Newer versions name a call
/// after the activity that it launches: then a function by its kind.
fn function(name: &str) -> &str {
    let function = name.split(" (").next().unwrap_or(name);
    match () {
        () if CallLibrary::from_function(function).is_some() => function,
        () if name.starts_with("Memcpy") => "cuMemcpyAsync",
        () if name.starts_with("Memset") => "cuMemsetD8Async",
        () => "cuLaunchKernel",
    }
}

/// Returns the number of the GPU whose process has this name: `/device:GPU:0`, sometimes followed by its host.
fn device(name: &str) -> Option<u32> {
    leading_number(name.split_once(DEVICE)?.1)
}

/// Returns the number of the stream whose thread has this name.
fn stream(line: &str) -> Option<i64> {
    leading_number(line.strip_prefix(STREAM)?).map(i64::from)
}

fn leading_number(text: &str) -> Option<u32> {
    let digits = text.len() - text.trim_start_matches(|first: char| first.is_ascii_digit()).len();
    text[..digits].parse().ok()
}

/// Returns Kineto's name of a copy or a fill; `None` for a kernel.
fn copy(name: &str, details: &str) -> Option<(ActivityKind, &'static str)> {
    let stem = name.trim_start_matches("Memcpy");
    if name.starts_with("Memset") {
        return Some((ActivityKind::Memset, other_profilers::MEMSET));
    }
    if stem.len() == name.len() {
        return None;
    }
    let host = |side: &str| match () {
        () if details.contains(&format!("{side}:pageable")) => Some(false),
        () if details.contains(&format!("{side}:pinned")) || details.contains(&format!("{side}:host")) => {
            Some(true)
        }
        () => None,
    };
    Some((
        ActivityKind::Memcpy,
        match stem {
            "H2D" => other_profilers::to_device(host("kind_src")),
            "D2H" => other_profilers::to_host(host("kind_dst")),
            _ => other_profilers::WITHIN_DEVICE,
        },
    ))
}

/// Returns the number after a key in details such as `kind_src:pinned kind_dst:device size:1024`; 0 if the key is missing.
fn number_of(details: &str, key: &str) -> u64 {
    let value = details.split_whitespace().find_map(|field| field.strip_prefix(key));
    value.and_then(|digits| number::unsigned(digits.as_bytes())).unwrap_or(0)
}

/// Parses the launch shape of a kernel: `regs:16 static_shared:0 dynamic_shared:0 grid:1,1,1 block:32,1,1 occ_pct:50`.
fn shape(details: &str) -> LaunchShape {
    let triple = |key: &str| {
        let value = details.split_whitespace().find_map(|field| field.strip_prefix(key)).unwrap_or_default();
        let mut numbers = value.split(',').map(|digits| digits.parse().unwrap_or(0));
        [(); 3].map(|()| numbers.next().unwrap_or(0))
    };
    let small = |key: &str| u32::try_from(number_of(details, key)).unwrap_or(u32::MAX);
    LaunchShape {
        grid: triple("grid:"),
        block: triple("block:"),
        registers: small("regs:"),
        shared_memory: small("static_shared:").saturating_add(small("dynamic_shared:")),
    }
}
