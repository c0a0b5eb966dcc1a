//! When simulated steps have settled, and how long one takes then.

use steptime_trace::Nanos;

/// Fewest and most steps that are simulated.
const FEWEST: usize = 4;
const MOST: usize = 16;
/// The period has settled when it changes by less than one part in this many.
const SETTLED: i64 = 2000;
/// Where streams are slow in turn, over so many of the last steps the mean is taken: turns of 2, 3, 4 or 6 steps are whole in it.
const TURNS: usize = 12;

/// How far every thread and stream got, step after step.
#[derive(Debug, Clone)]
pub(crate) struct Period {
    reached: Vec<Vec<Nanos>>,
    latest: Nanos,
    /// Whether another thread or stream was the slowest the step before, and what is slow in turn is none of it all the time.
    turns: bool,
}

impl Period {
    /// Before the first step.
    pub fn begin(reached: Vec<Nanos>) -> Period {
        Period { reached: vec![reached], latest: Nanos::ZERO, turns: false }
    }

    /// Steps so far.
    pub fn steps(&self) -> usize {
        self.reached.len() - 1
    }

    /// From one step to the next.
    pub fn get(&self) -> Nanos {
        if self.turns && self.steps() >= MOST { self.over(TURNS) / TURNS as i64 } else { self.latest }
    }

    /// After one more step, which was `completed` at a time, whether that is enough.
    pub fn is_settled(&mut self, reached: Vec<Nanos>, completed: impl FnOnce() -> Nanos) -> bool {
        self.reached.push(reached);
        let before = self.latest;
        // The slowest thread or stream decides the period, even if another still ends later.
        self.latest = if self.steps() > 1 { self.over(1) } else { completed() };
        let change = (self.latest - before).max(before - self.latest);
        let settled = change * SETTLED <= self.latest;
        self.turns = self.steps() > 2 && (self.latest * 2 - self.over(2)) * SETTLED > self.latest * 2;
        self.steps() >= MOST || settled && !self.turns && self.steps() >= FEWEST
    }

    /// The most that a thread or stream went on in so many of the last steps.
    fn over(&self, steps: usize) -> Nanos {
        let (now, then) = (&self.reached[self.steps()], &self.reached[self.steps() - steps]);
        now.iter().zip(then).map(|(now, then)| *now - *then).max().unwrap_or(Nanos::ZERO)
    }
}
