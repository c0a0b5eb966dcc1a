//! Steady state of simulated steps, and the period of a step in it.

use steptime_trace::Nanos;

/// Fewest and most steps that are simulated.
const FEWEST: usize = 4;
const MOST: usize = 16;
/// The period has settled if it changes by less than one part in this many.
const SETTLED: i64 = 2000;
/// Number of last steps whose mean is taken if streams are slow in turn: turns of 2, 3, 4 or 6 steps divide it.
const TURNS: usize = 12;

/// Progress of every thread and stream, step after step.
#[derive(Debug, Clone)]
pub(crate) struct Period {
    reached: Vec<Vec<Nanos>>,
    latest: Nanos,
    /// Whether the slowest thread or stream changes from step to step, so that none of them is the slowest all the time.
    turns: bool,
}

impl Period {
    /// Begins before the first step.
    pub fn begin(reached: Vec<Nanos>) -> Period {
        Period { reached: vec![reached], latest: Nanos::ZERO, turns: false }
    }

    /// Returns the number of steps so far.
    pub fn steps(&self) -> usize {
        self.reached.len() - 1
    }

    /// Returns the time from one step to the next.
    pub fn get(&self) -> Nanos {
        if self.turns && self.steps() >= MOST { self.over(TURNS) / TURNS as i64 } else { self.latest }
    }

    /// Adds one more step, which was complete at `completed`; returns whether the period has settled.
    pub fn is_settled(&mut self, reached: Vec<Nanos>, completed: impl FnOnce() -> Nanos) -> bool {
        self.reached.push(reached);
        let before = self.latest;
        // The slowest thread or stream determines the period, even if another one still ends later.
        self.latest = if self.steps() > 1 { self.over(1) } else { completed() };
        let change = (self.latest - before).max(before - self.latest);
        let settled = change * SETTLED <= self.latest;
        self.turns = self.steps() > 2 && (self.latest * 2 - self.over(2)) * SETTLED > self.latest * 2;
        self.steps() >= MOST || settled && !self.turns && self.steps() >= FEWEST
    }

    /// Returns the greatest progress of a thread or stream in the last `steps` steps.
    fn over(&self, steps: usize) -> Nanos {
        let (now, then) = (&self.reached[self.steps()], &self.reached[self.steps() - steps]);
        now.iter().zip(then).map(|(now, then)| *now - *then).max().unwrap_or(Nanos::ZERO)
    }
}
