//! Where the tables of a description are, and what is wrong with what it says of that.

use std::collections::BTreeMap;

use super::file::{Description, Table};
use super::parallel::{Home, Parallel, Part};
use crate::error::Problem;

/// The most GPUs of a job.
const MOST: i64 = 1 << 16;

impl Description {
    /// How many GPUs train it.
    pub(super) fn gpus(&self) -> u32 {
        let gpus = self.parallel.as_ref().map_or(1, |parallel| parallel.gpus);
        u32::try_from(gpus.max(1)).unwrap_or(1)
    }

    /// Ranks whose parts are of the same sizes, the lists in the order of their first.
    pub(super) fn alike(&self) -> Vec<Vec<u32>> {
        let tables: Vec<Table> = self.each_table().collect();
        let mut own: Vec<Vec<[i64; 4]>> = vec![Vec::new(); self.gpus() as usize];
        for (table, home) in tables.iter().zip(self.homes()) {
            let Home::Parts(parts) = &home else { continue };
            for part in parts {
                let cut = i64::from(home.is_by_rows());
                own[part.gpu as usize].push([part.size[0], part.size[1], table.lookups, cut]);
            }
        }
        let mut lists: Vec<Vec<u32>> = Vec::new();
        let mut known: BTreeMap<&[[i64; 4]], usize> = BTreeMap::new();
        for (rank, parts) in (0..).zip(&own) {
            let at = *known.entry(parts).or_insert_with(|| {
                lists.push(Vec::new());
                lists.len() - 1
            });
            lists[at].push(rank);
        }
        lists
    }

    /// Where each table is: as said, else one after the other on the GPUs in turn.
    pub(super) fn homes(&self) -> Vec<Home> {
        let tables: Vec<Table> = self.each_table().collect();
        let Some(parallel) = &self.parallel else {
            return tables.iter().map(|table| Home::whole(0, table.rows, table.columns)).collect();
        };
        if let Some(homes) = &parallel.homes {
            return homes.clone();
        }
        let gpus = self.gpus();
        let mut turn = 0;
        let home = |(at, table): (usize, &Table)| {
            let (at, rows, columns) = (at as i64, table.rows, table.columns);
            if parallel.data_parallel.contains(&at) {
                return Home::Everywhere;
            }
            if parallel.row_wise.contains(&at) {
                return Home::by_rows(gpus, rows, columns);
            }
            let placed = parallel.placement.iter().flatten();
            let on: Vec<u32> =
                (0..).zip(placed).filter(|(_, own)| own.contains(&at)).map(|(gpu, _)| gpu).collect();
            match on[..] {
                [] => {
                    turn += 1;
                    Home::whole((turn - 1) % gpus, rows, columns)
                }
                [gpu] => Home::whole(gpu, rows, columns),
                _ => Home::by_columns(&on, rows, columns),
            }
        };
        tables.iter().enumerate().map(home).collect()
    }
}

/// Checks what is said of GPUs.
pub(super) fn check(of: &Description) -> Result<(), Problem> {
    let Some(parallel) = &of.parallel else { return Ok(()) };
    let gpus = parallel.gpus;
    if !(1..=MOST).contains(&gpus) {
        let wanted = "a job has from 1 to 65,536 GPUs";
        return Err(Problem::Number { key: "parallel.gpus".into(), found: gpus, wanted });
    }
    if of.batch % gpus != 0 {
        return Err(Problem::Conflict(format!(
            "`batch` is {}, which {gpus} GPUs cannot share evenly: it is that of all GPUs together; take a multiple of {gpus}",
            of.batch
        )));
    }
    let tables: Vec<Table> = of.each_table().collect();
    if parallel.homes.is_none() {
        named(parallel, tables.len() as i64)?;
    }
    for (at, (home, table)) in of.homes().iter().zip(&tables).enumerate() {
        if let Home::Parts(parts) = home {
            covers(at, parts, table, gpus)?;
        }
    }
    Ok(())
}

/// Every table that is named is there, and named once.
fn named(parallel: &Parallel, tables: i64) -> Result<(), Problem> {
    let mut seen = vec![0_u32; usize::try_from(tables).unwrap_or(0)];
    if let Some(placement) = &parallel.placement
        && placement.len() as i64 != parallel.gpus
    {
        return Err(Problem::Conflict(format!(
            "`parallel.placement` lists the tables of {} GPUs, `parallel.gpus` is {}: one list a GPU, which may be empty",
            placement.len(),
            parallel.gpus
        )));
    }
    let placed = parallel.placement.iter().flatten();
    let lists = placed.map(|list| ("parallel.placement", list, 0)).chain([
        ("parallel.row_wise", &parallel.row_wise, 1),
        ("parallel.data_parallel", &parallel.data_parallel, 1),
    ]);
    for (key, list, alone) in lists {
        for (place, &table) in list.iter().enumerate() {
            let known = usize::try_from(table).ok().and_then(|table| seen.get_mut(table));
            let Some(seen) = known else {
                let wanted = "tables are numbered from 0 in the order of `tables`, each of `count` with a number of its own";
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

/// The parts of a table are all of it, each element once: whole, cut into columns, or its rows over all GPUs.
fn covers(at: usize, parts: &[Part], table: &Table, gpus: i64) -> Result<(), Problem> {
    let conflict = |why: String| {
        Err(Problem::Conflict(format!("table {at} of {} x {}: {why}", table.rows, table.columns)))
    };
    if let Some(part) = parts.iter().find(|part| i64::from(part.gpu) >= gpus) {
        return conflict(format!("a part lies on GPU {}, and there are {gpus}, numbered from 0", part.gpu));
    }
    if parts.iter().any(|part| part.size[1] < 1 || part.size[0] < 0) {
        return conflict("a part of it is empty: place it on fewer GPUs".into());
    }
    let by_rows = parts.iter().any(|part| part.offset[0] != 0);
    let (along, across) = if by_rows { (0, 1) } else { (1, 0) };
    let mut sorted = parts.to_vec();
    sorted.sort_by_key(|part| part.offset[along]);
    let whole = [table.rows, table.columns];
    let mut next = 0;
    for part in &sorted {
        let fits =
            part.offset[along] == next && part.offset[across] == 0 && part.size[across] == whole[across];
        if !fits {
            return conflict(format!(
                "its parts leave out or repeat elements from {} {next} on; parts are whole tables, columns, or rows over all GPUs",
                if by_rows { "row" } else { "column" }
            ));
        }
        next += part.size[along];
    }
    if next != whole[along] {
        return conflict(format!(
            "its parts hold {next} of {} {}",
            whole[along],
            if by_rows { "rows" } else { "columns" }
        ));
    }
    let mut on: Vec<u32> = parts.iter().map(|part| part.gpu).collect();
    on.sort_unstable();
    on.dedup();
    if on.len() != parts.len() {
        return conflict("two parts of it lie on one GPU: put them together".into());
    }
    if by_rows && parts.len() as i64 != gpus {
        return conflict(format!(
            "its rows lie on {} of {gpus} GPUs: rows are cut over all GPUs here, or a table lies whole or by columns",
            parts.len()
        ));
    }
    Ok(())
}
