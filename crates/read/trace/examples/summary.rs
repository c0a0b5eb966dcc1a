//! Opens a path and prints a summary of its recordings.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use steptime_trace::{Input, open};

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: summary PATH");
        return ExitCode::from(2);
    };
    let start = Instant::now();
    match open(Path::new(&path)) {
        Ok(input) => print(&input),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    println!("read in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    ExitCode::SUCCESS
}

fn print(input: &Input) {
    for recording in &input.recordings {
        let rank = recording.rank.map(|rank| format!(", rank {rank}")).unwrap_or_default();
        println!("{}{rank}", recording.name);
        for (role, trace) in [("timing", &recording.timing), ("shaped", &recording.shaped)] {
            let Some(trace) = trace else { continue };
            println!(
                "  {role}: {} ops, {} calls, {} activities, {} syncs, {} gpu annotations, {} names, {} threads, {} streams, {} shapes, {} with inputs, {} collectives",
                trace.ops.len(),
                trace.calls.len(),
                trace.activities.len(),
                trace.syncs.len(),
                trace.gpu_annotations.len(),
                trace.names.len(),
                trace.threads.len(),
                trace.streams.len(),
                trace.activities.shapes.len(),
                trace.inputs.len(),
                trace.collectives.len(),
            );
            trace.notes.iter().for_each(|(message, count)| println!("    {count} {message}"));
        }
        if let Some(trace) = &recording.execution {
            let tensors = trace.values.tensors().len();
            println!("  execution: schema {}, {} nodes, {tensors} tensors", trace.schema, trace.nodes.len());
            trace.notes.iter().for_each(|(message, count)| println!("    {count} {message}"));
        }
    }
    input.ignored.iter().for_each(|path| println!("ignored {}", path.display()));
}
