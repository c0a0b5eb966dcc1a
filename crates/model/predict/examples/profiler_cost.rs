//! Fits the profiler's cost, and the dependence of host work on the speed of its core, to recordings of processes that
//! were never profiled before: `profiler_cost FOLDER...`, each a folder of recordings. Prints the errors and the constants.
//!
//! The constants of `[profiler_fresh]` and `[speed]` in `profiles/host-default.toml` come from this program. It reads the
//! measured step of each recording, so these recordings must not be used for scores.
//!
//! Environment variables: `START`, the initial parameters, separated by commas; `ROUNDS`, searches along one parameter at a
//! time (3); `TRIES`, random steps along several (0); `LOCK`, names of parameters that random steps do not change; `FOLD`, 0 or 1: every other
//! recording of the last folder is left out and scored at the end (`HELD`); `WITHOUT`, part of the names of recordings to leave out.

use std::path::PathBuf;

use rayon::prelude::*;
use steptime_cost::Process;
use steptime_cost::{Coupling, Elasticity, HostCosts, PricedGraph, ProfilerCost, Slowness, Speed, UsualGaps};
use steptime_predict::{Choice, Step, default_host};
use steptime_sim::Timeline;

/// Names of the parameters, their initial values, and their plausible ranges.
const PARAMETERS: [(&str, f64, f64, f64); 10] = [
    ("op_us", 1.0, 0.3, 4.0),
    ("launch_us", 3.7, 1.0, 8.0),
    ("copy_us", 60.0, 0.0, 400.0),
    ("compiled_us", 5.0, 0.0, 40.0),
    ("between", 0.8, 0.0, 1.5),
    ("launch", 0.5, 0.0, 1.5),
    ("hand_off", 0.2, 0.0, 1.0),
    ("profiler", 0.8, 0.0, 3.0),
    ("loop_us", 20.0, 12.0, 30.0),
    ("query_us", 1.7, 0.0, 6.0),
];
type Point = [f64; PARAMETERS.len()];

fn cost(at: &Point) -> (ProfilerCost, Elasticity) {
    let cost = ProfilerCost {
        op_us: at[0],
        launch_us: at[1],
        copy_us: at[2],
        compiled_us: at[3],
        query_us: at[9],
        ..ProfilerCost::FRESH
    };
    let elasticity =
        Elasticity { between: at[4], launch: at[5], hand_off: at[6], profiler: at[7], loop_us: at[8] };
    (cost, elasticity)
}

/// Signed relative error of a recording's prediction.
fn error(recorded: &Step, truth: f64, slowness: &Slowness, at: &Point) -> f64 {
    let (profiler, elasticity) = cost(at);
    let graph = &recorded.graph;
    let pulses =
        recorded.meta.as_ref().and_then(|meta| Speed::from_pulses(&meta.pulses, slowness, &elasticity));
    let speed = pulses.unwrap_or_else(|| Speed::steady(slowness, &elasticity));
    let host = HostCosts::from_own_samples_at(graph, &profiler, &Coupling::default(), &speed, &elasticity);
    let period = Timeline::simulate(&PricedGraph::measured(graph, host)).period;
    period.as_millis() / truth - 1.0
}

fn score(recordings: &[(Step, f64, Slowness)], at: &Point) -> (f64, Vec<f64>) {
    let errors: Vec<f64> =
        recordings.par_iter().map(|(recorded, truth, slow)| error(recorded, *truth, slow, at)).collect();
    // A few bad recordings must not dominate.
    let loss = errors.iter().map(|e| e.abs().min(0.25)).sum::<f64>() / errors.len() as f64;
    (loss, errors)
}

fn main() {
    let profile = default_host().expect("the shipped profile");
    let mut recordings = Vec::new();
    let mut last = 0;
    for folder in std::env::args().skip(1).map(PathBuf::from) {
        let mut paths: Vec<PathBuf> =
            std::fs::read_dir(&folder).expect("a folder").filter_map(|e| Some(e.ok()?.path())).collect();
        paths.sort();
        last = 0;
        for path in paths {
            let Ok(recorded) = Step::open(&path, &Choice::default()) else { continue };
            let Ok(truth) = recorded.truth_ms("fitted on") else { continue };
            if std::env::var("WITHOUT").is_ok_and(|word| recorded.name.contains(&word)) {
                continue;
            }
            if recorded.process == Process::Fresh && !recorded.arguments.is_derived() {
                let slow = Slowness::while_profiled(
                    &recorded.graph,
                    profile,
                    &UsualGaps::find(&recorded.graph, profile),
                );
                recordings.push((recorded, truth, slow));
                last += 1;
            }
        }
    }
    // Every other recording of the last folder is held out.
    let mut held = Vec::new();
    if let Some(fold) = std::env::var("FOLD").ok().and_then(|f| f.parse::<usize>().ok()) {
        let first = recordings.len() - last;
        let mut kept = Vec::new();
        for (at, recorded) in recordings.into_iter().enumerate() {
            if at >= first && at % 2 == fold { held.push(recorded) } else { kept.push(recorded) }
        }
        recordings = kept;
    }
    let mut at: Point = PARAMETERS.map(|p| p.1);
    let rounds: usize = std::env::var("ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(3);
    if let Ok(start) = std::env::var("START") {
        for (value, text) in at.iter_mut().zip(start.split(',')) {
            *value = text.trim().parse().expect("a number");
        }
    }
    let mut best = score(&recordings, &at).0;
    println!("{} recordings, loss {best:.4}", recordings.len());
    for round in 0..rounds {
        for which in 0..at.len() {
            let (name, _, low, high) = PARAMETERS[which];
            let width = (high - low) / f64::from(4 << round);
            for step in [-1.0, -0.5, 0.5, 1.0] {
                let mut other = at;
                other[which] = (at[which] + step * width).clamp(low, high);
                let loss = score(&recordings, &other).0;
                if loss < best - 1e-5 {
                    (best, at) = (loss, other);
                }
            }
            println!("round {round} {name} {:.3}: {best:.4}", at[which]);
        }
    }
    // Changes several parameters at once: an increase of the loss from one may be compensated by another.
    let tries: usize = std::env::var("TRIES").ok().and_then(|r| r.parse().ok()).unwrap_or(0);
    let mut random = fastrand::Rng::with_seed(1);
    let mut width = 0.15;
    let lock = std::env::var("LOCK").unwrap_or_default();
    for _ in 0..tries {
        let mut other = at;
        for (value, (name, _, low, high)) in other.iter_mut().zip(PARAMETERS) {
            if random.f64() < 0.4 && !lock.split(',').any(|locked| locked == name) {
                let bell = (0..4).map(|_| random.f64()).sum::<f64>() - 2.0;
                *value = (*value + bell * width * (high - low)).clamp(low, high);
            }
        }
        let loss = score(&recordings, &other).0;
        if loss < best {
            (best, at, width) = (loss, other, (width * 1.3).min(0.3));
        } else {
            width = (width * 0.985).max(0.01);
        }
    }
    println!("after {tries} tries {best:.4}");
    if !held.is_empty() {
        let (loss, errors) = score(&held, &at);
        println!(
            "HELD {loss:.4} {}",
            held.iter()
                .zip(errors)
                .map(|(s, e)| format!("{} {:+.1}", s.0.name, 100.0 * e))
                .collect::<Vec<_>>()
                .join(" ")
        );
    }
    let (_, errors) = score(&recordings, &at);
    for ((recorded, truth, _), error) in recordings.iter().zip(&errors) {
        println!("{:<28} {truth:8.2} {:+6.1} %", recorded.name, 100.0 * error);
    }
    println!(
        "{}",
        PARAMETERS.iter().zip(at).map(|(p, v)| format!("{} {v:.3}", p.0)).collect::<Vec<_>>().join(", ")
    );
}
