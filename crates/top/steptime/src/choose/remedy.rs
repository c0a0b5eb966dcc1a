//! Changes that make a step fit a GPU: each is tried by its rule and priced.

use steptime_cost::device::DeviceSpec;
use steptime_rewrite::{Accumulate, Bf16, Blocks, Checkpoint, ResizeBatch, Rule};
use steptime_step::Peak;
use steptime_trace::Nanos;

use super::batch::resized;
use crate::ask::WhatIfs;
use crate::error::Error;
use crate::job::{Keeps, World};
use crate::memory;
use crate::whatif::Outcome;

/// The most micro-batches that a batch is cut into.
const ROUNDS: u32 = 64;
/// The most GPUs that parameters are cut over.
const RANKS: u32 = 8;

/// A change that was tried.
#[derive(Debug, Clone)]
pub struct Remedy {
    /// What it is: `checkpoint`, `bf16`, `checkpoint + bf16`, `accumulate`, `fsdp`.
    pub name: &'static str,
    /// Its options on the command line.
    pub options: String,
    /// How many GPUs it takes.
    pub gpus: u32,
    /// The step with it, or why it does not apply.
    pub outcome: Result<Fit, String>,
}

/// A step with a change.
#[derive(Debug, Clone, Copy)]
pub struct Fit {
    /// From one step to the next.
    pub step: Nanos,
    /// Holds the step time with probability [`crate::INTERVAL_LEVEL`].
    pub interval: [Nanos; 2],
    /// Samples of the step, of all GPUs together, where they are known.
    pub samples: Option<u64>,
    /// The most device memory that its tensors need on a GPU.
    pub peak: Peak,
    /// Whether the GPU has room for that.
    pub fits: bool,
}

impl Remedy {
    /// The step with it, where it fits.
    #[must_use]
    pub fn fit(&self) -> Option<&Fit> {
        self.outcome.as_ref().ok().filter(|fit| fit.fits)
    }
}

/// All changes that save memory: of those with a number the least that fits, two together where neither does alone.
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
    /// A change of one GPU's step by rules.
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

    /// The batch in as few micro-batches as fit, one update for all.
    fn accumulated(&self) -> Remedy {
        let name = "accumulate";
        let refused = |reason: &str| Remedy {
            name,
            options: "--accumulate N".to_owned(),
            gpus: 1,
            outcome: Err(reason.to_owned()),
        };
        let Some(batch) = self.samples else {
            return refused("the batch is not recorded: say --recorded-batch N");
        };
        let mut last = refused("a batch of one sample has no parts");
        for rounds in (1..=ROUNDS.ilog2()).map(|power| 1u32 << power) {
            let Some(part) = parts(batch, rounds) else { break };
            let resize = resized(batch, part);
            // What one part needs by itself, all of them need at least.
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

    /// Parameters, gradients and states cut over as few GPUs as fit, each with as many samples as were recorded.
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
        let keeps = Keeps::Parts { blocks: Blocks::default(), reshard: true };
        let outcome =
            self.asked.in_world(&World { keeps, ..World::of(ranks) }).map_err(|error| reason(&error));
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

    /// Whether what a rule leaves may fit, or is refused, which is said where it is priced.
    fn may_fit(&self, rule: &ResizeBatch) -> bool {
        let Ok(edited) = self.asked.edited(&[rule]) else { return true };
        let peak = memory::of_changed(self.asked.recorded(), Some(self.spec), &edited.step, edited.flat());
        peak.is_none_or(|peak| self.has_room(&peak))
    }

    fn has_room(&self, peak: &Peak) -> bool {
        memory::fits(Some(peak), Some(self.spec)) == Some(true)
    }
}

/// What is said where the memory of a changed step is not known.
const UNKNOWN: &str = "what memory the step needs is not known";

/// The samples of a part, where a batch has so many equal ones.
fn parts(batch: u64, rounds: u32) -> Option<u64> {
    batch.is_multiple_of(u64::from(rounds)).then(|| batch / u64::from(rounds))
}

/// Why a change does not apply, without the input's name.
fn reason(error: &Error) -> String {
    match error {
        Error::Rewrite { source, .. } => source.source.to_string(),
        other => other.to_string(),
    }
}
