//! The critical path in a few words: stretches alike are one, and short ones belong to what they lie in.

use std::collections::BTreeMap;

use steptime_graph::Phase;
use steptime_trace::Nanos;

use super::predict::Piece;
use super::words;

/// Where a run is, and in which part of the step.
type Key = (&'static str, Phase);

/// Consecutive stretches that are mostly of one kind.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// How long it is.
    pub time: Nanos,
    times: BTreeMap<Key, Nanos>,
    parts: BTreeMap<Key, BTreeMap<String, Nanos>>,
}

/// The path of an answer, nothing left out: a run a place and phase.
#[must_use]
pub fn runs(path: &[Piece]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for piece in path {
        let phase = Phase::ALL.into_iter().find(|phase| phase.name() == piece.phase).unwrap_or_default();
        let (key, time) = ((piece.place, phase), Nanos::from_millis_f64(piece.ms));
        let what = match piece.place {
            "device" | "launch" => words::kernel_family(&piece.what),
            _ => words::op(&piece.what).to_owned(),
        };
        let names = BTreeMap::from([(what, time)]);
        let (times, parts) = (BTreeMap::from([(key, time)]), BTreeMap::from([(key, names)]));
        runs.push(Run { time, times, parts });
    }
    joined(runs)
}

/// At most `most` runs: the shortest are taken in by their longer neighbour, never less than one in 128 of
/// the path stays alone. Where kinds take turns too often for that, as where gradients are accumulated, all of a kind
/// are one run, where the first of them is.
#[must_use]
pub fn condensed(mut runs: Vec<Run>, most: usize) -> Vec<Run> {
    let total: Nanos = runs.iter().map(|run| run.time).sum();
    // Thresholds double, so that what is short finds its own kind before it is taken in by another.
    for halvings in (1..=14).rev() {
        let short = Nanos(total.0 >> halvings);
        if halvings >= 7 || runs.len() > most.max(1) {
            let fewer = absorbed(runs.clone(), short);
            if fewer.len() == 1 && runs.len() > most.max(1) {
                return by_kind(runs);
            }
            runs = fewer;
        }
    }
    runs
}

/// Runs of a kind together, in the order of the first of each.
fn by_kind(runs: Vec<Run>) -> Vec<Run> {
    let mut kinds: Vec<Run> = Vec::new();
    for run in runs {
        match kinds.iter_mut().find(|kind| kind.key() == run.key()) {
            Some(kind) => kind.take(run),
            None => kinds.push(run),
        }
    }
    kinds
}

fn absorbed(runs: Vec<Run>, short: Nanos) -> Vec<Run> {
    let mut kept: Vec<Run> = Vec::new();
    let mut waiting: Option<Run> = None;
    let mut runs = runs.into_iter().peekable();
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
    joined(kept)
}

/// Neighbours of one kind become one.
fn joined(runs: Vec<Run>) -> Vec<Run> {
    let mut kept: Vec<Run> = Vec::new();
    for run in runs {
        match kept.last_mut() {
            Some(last) if last.key() == run.key() => last.take(run),
            _ => kept.push(run),
        }
    }
    kept
}

impl Run {
    /// What it mostly is: where it is and in which part of the step.
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        let longest = self.times.iter().max_by_key(|(key, time)| (**time, std::cmp::Reverse(**key)))?;
        Some(*longest.0)
    }

    /// The names that take most of it, longest first.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let Some(names) = self.key().and_then(|key| self.parts.get(&key)) else { return Vec::new() };
        let mut sorted: Vec<(&str, Nanos)> =
            names.iter().map(|(name, time)| (name.as_str(), *time)).collect();
        sorted.sort_by_key(|&(name, time)| (std::cmp::Reverse(time), name));
        sorted.into_iter().map(|(name, _)| name).collect()
    }

    fn take(&mut self, mut other: Run) {
        // The smaller is dealt out to the larger one.
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
        let runs = condensed(path, 8);
        assert_eq!(kinds(&runs), [("host", 1000), ("device", 1000)]);
        assert_eq!(runs[0].names(), ["host 598", "host 400"]);
    }

    #[test]
    fn kinds_that_take_turns_are_told_apart() {
        let path: Vec<Run> = (0..40).map(|i| run(["host", "device"][i % 2], [60, 40][i % 2])).collect();
        assert_eq!(kinds(&condensed(path, 8)), [("host", 1200), ("device", 800)]);
    }

    #[test]
    fn no_more_than_asked_for_and_no_time_lost() {
        let path: Vec<Run> =
            (0..100).map(|i| run(["host", "device", "launch"][i % 3], 100 + 7 * i as i64)).collect();
        let total: Nanos = path.iter().map(|run| run.time).sum();
        let runs = condensed(path, 8);
        assert!(runs.len() <= 8, "{}", runs.len());
        assert_eq!(runs.iter().map(|run| run.time).sum::<Nanos>(), total);
        assert!(condensed(Vec::new(), 8).is_empty());
    }
}
