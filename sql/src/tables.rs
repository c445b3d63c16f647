//! A table of one or several runs: its Parquet files, with a column that says of which run a row is.

use crate::stored;
use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::stats::Precision;
use datafusion::common::{Result, ScalarValue, Statistics, exec_datafusion_err};
use datafusion::datasource::TableType;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::parquet::arrow::arrow_reader::ArrowReaderMetadata;
use datafusion::physical_plan::ExecutionPlan;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::ObjectMeta;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Footers that are read at once: most of the time is spent waiting.
const READ_AT_ONCE: usize = 32;
/// What is read of the end of a file first, in bytes.
const FOOTER_BYTES: usize = 64 << 10;

/// The column that says of which run a row is.
pub(crate) const RUN: &str = "run";

/// A file, and the run that it is of.
#[derive(Debug, Clone)]
struct RunFile {
    run: String,
    meta: ObjectMeta,
    /// Its own columns, in the types of the table: a type that is converted hides which names are in a group of rows.
    schema: SchemaRef,
    statistics: Arc<Statistics>,
}

/// A table, and what its rows are.
#[derive(Debug)]
pub(crate) struct RunTable {
    schema: TableSchema,
    files: Vec<RunFile>,
    /// What a row is, as its files say.
    pub(crate) row: String,
}

impl RunTable {
    /// The table of these files, each of a run. What files of other versions have beside it is left out, what they lack is
    /// null.
    ///
    /// # Errors
    /// When a file cannot be read, or is not Parquet.
    pub(crate) async fn open(files: &[(String, PathBuf)], runtime: &RuntimeEnv) -> Result<Self> {
        let mut fields: Vec<Field> = Vec::new();
        let mut metadata = HashMap::new();
        let mut read = Vec::new();
        let footers: Vec<_> = files.iter().map(|(_, path)| footer(path, runtime)).collect();
        let footers: Vec<_> = stream::iter(footers).buffered(READ_AT_ONCE).try_collect().await?;
        for ((run, _), (of_file, meta)) in files.iter().zip(footers) {
            for field in of_file.schema().fields() {
                if !fields.iter().any(|known| known.name() == field.name()) {
                    fields.push(Field::clone(field).with_data_type(plain(field.data_type())));
                }
            }
            let about = of_file.metadata().file_metadata().key_value_metadata();
            let about = about.into_iter().flatten().find(|entry| entry.key == "stepscope");
            metadata.entry("row").or_insert_with(|| {
                let about = serde_json::from_str(about?.value.as_deref()?).ok();
                about.and_then(|about: serde_json::Value| Some(about.get("row")?.as_str()?.to_string()))
            });
            read.push((run, meta, of_file));
        }
        let doc = HashMap::from([("stepscope.doc".to_string(), "The run that it is of.".to_string())]);
        let run = Field::new(RUN, DataType::Utf8View, false).with_metadata(doc);
        let file_schema = Arc::new(Schema::new(fields));
        let schema =
            TableSchema::builder(Arc::clone(&file_schema)).with_table_partition_cols(vec![Arc::new(run)]).build();
        let files = read.into_iter().map(|(run, meta, footer)| {
            let fields = footer.schema().fields().iter();
            let fields = fields.map(|field| Field::clone(field).with_data_type(plain(field.data_type())));
            let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
            let statistics = DFParquetMetadata::statistics_from_parquet_metadata(footer.metadata(), &file_schema)?;
            Ok(RunFile { run: run.clone(), meta, schema, statistics: Arc::new(statistics) })
        });
        let row = metadata.remove("row").flatten().unwrap_or_default();
        Ok(Self { files: files.collect::<Result<_>>()?, schema, row })
    }
}

/// Texts as they are, not by number.
fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) if **values == DataType::Utf8 => DataType::Utf8View,
        DataType::Utf8 => DataType::Utf8View,
        other => other.clone(),
    }
}

/// The footer of a file, which queries of this process find in the cache, and where the file is.
async fn footer(path: &Path, runtime: &RuntimeEnv) -> Result<(ArrowReaderMetadata, ObjectMeta)> {
    let here = path.to_path_buf();
    let meta = SpawnedTask::spawn_blocking(move || stored::known(&here)).await;
    let meta = meta.map_err(|error| exec_datafusion_err!("cannot read {}: {error}", path.display()))??;
    let store = runtime.object_store(stored::url())?;
    let footer = DFParquetMetadata::new(store.as_ref(), &meta)
        .with_metadata_size_hint(Some(FOOTER_BYTES))
        .with_file_metadata_cache(Some(runtime.cache_manager.get_file_metadata_cache()));
    let failed = |error: &dyn std::fmt::Display| exec_datafusion_err!("cannot read {}: {error}", path.display());
    let footer = footer.fetch_metadata().await.map_err(|error| failed(&error))?;
    let footer = ArrowReaderMetadata::try_new(footer, Default::default()).map_err(|error| failed(&error))?;
    Ok((footer, meta))
}

#[async_trait]
impl TableProvider for RunTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.schema.table_schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let files = self.files.iter().map(|file| {
            let run = ScalarValue::Utf8View(Some(file.run.clone()));
            let mut each = PartitionedFile::from(file.meta.clone());
            each.partition_values = vec![run];
            each.with_statistics(Arc::clone(&file.statistics)).with_arrow_schema(Arc::clone(&file.schema))
        });
        let groups = FileGroup::new(files.collect()).split_files(state.config().target_partitions());
        let source = Arc::new(ParquetSource::new(self.schema.clone()));
        let scan = FileScanConfigBuilder::new(stored::url(), source)
            .with_file_groups(groups)
            .with_statistics(self.statistics().unwrap_or_else(|| Statistics::new_unknown(&self.schema())))
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        let options = state.config_options().execution.parquet.clone();
        let format = ParquetFormat::default()
            .with_options(datafusion::config::TableParquetOptions { global: options, ..Default::default() });
        format.create_physical_plan(state, scan).await
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    fn statistics(&self) -> Option<Statistics> {
        let rows =
            self.files.iter().map(|file| file.statistics.num_rows.get_value().copied()).sum::<Option<usize>>()?;
        let mut all = Statistics::new_unknown(&self.schema());
        all.num_rows = Precision::Exact(rows);
        Some(all)
    }
}
