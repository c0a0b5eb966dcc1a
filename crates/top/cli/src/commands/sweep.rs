//! `steptime sweep`: a grid of changes.

mod grid;
mod points;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use steptime_answers::{GridReport, GridRow};
use steptime_predict::{Error, GridPoint, Query, Step, WhatIfs};
use steptime_rewrite::Rule;

use self::grid::Grid;
use self::points::Metadata;
use super::{Failure, what_if};
use crate::cli::Sweep;
use crate::console::Console;
use crate::report;
use crate::report::sweep::plot::{PlotData, plot};
use crate::{output, progress};

/// Interval between writes of the finished points.
const KEPT: Duration = Duration::from_secs(5);

pub fn run(args: &Sweep, console: &Console<'_>) -> Result<(), Failure> {
    let grid = Grid::read(&args.grid, args.shard)?;
    let x = match &args.plot {
        Some(_) => Some(plotted(&grid)?),
        None => None,
    };
    for output in [Some(&args.output), args.plot.as_ref()].into_iter().flatten() {
        output::separate(output, grid.devices().map(Path::new))?;
    }
    let step = what_if::open(console, &args.input, &args.whom)?;
    let about = about(args, &grid, &step);
    let mut rows = points::read(&args.output, &about)?;
    let resumed = rows.len();
    let wanted = grid.shard(args.shard);
    let left: Vec<u64> = wanted.iter().copied().filter(|point| !rows.contains_key(point)).collect();
    if !left.is_empty() {
        rows = answer(args, &grid, &step, &left, rows, &about)?;
    }
    if let (Some(path), Some(x)) = (&args.plot, x) {
        let svg = plot(&series(&grid, &rows, x, &step));
        output::write_file(path, |out| out.write_all(svg.as_bytes()))?;
    }
    let all: Vec<GridRow> = rows.into_values().collect();
    let written = args.output.display().to_string();
    let answer = GridReport::new(&step, written, &all, resumed, |point| grid.words(point));
    Ok(console.print_answer(args.form, &answer, report::sweep::text, report::sweep::csv)?)
}

/// Returns the properties that identify this run, whose points may be resumed.
fn about(args: &Sweep, grid: &Grid, step: &Step) -> Metadata {
    let shard = args.shard.map_or_else(|| "1/1".to_owned(), |shard| format!("{}/{}", shard.part, shard.of));
    let input = format!("{}: {:?}", step.name, step.fingerprint);
    let (whom, part) = (&args.whom, &args.whom.part);
    let asked = format!("{:?} {:?} {:?} {part:?}", whom.device, whom.host, whom.pricing);
    vec![
        ("steptime_grid", "grid", grid.text()),
        ("steptime_shard", "shard", shard),
        ("steptime_input", "input", input),
        ("steptime_asked", "device, host, pricing, step or rank", asked),
    ]
}

/// Predicts the points that are left; finished ones are written to the output at intervals.
fn answer(
    args: &Sweep,
    grid: &Grid,
    step: &Step,
    left: &[u64],
    rows: BTreeMap<u64, GridRow>,
    about: &Metadata,
) -> Result<BTreeMap<u64, GridRow>, Failure> {
    let plan = Plan::build(args, grid, step, left)?;
    let asked = plan.questions.iter().map(Query::what_ifs).collect::<Result<Vec<WhatIfs<'_>>, Error>>()?;
    let write = |rows: &BTreeMap<u64, GridRow>| {
        output::write_file(&args.output, |out| points::write(out, grid, rows, about))
    };
    let progress = progress::Progress::points();
    let before = rows.len() as u64;
    let total = before + left.len() as u64;
    let state = Mutex::new((rows, Instant::now(), None::<Error>));
    steptime_predict::grid(&asked, &plan.changes, &plan.points, |at, answer| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let (rows, written, failed) = &mut *state;
        let row = GridRow::new(left[at], &answer, plan.samples(at, step.batch()));
        rows.insert(row.point, row);
        progress.report(rows.len() as u64, total);
        if written.elapsed() > KEPT {
            *failed = write(rows).err();
            *written = Instant::now();
        }
        failed.is_none()
    });
    let (rows, _, failed) = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    match failed {
        Some(error) => Err(error.into()),
        None => {
            write(&rows)?;
            Ok(rows)
        }
    }
}

/// Points in the form that the library takes.
struct Plan<'s> {
    questions: Vec<Query<'s>>,
    changes: Vec<Vec<Box<dyn Rule>>>,
    points: Vec<GridPoint>,
    /// Batch of each point, if in the grid, and the number of batches per update.
    batches: Vec<(Option<u64>, u32)>,
}

impl<'s> Plan<'s> {
    fn build(args: &Sweep, grid: &Grid, step: &'s Step, left: &[u64]) -> Result<Plan<'s>, Failure> {
        let mut plan = Plan { questions: vec![], changes: vec![], points: vec![], batches: vec![] };
        let mut devices: BTreeMap<Option<&str>, usize> = BTreeMap::new();
        let mut edits: BTreeMap<String, usize> = BTreeMap::new();
        for &point in left {
            let device = grid.device(point);
            let question = match devices.get(&device) {
                Some(&known) => known,
                None => {
                    let question = what_if::question(step, &args.whom)?;
                    plan.questions.push(match device {
                        Some(name) => question.on(name)?,
                        None => question,
                    });
                    *devices.entry(device).or_insert(plan.questions.len() - 1)
                }
            };
            let changes = grid.changes(point)?;
            let rules = what_if::rules(&changes);
            // Equal rules have equal effects.
            let change = *edits.entry(format!("{rules:?}")).or_insert_with(|| {
                plan.changes.push(rules);
                plan.changes.len() - 1
            });
            plan.points.push(GridPoint { question, change, host_times: changes.host_speed });
            plan.batches.push((changes.batch, changes.accumulate.unwrap_or(1)));
        }
        Ok(plan)
    }

    /// Returns the samples of a step at a point, if the batch is known; `recorded` is the recorded batch.
    fn samples(&self, at: usize, recorded: Option<u64>) -> Option<u64> {
        let (batch, times) = self.batches[at];
        Some(batch.or(recorded)? * u64::from(times))
    }
}

/// Returns the key on the x axis of a plot: the first with several numbers.
fn plotted(grid: &Grid) -> Result<usize, Failure> {
    let numbers = |values: &[Option<toml::Value>]| {
        values.len() > 1 && values.iter().all(|value| value.as_ref().and_then(points::number).is_some())
    };
    let found = grid.keys.iter().position(|(_, values)| numbers(values));
    found.ok_or_else(|| "--plot needs a key of the grid with several numbers, as batch or host-speed".into())
}

/// Returns the lines of a plot: one for each value of a second key; the shortest step over all other keys.
fn series(grid: &Grid, rows: &BTreeMap<u64, GridRow>, x: usize, step: &Step) -> PlotData {
    let several = |&key: &usize| key != x && (2..=PlotData::MOST).contains(&grid.keys[key].1.len());
    // Steps on different GPUs never share a line.
    let by = (0..grid.keys.len())
        .filter(several)
        .max_by_key(|&key| (grid.keys[key].0 == "device", std::cmp::Reverse(key)));
    let mut lines: Vec<(String, Vec<(f64, f64)>)> = match by {
        None => vec![(String::new(), Vec::new())],
        Some(key) => {
            grid.keys[key].1.iter().map(|value| (grid::value_text(value.as_ref()), Vec::new())).collect()
        }
    };
    let mut outside = Vec::new();
    for row in rows.values() {
        let places = grid.places(row.point);
        let at = grid.keys[x].1[places[x]].as_ref().and_then(points::number);
        let (Some(at), Some(ms)) = (at, row.step_ms) else { continue };
        if row.fits == Some(false) {
            outside.push((at, ms));
            continue;
        }
        let line = &mut lines[by.map_or(0, |key| places[key])].1;
        match line.iter_mut().find(|(other, _)| *other == at) {
            Some((_, least)) => *least = least.min(ms),
            None => line.push((at, ms)),
        }
    }
    lines.iter_mut().for_each(|(_, line)| line.sort_by(|a, b| a.0.total_cmp(&b.0)));
    let others =
        (0..grid.keys.len()).filter(|&key| key != x && Some(key) != by && grid.keys[key].1.len() > 1);
    PlotData {
        title: step.title(),
        x: grid.keys[x].0.clone(),
        by: by.map(|key| grid.keys[key].0.clone()),
        least_over: others.map(|key| grid.keys[key].0.clone()).collect(),
        lines,
        outside,
    }
}
