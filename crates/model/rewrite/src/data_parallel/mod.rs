//! `DistributedDataParallel`: every rank has all parameters, and gradients are averaged while the backward pass goes on.
//!
//! What PyTorch 2.11 was recorded to run is put in: a gradient goes to its bucket as soon as it is there, a full bucket is averaged on a
//! stream of its own, and at the end of the backward pass averages are copied back. Before the forward pass the first rank's buffers
//! go to all.

mod average;
mod buffers;
mod gradients;

use rustc_hash::FxHashSet;
use steptime_aten::{Dtype, ddp};
use steptime_step::{OpId, Patch, Step};

use self::average::Averages;
pub(crate) use self::buffers::copies_inputs;
pub(crate) use self::gradients::{Gradient, find as gradients_of};
use crate::error::Error;
use crate::exchange::free_stream;
use crate::passes::Passes;
use crate::rule::{Facts, Rule};
use crate::stage::Stage;
use crate::words::counted;

/// Host time of the script around the forward pass, before and after it, in times of a small op with autograd: medians of three
/// recordings on one host of an H200 (`benches/worlds.py`) were 23 to 30 before, 18 to 29 after.
const SCRIPT: [f64; 2] = [25.0, 24.0];

/// One of so many ranks that all have the same parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataParallel {
    /// How many ranks.
    pub ranks: u32,
    /// Bytes from which on a bucket is full (`bucket_cap_mb`); `None` for PyTorch's: 1 MiB the first, then 25.
    pub bucket: Option<u64>,
    /// Whether gradients are views of the buckets (`gradient_as_bucket_view`): nothing is copied back.
    pub views: bool,
    /// The type in which gradients are sent, where it is another (`bf16_compress_hook`, `fp16_compress_hook`).
    pub send: Option<Dtype>,
}

impl DataParallel {
    /// One of so many ranks, as PyTorch does without being told more.
    #[must_use]
    pub fn of(ranks: u32) -> DataParallel {
        DataParallel { ranks, bucket: None, views: false, send: None }
    }

    /// What is not known of a hook that sends gradients: three models with one, on two hosts, took 1.04 to 1.48 times as long as this tells.
    pub(crate) fn hook_doubt(&self) -> Option<(&'static str, f64)> {
        let text = "a hook that sends gradients in another type is run by Python as each bucket is averaged, and its memory is not free at once: \
                    steps were measured to take 1.04 to 1.48 times as long as this tells";
        self.send.map(|_| (text, 0.39))
    }

    /// The patches, where some gradients are not averaged: those of the functions `apart`.
    pub(crate) fn of_others(
        &self,
        step: &Step,
        rule: &'static str,
        apart: &FxHashSet<OpId>,
    ) -> Result<Patch, Error> {
        if self.ranks == 0 {
            return Err(Error::Ranks);
        }
        let gradients = gradients::find(step, apart)?;
        let mut patch = Patch::new(rule);
        let buffers = buffers::share(step, &mut patch, self.ranks);
        let forward = Passes::of(step).forward;
        for (op, more) in [forward.iter().find(|&&op| !buffers::copies_inputs(step, op)), forward.last()]
            .into_iter()
            .zip(SCRIPT)
        {
            patch.script.extend(op.map(|&op| (op, more)));
        }
        let stream = free_stream(step);
        let mut averages = Averages::new(step, &mut patch, *self, stream);
        let mut buckets: Vec<Vec<Gradient>> = Vec::new();
        for dtype in gradients::dtypes(&gradients) {
            let own: Vec<Gradient> = gradients.iter().filter(|one| one.dtype == dtype).copied().collect();
            let bytes = own.iter().map(|one| one.elements as u64 * dtype.size());
            let dealt = ddp::buckets(bytes, self.bucket).into_iter();
            buckets
                .extend(dealt.map(|places| places.into_iter().map(|at| own[at]).collect::<Vec<Gradient>>()));
        }
        buckets.iter().for_each(|bucket| averages.bucket(bucket));
        averages.back();
        let bytes: u64 = gradients.iter().map(|one| one.elements as u64 * one.dtype.size()).sum();
        let shared = match buffers {
            0 => String::new(),
            count => format!("; {} come from the first rank", counted(count, "buffer", "buffers")),
        };
        patch.why = format!(
            "{} ({:.1} MB) averaged over {} ranks in {}{}{shared}",
            counted(gradients.len(), "gradient", "gradients"),
            bytes as f64 / 1e6,
            self.ranks,
            counted(buckets.len(), "bucket", "buckets"),
            self.send.map_or_else(String::new, |dtype| format!(", sent as {}", dtype.name())),
        );
        Ok(patch)
    }
}

impl Rule for DataParallel {
    fn name(&self) -> &'static str {
        "data-parallel"
    }

    fn stage(&self) -> Stage {
        Stage::Averages
    }

    fn effort(&self) -> &'static str {
        "small: torchrun, DistributedDataParallel around the model, a DistributedSampler"
    }

    fn risk(&self) -> &'static str {
        "the batch of all ranks together is larger: the learning rate must follow"
    }

    fn doubt(&self) -> Option<(&'static str, f64)> {
        self.hook_doubt()
    }

    fn patches(&self, step: &Step, _: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        Ok(vec![self.of_others(step, self.name(), &FxHashSet::default())?])
    }
}
