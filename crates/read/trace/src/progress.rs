//! Progress of reading, for progress bars.

use std::sync::atomic::{AtomicU64, Ordering};

/// Callback with the bytes done and the total bytes on disk of all files being opened.
pub type Report<'a> = dyn Fn(u64, u64) + Sync + 'a;

/// Sum of the bytes that several readers have processed.
pub(crate) struct Progress<'a> {
    report: Option<&'a Report<'a>>,
    done: AtomicU64,
    total: u64,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(report: Option<&'a Report<'a>>, total: u64) -> Progress<'a> {
        Progress { report, done: AtomicU64::new(0), total }
    }

    /// Returns a progress without a report.
    pub(crate) const fn silent() -> Progress<'static> {
        Progress { report: None, done: AtomicU64::new(0), total: 0 }
    }

    pub(crate) fn advance(&self, bytes: u64) {
        if let Some(report) = self.report {
            let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
            report(done.min(self.total), self.total);
        }
    }
}
