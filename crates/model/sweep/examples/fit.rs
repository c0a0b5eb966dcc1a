//! Fits a profile to sweeps and prints the scores of its families.
//!
//! ```sh
//! cargo run --release -p steptime-sweep --example fit -- sweep.parquet /tmp/profile
//! ```

use std::path::Path;

use steptime_aten::OpSet;
use steptime_cost::device::{FitOptions, fit};
use steptime_sweep::{observe, read_all, spec};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (paths, places): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.ends_with(".parquet"));
    let sweeps = read_all(&paths)?;
    let observed = observe(&sweeps, &OpSet::standard());
    let spec = spec(sweeps.first().ok_or("give at least one sweep")?, &observed)?;
    eprintln!(
        "unknown: {:?}\nunexpected: {:?}\nunread: {:?}",
        observed.unknown, observed.unexpected, observed.unread
    );
    let progress = |name: &str, done: usize, of: usize| eprintln!("{done}/{of} {name}");
    let name = places.first().and_then(|place| Path::new(place).file_name()).unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let options = FitOptions { name, progress: &progress, ..FitOptions::default() };
    let profile = fit(&observed.observations, &spec, &options)?;
    for family in profile.families() {
        println!("{} ({} rows, {} cases): {}", family.name, family.rows, family.cases, family.model.name());
        for (kind, score) in &family.scores {
            let interval = &family.intervals[kind];
            println!(
                "  {:9} gmae {:5.1} %  mean {:5.1} %  p90 {:5.1} %  bias {:+5.1} %  inside {:4.1} %  half-width {:4.1} %",
                kind.name(),
                score.gmae * 100.0,
                score.mean * 100.0,
                score.p90 * 100.0,
                score.bias * 100.0,
                interval.inside * 100.0,
                interval.half_width * 100.0
            );
        }
    }
    if let Some(place) = places.first() {
        profile.write(Path::new(place))?;
    }
    Ok(())
}
