//! Assumptions that nothing in the input states. Intervals account for them, but the reader has to know them.

use steptime_aten::kernel::Kernel;
use steptime_launch::Indices;
use steptime_predict::{
    Prediction, PricedLaunches, QueryEcho, Step,
    format::{counted, grouped, percent, times},
    pricing::Launch,
    uncertainty,
};
use steptime_trace::Nanos;

use super::{DoubtEntry, factor};

/// All assumptions about a step.
pub(super) fn all(
    asked: &QueryEcho,
    step: &Step,
    priced: Option<&Prediction>,
    shown: Option<&Prediction>,
) -> Vec<DoubtEntry> {
    let untimed = step.arguments.is_derived();
    let priced = priced.and_then(|found| found.device.as_ref());
    [
        host_doubt(asked),
        shown.filter(|_| untimed).and_then(interval_doubt),
        kernels_doubt(asked, priced, untimed),
        priced.and_then(indices_doubt),
        batch_doubt(step),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A step without host times is priced for a host that is a given factor slower than a reference machine.
pub(crate) fn host_doubt(asked: &QueryEcho) -> Option<DoubtEntry> {
    let than = asked.host_slower_than.as_ref().filter(|_| asked.host_assumed)?;
    let known = asked.host_half_width.and_then(factor);
    let width = known.map_or_else(String::new, |factor| format!(" ({})", times(factor)));
    let text = format!(
        "no host times in an execution trace: a typical host is assumed, {} times as slow as {}{width}; `python -m steptime.probe -o \
         my-host.toml` measures yours, for --host my-host.toml",
        than.times, than.machine
    );
    Some(DoubtEntry { factor: known, ..DoubtEntry::note("host", text) })
}

/// No kernel of the step was timed, or none on the given GPU.
fn kernels_doubt(asked: &QueryEcho, priced: Option<&PricedLaunches>, untimed: bool) -> Option<DoubtEntry> {
    let device = asked.device.as_ref()?;
    let models = if device.fitted {
        format!("models of {}", device.name)
    } else {
        "its specification and models of another GPU".to_owned()
    };
    let known = priced.and_then(|priced| factor(priced.prices.spread.ln_1p()));
    let width = known.map_or_else(String::new, |factor| format!(" ({} all together)", times(factor)));
    let text = match (untimed, device.fitted) {
        (false, true) => return None,
        (false, false) => {
            format!("no kernel was measured on {}: kernel times come from {models}{width}", device.name)
        }
        (true, _) => {
            let measured = if device.fitted {
                String::new()
            } else {
                format!(", and no kernel was measured on {}", device.name)
            };
            format!("no kernel of this step was timed{measured}: kernel times come from {models}{width}")
        }
    };
    Some(DoubtEntry { factor: known, ..DoubtEntry::note("kernels", text) })
}

/// No measurement checks the answer: its interval comes from assumptions.
fn interval_doubt(found: &Prediction) -> Option<DoubtEntry> {
    let [low, high] = found.interval.map(|end| end.0 as f64);
    let step = found.step.0 as f64;
    let known = factor((high / step).max(step / low).ln()).filter(|factor| factor.is_finite())?;
    let text = format!("no step of this model was timed: nothing checks the answer ({})", times(known));
    Some(DoubtEntry { factor: Some(known), ..DoubtEntry::note("interval", text) })
}

/// Lookups whose accessed rows are unknown.
fn indices_doubt(priced: &PricedLaunches) -> Option<DoubtEntry> {
    let (mut all, mut time, mut count) = (Nanos::ZERO, Nanos::ZERO, 0);
    for (launch, estimate) in priced.launches.iter().zip(&priced.prices.estimates) {
        all += estimate.time;
        if depends_on_rows(launch) && launch.context.indices == Indices::Unknown {
            time += estimate.time;
            count += 1;
        }
    }
    let share = time.0 as f64 / all.0.max(1) as f64;
    (share > uncertainty().notes.lookups).then(|| {
        let text = format!(
            "the indices of {} ({} of device time) are assumed to be uniform; skewed or padded indices change the time (--indices \
             zipf:1.05, or a file)",
            counted(count, "lookup kernel"),
            percent(share)
        );
        DoubtEntry::note("indices", text)
    })
}

/// Whether the time of a kernel depends on which rows are accessed.
fn depends_on_rows(launch: &Launch) -> bool {
    matches!(
        launch.call.kernel,
        Kernel::EmbeddingBag(_)
            | Kernel::TableBatched(_)
            | Kernel::FusedBags(_)
            | Kernel::Gather(_)
            | Kernel::TiledGather(_)
            | Kernel::Scatter(_)
    )
}

/// A batch that the recorder took from the shape of a tensor.
fn batch_doubt(step: &Step) -> Option<DoubtEntry> {
    let batch = step.batch().filter(|_| step.meta.as_ref().is_some_and(|meta| meta.batch_guessed))?;
    let text = format!(
        "the batch of {} is a guess of the recorder, from the first size of the first tensor: give the batch to the recorder (batch=N), or \
         to a change (--recorded-batch N)",
        grouped(batch)
    );
    Some(DoubtEntry::note("batch", text))
}
