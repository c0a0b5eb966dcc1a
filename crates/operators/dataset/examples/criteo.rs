//! Text like Criteo's, generated and converted, with the speed and the memory of the conversion.
//!
//! ```text
//! cargo run --release -p steptime-dataset --example criteo -- generate FILE ROWS [ZIPF]
//! cargo run --release -p steptime-dataset --example criteo -- convert PLACE THREADS THRESHOLD|hash FILE..
//! ```

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::time::{ClockId, clock_gettime};
use steptime_dataset::convert::{ConvertOptions, Pass, Progress, ProgressFn, criteo};
use steptime_dataset::{IdRule, Planted, PlantedOptions, PlantedRow};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["generate", file, rows] => generate(Path::new(file), rows.parse()?, 1.05),
        ["generate", file, rows, zipf] => generate(Path::new(file), rows.parse()?, zipf.parse()?),
        ["convert", place, threads, rule, ref files @ ..] => {
            let ids = match rule {
                "hash" => IdRule::Hash { buckets: 1 << 20 },
                threshold => IdRule::Frequency { threshold: threshold.parse()? },
            };
            let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
            let threads = threads.parse()?;
            // Processor time at the first part of each pass: ids are made between the passes, and belong to the first.
            let times = Arc::new(Mutex::new(Vec::new()));
            let begins = Arc::clone(&times);
            let progress: Arc<ProgressFn> = Arc::new(move |progress: &Progress| {
                let mut begins = begins.lock().unwrap_or_else(PoisonError::into_inner);
                if begins.last().is_none_or(|(pass, _)| *pass != progress.pass) {
                    begins.push((progress.pass, processor_seconds()));
                }
            });
            let options = ConvertOptions { threads, progress: Some(progress), ..ConvertOptions::new(ids) };
            let report = criteo(&files, Path::new(place), &options)?;
            println!("{} rows, {} damaged", report.features.rows, report.damaged);
            report.first_damaged.iter().for_each(|row| println!("  {row}"));
            let begins = times.lock().unwrap_or_else(PoisonError::into_inner);
            let ends = begins.iter().skip(1).map(|(_, time)| *time).chain([processor_seconds()]);
            for (pass, ((_, begin), end)) in report.passes.iter().zip(begins.iter().zip(ends)) {
                let processor = megabytes(pass) / (end - begin);
                let (name, megabytes, seconds) = (pass.name, megabytes(pass), pass.time.as_secs_f64());
                let rate = megabytes / seconds;
                println!(
                    "pass {name}: {megabytes:.0} MB in {seconds:.1} s, {rate:.0} MB/s, {processor:.0} MB a second of processor time"
                );
            }
            println!("most memory: {}", peak().unwrap_or_else(|| "unknown".to_owned()));
            Ok(())
        }
        _ => Err("usage: generate FILE ROWS [ZIPF], or convert PLACE THREADS THRESHOLD|hash FILE..".into()),
    }
}

fn megabytes(pass: &Pass) -> f64 {
    pass.bytes as f64 / 1e6
}

/// Processor time of all threads so far.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Greatest resident memory of this process, where Linux reports it.
fn peak() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    Some(status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().to_owned())
}

/// Writes planted rows as text; two threads make it, one writes.
fn generate(path: &Path, rows: u64, zipf: f64) -> Result<(), Box<dyn Error>> {
    const PART: u64 = 4096;
    let planted = Planted::new(PlantedOptions { zipf, ..PlantedOptions::new(1, rows) })?;
    let mut writer = BufWriter::with_capacity(1 << 20, File::create(path)?);
    std::thread::scope(|scope| {
        let texts = [0, 1].map(|first| {
            let (sender, texts) = sync_channel(4);
            let planted = &planted;
            scope.spawn(move || {
                for part in (first..rows.div_ceil(PART)).step_by(2) {
                    let mut text = Vec::new();
                    (part * PART..rows.min((part + 1) * PART))
                        .for_each(|row| line(&planted.row(row), &mut text));
                    if sender.send(text).is_err() {
                        return;
                    }
                }
            });
            texts
        });
        (0..rows.div_ceil(PART))
            .try_for_each(|part| Ok(writer.write_all(&texts[part as usize % 2].recv()?)?))
            .map_err(|error: Box<dyn Error>| error)
    })?;
    Ok(writer.flush()?)
}

/// Appends a row as a line: skewed whole numbers, some fields missing.
fn line(row: &PlantedRow, text: &mut Vec<u8>) {
    text.push(if row.label > 0.5 { b'1' } else { b'0' });
    for (column, &value) in row.dense.iter().enumerate() {
        text.push(b'\t');
        if value > -1.2 {
            let number = (value * 1.7 + 2.0).exp() as i64 - if column == 1 { 3 } else { 0 };
            text.extend_from_slice(number.to_string().as_bytes());
        }
    }
    for (column, &index) in row.indices.iter().enumerate() {
        // One to one from indices to 32 bits, another function for each column.
        let category =
            (index as u32).wrapping_mul(0x9e37_79b1).wrapping_add(column as u32 * 0x0101_0101).rotate_left(7);
        text.push(b'\t');
        if column % 5 != 3 || !category.is_multiple_of(16) {
            text.extend_from_slice(format!("{category:08x}").as_bytes());
        }
    }
    text.push(b'\n');
}
