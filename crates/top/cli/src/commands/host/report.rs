//! Host profiles as text.

use std::path::Path;

use steptime_cost::HostProfile;
use steptime_cost::host::profile::RecordingSpeed;
use steptime_trace::Bytes;

use crate::report::format::{counted, grouped, times, us};
use crate::report::table::Columns;
use crate::report::width::{prose, wrapped};

/// Returns a fitted profile and its recordings as text.
pub fn fitted(profile: &HostProfile, path: &Path) -> String {
    let wrote = format!(
        "wrote {}: {}, host speed known to {}",
        crate::output::name(&path.display().to_string()),
        counted(profile.gaps.len(), "gap"),
        times(profile.spread.exp()),
    );
    format!("{}\n{}\n", recordings(&profile.recordings).text(), wrapped(&wrote, prose(), 2))
}

/// Returns a profile as text.
pub fn profile_text(profile: &HostProfile, name: &str) -> String {
    let head = format!(
        "{}: {} from {}, host speed known to {}",
        crate::output::name(name),
        counted(profile.gaps.len(), "gap"),
        counted(profile.recordings.len(), "recording"),
        times(profile.spread.exp()),
    );
    format!(
        "{}\n\n{}\n{}\n{}",
        wrapped(&head, prose(), 2),
        recordings(&profile.recordings).text(),
        constants(profile).text(),
        copies(profile),
    )
}

fn recordings(all: &[RecordingSpeed]) -> Columns {
    let mut columns = Columns::new(&["~recording", ">host slowness", "used"]);
    for recording in all {
        let (slowness, used) = match recording.excluded {
            true => ("-".to_owned(), "no: out of line"),
            false => (format!("{:.3}", recording.slowness), "yes"),
        };
        columns.row([recording.name.clone(), slowness, used.to_owned()]);
    }
    columns
}

fn constants(profile: &HostProfile) -> Columns {
    let mut columns = Columns::new(&["~constant", ">µs"]);
    let (profiler, coupling) = (&profile.profiler, &profile.coupling);
    for (name, value) in [
        ("the profiler's cost of an op", profiler.op_us),
        ("· of an annotation", profiler.annotation_us),
        ("· of a launching or waiting call", profiler.launch_us),
        ("· of any other call", profiler.call_us),
        ("· between steps", profiler.step_us),
        ("from a launch to its kernel's start", coupling.launch_to_start_us),
        ("between queued kernels", coupling.queue_gap_us),
        ("a synchronisation with nothing to wait for", coupling.sync_own_us),
        ("from the device's end to the return of a wait", coupling.sync_return_us),
        ("before a chunked copy starts", coupling.copy_lead_us),
    ] {
        columns.row([name.to_owned(), us(value)]);
    }
    columns.row(["launches a stream holds".to_owned(), grouped(u64::from(coupling.queue_depth))]);
    columns
}

/// Returns the times of staged copies at a few sizes.
fn copies(profile: &HostProfile) -> String {
    let cost = |bytes: u64| {
        let size = Bytes(bytes);
        profile.copies.staging(size).map(|copy| format!("{size} {}", copy.time))
    };
    let costs: Vec<String> = [1 << 10, 1 << 14, 1 << 18, 1 << 22].into_iter().filter_map(cost).collect();
    match costs.is_empty() {
        true => String::new(),
        false => wrapped(&format!("staging a pageable copy: {}", costs.join(", ")), prose(), 2) + "\n",
    }
}
