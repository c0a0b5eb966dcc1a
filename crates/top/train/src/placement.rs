//! Placement of a model's tables on ranks.

use steptime_eager::{Model, TableLayout};
use steptime_predict::shard::read_plan;

use crate::Failure;
use crate::arguments::Train;
use crate::error::Error;

/// The model of a run on its ranks, with the batch of the command line.
///
/// # Errors
/// Where the batch cannot be divided among the ranks, or the plan is of another job.
pub fn place(model: Model, args: &Train) -> Result<Model, Failure> {
    let gpus = args.gpus.get();
    let model = args.batch.map_or(Ok(model.clone()), |batch| model.with_batch(batch.get()))?;
    if let Some(path) = &args.placement {
        if !path.exists() {
            let file = path.display();
            let reason = format!(
                "{file}: there is no such file: `steptime shard MODEL --gpus {gpus} -o {file}` writes it"
            );
            return Err(Error::Options(reason).into());
        }
        let (planned, homes) = read_plan(path, &model)?;
        if planned > gpus {
            let reason = format!("{} places tables on {planned} GPUs: use --gpus {planned}", path.display());
            return Err(Error::Options(reason).into());
        }
        return Ok(model.on(gpus, homes)?);
    }
    if gpus == 1 {
        if model.gpus() > 1 {
            eprintln!(
                "note: the model is described for {} GPUs, and is trained on one device: --gpus N trains it on several",
                model.gpus()
            );
        }
        return Ok(model.on_gpus(1)?);
    }
    if model.gpus() == gpus {
        return Ok(model);
    }
    let homes = neighbours(&model, gpus as usize);
    Ok(model.on(gpus, homes)?)
}

/// Whole tables: neighbours on each rank, so that their vectors arrive in order. The rank with the most looked-up elements has as few as possible;
/// of equal placements that with the
/// smallest memory is taken, then the most even one.
fn neighbours(model: &Model, ranks: usize) -> Vec<TableLayout> {
    let tables = model.tables();
    let number = |value: i64| u64::try_from(value).unwrap_or(0);
    let sizes: Vec<Load> = tables
        .iter()
        .map(|table| Load {
            elements: number(table.lookups) * number(table.columns),
            memory: number(table.rows) * number(table.columns),
        })
        .collect();
    let ends = ends(&sizes, ranks);
    let rank = |at: usize| ends.iter().position(|&end| at < end).unwrap_or(0) as u32;
    let places = tables.iter().enumerate();
    places.map(|(at, table)| TableLayout::whole(rank(at), table.rows, table.columns)).collect()
}

/// Load of tables on a rank.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Load {
    /// Elements that a sample looks up.
    elements: u64,
    /// Elements of the tables.
    memory: u64,
}

/// The square of the looked-up elements: of equal maxima, the sum of squares is smallest where loads are even.
fn square(load: Load) -> u128 {
    u128::from(load.elements).pow(2)
}

/// For each rank the end of its tables.
fn ends(tables: &[Load], ranks: usize) -> Vec<usize> {
    let load = |from: usize, to: usize| {
        tables[from..to].iter().fold(Load::default(), |sum, table| Load {
            elements: sum.elements + table.elements,
            memory: sum.memory + table.memory,
        })
    };
    // For each number of tables: the greatest load of a rank, the sum of squares, and the ends.
    let first = |end| (load(0, end), square(load(0, end)), vec![end]);
    let mut best: Vec<(Load, u128, Vec<usize>)> = (0..=tables.len()).map(first).collect();
    for _ in 1..ranks {
        let extended = |end: usize| {
            let splits = (0..=end).map(|begin| {
                let (before, squares, ends) = &best[begin];
                let own = load(begin, end);
                let most = Load {
                    elements: before.elements.max(own.elements),
                    memory: before.memory.max(own.memory),
                };
                (most, squares + square(own), begin, ends)
            });
            let found = splits.min_by_key(|&(most, squares, begin, _)| (most, squares, begin));
            found.map(|(most, squares, _, ends)| (most, squares, ends.iter().copied().chain([end]).collect()))
        };
        best = (0..=tables.len()).filter_map(extended).collect();
    }
    best.pop().map(|(.., ends)| ends).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_have_balanced_loads() {
        let of = |all: &[[u64; 2]]| -> Vec<Load> {
            all.iter().map(|&[elements, memory]| Load { elements, memory }).collect()
        };
        assert_eq!(ends(&of(&[[1, 1]; 26]), 2), [13, 26]);
        assert_eq!(ends(&of(&[[8, 1], [1, 1], [1, 1], [1, 1]]), 2), [1, 4]);
        // Equal lookups: the memory decides.
        assert_eq!(ends(&of(&[[1, 9], [1, 9], [1, 1]]), 2), [1, 3]);
        assert_eq!(ends(&of(&[[3, 9], [1, 1], [1, 1]]), 3), [1, 2, 3]);
        assert_eq!(ends(&of(&[[1, 1]; 2]), 4).len(), 4);
        assert_eq!(ends(&of(&[[1, 1]; 5]), 1), [5]);
    }
}
