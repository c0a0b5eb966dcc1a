//! The progress line on standard error.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use steptime_train::progress::{Line, Progress};

use crate::evaluate::Evaluated;

/// Time over which the rates of the line are.
const WINDOW: Duration = Duration::from_secs(10);
/// Time between two lines on a terminal, where one replaces the other, and elsewhere.
const APART: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(10)];

/// Progress of a run, shown on standard error.
pub struct Shown {
    progress: Progress,
    terminal: bool,
    shown: Option<Instant>,
    begun: Instant,
    auc: Option<f64>,
}

impl Shown {
    /// The progress of a run of a number of steps, after `step` steps.
    pub fn new(steps: u64, step: u64) -> Shown {
        let (progress, terminal) = (Progress::new(steps, step, WINDOW), std::io::stderr().is_terminal());
        Shown { progress, terminal, shown: None, begun: Instant::now(), auc: None }
    }

    /// Adds a step with its loss, and the samples so far, and shows them from time to time.
    pub fn step(&mut self, step: u64, loss: f32, samples: u64) {
        let line = self.progress.add(step, f64::from(loss), samples, self.begun.elapsed());
        let apart = APART[usize::from(!self.terminal)];
        if self.shown.unwrap_or(self.begun).elapsed() >= apart {
            self.shown = Some(Instant::now());
            let text = text(&line, self.auc);
            if self.terminal { write(&format!("\r{text}\x1b[K")) } else { write(&format!("{text}\n")) }
        }
    }

    /// Shows an evaluation.
    pub fn evaluated(&mut self, evaluated: &Evaluated) {
        self.auc = evaluated.measures.auc;
        let number =
            |value: Option<f64>| value.map_or_else(|| "undefined".to_owned(), |value| format!("{value:.5}"));
        let (auc, loss) = (number(evaluated.measures.auc), number(evaluated.measures.log_loss));
        self.clear();
        let Evaluated { step, measures } = evaluated;
        write(&format!(
            "evaluation after step {step}: AUC {auc}, log loss {loss}, {} rows\n",
            measures.samples
        ));
    }

    /// Removes the line from a terminal.
    pub fn clear(&self) {
        if self.terminal {
            write("\r\x1b[K");
        }
    }
}

fn text(line: &Line, auc: Option<f64>) -> String {
    let mut text = format!("step {}/{}  loss {:.5}", line.step, line.steps, line.mean_loss);
    if let Some(auc) = auc {
        text += &format!("  AUC {auc:.5}");
    }
    if let Some(rate) = line.samples_per_second {
        text += &format!("  {rate:.0} samples/s");
    }
    if let Some(left) = line.remaining {
        let seconds = left.as_secs();
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        text += &format!("  {hours}:{minutes:02}:{seconds:02} left");
    }
    text
}

/// A message that cannot be written is lost, and the run goes on.
fn write(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
