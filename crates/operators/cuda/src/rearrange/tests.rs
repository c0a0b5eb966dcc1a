use super::*;
use crate::{Source, TestCompiler};

fn layout(shape: &[usize]) -> Layout {
    Layout::contiguous(shape).unwrap()
}

fn way(from: &Layout, to: &Layout, size: usize) -> Way {
    Way::new(&Plan::new(from, to, size).unwrap()).unwrap()
}

#[test]
fn only_transposes_are_transposed() {
    let blocks = |from: &Layout, to: &Layout| match way(from, to, 4) {
        Way::Rows(_) => None,
        way => Some(way.grid().blocks[0]),
    };
    let swapped = layout(&[100, 70]).transpose(0, 1).unwrap();
    // Neither is a multiple of four: whole lines, up to 48 of them in a tile.
    assert_eq!(blocks(&swapped, &layout(&[70, 100])), Some(2));
    assert_eq!(blocks(&layout(&[70, 100]), &swapped), Some(3));
    assert_eq!(blocks(&swapped, &swapped), None);
    assert_eq!(blocks(&layout(&[5, 6]), &layout(&[5, 6])), None);
    let inner = layout(&[9, 64, 40]).transpose(1, 2).unwrap();
    assert_eq!(blocks(&inner, &layout(&[9, 40, 64])), Some(9));
    let outer = layout(&[64, 9, 40]).transpose(0, 1).unwrap();
    assert_eq!(blocks(&outer, &layout(&[9, 64, 40])), None);
    // A plane of 16 x 16 fits the first-level cache.
    let small = layout(&[99, 16, 16]).transpose(1, 2).unwrap();
    assert_eq!(blocks(&small, &layout(&[99, 16, 16])), None);
}

#[test]
fn vectors_are_as_wide_as_all_that_is_added_allows() {
    let align = |shape: &[usize], order: &[usize], size| {
        let from = layout(shape).permute(order).unwrap();
        way(&from, &layout(from.shape()), size).align()
    };
    assert_eq!(align(&[128, 256], &[1, 0], 4), 16);
    assert_eq!(align(&[128, 254], &[1, 0], 4), 8);
    assert_eq!(align(&[128, 255], &[1, 0], 4), 4);
    assert_eq!(align(&[128, 256], &[1, 0], 1), 4);
    assert_eq!(align(&[128, 256], &[1, 0], 8), 16);
    assert_eq!(align(&[5, 6, 8], &[1, 0, 2], 4), 16);
    assert_eq!(align(&[5, 6, 7], &[1, 0, 2], 4), 4);
    assert_eq!(align(&[5, 6, 14], &[1, 0, 2], 1), 2);
    let from = layout(&[5, 9, 8]).slice(1, 1..8, 1).unwrap();
    assert_eq!(way(&from, &layout(&[5, 7, 8]), 2).align(), 16);
    let from = layout(&[5, 9]).slice(1, 1..9, 1).unwrap();
    assert_eq!(way(&from, &layout(&[5, 8]), 2).align(), 2);
}

/// Elements of 4 and 8 bytes, where neither vectors fit nor lines of the output begin with sectors.
#[test]
fn lines_that_begin_within_sectors_are_not_cut_there() {
    let sectors = |shape: &[usize], size| {
        let from = layout(shape).transpose(0, 1).unwrap();
        matches!(way(&from, &layout(from.shape()), size), Way::Sectors(_))
    };
    for (shape, size) in [
        ([8191, 8193], 4),
        ([8190, 8194], 4),
        ([8188, 8193], 4),
        ([97, 65], 4),
        ([97, 27], 4),
        ([8191, 50], 4),
        ([8191, 8193], 8),
    ] {
        assert!(sectors(&shape, size), "{shape:?} {size}");
    }
    for (shape, size) in [
        ([8192, 10_007], 4),
        ([8188, 8196], 4),
        ([8190, 8194], 8),
        ([27, 128], 4),
        ([8191, 7], 4),
        ([8191, 37], 4),
        ([8191, 65], 4),
        ([8191, 8193], 2),
    ] {
        assert!(!sectors(&shape, size), "{shape:?} {size}");
    }
}

#[test]
fn copies_that_cannot_be_are_refused() {
    let error = |from: &Layout, to: &Layout, size| Plan::new(from, to, size).unwrap_err().to_string();
    let whole = layout(&[4, 4]);
    assert!(error(&whole, &layout(&[4, 5]), 4).contains("one shape"));
    assert!(error(&whole, &whole, 16).contains("16 bytes"));
    assert!(error(&whole, &Layout::new(&[4, 4], &[0, 1], 0).unwrap(), 4).contains("place of its own"));
}

#[test]
fn kernels_compile_for_every_size() {
    let Some(compiler) = TestCompiler::new() else { return };
    let build = |source: &Source| {
        compiler.build(source);
    };
    for size in [1, 2, 4, 8] {
        for (shape, order) in [
            (vec![9, 64, 128], vec![0, 2, 1]),
            (vec![9, 65, 27], vec![2, 0, 1]),
            (vec![3, 130, 66], vec![2, 0, 1]),
            (vec![3, 97, 65], vec![0, 2, 1]),
            (vec![333, 255], vec![1, 0]),
            (vec![9, 64, 40], vec![1, 0, 2]),
            (vec![9, 7, 5], vec![2, 1, 0]),
            (vec![70_000, 70_000, 3], vec![1, 0, 2]),
        ] {
            let from = layout(&shape).permute(&order).unwrap();
            build(&way(&from, &layout(from.shape()), size).source());
        }
    }
}
