//! Condensed critical path: consecutive stretches of one kind are merged, and short ones are absorbed by their neighbours.

use std::collections::BTreeMap;
use std::iter::Peekable;

use steptime_graph::Phase;
use steptime_predict::format;
use steptime_trace::Nanos;

use super::predict::Piece;

/// Place of a run and phase of the step.
type Key = (&'static str, Phase);

/// Number of halvings of the whole path's time that gives the smallest threshold.
const HALVINGS: u32 = 14;

/// Consecutive stretches that are mostly of one kind.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// Length.
    pub time: Nanos,
    times: BTreeMap<Key, Nanos>,
    parts: BTreeMap<Key, BTreeMap<String, Nanos>>,
}

/// The path of an answer without omissions, one run per place and phase, made lazily.
pub fn runs(path: &[Piece]) -> impl Iterator<Item = Run> + Clone {
    joined(path.iter().map(Run::from_piece))
}

/// Returns at most `most` runs. The shortest are absorbed by their longer neighbour, and none of less than 1/128 of
/// the path stays. Where kinds alternate too often for that, as with accumulated gradients, all stretches of a kind
/// are one run, at the place of the first.
///
/// The path is iterated a few times and never stored: even for a very long path, only a few thousand runs are stored.
#[must_use]
pub fn condensed(path: impl Iterator<Item = Run> + Clone, most: usize) -> Vec<Run> {
    let most = most.max(1);
    let (total, number) =
        path.clone().fold((Nanos::ZERO, 0), |(total, number), run| (total + run.time, number + 1));
    let mut runs = absorbed(path.clone(), Nanos(total.0 >> HALVINGS));
    if runs.len() == 1 && number > most {
        return by_kind(path);
    }
    // Thresholds double, so that a short run joins its own kind before another kind absorbs it.
    for halvings in (1..HALVINGS).rev() {
        let short = Nanos(total.0 >> halvings);
        if halvings >= 7 || runs.len() > most {
            let fewer = absorbed(runs.iter().cloned(), short);
            if fewer.len() == 1 && runs.len() > most {
                return by_kind(runs.into_iter());
            }
            runs = fewer;
        }
    }
    runs
}

/// Merges the runs of each kind, in the order of the first of each.
fn by_kind(runs: impl Iterator<Item = Run>) -> Vec<Run> {
    let mut kinds: Vec<Run> = Vec::new();
    for run in runs {
        match kinds.iter_mut().find(|kind| kind.key() == run.key()) {
            Some(kind) => kind.take(run),
            None => kinds.push(run),
        }
    }
    kinds
}

fn absorbed(runs: impl Iterator<Item = Run>, short: Nanos) -> Vec<Run> {
    let mut kept: Vec<Run> = Vec::new();
    let mut waiting: Option<Run> = None;
    let mut runs = runs.peekable();
    while let Some(mut run) = runs.next() {
        if let Some(before) = waiting.take() {
            run.take(before);
        }
        let next = runs.peek().map(|next| next.time);
        match (kept.last_mut(), next) {
            _ if run.time >= short => kept.push(run),
            (Some(last), next) if next.is_none_or(|next| next < last.time) => last.take(run),
            (_, Some(_)) => waiting = Some(run),
            _ => kept.push(run),
        }
    }
    joined(kept.into_iter()).collect()
}

/// Merges neighbours of one kind.
fn joined<I: Iterator<Item = Run>>(runs: I) -> MergedRuns<I> {
    MergedRuns { runs: runs.peekable() }
}

/// Runs without neighbours of the same kind.
#[derive(Clone)]
struct MergedRuns<I: Iterator<Item = Run>> {
    runs: Peekable<I>,
}

impl<I: Iterator<Item = Run>> Iterator for MergedRuns<I> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let mut run = self.runs.next()?;
        while let Some(next) = self.runs.next_if(|next| next.key() == run.key()) {
            run.take(next);
        }
        Some(run)
    }
}

impl Run {
    fn from_piece(piece: &Piece) -> Run {
        let phase = Phase::ALL.into_iter().find(|phase| phase.name() == piece.phase).unwrap_or_default();
        let (key, time) = ((piece.place, phase), Nanos::from_millis_f64(piece.ms));
        let what = match piece.place {
            "device" | "launch" => format::kernel_family(&piece.what),
            _ => format::op(&piece.what).to_owned(),
        };
        let names = BTreeMap::from([(what, time)]);
        Run { time, times: BTreeMap::from([(key, time)]), parts: BTreeMap::from([(key, names)]) }
    }

    /// Its largest place and phase by time.
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        let longest = self.times.iter().max_by_key(|(key, time)| (**time, std::cmp::Reverse(**key)))?;
        Some(*longest.0)
    }

    /// Names with the most time, longest first.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let Some(names) = self.key().and_then(|key| self.parts.get(&key)) else { return Vec::new() };
        let mut sorted: Vec<(&str, Nanos)> =
            names.iter().map(|(name, time)| (name.as_str(), *time)).collect();
        sorted.sort_by_key(|&(name, time)| (std::cmp::Reverse(time), name));
        sorted.into_iter().map(|(name, _)| name).collect()
    }

    fn take(&mut self, mut other: Run) {
        // The smaller run is merged into the larger.
        let names = |run: &Run| run.parts.values().map(BTreeMap::len).sum::<usize>();
        if names(self) < names(&other) {
            std::mem::swap(self, &mut other);
        }
        self.time += other.time;
        for (key, time) in other.times {
            *self.times.entry(key).or_default() += time;
        }
        for (key, names) in other.parts {
            let mine = self.parts.entry(key).or_default();
            for (name, time) in names {
                *mine.entry(name).or_default() += time;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(kind: &'static str, time: i64) -> Run {
        let names = BTreeMap::from([(format!("{kind} {time}"), Nanos(time))]);
        let key = (kind, Phase::Forward);
        Run {
            time: Nanos(time),
            times: BTreeMap::from([(key, Nanos(time))]),
            parts: BTreeMap::from([(key, names)]),
        }
    }

    fn kinds(runs: &[Run]) -> Vec<(&'static str, i64)> {
        runs.iter().map(|run| (run.key().map_or("", |key| key.0), run.time.0)).collect()
    }

    #[test]
    fn short_stretches_vanish_in_what_they_interrupt() {
        let path = vec![run("host", 400), run("launch", 2), run("host", 598), run("device", 1000)];
        let runs = condensed(path.into_iter(), 8);
        assert_eq!(kinds(&runs), [("host", 1000), ("device", 1000)]);
        assert_eq!(runs[0].names(), ["host 598", "host 400"]);
    }

    #[test]
    fn kinds_that_take_turns_are_told_apart() {
        let path: Vec<Run> = (0..40).map(|i| run(["host", "device"][i % 2], [60, 40][i % 2])).collect();
        assert_eq!(kinds(&condensed(path.into_iter(), 8)), [("host", 1200), ("device", 800)]);
    }

    #[test]
    fn no_more_than_asked_for_and_no_time_lost() {
        let path: Vec<Run> =
            (0..100).map(|i| run(["host", "device", "launch"][i % 3], 100 + 7 * i as i64)).collect();
        let total: Nanos = path.iter().map(|run| run.time).sum();
        let runs = condensed(path.into_iter(), 8);
        assert!(runs.len() <= 8, "{}", runs.len());
        assert_eq!(runs.iter().map(|run| run.time).sum::<Nanos>(), total);
        assert!(condensed(std::iter::empty(), 8).is_empty());
    }
}
