//! Operands and buffers of a cache: checks, waits, and their addresses on the device.

use super::RowCache;
use super::kernels::Plane;
use crate::embedding::{Lookups, Sizes};
use crate::{Args, Error, Stream};

impl RowCache {
    /// Waits where another stream than this one may still use slots or states.
    pub(super) fn wait_for_others(&self, stream: &Stream) -> Result<(), Error> {
        let slots = self.slots.iter().fold(Args::new(), |all, table| all.writes(table.bytes()));
        let states = self.optimizer.iter().flat_map(|of| (0..self.hosts.len()).map(|at| of.state(at).0));
        states.fold(slots, |all, state| all.writes(state.as_ref())).take_turn(stream)
    }

    pub(super) fn check(&self, lookups: &Lookups<'_>) -> Result<(), Error> {
        let given = Sizes { stride: self.sizes.stride, ..Sizes::from_lookups(lookups, 0) };
        let made = Sizes { lookups: given.lookups, ..self.sizes };
        let offsets = steptime_ops::embedding::Lookups::offset_count(self.hosts.len(), self.sizes.bags)?;
        if given != made || lookups.len() > self.sizes.lookups || lookups.offsets().len() != offsets {
            let found = lookups.offsets().len();
            return Err(Error::Unsupported {
                what: format!(
                    "a cache for {:?} and {offsets} offsets with {given:?} and {found}",
                    self.sizes
                ),
                remedy: "make another `RowCache` for these",
            });
        }
        if self.pending.is_some() {
            return Err(Error::Unsupported {
                what: "prefetching a batch while another was prefetched and not taken".into(),
                remedy: "call `take` before the next `prefetch`",
            });
        }
        if self.number == u32::MAX - 1 {
            return Err(Error::Unsupported {
                what: "more than 2^32 batches through one cache".into(),
                remedy: "write the rows back with `flush`, and make another",
            });
        }
        Ok(())
    }

    /// Updates the addresses of rows and states on the device, if they changed.
    pub(super) fn place(&mut self) -> Result<(), Error> {
        let mut entries = self.entries.clone();
        for (at, entry) in entries.iter_mut().enumerate() {
            let (host, slots) = (&self.hosts[at], self.slots.table(at));
            // Both are handed out mutably, so they may have been replaced.
            let view = self.views.table(at);
            let rows = [host.rows(), slots.rows()] == [view.rows(), self.sets[at].slots()];
            let alike =
                |dim, pitch, element| (dim, pitch, element) == (view.dim(), view.pitch(), view.element());
            if !rows
                || !alike(host.dim(), host.pitch(), host.element())
                || !alike(slots.dim(), slots.pitch(), slots.element())
            {
                return Err(Error::Unsupported {
                    what: format!(
                        "a cache whose table {:?} was replaced by one of another shape",
                        view.name()
                    ),
                    remedy: "change rows only, or make another `RowCache`",
                });
            }
            // SAFETY: only `flush` hands out rows of the host, and it waits for all work that moves them; they are
            // freed after the cache's stream is done.
            let address = unsafe { host.bytes().on_device() }.address();
            entry.planes[0] = Plane::new(address, slots.bytes().address(), host.pitch());
            let Some(optimizer) = &self.optimizer else { continue };
            let (state, pitch) = optimizer.state(at);
            let needed = self.sets[at].slots() * pitch;
            if state.len() != needed {
                return Err(Error::Size { what: "an optimizer's state", found: state.len(), needed });
            }
            if pitch > 0 {
                let (found, needed) = (self.states[at].len(), self.hosts[at].rows().saturating_mul(pitch));
                if found != needed {
                    return Err(Error::Size { what: "the host's state of a table", found, needed });
                }
                // SAFETY: as above.
                let address = unsafe { self.states[at].on_device() }.address();
                entry.planes[1] = Plane::new(address, state.as_ref().address(), 4 * pitch);
            }
        }
        if entries != self.entries || !self.placed {
            self.device_entries.as_mut().write(&self.stream, &entries)?;
            (self.entries, self.placed) = (entries, true);
        }
        Ok(())
    }
}
