//! `DistributedDataParallel`: every rank has all parameters, and gradients are averaged during the backward pass.
//!
//! The rule inserts the ops that PyTorch 2.11 was recorded to run: a gradient is copied to its bucket as soon as it is ready, a full bucket is
//! averaged on a separate stream, and averages are copied back at the end of the backward pass. Before the forward pass, the first rank's buffers are
//! broadcast.

mod average;
mod buffers;
mod gradients;

use rustc_hash::FxHashSet;
use steptime_aten::{Dtype, ddp};
use steptime_step::{OpId, Patch, StepIr};

use self::average::Averages;
pub(crate) use self::buffers::copies_inputs;
pub(crate) use self::gradients::{Gradient, find as gradients_of};
use crate::counted::counted;
use crate::error::Error;
use crate::exchange::free_stream;
use crate::passes::Passes;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// Host time of the script before and after the forward pass, in units of a small op with autograd: medians of three recordings on one host of an
/// H200 (`benches/worlds.py`), which were 23 to 30 before and 18 to 29 after.
const SCRIPT: [f64; 2] = [25.0, 24.0];

/// One rank of a job in which all ranks have the same parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataParallel {
    /// Number of ranks.
    pub ranks: u32,
    /// Capacity of a bucket in bytes (`bucket_cap_mb`); `None` for PyTorch's default: 1 MiB for the first, then 25.
    pub bucket: Option<u64>,
    /// Whether gradients are views of the buckets (`gradient_as_bucket_view`): nothing is copied back.
    pub views: bool,
    /// Type in which gradients are sent, where it differs (`bf16_compress_hook`, `fp16_compress_hook`).
    pub send: Option<Dtype>,
}

impl DataParallel {
    /// One of `ranks` ranks, with PyTorch's defaults.
    #[must_use]
    pub fn new(ranks: u32) -> DataParallel {
        DataParallel { ranks, bucket: None, views: false, send: None }
    }

    /// Uncertainty of a hook that sends gradients: three models with one, on two hosts, took 1.04 to 1.48 times the predicted time.
    pub(crate) fn hook_doubt(&self) -> Option<(&'static str, f64)> {
        let text = "a compression hook runs in Python for each bucket, and its memory is not freed at once: measured steps took 1.04 to \
                    1.48 times the predicted time";
        self.send.map(|_| (text, 0.39))
    }

    /// The patch without the gradients of the functions `apart`.
    pub(crate) fn patch_without(
        &self,
        step: &StepIr,
        rule: &'static str,
        apart: &FxHashSet<OpId>,
    ) -> Result<Patch, Error> {
        if self.ranks == 0 {
            return Err(Error::Ranks);
        }
        let gradients = gradients::find(step, apart)?;
        let mut patch = Patch::new(rule);
        let buffers = buffers::share(step, &mut patch, self.ranks);
        let forward = Passes::find(step).forward;
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
        "the global batch is larger: adapt the learning rate"
    }

    fn doubt(&self) -> Option<(&'static str, f64)> {
        self.hook_doubt()
    }

    fn patches(&self, step: &StepIr, _: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        Ok(vec![self.patch_without(step, self.name(), &FxHashSet::default())?])
    }
}
