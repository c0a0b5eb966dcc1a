//! Changes that may make a step fit a GPU: each is tried by its rule and priced.

use steptime_cost::device::DeviceSpec;
use steptime_rewrite::{Accumulate, Bf16, Blocks, Checkpoint, ResizeBatch, Rule};
use steptime_step::Peak;
use steptime_trace::Nanos;

use super::batch::resized;
use crate::error::Error;
use crate::job::{KeptState, World};
use crate::memory;
use crate::query::WhatIfs;
use crate::whatif::Outcome;

/// Maximum number of micro-batches.
const ROUNDS: u32 = 64;
/// Maximum number of GPUs for sharded parameters.
const RANKS: u32 = 8;

/// A change that was tried.
#[derive(Debug, Clone)]
pub struct Remedy {
    /// Its name: `checkpoint`, `bf16`, `checkpoint + bf16`, `accumulate`, `fsdp`.
    pub name: &'static str,
    /// Its command-line options.
    pub options: String,
    /// Number of GPUs that it needs.
    pub gpus: u32,
    /// The changed step, or the reason why the change does not apply.
    pub outcome: Result<Fit, String>,
}

/// A step with a change.
#[derive(Debug, Clone, Copy)]
pub struct Fit {
    /// Time from one step to the next.
    pub step: Nanos,
    /// Interval of the step time with probability [`crate::INTERVAL_LEVEL`].
    pub interval: [Nanos; 2],
    /// Samples of the step of all GPUs together, where known.
    pub samples: Option<u64>,
    /// Peak device memory of its tensors on one GPU.
    pub peak: Peak,
    /// Whether the GPU has room for that.
    pub fits: bool,
}

impl Remedy {
    /// The changed step, where it fits.
    #[must_use]
    pub fn fit(&self) -> Option<&Fit> {
        self.outcome.as_ref().ok().filter(|fit| fit.fits)
    }
}

/// Tries all changes that save memory. Of those with a number, the smallest that fits is kept; two are combined where neither fits alone.
pub(crate) fn all(asked: &WhatIfs<'_>, spec: &DeviceSpec, samples: Option<u64>) -> Vec<Remedy> {
    let trial = Trial { asked, spec, samples };
    let checkpoint = Checkpoint::default();
    let mut found = vec![
        trial.alone("checkpoint", "--checkpoint", &[&checkpoint]),
        trial.alone("bf16", "--dtype bf16", &[&Bf16]),
    ];
    if found.iter().all(|remedy| remedy.fit().is_none() && remedy.outcome.is_ok()) {
        found.push(trial.alone("checkpoint + bf16", "--dtype bf16 --checkpoint", &[&Bf16, &checkpoint]));
    }
    found.push(trial.accumulated());
    found.push(trial.sharded());
    found
}

/// A step on a GPU that it does not fit.
struct Trial<'t, 'q> {
    asked: &'t WhatIfs<'q>,
    spec: &'t DeviceSpec,
    samples: Option<u64>,
}

impl Trial<'_, '_> {
    /// Tries rules on one GPU's step.
    fn alone(&self, name: &'static str, options: &str, rules: &[&dyn Rule]) -> Remedy {
        let samples = rules.iter().fold(self.samples, |samples, rule| rule.samples(samples));
        let outcome = self.outcome(rules).and_then(|outcome| {
            let peak = outcome.peak.ok_or(UNKNOWN)?;
            Ok(Fit {
                step: outcome.step,
                interval: outcome.interval,
                samples,
                fits: self.has_room(&peak),
                peak,
            })
        });
        Remedy { name, options: options.to_owned(), gpus: 1, outcome }
    }

    /// Splits the batch into as few micro-batches as fit, with one update for all.
    fn accumulated(&self) -> Remedy {
        let name = "accumulate";
        let refused = |reason: &str| Remedy {
            name,
            options: "--accumulate N".to_owned(),
            gpus: 1,
            outcome: Err(reason.to_owned()),
        };
        let Some(batch) = self.samples else {
            return refused("the batch is not recorded: give --recorded-batch N");
        };
        let mut last = refused("a batch of one sample cannot be split");
        for rounds in (1..=ROUNDS.ilog2()).map(|power| 1u32 << power) {
            let Some(part) = parts(batch, rounds) else { break };
            let resize = resized(batch, part);
            // All parts together need at least the memory of one part.
            if !self.may_fit(&resize) && rounds < ROUNDS {
                continue;
            }
            let options = format!("--batch {part} --accumulate {rounds}");
            last = self.alone(name, &options, &[&resize, &Accumulate { batches: rounds }]);
            if last.fit().is_some() || last.outcome.is_err() {
                break;
            }
        }
        last
    }

    /// Shards parameters, gradients and optimizer states over as few GPUs as fit, each with the recorded number of samples.
    fn sharded(&self) -> Remedy {
        let mut last = None;
        for ranks in (1..=RANKS.ilog2()).map(|power| 1u32 << power) {
            let remedy = self.on_ranks(ranks);
            let done = remedy.fit().is_some() || remedy.outcome.is_err();
            last = Some(remedy);
            if done {
                break;
            }
        }
        last.unwrap_or_else(|| self.on_ranks(RANKS))
    }

    fn on_ranks(&self, ranks: u32) -> Remedy {
        let keeps = KeptState::Parts { blocks: Blocks::default(), reshard: true };
        let outcome =
            self.asked.in_world(&World { keeps, ..World::new(ranks) }).map_err(|error| reason(&error));
        let outcome = outcome.and_then(|spread| {
            let peaks = spread.predicted.ranks.iter().filter_map(|rank| rank.peak);
            let peak = peaks.max_by_key(Peak::total).ok_or(UNKNOWN)?;
            Ok(Fit {
                step: spread.predicted.step,
                interval: spread.predicted.interval,
                samples: self.samples.map(|samples| samples * u64::from(ranks)),
                fits: self.has_room(&peak),
                peak,
            })
        });
        Remedy { name: "fsdp", options: format!("--world {ranks} --parallel fsdp"), gpus: ranks, outcome }
    }

    fn outcome(&self, rules: &[&dyn Rule]) -> Result<Outcome, String> {
        let edited = self.asked.edited(rules).map_err(|error| reason(&error))?;
        let outcomes = self.asked.outcomes(&edited, &[None]).map_err(|error| reason(&error))?;
        let only = outcomes.into_iter().next().ok_or(UNKNOWN)?;
        only.map_err(|error| reason(&error))
    }

    /// Whether the resized step may fit; also true where the rule is refused, which is reported where it is priced.
    fn may_fit(&self, rule: &ResizeBatch) -> bool {
        let Ok(edited) = self.asked.edited(&[rule]) else { return true };
        let peak =
            memory::peak_of_changed(self.asked.recorded(), Some(self.spec), &edited.step, edited.flat());
        peak.is_none_or(|peak| self.has_room(&peak))
    }

    fn has_room(&self, peak: &Peak) -> bool {
        memory::fits(Some(peak), Some(self.spec)) == Some(true)
    }
}

/// Reason where the memory of a changed step is unknown.
const UNKNOWN: &str = "the memory of the step is not known";

/// Samples of each of `rounds` equal parts, where the batch can be divided so.
fn parts(batch: u64, rounds: u32) -> Option<u64> {
    batch.is_multiple_of(u64::from(rounds)).then(|| batch / u64::from(rounds))
}

/// Reason why a change does not apply, without the input's name.
fn reason(error: &Error) -> String {
    match error {
        Error::Rewrite { source, .. } => source.source.to_string(),
        other => other.to_string(),
    }
}
