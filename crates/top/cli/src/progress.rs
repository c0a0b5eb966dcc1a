//! Progress on stderr: on a terminal, and only when the work takes long enough to be noticed.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Work shorter than this shows nothing.
const NOTICED: Duration = Duration::from_millis(300);

/// A bar that appears late and leaves nothing behind. In a pipe it never appears.
pub struct Progress {
    begun: Instant,
    template: &'static str,
    bar: OnceLock<ProgressBar>,
}

impl Progress {
    /// Counts bytes.
    pub fn bytes() -> Progress {
        Progress::new("reading {wide_bar} {bytes}/{total_bytes}")
    }

    /// Counts recordings.
    pub fn recordings() -> Progress {
        Progress::new("reading {wide_bar} {pos}/{len} recordings")
    }

    /// Counts families of kernels.
    pub fn families() -> Progress {
        Progress::new("fitting {wide_bar} {pos}/{len} families")
    }

    /// Counts points of a grid.
    pub fn points() -> Progress {
        Progress::new("simulating {wide_bar} {pos}/{len} points, {eta} left")
    }

    /// Counts ops that are measured.
    pub fn ops() -> Progress {
        Progress::new("measuring {wide_bar} {pos}/{len} ops")
    }

    fn new(template: &'static str) -> Progress {
        Progress { begun: Instant::now(), template, bar: OnceLock::new() }
    }

    /// Shows how much is done, and of how much.
    pub fn report(&self, done: u64, total: u64) {
        if self.begun.elapsed() > NOTICED {
            let bar = self.bar.get_or_init(|| styled(ProgressBar::new(total), self.template));
            bar.set_length(total);
            bar.set_position(done);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

/// Something that takes a while, and does not know how long.
pub fn spin<T>(what: &'static str, work: impl FnOnce() -> T) -> T {
    let spinner = styled(ProgressBar::new_spinner(), "{spinner} {msg}").with_message(what);
    if !spinner.is_hidden() {
        spinner.enable_steady_tick(NOTICED / 3);
    }
    let result = work();
    spinner.finish_and_clear();
    result
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
