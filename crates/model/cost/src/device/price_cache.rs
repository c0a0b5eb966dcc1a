//! Cache of prices, for pricing many nearly equal steps one after another.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::{PoisonError, RwLock};

use rustc_hash::FxHashMap;
use steptime_aten::KernelCall;

use super::context::Context;
use super::estimate::Estimate;
use super::price::{Key, ModelChoice};
use super::profile::DeviceProfile;

/// Largest number of cached prices; if there are more, all are dropped.
const MOST: usize = 1 << 18;

/// Cached prices of calls on one device by one choice of models. Threads may use it at the same time.
#[derive(Debug, Default)]
pub struct KnownPrices(RwLock<FxHashMap<OwnedCall, Estimate>>);

/// A call in its context.
#[derive(Debug)]
struct OwnedCall(KernelCall, Context);

/// Key of a call, owned or borrowed: lookups need no copy of it.
trait AsKey {
    fn key(&self) -> Key<'_>;
}

impl AsKey for OwnedCall {
    fn key(&self) -> Key<'_> {
        Key(&self.0, &self.1)
    }
}

impl AsKey for Key<'_> {
    fn key(&self) -> Key<'_> {
        *self
    }
}

impl<'a> Borrow<dyn AsKey + 'a> for OwnedCall {
    fn borrow(&self) -> &(dyn AsKey + 'a) {
        self
    }
}

impl PartialEq for dyn AsKey + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for dyn AsKey + '_ {}

impl Hash for dyn AsKey + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl PartialEq for OwnedCall {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for OwnedCall {}

impl Hash for OwnedCall {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl KnownPrices {
    /// Returns the times of many calls, as [`DeviceProfile::price_all`] does; cached ones are not computed again.
    /// Every call must use the same profile and the same choice.
    #[must_use]
    pub fn price_all(
        &self,
        profile: &DeviceProfile,
        calls: &[(&KernelCall, &Context)],
        choice: ModelChoice,
    ) -> Vec<Estimate> {
        let mut found: Vec<Option<Estimate>> = {
            let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
            calls.iter().map(|&(call, ctx)| known.get(&Key(call, ctx) as &dyn AsKey).copied()).collect()
        };
        let missing: Vec<usize> = (0..calls.len()).filter(|&at| found[at].is_none()).collect();
        if !missing.is_empty() {
            let unknown: Vec<_> = missing.iter().map(|&at| calls[at]).collect();
            let priced = profile.price_all(&unknown, choice);
            missing.iter().zip(&priced).for_each(|(&at, &estimate)| found[at] = Some(estimate));
            let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
            if known.len() + missing.len() > MOST {
                known.clear();
            }
            let owned = |(call, ctx): (&KernelCall, &Context)| OwnedCall(call.clone(), ctx.clone());
            known.extend(unknown.into_iter().map(owned).zip(priced));
        }
        found.into_iter().map(|estimate| estimate.unwrap_or(Estimate::UNPRICED)).collect()
    }
}
