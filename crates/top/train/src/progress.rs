//! Progress of a run on standard error: one line on a terminal, a line from time to time elsewhere.

use std::io::Write;
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use crate::evaluate::Evaluated;

/// Time between two texts on a terminal, and between two lines elsewhere.
const APART: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(10)];

/// Progress of a run, shown on standard error.
pub struct Shown {
    /// Counts the steps of this process.
    bar: ProgressBar,
    steps: u64,
    batch: u64,
    /// Sum and number of the losses since the last text.
    losses: (f64, u64),
    auc: Option<f64>,
    shown: Instant,
    quiet: bool,
}

impl Shown {
    /// No progress: that of a rank besides the first.
    pub fn hidden(mut self, hidden: bool) -> Shown {
        self.quiet = hidden;
        self
    }

    /// The progress of a run of a number of steps with `batch` samples each, after `step` steps.
    pub fn new(steps: u64, step: u64, batch: u64) -> Shown {
        let bar = ProgressBar::new(steps.saturating_sub(step));
        if let Ok(style) = ProgressStyle::with_template("{msg}  {eta} left") {
            bar.set_style(style);
        }
        Shown { bar, steps, batch, losses: (0.0, 0), auc: None, shown: Instant::now(), quiet: false }
    }

    /// Adds a step with its loss, and shows the steps from time to time.
    pub fn step(&mut self, step: u64, loss: f32) {
        if self.quiet {
            return;
        }
        self.bar.inc(1);
        self.losses = (self.losses.0 + f64::from(loss), self.losses.1 + 1);
        let hidden = self.bar.is_hidden();
        if self.shown.elapsed() < APART[usize::from(hidden)] {
            return;
        }
        self.shown = Instant::now();
        let text = self.text(step);
        self.losses = (0.0, 0);
        if hidden {
            write(&format!("{text}  {} left", HumanDuration(self.bar.eta())))
        } else {
            self.bar.set_message(text)
        }
    }

    fn text(&self, step: u64) -> String {
        let loss = self.losses.0 / self.losses.1 as f64;
        let auc = self.auc.map_or_else(String::new, |auc| format!("  AUC {auc:.5}"));
        let rate = self.bar.per_sec() * self.batch as f64;
        format!("step {step}/{}  loss {loss:.5}{auc}  {rate:.0} samples/s", self.steps)
    }

    /// Shows an evaluation.
    pub fn evaluated(&mut self, evaluated: &Evaluated) {
        let Evaluated { step, measures } = evaluated;
        self.auc = measures.auc;
        let number =
            |value: Option<f64>| value.map_or_else(|| "undefined".to_owned(), |value| format!("{value:.5}"));
        let (auc, loss) = (number(measures.auc), number(measures.log_loss));
        let text =
            format!("evaluation after step {step}: AUC {auc}, log loss {loss}, {} rows", measures.samples);
        if !self.quiet {
            self.bar.suspend(|| write(&text));
        }
    }

    /// Removes the line from a terminal.
    pub fn clear(&self) {
        if !self.quiet {
            self.bar.finish_and_clear();
        }
    }
}

/// A message that cannot be written is lost, and the run goes on.
fn write(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
