//! Conclusions about a step on several GPUs, in sentences.
use steptime_predict::format::{grouped, percent};

use super::{GpuReport, PointEntry, RemedyEntry};

/// Maximum number of GPUs named in one sentence.
const NAMED: usize = 6;

pub(super) fn all(gpus: &[GpuReport]) -> Vec<String> {
    let mut says = Vec::new();
    says.extend(host_bound(gpus, "at the recorded batch", |gpu| Some(&gpu.recorded)));
    says.extend(host_bound(gpus, "at the largest batch too", |gpu| gpu.largest.as_ref()));
    says.extend(undistinguished(gpus));
    says.extend(unknown(gpus));
    says.extend(gpus.iter().filter_map(too_large));
    says
}

/// Lists the GPUs on which the host alone bounds the step.
fn host_bound<'g>(
    gpus: &'g [GpuReport],
    which: &str,
    of: impl Fn(&'g GpuReport) -> Option<&'g PointEntry>,
) -> Option<String> {
    let bound: Vec<(&GpuReport, &PointEntry)> =
        gpus.iter().filter_map(|gpu| Some((gpu, of(gpu)?))).filter(|(_, point)| point.host_bound).collect();
    let most = bound.iter().map(|(_, point)| point.saved_by_gpu.max(0.0)).reduce(f64::max)?;
    Some(format!(
        "host-bound {which} on {}: a faster GPU brings nothing (a GPU twice as fast saves {} at most)",
        names(bound.iter().map(|(gpu, _)| gpu.name.as_str())),
        percent(most)
    ))
}

/// Lists the GPUs that cannot be distinguished from the first.
fn undistinguished(gpus: &[GpuReport]) -> Option<String> {
    let (first, others) = gpus.split_first()?;
    let ratio = |gpu: &GpuReport| {
        let point = gpu.largest.as_ref().unwrap_or(&gpu.recorded);
        if first.price.is_some() { point.cost_of_first } else { point.of_first }
    };
    let close: Vec<&str> = others
        .iter()
        .filter(|gpu| ratio(gpu).is_some_and(|ratio| !ratio.sure))
        .map(|gpu| gpu.name.as_str())
        .collect();
    (!close.is_empty()).then(|| {
        format!(
            "no clear difference between {}, the first, and {} (the interval of the ratio contains 1)",
            first.name,
            names(close)
        )
    })
}

/// Reasons why the largest batch is unknown, each once.
fn unknown(gpus: &[GpuReport]) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (gpu, reason) in gpus.iter().filter_map(|gpu| Some((gpu, gpu.largest_unknown.as_deref()?))) {
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, of)) => of.push(&gpu.name),
            None => reasons.push((reason, vec![&gpu.name])),
        }
    }
    let said = |(reason, of): (&str, Vec<&str>)| {
        if of.len() == gpus.len() {
            format!("the largest batch is not known: {reason}")
        } else {
            format!("the largest batch is not known on {}: {reason}", names(of))
        }
    };
    reasons.into_iter().map(said).collect()
}

/// Lists changes with which a step fits that does not fit as recorded.
fn too_large(gpu: &GpuReport) -> Option<String> {
    if gpu.recorded.fits != Some(false) {
        return None;
    }
    let needs = gpu.recorded.peak_mb.as_ref()?.total() / 1e3;
    let mut fitting: Vec<&RemedyEntry> = gpu.remedies.iter().filter(|remedy| remedy.fits).collect();
    let rate = |remedy: &RemedyEntry| remedy.samples_per_s.unwrap_or_default() / f64::from(remedy.gpus);
    fitting.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
    let batch = gpu.recorded.batch.map_or_else(String::new, |batch| format!(" of batch {}", grouped(batch)));
    let head = format!("{}: the step{batch} needs {needs:.1} of {:.1} GB", gpu.name, gpu.memory_mb / 1e3);
    if fitting.is_empty() {
        return Some(format!("{head}, and none of the tried changes makes it fit"));
    }
    let each: Vec<String> = fitting.into_iter().map(remedy).collect();
    Some(format!("{head}; it fits with {}", each.join("; ")))
}

/// Describes a remedy as `checkpoint (--checkpoint): 8.2 GB, 41.3 ms, 1,550 samples/s`.
fn remedy(remedy: &RemedyEntry) -> String {
    let mut facts = Vec::new();
    facts.extend(remedy.peak_mb.map(|mb| format!("{:.1} GB", mb / 1e3)));
    facts.extend(remedy.step_ms.map(|ms| format!("{ms:.1} ms")));
    facts.extend(remedy.samples_per_s.map(|rate| format!("{} samples/s", grouped(rate.round() as u64))));
    format!("{} ({}): {}", remedy.name, remedy.options, facts.join(", "))
}

/// Joins names; beyond `NAMED`, only their number is given.
fn names<'n>(all: impl IntoIterator<Item = &'n str>) -> String {
    let all: Vec<&str> = all.into_iter().collect();
    let more = all.len().saturating_sub(NAMED);
    let shown = all[..all.len() - more].join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}
