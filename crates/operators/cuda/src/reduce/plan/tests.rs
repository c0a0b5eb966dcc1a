use super::*;
use crate::TestCompiler;

fn layout(shape: &[usize]) -> Layout {
    Layout::contiguous(shape).unwrap()
}

fn plan(shape: &[usize], dims: &[usize]) -> Plan {
    Plan::new(&layout(shape), dims).unwrap()
}

#[test]
fn columns_of_a_large_matrix_are_read_by_many_blocks() {
    let columns = plan(&[65536, 128], &[0]);
    assert!(columns.across);
    assert_eq!((columns.tile, columns.parts, columns.results), (32, 256, 128));
    assert_eq!(columns.grid(), Grid::plane(4, 256, 256));
    assert_eq!(columns.workspace(), 256 * 128);
    let narrow = plan(&[65536, 13], &[0]);
    assert_eq!((narrow.across, narrow.tile), (true, 16));
    let one = plan(&[65536, 1], &[0]);
    assert_eq!((one.across, one.tile), (false, 1));
}

#[test]
fn many_results_of_few_terms_have_few_threads_each() {
    let factors = plan(&[8192, 26, 16], &[1]);
    assert_eq!((factors.across, factors.tile, factors.parts), (true, 128, 1));
    assert_eq!(factors.grid(), Grid::plane(1024, 1, 256));
    let more = plan(&[65536, 26, 16], &[1]);
    assert_eq!((more.tile, more.parts, more.grid()), (256, 1, Grid::plane(4096, 1, 256)));
    let less = plan(&[2000, 26, 16], &[1]);
    assert_eq!((less.tile, less.parts), (16, 1));
}

#[test]
fn rows_are_read_by_warps_or_blocks() {
    let warps = plan(&[65536, 128], &[1]);
    assert_eq!((warps.across, warps.tile, warps.parts), (false, 8, 1));
    let blocks = plan(&[65536, 4096], &[1]);
    assert_eq!((blocks.across, blocks.tile, blocks.parts), (false, 1, 1));
    let all = plan(&[1000, 1000], &[]);
    assert_eq!((all.results, all.tile, all.terms), (1, 1, 1_000_000));
    assert!(all.parts > 200 && all.parts <= 1024, "{}", all.parts);
    let alone = plan(&[65536, 4], &[1]);
    assert_eq!((alone.tile, alone.parts), (64, 1));
}

#[test]
fn parts_have_all_terms_once() {
    for (shape, dims) in [
        (vec![2048, 1024], vec![0]),
        (vec![999, 77], vec![0]),
        (vec![1 << 24], vec![]),
        (vec![3, 70_001, 5], vec![1]),
        (vec![5, 0], vec![1]),
        (vec![0, 5], vec![1]),
        (vec![], vec![]),
    ] {
        let plan = plan(&shape, &dims);
        let lanes = THREADS / plan.tile;
        assert!(plan.tile * lanes == THREADS && plan.part.is_multiple_of(lanes), "{plan:?}");
        assert!(plan.part * plan.parts >= plan.terms, "{plan:?}");
        assert!(plan.terms == 0 || plan.part * (plan.parts - 1) < plan.terms, "{plan:?}");
    }
}

#[test]
fn dimensions_are_joined_among_their_kind() {
    let plan = plan(&[4, 5, 6, 7], &[1, 2]);
    assert_eq!((plan.kept.shape, plan.kept.strides), (vec![4, 7], vec![vec![210, 1]]));
    assert_eq!((plan.summed.shape, plan.summed.strides), (vec![30], vec![vec![7]]));
    let turned = layout(&[6, 5]).transpose(0, 1).unwrap();
    let all = Plan::new(&turned, &[]).unwrap();
    assert_eq!((all.summed.shape, all.summed.strides), (vec![30], vec![vec![1]]));
}

#[test]
fn dimensions_that_do_not_exist_are_refused() {
    for dims in [vec![2], vec![1, 1]] {
        let error = Plan::new(&layout(&[3, 4]), &dims).unwrap_err().to_string();
        assert!(error.contains("each one once"), "{error}");
    }
}

#[test]
fn kernels_compile_for_every_plan() {
    let Some(compiler) = TestCompiler::new() else { return };
    for (shape, dims) in [
        (vec![65536, 128], vec![0]),
        (vec![65536, 13], vec![0]),
        (vec![65536, 4], vec![1]),
        (vec![1000, 1000], vec![]),
        (vec![3, 7, 9, 5], vec![0, 2]),
        (vec![65536, 26, 16], vec![1]),
        (vec![1 << 20, 1 << 14], vec![1]),
        (vec![5, 0], vec![1]),
        (vec![], vec![]),
    ] {
        for kind in [Kind::Sum, Kind::Norm] {
            let source = plan(&shape, &dims).source(kind);
            compiler.build(&source);
        }
    }
}
