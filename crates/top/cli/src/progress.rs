//! Progress on stderr: only on a terminal, and only for work that takes a noticeable time.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Minimum duration of work that shows progress.
const NOTICED: Duration = Duration::from_millis(300);

/// Progress bar that appears late and is cleared at the end. In a pipe it never appears.
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

    /// Shows the amount done of the total.
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

/// Shows a spinner during work of unknown duration.
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
