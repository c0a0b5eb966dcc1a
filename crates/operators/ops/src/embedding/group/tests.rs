use proptest::prelude::*;

use super::super::{Element, Pooling, Table};
use super::*;
use crate::Isa;

/// Tables of these rows, one column each.
fn tables(rows: &[usize]) -> Tables<'static> {
    let table = |&rows: &usize| Table::zeros("t", [rows, 1], Element::Bf16).unwrap();
    Tables::new(rows.iter().map(table).collect(), Pooling::Sum)
}

/// Checks that groups equal a stable sort of (row, position, bag).
fn check(rows: &[usize], bags: usize, indices: &[i64], offsets: &[i64], threads: usize) {
    let tables = tables(rows);
    let cpu = Cpu::with_isa(Isa::Scalar, threads).unwrap();
    let lookups = Lookups::new(bags, indices, offsets).unwrap();
    let mut grouping = Grouping::new();
    for _ in 0..2 {
        grouping.group(&cpu, &tables, &lookups, Bounds::Ignore).unwrap();
    }
    for (table, groups) in grouping.tables().iter().enumerate() {
        let start = lookups.table(table).start;
        let mut expected: Vec<(usize, usize, usize)> = (0..bags)
            .flat_map(|bag| lookups.bag(table, bag).map(move |place| (place, bag)))
            .filter(|&(place, _)| (indices[place] as u64) < rows[table] as u64)
            .map(|(place, bag)| (indices[place] as usize, place - start, bag))
            .collect();
        expected.sort_unstable();
        let found: Vec<_> =
            (0..groups.len()).map(|at| (groups.row(at), groups.position(at), groups.bag(at))).collect();
        assert_eq!(found, expected);
        assert_eq!(groups.is_empty(), expected.is_empty());
        let distinct: Vec<usize> = expected.chunk_by(|a, b| a.0 == b.0).map(|run| run[0].0).collect();
        assert_eq!(groups.distinct_rows().collect::<Vec<_>>(), distinct);
        let sizes = expected.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len);
        assert!(sizes.eq((0..groups.distinct()).map(|group| groups.group(group).len())));
        for place in 0..=groups.len() {
            let group = groups.group_from(place);
            assert!(group == 0 || groups.group(group - 1).start < place);
            assert!(group == groups.distinct() || groups.group(group).start >= place);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn groups_are_a_stable_sort(
        rows in prop::collection::vec(prop_oneof![Just(1usize), 2..10usize, 10..5000usize], 1..4),
        bags in 1..40usize,
        seed in any::<u64>(),
        threads in 1..4usize,
    ) {
        let mut state = seed | 1;
        let mut next = move || { state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407); state >> 33 };
        let (mut indices, mut offsets) = (Vec::new(), vec![0]);
        for &rows in &rows {
            for _ in 0..bags {
                for _ in 0..next() % 9 {
                    indices.push(next() as i64 % (rows as i64 + 2) - 1);
                }
                offsets.push(indices.len() as i64);
            }
        }
        check(&rows, bags, &indices, &offsets, threads);
    }
}

#[test]
#[cfg_attr(miri, ignore = "more lookups than Miri sorts in minutes")]
fn a_large_table_is_sorted_by_all_threads_alike() {
    let lookups = 5 * ranges::LARGE + 17;
    let ways: [fn(i64) -> i64; 5] = [
        |at| at * at % 70_001,
        // Half of them have one row, the others few.
        |at| if at % 2 == 0 { 7 } else { at % 5 },
        |_| 70_000,
        // Some, or all, are out of range.
        |at| at * 31 % 90_000 - 10_000,
        |_| -1,
    ];
    for way in ways {
        let indices: Vec<i64> = (0..lookups as i64).map(way).collect();
        for sizes in [vec![3; lookups / 3 + 1], vec![lookups], vec![0, lookups - 1, 0, 1]] {
            let mut offsets = vec![0];
            offsets.extend(sizes.iter().scan(0, |end, size| {
                *end = (*end + size).min(lookups);
                Some(*end as i64)
            }));
            for threads in [1, 3, 4, 7] {
                check(&[70_001], sizes.len(), &indices, &offsets, threads);
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "more lookups than Miri sorts in minutes")]
fn large_and_small_tables_are_sorted_side_by_side() {
    let sizes = [3, ranges::LARGE + 5, 0, 2 * ranges::LARGE, 100];
    let bags = 9;
    let (mut indices, mut offsets) = (Vec::new(), vec![0i64]);
    for (table, size) in sizes.into_iter().enumerate() {
        indices.extend((0..size as i64).map(|at| at * at * 13 % (1 << (4 * table)) - 1));
        for bag in 1..=bags {
            offsets.push((indices.len() - size + size * bag / bags) as i64);
        }
    }
    for threads in [1, 2, 5, 16] {
        check(&[1, 16, 256, 4096, 65536], bags, &indices, &offsets, threads);
    }
}

#[test]
fn bags_are_remembered_where_keys_have_no_room_for_them() {
    assert_eq!(Shape::new(1 << 40, 1 << 20, 1 << 20).unwrap().bag_bits, 0);
    assert!(Shape::new(1 << 50, 1, 1 << 20).is_none());
    // The same layout, forced on a small table.
    let (indices, offsets) = ([4i64, 0, 4, 1, 0], [0i64, 2, 2, 5]);
    let lookups = Lookups::new(3, &indices[..], &offsets[..]).unwrap();
    let mut groups = Groups::empty();
    groups.shape = Shape { bag_bits: 0, ..Shape::new(5, 3, 5).unwrap() };
    groups.fill(&Source::new(&lookups, 0), &mut Scratch::default());
    assert_eq!((0..5).map(|at| groups.bag(at)).collect::<Vec<_>>(), [0, 2, 2, 0, 2]);
}

/// Rows, bags, lookups, and the place, position and bag of each lookup.
fn seen(grouping: &Grouping) -> Vec<([usize; 3], Vec<[usize; 3]>)> {
    let one = |groups: &Groups| {
        let each = (0..groups.len()).map(|at| [groups.row(at), groups.position(at), groups.bag(at)]);
        ([groups.rows(), groups.bags(), groups.lookups()], each.collect())
    };
    grouping.tables().iter().map(one).collect()
}

#[test]
#[cfg_attr(miri, ignore = "more room than Miri has")]
fn a_call_that_fails_leaves_what_was_grouped() {
    let cpu = Cpu::with_isa(Isa::Scalar, 2).unwrap();
    let (indices, offsets) = ([4i64, 0, 4, 1, 0, 2, 2], [0i64, 2, 2, 5, 5, 6, 7]);
    let lookups = Lookups::new(3, &indices[..], &offsets[..]).unwrap();
    let mut grouping = Grouping::new();
    grouping.group(&cpu, &tables(&[5, 3]), &lookups, Bounds::Error).unwrap();
    let before = seen(&grouping);
    let wrong = Lookups::new(1, &[0i64, 9][..], &[0i64, 1, 2][..]).unwrap();
    assert!(grouping.group(&cpu, &tables(&[2, 2]), &wrong, Bounds::Error).is_err());
    assert_eq!(seen(&grouping), before);
    // The second table has too many rows for its lookups. They are not touched, so the system does not need the memory.
    let (rows, count) = (1usize << 45, (1usize << 19) + 1);
    let Ok(room) = memmap2::MmapOptions::new().len(2 * rows).no_reserve_swap().map_anon() else { return };
    let huge = Table::borrow_bytes("huge", &room, [rows, 1], Element::Bf16, 2).unwrap();
    let small = Table::zeros("small", [2, 1], Element::Bf16).unwrap();
    let (indices, offsets) = (vec![0i64; 1 + count], [0, 1, 1 + count as i64]);
    let many = Lookups::new(1, &indices, &offsets[..]).unwrap();
    let both = Tables::new(vec![small, huge], Pooling::Sum);
    let error = grouping.group(&cpu, &both, &many, Bounds::Error).unwrap_err();
    assert!(matches!(error, EmbeddingError::TooMany { .. }), "{error}");
    assert_eq!(seen(&grouping), before);
}
