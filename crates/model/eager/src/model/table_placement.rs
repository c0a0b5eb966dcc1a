//! Placement of the tables of a description, and its checks.

use std::collections::BTreeMap;

use super::file::{Description, Table};
use super::placement::{Cache, Parallel, Sharding, TableLayout, TableShard};
use crate::error::Problem;

/// Maximum number of GPUs of a job.
const MOST: i64 = 1 << 16;

impl Description {
    pub(super) fn gpus(&self) -> u32 {
        let gpus = self.parallel.as_ref().map_or(1, |parallel| parallel.gpus);
        u32::try_from(gpus.max(1)).unwrap_or(1)
    }

    /// Ranks whose parts have the same sizes; lists are ordered by their first ranks.
    pub(super) fn alike(&self) -> Vec<Vec<u32>> {
        let tables: Vec<Table> = self.each_table().collect();
        let mut own: Vec<Vec<[i64; 7]>> = vec![Vec::new(); self.gpus() as usize];
        for (table, home) in tables.iter().zip(self.homes()) {
            let TableLayout::Parts(parts) = &home else { continue };
            for part in parts {
                let [held, misses] = cache_numbers(part);
                own[part.gpu as usize].push([
                    part.size[0],
                    part.size[1],
                    table.lookups,
                    home.over(part),
                    part.lookups(self.batch * table.lookups, table.rows),
                    held,
                    misses,
                ]);
            }
        }
        let mut lists: Vec<Vec<u32>> = Vec::new();
        let mut known: BTreeMap<&[[i64; 7]], usize> = BTreeMap::new();
        for (rank, parts) in (0..).zip(&own) {
            let at = *known.entry(parts).or_insert_with(|| {
                lists.push(Vec::new());
                lists.len() - 1
            });
            lists[at].push(rank);
        }
        lists
    }

    /// Key of a rank's work: its parts, then the origin and order of received vectors.
    pub(super) fn work(&self, rank: u32) -> Vec<i64> {
        let tables: Vec<Table> = self.each_table().collect();
        let mut work = Vec::new();
        // Exchanged, then reduced, then replicated tables: the order of vectors before any reordering.
        let [mut moved, mut added, mut copied] = [const { Vec::new() }; 3];
        for (at, (table, home)) in (0..).zip(tables.iter().zip(self.homes())) {
            let cutting = home.cutting(self.gpus());
            let tower = table.tower.map_or(0, |tower| 1 + tower as i64);
            // In a model with separate weights, these are stored with the first column.
            let mut own =
                |[rows, columns]: [i64; 2], [over, wanted]: [i64; 2], first: bool, told: [i64; 2]| {
                    let lookups = [table.lookups, wanted];
                    work.extend([cutting as i64, rows, columns, over, i64::from(first), tower]);
                    work.extend(lookups.into_iter().chain(told));
                };
            let TableLayout::Parts(parts) = &home else {
                own([table.rows, table.columns], [1, -1], true, NOT_CACHED);
                copied.push((-1, at, 0, table.columns, 1));
                continue;
            };
            for part in parts {
                let over = home.over(part);
                if part.gpu == rank {
                    let wanted = part.lookups(self.batch * table.lookups, table.rows);
                    own(part.size, [over, wanted], part.offset[1] == 0, cache_numbers(part));
                }
                match cutting {
                    Sharding::Rows if part.gpu > 0 => {}
                    Sharding::Rows => added.push((-1, at, 0, table.columns, 1)),
                    _ => moved.push((i64::from(part.gpu), at, part.offset[1], part.size[1], over)),
                }
            }
        }
        moved.sort_unstable();
        let come = [moved, added, copied].concat();
        let in_order = |firsts: bool| {
            come.iter().filter(|part| !firsts || part.2 == 0).map(|part| (part.1, part.2)).is_sorted()
        };
        // Vectors of one width are reordered by indices, with the same ops for any order.
        let of_one_width = come.windows(2).all(|pair| pair[0].3 == pair[1].3);
        let of_one_side = tables.windows(2).all(|pair| pair[0].tower == pair[1].tower);
        let plain = of_one_width && of_one_side && come.iter().all(|part| part.4 == 1);
        work.extend([-1, i64::from(in_order(false)), i64::from(in_order(true))]);
        for (gpu, at, column, columns, over) in come {
            work.extend([gpu, columns, i64::from(column == 0)]);
            work.extend(if plain { [0; 3] } else { [at, column, over] });
        }
        work
    }

    /// Placement of each table: as given, else on the GPUs in turn.
    pub(super) fn homes(&self) -> Vec<TableLayout> {
        let tables: Vec<Table> = self.each_table().collect();
        let Some(parallel) = &self.parallel else {
            return tables.iter().map(|table| TableLayout::whole(0, table.rows, table.columns)).collect();
        };
        if let Some(homes) = &parallel.homes {
            return homes.clone();
        }
        let gpus = self.gpus();
        let mut turn = 0;
        let home = |(at, table): (usize, &Table)| {
            let (at, rows, columns) = (at as i64, table.rows, table.columns);
            if parallel.data_parallel.contains(&at) {
                return TableLayout::Everywhere;
            }
            if parallel.row_wise.contains(&at) {
                return TableLayout::by_rows(gpus, rows, columns);
            }
            if let Some(grid) = parallel.grid.iter().find(|grid| grid.table == at) {
                let number = |&gpu: &i64| u32::try_from(gpu).unwrap_or(u32::MAX);
                let groups: Vec<Vec<u32>> =
                    grid.gpus.iter().map(|group| group.iter().map(number).collect()).collect();
                return TableLayout::by_grid(&groups, rows, columns);
            }
            let placed = parallel.placement.iter().flatten();
            let on: Vec<u32> =
                (0..).zip(placed).filter(|(_, own)| own.contains(&at)).map(|(gpu, _)| gpu).collect();
            match on[..] {
                [] => {
                    turn += 1;
                    TableLayout::whole((turn - 1) % gpus, rows, columns)
                }
                [gpu] => TableLayout::whole(gpu, rows, columns),
                _ => TableLayout::by_columns(&on, rows, columns),
            }
        };
        tables.iter().enumerate().map(home).collect()
    }
}

/// Cache numbers of a part with all rows on the GPU.
const NOT_CACHED: [i64; 2] = [-1, 0];

/// Further numbers in the key of a part's work: rows in the cache, and rows that move per step.
fn cache_numbers(part: &TableShard) -> [i64; 2] {
    part.cache.map_or(NOT_CACHED, |cache| [cache.rows, cache.misses])
}

/// Checks the placement on GPUs.
pub(super) fn check(of: &Description) -> Result<(), Problem> {
    let Some(parallel) = &of.parallel else { return Ok(()) };
    let gpus = parallel.gpus;
    if !(1..=MOST).contains(&gpus) {
        let wanted = "a job has from 1 to 65,536 GPUs";
        return Err(Problem::Number { key: "parallel.gpus".into(), found: gpus, wanted });
    }
    if of.batch % gpus != 0 {
        return Err(Problem::Conflict(format!(
            "`batch` is {}, which cannot be divided evenly among {gpus} GPUs: it is the batch of all GPUs together; use a multiple of {gpus}",
            of.batch
        )));
    }
    if let Some(nodes) = parallel.nodes
        && (nodes < 1 || gpus % nodes != 0)
    {
        return Err(Problem::Conflict(format!(
            "`parallel.nodes` is {nodes}, among which {gpus} GPUs cannot be divided evenly: use a divisor of {gpus}"
        )));
    }
    let tables: Vec<Table> = of.each_table().collect();
    if parallel.homes.is_none() {
        named(parallel, tables.len() as i64)?;
    }
    for (at, (home, table)) in of.homes().iter().zip(&tables).enumerate() {
        if let TableLayout::Parts(parts) = home {
            covers(at, parts, table, gpus)?;
        }
    }
    Ok(())
}

/// Checks that every named table exists, and is named once.
fn named(parallel: &Parallel, tables: i64) -> Result<(), Problem> {
    let mut seen = vec![0_u32; usize::try_from(tables).unwrap_or(0)];
    if let Some(placement) = &parallel.placement
        && placement.len() as i64 != parallel.gpus
    {
        return Err(Problem::Conflict(format!(
            "`parallel.placement` lists the tables of {} GPUs, but `parallel.gpus` is {}: give one list per GPU, which may be empty",
            placement.len(),
            parallel.gpus
        )));
    }
    let placed = parallel.placement.iter().flatten();
    groups(parallel)?;
    let grids: Vec<i64> = parallel.grid.iter().map(|grid| grid.table).collect();
    let lists = placed.map(|list| ("parallel.placement", list, 0)).chain([
        ("parallel.row_wise", &parallel.row_wise, 1),
        ("parallel.data_parallel", &parallel.data_parallel, 1),
        ("parallel.grid", &grids, 1),
    ]);
    for (key, list, alone) in lists {
        for (place, &table) in list.iter().enumerate() {
            let known = usize::try_from(table).ok().and_then(|table| seen.get_mut(table));
            let Some(seen) = known else {
                let wanted = "tables are numbered from 0 in the order of `tables`, and each of `count` tables has its own number";
                return Err(Problem::Number { key: key.into(), found: table, wanted });
            };
            if list[..place].contains(&table) || (alone == 1 && *seen > 0) {
                return Err(Problem::Conflict(format!(
                    "table {table} is placed twice: the second time in `{key}`"
                )));
            }
            *seen += 1;
        }
    }
    Ok(())
}

/// Checks that the GPUs of each group of columns exist, and that no group is empty.
fn groups(parallel: &Parallel) -> Result<(), Problem> {
    for grid in &parallel.grid {
        if grid.gpus.is_empty() || grid.gpus.iter().any(Vec::is_empty) {
            return Err(Problem::Conflict(format!(
                "`parallel.grid` of table {}: every group of columns needs at least one GPU, as in gpus = [[0, 1], [2, 3]]",
                grid.table
            )));
        }
        if let Some(&found) = grid.gpus.iter().flatten().find(|gpu| !(0..parallel.gpus).contains(gpu)) {
            let wanted = "GPUs are numbered from 0, up to one less than `parallel.gpus`";
            return Err(Problem::Number { key: "parallel.grid".into(), found, wanted });
        }
    }
    Ok(())
}

/// Checks that the parts of a table cover each element once: groups of columns, each with consecutive rows.
fn covers(at: usize, parts: &[TableShard], table: &Table, gpus: i64) -> Result<(), Problem> {
    let conflict = |why: String| {
        Err(Problem::Conflict(format!("table {at} of {} x {}: {why}", table.rows, table.columns)))
    };
    if let Some(part) = parts.iter().find(|part| i64::from(part.gpu) >= gpus) {
        return conflict(format!(
            "a part is on GPU {}, but there are {gpus} GPUs, numbered from 0",
            part.gpu
        ));
    }
    if parts.iter().any(|part| part.size[1] < 1 || part.size[0] < 0) {
        return conflict("a part of it is empty: place it on fewer GPUs".into());
    }
    let odd = |cache: &Cache| cache.rows < 1 || cache.misses < 0 || cache.misses > cache.rows;
    if let Some(cache) = parts.iter().filter_map(|part| part.cache).find(odd) {
        return conflict(format!(
            "a cache of {} rows for {} rows loaded per step: it must hold at least one row, and all rows loaded in a step",
            cache.rows, cache.misses
        ));
    }
    let mut bands: BTreeMap<[i64; 2], Vec<[i64; 2]>> = BTreeMap::new();
    for part in parts {
        bands.entry([part.offset[1], part.size[1]]).or_default().push([part.offset[0], part.size[0]]);
    }
    let rule = "parts are columns, and of these rows: each group of columns has all rows";
    // Columns first, then the rows of each group of columns.
    let columns: Vec<[i64; 2]> = bands.keys().copied().collect();
    let rows = bands.into_values().map(|mut rows| {
        rows.sort_unstable();
        ("rows", rows, table.rows)
    });
    for (what, pieces, whole) in std::iter::once(("columns", columns, table.columns)).chain(rows) {
        let mut next = 0;
        for [first, length] in pieces {
            if first != next {
                return conflict(format!("its parts leave out or repeat {what} from {next} on: {rule}"));
            }
            next += length;
        }
        if next != whole {
            return conflict(format!("its parts hold {next} of {whole} {what}: {rule}"));
        }
    }
    let mut on: Vec<u32> = parts.iter().map(|part| part.gpu).collect();
    on.sort_unstable();
    on.dedup();
    if on.len() != parts.len() {
        return conflict("two parts of it are on one GPU: merge them".into());
    }
    Ok(())
}
