//! A table of one or several runs: its Parquet files, with a column that says of which run a row is.

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{Result, ScalarValue, Statistics, exec_datafusion_err};
use datafusion::datasource::TableType;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::parquet::arrow::arrow_reader::ArrowReaderMetadata;
use datafusion::physical_plan::ExecutionPlan;
use object_store::ObjectMeta;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Footers that a processor has read at once: most of the time is spent waiting.
const READ_AT_ONCE: usize = 4;

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
    pub(crate) fn open(files: &[(String, PathBuf)]) -> Result<Self> {
        let mut fields: Vec<Field> = Vec::new();
        let mut metadata = HashMap::new();
        let mut read = Vec::new();
        for ((run, _), of_file) in files.iter().zip(known(files)) {
            let (of_file, meta) = of_file?;
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

/// The footers of files, and where they are, in their order: a job of many ranks has many, and each is a wait for the disk.
fn known(files: &[(String, PathBuf)]) -> Vec<Result<(ArrowReaderMetadata, ObjectMeta)>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) * READ_AT_ONCE;
    let each = files.len().div_ceil(threads).max(1);
    let known = |(_, path): &(String, PathBuf)| Ok((footer(path)?, meta(path)?));
    std::thread::scope(|scope| {
        let parts = files.chunks(each).map(|files| scope.spawn(move || files.iter().map(known).collect::<Vec<_>>()));
        let parts: Vec<_> = parts.collect();
        parts.into_iter().flat_map(|part| part.join().expect("a footer is read without a panic")).collect()
    })
}

fn footer(path: &Path) -> Result<ArrowReaderMetadata> {
    let failed = |error: &dyn std::fmt::Display| exec_datafusion_err!("cannot read {}: {error}", path.display());
    let file = File::open(path).map_err(|error| failed(&error))?;
    ArrowReaderMetadata::load(&file, Default::default()).map_err(|error| failed(&error))
}

fn meta(path: &Path) -> Result<ObjectMeta> {
    let failed = |error: &dyn std::fmt::Display| exec_datafusion_err!("cannot read {}: {error}", path.display());
    let metadata = std::fs::metadata(path).map_err(|error| failed(&error))?;
    let whole = std::fs::canonicalize(path).map_err(|error| failed(&error))?;
    Ok(ObjectMeta {
        location: object_store::path::Path::from_absolute_path(whole).map_err(|error| failed(&error))?,
        last_modified: metadata.modified().map_err(|error| failed(&error))?.into(),
        size: metadata.len(),
        e_tag: None,
        version: None,
    })
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
        let scan = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), source)
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
