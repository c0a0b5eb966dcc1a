//! Numbers of progress lines against plain formulas.

use std::time::Duration;

use proptest::prelude::*;
use steptime_train::progress::{Line, Progress};

const WINDOW: Duration = Duration::from_secs(10);

#[test]
fn a_steady_run_has_its_pace_and_its_end() {
    let mut progress = Progress::new(1000, 0, WINDOW);
    for step in 1..=1000u64 {
        let line = progress.add(step, 0.5, step * 2048, Duration::from_millis(50 * step));
        assert!((line.samples_per_second.unwrap() - 40_960.0).abs() < 1e-6, "{line:?}");
        let remaining = line.remaining.unwrap().as_secs_f64();
        assert!((remaining - 0.05 * (1000 - step) as f64).abs() < 1e-6, "{line:?}");
        assert_eq!((line.loss, line.mean_loss, line.steps), (0.5, 0.5, 1000));
    }
}

#[test]
fn the_window_follows_a_change_of_pace() {
    let mut progress = Progress::new(10_000, 0, WINDOW);
    let mut elapsed = Duration::ZERO;
    let mut last = None;
    for step in 1..=2000u64 {
        elapsed += Duration::from_millis(if step <= 1000 { 40 } else { 20 });
        last = Some(progress.add(step, if step <= 1000 { 1.0 } else { 0.25 }, step * 10, elapsed));
    }
    // Twenty seconds after the change nothing of the slow half is left.
    let line = last.unwrap();
    assert!((line.samples_per_second.unwrap() - 500.0).abs() < 1e-6, "{line:?}");
    assert_eq!(line.mean_loss, 0.25);
}

#[test]
fn a_resumed_run_counts_its_own_time() {
    let mut progress = Progress::new(100, 90, WINDOW);
    let line = progress.add(92, 0.1, 20, Duration::from_secs(4));
    assert_eq!(line.remaining, Some(Duration::from_secs(16)));
    assert_eq!((line.samples_per_second, line.step_time), (Some(5.0), Some(Duration::from_secs(2))));
}

#[test]
fn what_is_not_known_yet_is_none() {
    let line = Progress::new(10, 0, WINDOW).add(0, f64::NAN, 0, Duration::ZERO);
    assert_eq!((line.samples_per_second, line.step_time, line.remaining), (None, None, None));
    assert!(line.loss.is_nan() && line.mean_loss.is_nan());
}

proptest! {
    /// The pace is that since some point about a window ago.
    #[test]
    fn the_pace_is_that_of_the_last_window(
        steps in prop::collection::vec((1u64..200, 1u64..3000), 1..400),
    ) {
        let mut progress = Progress::new(u64::MAX, 0, WINDOW);
        let (mut elapsed, mut samples) = (Duration::ZERO, 0);
        let mut totals = vec![(Duration::ZERO, 0)];
        for (step, &(more, millis)) in steps.iter().enumerate() {
            elapsed += Duration::from_millis(millis);
            samples += more;
            totals.push((elapsed, samples));
            let line: Line = progress.add(step as u64 + 1, 1.0, samples, elapsed);
            let pace = line.samples_per_second.unwrap();
            // A step is at most 3 s long and points are at most a 64th of the window apart.
            let longest = WINDOW + Duration::from_secs(4);
            let since = |&&(then, _): &&(Duration, u64)| elapsed - then <= longest && then < elapsed;
            let paces = totals.iter().filter(since).map(|&(then, before)| (samples - before) as f64 / (elapsed - then).as_secs_f64());
            prop_assert!(paces.into_iter().any(|known| (known - pace).abs() <= 1e-9 * pace), "{pace}");
        }
    }
}
