//! Measured times of marks and device activities: one column per step.

use steptime_trace::Nanos;
use typed_index_collections::TiVec;

use crate::ids::{ActivityId, MarkId, StepId};
use crate::tables::Mark;

/// Value in a column of samples that was not measured in this step.
const MISSING: Nanos = Nanos(i64::MIN);

/// Measured steps, as columns. Times are those of the trace.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    steps: usize,
    marks: usize,
    activities: usize,
    mark_time: Vec<Nanos>,
    /// Whether no unmatched mark is between a mark and the mark before it on its thread.
    mark_adjacent: Vec<bool>,
    activity_start: Vec<Nanos>,
    activity_duration: Vec<Nanos>,
    /// Whether the step before in time is the column before.
    follows_previous: TiVec<StepId, bool>,
    /// Time by `clock` from the beginning of a step to that of the next; missing if it was not recorded.
    period: TiVec<StepId, Nanos>,
    /// The same time by the host's marks.
    host_period: TiVec<StepId, Nanos>,
    /// Time in which any activity launched by the step ran, matched with the template's or not.
    active: TiVec<StepId, Nanos>,
    clock: Clock,
    start: TiVec<StepId, Nanos>,
    template: StepId,
}

/// Clock that measures the step times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// Marks of the steps on the host.
    #[default]
    Host,
    /// End of each step's work on the device: the host ran ahead of the device, so that its own marks show
    /// the launch rate, not the step time.
    Device,
}

impl Samples {
    pub(crate) fn new(steps: usize, marks: usize, activities: usize) -> Samples {
        Samples {
            steps,
            marks,
            activities,
            mark_time: vec![MISSING; steps * marks],
            mark_adjacent: vec![false; steps * marks],
            activity_start: vec![MISSING; steps * activities],
            activity_duration: vec![MISSING; steps * activities],
            follows_previous: vec![false; steps].into(),
            period: vec![MISSING; steps].into(),
            host_period: vec![MISSING; steps].into(),
            active: vec![Nanos::ZERO; steps].into(),
            clock: Clock::Host,
            start: vec![MISSING; steps].into(),
            template: StepId(0),
        }
    }

    pub(crate) fn set_step(&mut self, step: StepId, start: Nanos, period: Option<Nanos>, follows: bool) {
        self.start[step] = start;
        self.period[step] = period.unwrap_or(MISSING);
        self.host_period[step] = self.period[step];
        self.follows_previous[step] = follows;
    }

    pub(crate) fn set_template(&mut self, step: StepId) {
        self.template = step;
    }

    /// Returns the step that all others are matched with: all its marks were measured.
    pub fn template(&self) -> StepId {
        self.template
    }

    pub(crate) fn set_active(&mut self, step: StepId, active: Nanos) {
        self.active[step] = active;
    }

    pub(crate) fn set_mark(&mut self, step: StepId, mark: MarkId, time: Nanos, adjacent: bool) {
        self.mark_time[step.index() * self.marks + mark.index()] = time;
        self.mark_adjacent[step.index() * self.marks + mark.index()] = adjacent;
    }

    pub(crate) fn set_activity(&mut self, step: StepId, activity: ActivityId, start: Nanos, duration: Nanos) {
        self.activity_start[step.index() * self.activities + activity.index()] = start;
        self.activity_duration[step.index() * self.activities + activity.index()] = duration;
    }

    /// Sets the device as the clock of steps, with the period of each step.
    pub(crate) fn time_by_device(&mut self, periods: TiVec<StepId, Option<Nanos>>) {
        self.period = periods.into_iter().map(|period| period.unwrap_or(MISSING)).collect();
        self.clock = Clock::Device;
    }

    /// Returns the clock of [`Samples::period`].
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns the time from the beginning of a step on the host to that of the next, for any clock.
    pub fn host_period(&self, step: StepId) -> Option<Nanos> {
        known(*self.host_period.get(step)?)
    }

    /// Whether the column before a step is the step before it in time.
    pub fn follows_previous(&self, step: StepId) -> bool {
        self.follows_previous[step]
    }

    /// Returns the measured steps.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = StepId> + ExactSizeIterator + Clone + use<> {
        StepId(0).until(StepId::from(self.steps))
    }

    /// Whether no step was measured.
    pub fn is_empty(&self) -> bool {
        self.steps == 0
    }

    fn activities(&self) -> impl Iterator<Item = ActivityId> + use<> {
        ActivityId(0).until(ActivityId::from(self.activities))
    }

    /// Returns the start time of a step.
    pub fn start(&self, step: StepId) -> Nanos {
        self.start[step]
    }

    /// Returns the duration of a step up to the beginning of the next, if that was recorded, by [`Samples::clock`].
    pub fn period(&self, step: StepId) -> Option<Nanos> {
        known(self.period[step])
    }

    /// Returns the time of a mark.
    pub fn mark(&self, step: StepId, mark: MarkId) -> Option<Nanos> {
        known(self.mark_time[step.index() * self.marks + mark.index()])
    }

    /// Returns the host time that ended at `mark`: since the mark it comes after.
    ///
    /// `None` if either was not measured, or if an unmatched mark is between them.
    pub fn gap(&self, step: StepId, mark: MarkId, row: &Mark) -> Option<Nanos> {
        let at = step.index() * self.marks + mark.index();
        if !self.mark_adjacent[at] {
            return None;
        }
        let before = if row.wraps {
            if !self.follows_previous[step] {
                return self.around(step, mark, row.after);
            }
            self.mark(step.previous(), row.after)?
        } else {
            self.mark(step, row.after)?
        };
        Some(known(self.mark_time[at])? - before)
    }

    /// Returns the time from the last mark of a single step to its end, plus the time from its beginning to its first mark: the gap between two
    /// such steps. `None` for several steps, and if the end of the step is not known.
    fn around(&self, step: StepId, first: MarkId, last: MarkId) -> Option<Nanos> {
        let period = self.host_period(step).filter(|_| self.steps == 1)?;
        Some(period - (self.mark(step, last)? - self.mark(step, first)?))
    }

    /// Returns the start time of a device activity.
    pub fn activity_start(&self, step: StepId, activity: ActivityId) -> Option<Nanos> {
        known(self.activity_start[step.index() * self.activities + activity.index()])
    }

    /// Returns the duration of a device activity.
    pub fn activity_duration(&self, step: StepId, activity: ActivityId) -> Option<Nanos> {
        known(self.activity_duration[step.index() * self.activities + activity.index()])
    }

    /// Returns the end time of a device activity.
    pub fn activity_end(&self, step: StepId, activity: ActivityId) -> Option<Nanos> {
        Some(self.activity_start(step, activity)? + self.activity_duration(step, activity)?)
    }

    /// Returns the time when the device had completed the work of a step.
    pub fn device_end(&self, step: StepId) -> Option<Nanos> {
        self.activities().filter_map(|activity| self.activity_end(step, activity)).max()
    }

    /// Returns the median duration of a device activity over the steps.
    pub fn median_duration(&self, activity: ActivityId) -> Option<Nanos> {
        let mut all: Vec<Nanos> =
            self.steps().filter_map(|step| self.activity_duration(step, activity)).collect();
        median(&mut all)
    }

    /// Returns the device active time of a step: the union of the intervals of all activities that it launched, matched with
    /// the template or not.
    pub fn active(&self, step: StepId) -> Nanos {
        self.active[step]
    }

    /// Returns the median over the steps of the time from one beginning to the next.
    pub fn median_period(&self) -> Option<Nanos> {
        let mut all: Vec<Nanos> = self.steps().filter_map(|step| self.period(step)).collect();
        median(&mut all)
    }

    /// Returns the median over the steps of the device active time.
    pub fn median_active(&self) -> Option<Nanos> {
        let mut all: Vec<Nanos> = self.steps().map(|step| self.active(step)).collect();
        median(&mut all)
    }
}

fn known(time: Nanos) -> Option<Nanos> {
    (time != MISSING).then_some(time)
}

/// Returns the total length of intervals sorted by their beginning, overlaps counted once.
pub fn union(spans: &[(Nanos, Nanos)]) -> Nanos {
    let mut total = Nanos::ZERO;
    let mut reached = Nanos(i64::MIN);
    for &(start, end) in spans {
        let from = start.max(reached);
        if end > from {
            total += end - from;
            reached = end;
        }
    }
    total
}

/// Returns the median; the mean of the middle two if their number is even. Sorts its argument.
pub fn median(times: &mut [Nanos]) -> Option<Nanos> {
    if times.is_empty() {
        return None;
    }
    times.sort_unstable();
    let middle = times.len() / 2;
    Some(if times.len() % 2 == 1 { times[middle] } else { (times[middle - 1] + times[middle]) / 2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps_count_once() {
        let spans = [(0, 10), (5, 12), (6, 7), (20, 21)].map(|(a, b)| (Nanos(a), Nanos(b)));
        assert_eq!(union(&spans), Nanos(13));
        assert_eq!(union(&[]), Nanos::ZERO);
    }

    #[test]
    fn an_even_median_lies_between() {
        assert_eq!(median(&mut [Nanos(4), Nanos(1), Nanos(2), Nanos(9)]), Some(Nanos(3)));
        assert_eq!(median(&mut []), None);
    }
}
