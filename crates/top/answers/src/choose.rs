//! Comparison of GPUs, and the largest batch that fits each.

mod conclusions;
mod merged_doubts;

use serde::Serialize;
use steptime_predict::{
    GpuChoice, GpuPoints, HostSlowdown, INTERVAL_LEVEL, LargestBatch, OperatingPoint, Prices, Ratio, Remedy,
    Step,
};
use steptime_trace::Nanos;

use super::doubts::{Caveats, DoubtEntry};
use super::shared::{PeakMemory, SCHEMA, ms, samples_per_s};

/// A step on several GPUs, best first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChooseReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `choose`.
    pub command: &'static str,
    /// The input, as given.
    pub input: String,
    /// The recording: its folder or file.
    pub name: String,
    /// Source of the host's times: `own`, `default`, or a file.
    pub host: String,
    /// Assumed slowness of the host, where one factor gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_slower_than: Option<HostSlowdown>,
    /// The state of the process: `profiled` or `fresh`.
    pub process: &'static str,
    /// Samples of the recorded step, where known.
    pub batch: Option<u64>,
    /// Order of the GPUs: by `cost` where prices are given, else by `samples_per_s`, each at the largest batch that fits. GPUs on which no batch fits
    /// are last.
    pub ranked_by: &'static str,
    /// The probability of the intervals.
    pub interval_level: f64,
    /// Conclusions, in sentences.
    pub says: Vec<String>,
    /// The GPUs, best first.
    pub gpus: Vec<GpuReport>,
    /// Assumptions and doubts, worst first. A doubt of one kind on several GPUs appears once.
    pub doubts: Vec<DoubtEntry>,
    /// Title of the step. Not in the JSON.
    #[serde(skip)]
    pub title: String,
}

/// A step on one GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GpuReport {
    /// The GPU, as given.
    pub name: String,
    /// The device's own name.
    pub device: String,
    /// Its memory, megabytes (10^6 bytes).
    pub memory_mb: f64,
    /// Its price per GPU-hour, where one is given.
    pub price: Option<f64>,
    /// Prediction at the recorded batch.
    pub recorded: PointEntry,
    /// Prediction at the largest batch that fits with a tenth of the memory left free; `None` where unknown.
    pub largest: Option<PointEntry>,
    /// Reason why `largest` is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_unknown: Option<String>,
    /// Changes that were tried to make the recorded batch fit.
    pub remedies: Vec<RemedyEntry>,
    /// Assumptions of and doubts about this GPU's prediction, worst first.
    pub doubts: Vec<DoubtEntry>,
}

/// A step at one batch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PointEntry {
    /// Samples of the step, where known.
    pub batch: Option<u64>,
    /// Time from one step to the next, milliseconds.
    pub step_ms: f64,
    /// Interval of the step time at the answer's level, milliseconds.
    pub interval_ms: [f64; 2],
    /// Device active time of the step, milliseconds.
    pub active_ms: f64,
    /// Samples per second, where the batch is known.
    pub samples_per_s: Option<f64>,
    /// Peak device memory of the step's tensors, megabytes by kind.
    pub peak_mb: Option<PeakMemory>,
    /// Whether the GPU has room for that with a tenth of its memory left free; `None` where either is unknown.
    pub fits: Option<bool>,
    /// Bottleneck: `host`, `memory`, `arithmetic`, `link`, or `launch` where kernels are too small to be shorter.
    pub bound: &'static str,
    /// Share of the step that a GPU twice as fast would save.
    pub saved_by_gpu: f64,
    /// Share of the step that a host twice as fast would save.
    pub saved_by_host: f64,
    /// Whether the host alone bounds the step, so that a faster GPU would not shorten it.
    pub host_bound: bool,
    /// Cost of 10^9 samples, where a price is given.
    pub cost: Option<f64>,
    /// Samples per second relative to the first GPU at the same kind of batch; `None` where either is unknown.
    pub of_first: Option<RatioEntry>,
    /// Cost relative to the first GPU, where both have a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_of_first: Option<RatioEntry>,
}

/// A ratio of two GPUs. Errors that both share cancel.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RatioEntry {
    /// The ratio.
    pub times: f64,
    /// Its interval at the answer's level.
    pub interval: [f64; 2],
    /// Whether the interval leaves no doubt which of the two is better.
    pub sure: bool,
}

/// A change that was tried to make a step fit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RemedyEntry {
    /// Its name: `checkpoint`, `bf16`, `checkpoint + bf16`, `accumulate`, `fsdp`.
    pub name: &'static str,
    /// Its command-line options: of `predict` where it needs several GPUs, else of `whatif`.
    pub options: String,
    /// Number of GPUs that it needs.
    pub gpus: u32,
    /// Whether the step fits with it.
    pub fits: bool,
    /// Reason why it does not apply.
    pub reason: Option<String>,
    /// Time from one step to the next, milliseconds.
    pub step_ms: Option<f64>,
    /// Interval of the step time at the answer's level, milliseconds.
    pub interval_ms: Option<[f64; 2]>,
    /// Samples per second of all GPUs together.
    pub samples_per_s: Option<f64>,
    /// Peak device memory of tensors on one GPU, megabytes.
    pub peak_mb: Option<f64>,
    /// Cost of 10^9 samples, where a price is given.
    pub cost: Option<f64>,
}

impl ChooseReport {
    /// Makes the answer. `step` is the step that was compared.
    #[must_use]
    pub fn from_choice(choice: &GpuChoice, step: &Step, prices: &Prices) -> ChooseReport {
        let by_cost = !prices.is_empty();
        let mut order: Vec<&GpuPoints> = choice.gpus.iter().collect();
        order.sort_by(|a, b| place(a, prices).total_cmp(&place(b, prices)));
        let first = order.first().copied();
        let gpus: Vec<GpuReport> =
            order.iter().filter_map(|gpu| Some(chosen(gpu, first?, step, prices))).collect();
        let asked = choice.gpus.first().map(|gpu| &gpu.prediction.asked);
        ChooseReport {
            schema: SCHEMA,
            command: "choose",
            input: step.input.display().to_string(),
            name: step.name.clone(),
            host: asked.map_or_else(String::new, |asked| asked.host.clone()),
            host_slower_than: asked.and_then(|asked| asked.host_slower_than.clone()),
            process: asked.map_or("fresh", |asked| super::predict::process(asked.process)),
            batch: choice.batch,
            ranked_by: if by_cost { "cost" } else { "samples_per_s" },
            interval_level: INTERVAL_LEVEL,
            says: conclusions::all(&gpus),
            doubts: merged_doubts::all(&gpus),
            gpus,
            title: step.title(),
        }
    }
}

/// Sort key of a GPU: less is better.
fn place(gpu: &GpuPoints, prices: &Prices) -> f64 {
    let Some(best) = gpu.best().filter(|best| best.is_known()) else { return f64::MAX };
    // Where samples are unknown, all steps have the same number.
    let each = best.rate().map_or(best.step.0 as f64 / 1e9, f64::recip);
    match prices.per_hour(&gpu.name) {
        Some(price) => each * price,
        None if prices.is_empty() => each,
        None => f64::MAX / 2.0,
    }
}

fn chosen(gpu: &GpuPoints, first: &GpuPoints, step: &Step, prices: &Prices) -> GpuReport {
    let price = prices.per_hour(&gpu.name);
    let of_first = |own: &OperatingPoint, of: fn(&GpuPoints) -> Option<&OperatingPoint>| {
        let ratio = of(first).and_then(|first| own.ratio_to(first));
        // A GPU's ratio to itself is known exactly.
        ratio.map(
            |ratio| if std::ptr::eq(gpu, first) { Ratio { times: 1.0, interval: [1.0; 2] } } else { ratio },
        )
    };
    let said = |point: &OperatingPoint, ratio: Option<Ratio>| PointEntry {
        cost_of_first: ratio.zip(price).zip(prices.per_hour(&first.name)).map(|((ratio, own), first)| {
            let times = |rate: f64| own / first / rate;
            let [low, high] = ratio.interval;
            RatioEntry { times: times(ratio.times), interval: [times(high), times(low)], sure: false }
                .judged()
        }),
        ..PointEntry::new(point, ratio, price)
    };
    let recorded = said(&gpu.recorded, of_first(&gpu.recorded, |gpu| Some(&gpu.recorded)));
    let (largest, largest_unknown) = match &gpu.largest {
        Ok(LargestBatch::At(point)) => (Some(said(point, of_first(point, largest_of))), None),
        Ok(LargestBatch::Nothing { needs }) => {
            (None, Some(format!("not even one sample fits: it needs {:.1} GB", *needs as f64 / 1e9)))
        }
        Err(reason) => (None, Some(reason.clone())),
    };
    GpuReport {
        name: gpu.name.clone(),
        device: gpu.spec.name.clone(),
        memory_mb: gpu.spec.memory.bytes as f64 / 1e6,
        price,
        recorded,
        largest,
        largest_unknown,
        remedies: gpu.remedies.iter().map(|remedy| RemedyEntry::new(remedy, price)).collect(),
        doubts: Caveats::from_prediction(&gpu.prediction, step).doubts,
    }
}

fn largest_of(gpu: &GpuPoints) -> Option<&OperatingPoint> {
    match &gpu.largest {
        Ok(LargestBatch::At(point)) => Some(point),
        _ => None,
    }
}

/// Cost of 10^9 samples at `rate` samples per second on `gpus` GPUs.
fn cost(price: Option<f64>, gpus: u32, rate: Option<f64>) -> Option<f64> {
    let rate = rate.filter(|rate| *rate > 0.0)?;
    Some(price? * f64::from(gpus) * 1e9 / rate / 3600.0)
}

impl PointEntry {
    fn new(point: &OperatingPoint, ratio: Option<Ratio>, price: Option<f64>) -> PointEntry {
        let rate = samples_per_s(point.samples, point.step);
        PointEntry {
            batch: point.samples,
            step_ms: ms(point.step),
            interval_ms: point.interval.map(ms),
            active_ms: ms(point.active),
            samples_per_s: rate,
            peak_mb: point.peak.as_ref().map(PeakMemory::new),
            fits: point.fits,
            bound: point.limit.name(),
            saved_by_gpu: point.saved_by_gpu,
            saved_by_host: point.saved_by_host,
            host_bound: point.is_host_bound(),
            cost: cost(price, 1, rate),
            of_first: ratio.map(|ratio| RatioEntry {
                times: ratio.times,
                interval: ratio.interval,
                sure: ratio.is_sure(),
            }),
            cost_of_first: None,
        }
    }
}

impl RatioEntry {
    /// Sets whether the ratio is sure.
    fn judged(self) -> RatioEntry {
        RatioEntry { sure: Ratio { times: self.times, interval: self.interval }.is_sure(), ..self }
    }
}

impl RemedyEntry {
    /// Describes a change that was tried on a GPU of the given price.
    pub(super) fn new(remedy: &Remedy, price: Option<f64>) -> RemedyEntry {
        let fit = remedy.outcome.as_ref().ok();
        let rate = fit.and_then(|fit| samples_per_s(fit.samples, fit.step));
        let time = |time: Nanos| ms(time);
        RemedyEntry {
            name: remedy.name,
            options: remedy.options.clone(),
            gpus: remedy.gpus,
            fits: remedy.fit().is_some(),
            reason: remedy.outcome.as_ref().err().cloned(),
            step_ms: fit.map(|fit| time(fit.step)),
            interval_ms: fit.map(|fit| fit.interval.map(ms)),
            samples_per_s: rate,
            peak_mb: fit.map(|fit| fit.peak.total() as f64 / 1e6),
            cost: cost(price, remedy.gpus, rate),
        }
    }
}
