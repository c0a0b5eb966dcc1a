//! The tables of a rank as Parquet files.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use steptime_trace::{ActivityKind, Trace};

use crate::error::Error;
use crate::lake::{Rows, VERSION};
use crate::rank::{Rank, lighten};
use crate::tables::Table;

/// Rows of a group, whose buffers the writer frees after encoding it.
const GROUP: usize = 1 << 17;

/// Writes all tables into a folder, one after the other, so that no two are in memory at once.
pub(crate) fn tables(mut trace: Trace, folder: &Path) -> Result<Rows, Error> {
    lighten(&mut trace);
    let kernels = trace.activities.kind.iter().filter(|kind| **kind == ActivityKind::Kernel).count();
    let rank = Rank::from_trace(&trace).map_err(Error::Ops)?;
    let mut rows = Rows {
        ops: trace.ops.len() as u64,
        activities: trace.activities.len() as u64,
        kernels: kernels as u64,
        ..Rows::default()
    };
    for table in Table::ALL {
        let path = folder.join(format!("{}.parquet", table.name()));
        let failed = |source| Error::Parquet { path: path.clone(), source };
        let batch = table.record_batch(&rank).map_err(failed)?;
        let count = batch.num_rows() as u64;
        match table {
            Table::Steps => rows.steps = count,
            Table::Collectives => rows.collectives = count,
            Table::Gaps => rows.gaps = count,
            // Their column `count` holds the numbers of events.
            Table::Ops | Table::Kernels => {}
        }
        let file = File::create_new(&path).map_err(Error::io(&path))?;
        write(file, &batch).map_err(failed)?;
    }
    Ok(rows)
}

fn write(file: File, batch: &RecordBatch) -> Result<(), ParquetError> {
    let version = KeyValue::new("steptime_lake".to_owned(), VERSION.to_string());
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(GROUP))
        .set_key_value_metadata(Some(vec![version]))
        .build();
    let mut writer = ArrowWriter::try_new(BufWriter::new(file), batch.schema(), Some(properties))?;
    writer.write(batch)?;
    // A file that cannot be flushed must not look complete.
    Ok(writer.into_inner()?.flush()?)
}
