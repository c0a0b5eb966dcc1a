//! Calls of each family, for tests of features and times.

use steptime_aten::kernel::{
    Attention, AttentionKind, BatchNorm, Concat, Conv, Elementwise, EmbeddingBag, Epilogue, FusedBags,
    FusedTable, Gather, GatherKind, Gemm, Interaction, Layout, Loss, MultiTensor, Norm, NormKind, Pass, Pool,
    PoolKind, Pooling, Precision, Reduce, Rnn, RowOptimizer, Scatter, ScatterKind, Softmax, Sort,
    TableBatched, TiledGather, Transfer, TransferDirection, Work,
};
use steptime_aten::{Kernel, KernelCall};

use crate::device::families::fixture::call;

pub(super) fn gemm(m: u64, n: u64, k: u64) -> KernelCall {
    let kernel = Gemm {
        batch: 1,
        m,
        n,
        k,
        a_transposed: false,
        b_transposed: true,
        lda: k,
        ldb: k,
        epilogue: Epilogue::Bias,
        precision: Precision::F32,
    };
    call(Kernel::Gemm(kernel), &[4 * n, 4 * m * k, 4 * k * n], &[4 * m * n], 2 * m * n * k)
}

pub(super) fn conv(size: u64) -> KernelCall {
    let kernel = Conv {
        gradients: None,
        batch: size,
        channels_in: 64,
        channels_out: 64,
        input: [1, 56, 56],
        output: [1, 56, 56],
        filter: [1, 3, 3],
        stride: [1; 3],
        padding: [0, 1, 1],
        dilation: [1; 3],
        groups: 1,
        transposed: false,
        channels_last: false,
        bias: false,
        dims: 2,
        precision: Precision::Tf32,
    };
    let bytes = size * 64 * 56 * 56 * 4;
    call(Kernel::Conv(kernel), &[bytes, 64 * 64 * 9 * 4], &[bytes], 2 * size * 64 * 64 * 9 * 56 * 56)
}

pub(super) fn elementwise(op: &'static str, inputs: u32, numel: u64) -> KernelCall {
    let kernel = Elementwise { op, work: Work::Light, numel, inputs, layout: Layout::Vectorized };
    call(Kernel::Elementwise(kernel), &vec![4 * numel; inputs as usize], &[4 * numel], numel)
}

pub(super) fn bag(rows: u64, dim: u64, bags: u64, length: u64) -> KernelCall {
    let lookups = bags * length;
    let kernel = EmbeddingBag {
        pass: Pass::Forward,
        rows,
        dim,
        bags,
        lookups,
        pooling: Pooling::Sum,
        weighted: false,
        index_bytes: 8,
    };
    let table = (rows * dim * 4).min(lookups * dim * 4);
    call(Kernel::EmbeddingBag(kernel), &[table, 8 * lookups, 8 * bags], &[4 * bags * dim], lookups * dim)
}

pub(super) fn batched(pass: Pass, lookups: u64) -> KernelCall {
    let kernel = TableBatched {
        pass,
        tables: 16,
        rows: 16_000_000,
        dims: 16 * 128,
        batch: lookups.div_ceil(512),
        lookups,
        pooling: Pooling::Sum,
        weighted: false,
        optimizer: RowOptimizer::Sgd,
        index_bytes: 8,
    };
    let table = lookups * 512;
    let out = lookups.div_ceil(512) * 16 * 512;
    match pass {
        Pass::Forward => call(Kernel::TableBatched(kernel), &[table, 8 * lookups], &[out], lookups * 128),
        Pass::Backward => call(Kernel::TableBatched(kernel), &[out, 8 * lookups], &[table], lookups * 256),
    }
}

/// Tables of other sizes, with five lookups a bag.
fn fused(update: Option<RowOptimizer>, lookups: u64) -> KernelCall {
    let tables = [(1_000_000, 128), (300, 16), (80_000, 64), (80_000, 64)];
    let kernel = FusedBags {
        update,
        tables: tables
            .map(|(rows, dim)| FusedTable { rows, dim, row_bytes: 4 * dim, lookups: lookups / 4 })
            .into(),
        bags: lookups / 20,
        lookups,
        pooling: Pooling::Mean,
        weighted: false,
        element_bits: 32,
        index_bytes: 4,
    };
    let (table, out) = (lookups * 68 * 4, lookups / 20 * 272 * 4);
    match update {
        None => call(Kernel::FusedBags(kernel), &[table, 4 * lookups], &[out], lookups * 68),
        Some(_) => call(Kernel::FusedBags(kernel), &[out, 4 * lookups], &[table], lookups * 68),
    }
}

fn interaction(pass: Pass, batch: u64) -> KernelCall {
    let shape = Interaction { pass, batch, features: 27, dim: 128 };
    let (vectors, pooled) = (batch * 27 * 128 * 4, batch * (128 + 351) * 4);
    match pass {
        Pass::Forward => call(Kernel::Interaction(shape), &[vectors], &[pooled], 0),
        Pass::Backward => call(Kernel::Interaction(shape), &[pooled, vectors], &[vectors], 0),
    }
}

fn sort(op: &'static str, length: u64) -> Sort {
    Sort { op, rows: 1, length, key_bytes: 8, value_bytes: 8, stride: 1 }
}

/// A call of each family at a size.
pub(super) fn calls(size: u64) -> Vec<KernelCall> {
    let bytes = 4 * size;
    let attention = Attention {
        kind: AttentionKind::Flash,
        pass: Pass::Forward,
        batch: 1 + size / 65_536,
        heads: 8,
        queries: 512,
        keys: 512,
        dim: 64,
        value_dim: 64,
        causal: true,
        bias: false,
        dropout: false,
        precision: Precision::Bf16,
    };
    let rnn = Rnn {
        pass: Pass::Forward,
        gates: 4,
        steps: 1 + size / 4096,
        batch: 32,
        input: 128,
        hidden: 128,
        layers: 2,
        directions: 1,
        precision: Precision::F32,
    };
    let gather = Gather {
        kind: GatherKind::IndexSelect,
        rows: 100_000,
        lookups: 1 + size / 64,
        row_bytes: 256,
        index_bytes: 8 * (1 + size / 64),
    };
    let tiled =
        TiledGather { rows: 8192, lookups: 1 + size / 4096, row_bytes: 16_384, slice: 1024, index_bytes: 8 };
    let scatter = Scatter {
        kind: ScatterKind::IndexAdd,
        rows: 100_000,
        lookups: 1 + size / 64,
        row_bytes: 256,
        index_bytes: 8,
    };
    let reduce = Reduce {
        op: "sum",
        outer: 1,
        reduced: 1 + size / 256,
        inner: 256,
        contiguous: true,
        run: 1 + size / 256,
        work: Work::Light,
    };
    let softmax = Softmax {
        pass: Pass::Forward,
        log: true,
        rows: 1 + size / 1000,
        length: 1000,
        stride: 1,
        again: false,
    };
    let norm = Norm {
        kind: NormKind::Layer,
        pass: Pass::Backward,
        rows: 1 + size / 768,
        length: 768,
        channels: 1,
        affine: true,
    };
    let batch_norm = BatchNorm {
        pass: Pass::Forward,
        training: true,
        batch: 1 + size / (64 * 196),
        channels: 64,
        spatial: 196,
        channels_last: false,
        cudnn: true,
    };
    let pool = Pool {
        kind: PoolKind::Max,
        pass: Pass::Forward,
        planes: 1 + size / 3136,
        input: [56, 56],
        output: [28, 28],
        window: [3, 3],
        stride: [2, 2],
        channels_last: false,
    };
    let loss = Loss { pass: Pass::Forward, rows: 1 + size / 1000, classes: 1000, spatial: 1 };
    let concat = Concat {
        inputs: 9,
        outer: 1 + size / 576,
        row_bytes: 2304,
        least_bytes: 256,
        most_bytes: 256,
        contiguous: true,
        aligned: true,
    };
    let multi = MultiTensor {
        op: "_foreach_add_",
        tensors: 20,
        lists: 2,
        numel: size,
        largest: size / 4,
        chunks: size.div_ceil(65_536) + 20,
        serial: size.min(65_536),
        work: Work::Light,
    };
    let transfer = Transfer { direction: TransferDirection::ToDevice, pinned: true, bytes };
    vec![
        gemm(1 + size / 256, 256, 256),
        conv(1 + size / 200_704),
        call(Kernel::Attention(attention), &[bytes, bytes, bytes], &[bytes], 512 * size),
        call(Kernel::Rnn(rnn), &[bytes, bytes], &[bytes], 1024 * size),
        bag(1_000_000, 64, 1 + size / 640, 10),
        batched(Pass::Forward, size / 64),
        batched(Pass::Backward, size / 64),
        fused(None, size / 64),
        fused(Some(RowOptimizer::Sgd), size / 64),
        fused(Some(RowOptimizer::PartialRowWiseAdam), size / 64),
        call(Kernel::TiledGather(tiled), &[bytes.min(134_217_728), size / 512], &[bytes], 0),
        interaction(Pass::Forward, size / 4096),
        interaction(Pass::Backward, size / 4096),
        call(Kernel::Gather(gather), &[bytes.min(25_600_000), size / 8], &[bytes], 0),
        call(Kernel::Scatter(scatter), &[size / 8, bytes], &[bytes.min(25_600_000)], size),
        elementwise("add", 2, size),
        call(Kernel::Reduce(reduce), &[bytes], &[1024], size),
        call(Kernel::Scan(sort("cumsum", size)), &[8 * size], &[8 * size], size),
        call(Kernel::Sort(sort("sort", size)), &[8 * size], &[8 * size, 8 * size], size),
        call(Kernel::Softmax(softmax), &[bytes], &[bytes], 5 * size),
        call(Kernel::Norm(norm), &[bytes, bytes], &[bytes], 8 * size),
        call(Kernel::BatchNorm(batch_norm), &[bytes], &[bytes], 8 * size),
        call(Kernel::Pool(pool), &[bytes], &[bytes / 4], 2 * size),
        call(Kernel::Loss(loss), &[bytes, size / 125], &[4], 0),
        call(Kernel::Concat(concat), &[bytes], &[bytes], 0),
        call(Kernel::MultiTensor(multi), &[bytes, bytes], &[bytes], size),
        call(Kernel::Transfer(transfer), &[bytes], &[bytes], 0),
        call(Kernel::DeviceCopy, &[bytes], &[bytes], 0),
        call(Kernel::Memset, &[], &[bytes], 0),
        call(Kernel::Unknown, &[bytes], &[bytes], size),
    ]
}
