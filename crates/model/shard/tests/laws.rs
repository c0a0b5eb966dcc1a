//! Laws of the search, on random problems.

use proptest::prelude::*;
use steptime_shard::{
    Cut, Load, Plan, Problem, ScarceMemory, Table, TablePlacement, Way, bound, neighbours, search,
};
use steptime_trace::{Bytes, Nanos};

fn load(host: i64, device: i64, memory: u64, columns: u64) -> Load {
    Load {
        host: Nanos(1000 * host),
        device: Nanos(1000 * device),
        memory: Bytes(memory << 20),
        columns,
        ..Load::default()
    }
}

/// A table with three ways: whole, in two groups of columns, or a copy on every GPU.
fn table((host, device, memory): (i64, i64, u64)) -> Table {
    let half = load(host, device / 2 + 1, memory / 2 + 1, 32);
    let ways = vec![
        Way::whole(load(host, device, memory, 64)),
        Way { cut: Cut::Columns(2), cached: None, parts: vec![half; 2], each: Load::default() },
        Way {
            cut: Cut::Copies,
            cached: None,
            parts: Vec::new(),
            each: load(host, device / 3 + 1, memory, 0),
        },
    ];
    Table { ways }
}

fn problem() -> impl Strategy<Value = Problem> {
    let tables = prop::collection::vec((1..50_i64, 1..400_i64, 1..500_u64), 1..9);
    (tables, 2..4_u32).prop_map(|(tables, gpus)| Problem {
        gpus,
        node: gpus,
        memory: Bytes(20_000 << 20),
        host_memory: Bytes(0),
        base: load(100, 80, 100, 0),
        exchange: Nanos(20),
        tables: tables.into_iter().map(table).collect(),
    })
}

/// Returns every plan.
fn all(problem: &Problem) -> Vec<Plan> {
    let mut plans = vec![Plan::default()];
    for table in &problem.tables {
        let mut longer = Vec::new();
        for plan in &plans {
            for (way, row) in table.ways.iter().enumerate() {
                let mut places: Vec<Vec<u32>> = vec![Vec::new()];
                for _ in &row.parts {
                    places = places
                        .iter()
                        .flat_map(|gpus| {
                            (0..problem.gpus)
                                .filter(|gpu| !gpus.contains(gpu))
                                .map(|gpu| [&gpus[..], &[gpu]].concat())
                        })
                        .collect();
                }
                for gpus in places {
                    let mut tables = plan.tables.clone();
                    tables.push(TablePlacement { way, gpus });
                    longer.push(Plan { tables });
                }
            }
        }
        plans = longer;
    }
    plans
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_table_lies_once_and_fits(problem in problem()) {
        let plan = search(&problem).expect("there is room");
        prop_assert_eq!(plan.tables.len(), problem.tables.len());
        for (table, placed) in problem.tables.iter().zip(&plan.tables) {
            prop_assert_eq!(placed.gpus.len(), table.ways[placed.way].parts.len());
            let mut gpus = placed.gpus.clone();
            gpus.sort_unstable();
            gpus.dedup();
            prop_assert_eq!(gpus.len(), placed.gpus.len());
        }
        prop_assert!(problem.loads(&plan).iter().all(|load| load.memory <= problem.memory));
    }

    #[test]
    fn no_plan_is_better_than_the_bound_and_few_are_better_than_that_found(problem in problem()) {
        let small = Problem { tables: problem.tables.into_iter().take(4).collect(), gpus: 2, ..problem };
        let found = small.cost(&search(&small).expect("there is room"));
        let best = all(&small).iter().map(|plan| small.cost(plan)).min().expect("a plan");
        let bound = bound(&small).expect("a bound");
        // The solver's doubles have rounding errors.
        prop_assert!(bound <= best + Nanos(2), "{bound:?} {best:?}");
        prop_assert!(found.0 as f64 <= 1.15 * best.0 as f64, "{found:?} {best:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn plans_near_another_are_a_change_away_and_the_most_promising_is_first(problem in problem()) {
        let plan = search(&problem).expect("there is room");
        let busy: Vec<Nanos> = problem.loads(&plan).iter().map(|load| problem.time(load)).collect();
        let plans = neighbours(&problem, &plan, &busy, usize::MAX);
        for other in &plans {
            let changed: Vec<usize> =
                (0..plan.tables.len()).filter(|&at| plan.tables[at] != other.tables[at]).collect();
            prop_assert!(changed.len() == 1 || changed.len() == 2, "{changed:?}");
            let busiest = (0..busy.len()).max_by_key(|&gpu| (busy[gpu], std::cmp::Reverse(gpu))).expect("a GPU");
            let takes_part = |at: &usize| {
                let gpus = &plan.tables[*at].gpus;
                gpus.is_empty() || gpus.contains(&(busiest as u32))
            };
            prop_assert!(changed.iter().any(takes_part));
            prop_assert!(problem.loads(other).iter().all(|load| load.memory <= problem.memory));
        }
        let first = neighbours(&problem, &plan, &busy, 3);
        prop_assert_eq!(&first[..], &plans[..plans.len().min(3)]);
        // If GPUs are as busy as the loads add up to, estimates are the costs of plans.
        let costs: Vec<Nanos> = plans.iter().map(|other| problem.cost(other)).collect();
        prop_assert!(costs.is_sorted(), "{costs:?}");
    }
}

#[test]
fn a_grid_lies_on_the_gpus_of_the_nodes_that_are_least_busy() {
    let part = load(10, 100, 100, 16);
    let grid = Way { cut: Cut::Grid(2), cached: None, parts: vec![part; 4], each: Load::default() };
    let busy = Way::whole(load(10, 500, 100, 16));
    let problem = Problem {
        gpus: 6,
        node: 2,
        memory: Bytes(1000 << 20),
        tables: vec![Table { ways: vec![busy] }, Table { ways: vec![grid] }],
        ..Problem::default()
    };
    let plan = search(&problem).expect("there is room");
    assert_eq!((&plan.tables[0].gpus[..], &plan.tables[1].gpus[..]), (&[0][..], &[2, 3, 4, 5][..]));
    let tight = Problem { memory: Bytes(99 << 20), ..problem };
    assert!(search(&tight).expect_err("no room").to_string().contains("table"));
    assert_eq!(Cut::Grid(1).to_string(), "rows over the GPUs of a node");
}

#[test]
fn a_table_larger_than_every_gpu_is_cut_and_one_that_cannot_be_is_named() {
    let large = table((10, 100, 900));
    let tables = vec![large.clone()];
    let problem = Problem { gpus: 2, memory: Bytes(600 << 20), tables, ..Problem::default() };
    let plan = search(&problem).expect("in two groups of columns");
    assert_eq!(problem.tables[0].ways[plan.tables[0].way].cut, Cut::Columns(2));
    let whole = Table { ways: large.ways[..1].to_vec() };
    let error = search(&Problem { tables: vec![whole], ..problem }).expect_err("no room").to_string();
    assert!(error.contains("table 0 needs 0.88 GiB in one piece"), "{error}");
}

/// The same table, with two more ways in host memory that cache an eighth of its rows on the GPU: whole, or in two groups of columns.
fn cached((host, device, memory): (i64, i64, u64)) -> Table {
    let of = |parts: u64| Load {
        host_memory: Bytes((memory / parts) << 20),
        ..load(host + 10, 3 * device / parts as i64 + 20, memory / parts / 8 + 1, 64 / parts)
    };
    let mut table = table((host, device, memory));
    for parts in [1, 2] {
        let cut = if parts == 1 { Cut::Whole } else { Cut::Columns(2) };
        let parts = vec![of(parts); parts as usize];
        table.ways.push(Way { cut, cached: Some(100), parts, each: Load::default() });
    }
    table
}

/// Tables that do not always fit on the GPUs, with a host per GPU or one host for all.
fn tight() -> impl Strategy<Value = Problem> {
    let tables = prop::collection::vec((1..50_i64, 1..400_i64, 1..500_u64), 1..5);
    (tables, 1..3_u32, 150..800_u64, 0..1200_u64).prop_map(|(tables, node, memory, host)| Problem {
        gpus: 2,
        node,
        memory: Bytes(memory << 20),
        host_memory: Bytes(host << 20),
        base: load(100, 80, 100, 0),
        exchange: Nanos(20),
        tables: tables.into_iter().map(cached).collect(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn neither_gpus_nor_hosts_hold_more_than_they_may(problem in tight()) {
        let Ok(plan) = search(&problem) else { return Ok(()) };
        let loads = problem.loads(&plan);
        prop_assert!(loads.iter().all(|load| load.memory <= problem.memory));
        prop_assert!(problem.hosts(&loads).iter().all(|taken| *taken <= problem.host_memory));
        prop_assert!(problem.holds(&loads));
        let busy: Vec<Nanos> = loads.iter().map(|load| problem.time(load)).collect();
        for other in neighbours(&problem, &plan, &busy, usize::MAX) {
            prop_assert!(problem.holds(&problem.loads(&other)));
        }
    }

    #[test]
    fn no_plan_that_memory_holds_is_better_than_the_bound(problem in tight()) {
        let fits = |plan: &Plan| problem.holds(&problem.loads(plan));
        let best = all(&problem).into_iter().filter(fits).map(|plan| problem.cost(&plan)).min();
        match (best, search(&problem)) {
            (Some(best), found) => {
                let bound = bound(&problem).expect("a bound");
                prop_assert!(bound <= best + Nanos(2), "{bound:?} {best:?}");
                prop_assert!(found.is_err() || problem.cost(&found.expect("a plan")) >= best);
            }
            (None, found) => prop_assert!(found.is_err()),
        }
    }
}

#[test]
fn a_table_too_large_for_all_gpus_lies_in_the_hosts_memory_where_that_is_allowed() {
    let mut problem = Problem {
        gpus: 2,
        node: 1,
        memory: Bytes(300 << 20),
        host_memory: Bytes(1000 << 20),
        tables: vec![cached((10, 100, 900)), cached((10, 100, 100))],
        ..Problem::default()
    };
    let plan = search(&problem).expect("there is room");
    let way = |table: usize| &problem.tables[table].ways[plan.tables[table].way];
    assert_eq!((way(0).cached, way(1).cached), (Some(100), None));
    // Two groups of columns need half of the host memory each.
    problem.host_memory = Bytes(500 << 20);
    let plan = search(&problem).expect("in two groups of columns");
    assert_eq!(problem.tables[0].ways[plan.tables[0].way].cut, Cut::Columns(2));
    let error = |problem: &Problem| search(problem).expect_err("no room");
    problem.host_memory = Bytes(400 << 20);
    let found = error(&problem);
    assert_eq!((found.table, found.on), (0, ScarceMemory::Host));
    let said = found.to_string();
    assert!(said.contains("table 0 needs 0.44 GiB in 2 groups of columns in the memory of a host"), "{said}");
    assert!(said.contains("0.39 GiB are left of 0.39 GiB: allow more host memory"), "{said}");
    // On one node both groups are on one host.
    let one = error(&Problem { node: 2, ..problem.clone() });
    assert_eq!(one.needs, Bytes(900 << 20), "{one}");
    // Without room for caches, more host memory does not help.
    problem.memory = Bytes(10 << 20);
    let found = error(&problem);
    assert_eq!(found.on, ScarceMemory::Cache);
    assert!(found.to_string().contains("for a cache of its rows"), "{found}");
}
