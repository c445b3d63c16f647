//! Analyses that run where workers are: each part, some ranks of a run, on one of them.

use crate::analyses::run;
use crate::error::HINT_FOLLOWS;
use crate::tables::RUN;
use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err, internal_err};
use datafusion::datasource::TableType;
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use datafusion_distributed::{
    DesiredTaskCountEvent, DesiredTaskCountEventResponse, DistributedLeafExec, ScaleUpLeafNodeEvent,
    ScaleUpLeafNodeEventResponse,
};
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use datafusion_proto::protobuf;
use futures_util::{StreamExt, TryStreamExt, stream};
use prost::Message;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Analyses that a worker runs at once, each with the events of a rank in memory.
const AT_ONCE: usize = 4;

/// A part of the result of an analysis: that of a run, or of some of its ranks.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Part {
    /// What the run is called.
    #[prost(string, tag = "1")]
    pub(crate) run: String,
    /// What `stepscope` is called with.
    #[prost(string, repeated, tag = "2")]
    pub(crate) arguments: Vec<String>,
}

/// The program that runs analyses, as a session knows it.
pub(super) struct AnalysisProgram(PathBuf);

impl AnalysisProgram {
    pub(super) fn known_to(mut builder: SessionStateBuilder, stepscope: &Path) -> SessionStateBuilder {
        builder.config().get_or_insert_default().set_extension(Arc::new(Self(stepscope.to_path_buf())));
        builder
    }
}

/// The result of an analysis, as a table.
#[derive(Debug)]
pub(crate) struct AnalysisTable {
    schema: SchemaRef,
    parts: Vec<Part>,
}

impl AnalysisTable {
    /// That of these parts, whose columns are those of `schema`.
    pub(crate) fn new(schema: SchemaRef, parts: Vec<Part>) -> Self {
        Self { schema, parts }
    }
}

#[async_trait]
impl TableProvider for AnalysisTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(columns) => Arc::new(self.schema.project(columns)?),
            None => self.schema(),
        };
        Ok(Arc::new(AnalysisExec::new(schema, dealt(&self.parts, AT_ONCE))))
    }
}

/// Deals parts out, at least one group of them.
fn dealt(parts: &[Part], groups: usize) -> Vec<Vec<Part>> {
    let groups = groups.min(parts.len()).max(1);
    (0..groups).map(|group| parts.iter().skip(group).step_by(groups).cloned().collect()).collect()
}

/// Runs an analysis, for each of its partitions one part after the other.
#[derive(Debug)]
struct AnalysisExec {
    partitions: Vec<Vec<Part>>,
    properties: Arc<PlanProperties>,
}

impl AnalysisExec {
    fn new(schema: SchemaRef, partitions: Vec<Vec<Part>>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { partitions, properties: Arc::new(properties) }
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.partitions.iter().flatten()
    }
}

impl DisplayAs for AnalysisExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "AnalysisExec: {} partitions", self.partitions.len())?;
        self.parts().try_for_each(|part| write!(out, " [{}]", part.arguments.join(" ")))
    }
}

impl ExecutionPlan for AnalysisExec {
    fn name(&self) -> &'static str {
        "AnalysisExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let Some(program) = context.session_config().get_extension::<AnalysisProgram>() else {
            return internal_err!("no program for analyses");
        };
        let (schema, parts) = (self.schema(), self.partitions[partition].clone());
        let of_part = move |part: Part| {
            let (program, schema) = (Arc::clone(&program), Arc::clone(&schema));
            async move {
                let batches = rows(&program.0, &part, &schema).await?;
                Ok::<_, DataFusionError>(stream::iter(batches.into_iter().map(Ok)))
            }
        };
        let batches = stream::iter(parts).then(of_part).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}

/// What an analysis gives of a part.
async fn rows(program: &Path, part: &Part, schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
    let failed = |error: &dyn fmt::Display| exec_datafusion_err!("cannot read what an analysis gave: {error}");
    let folder = tempfile::tempdir().map_err(|error| failed(&error))?;
    let file = folder.path().join("result.parquet");
    run(program, &part.arguments, &file).await.map_err(|error| {
        let hint = error.hint.map(|hint| format!("{HINT_FOLLOWS}{hint}")).unwrap_or_default();
        exec_datafusion_err!("{}{hint}", error.what)
    })?;
    let file = File::open(&file).map_err(|error| failed(&error))?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)?.build()?;
    reader.map(|batch| as_told(&batch?, part, schema)).collect()
}

/// The columns of `schema`, in its types.
fn as_told(batch: &RecordBatch, part: &Part, schema: &SchemaRef) -> Result<RecordBatch> {
    let column = |field: &datafusion::arrow::datatypes::FieldRef| -> Result<ArrayRef> {
        if field.name() == RUN {
            return Ok(Arc::new(StringViewArray::from_iter_values(std::iter::repeat_n(&part.run, batch.num_rows()))));
        }
        match batch.column_by_name(field.name()) {
            Some(column) => Ok(cast(column, field.data_type())?),
            None => exec_err!("an analysis gave no column {}: is stepscope the same everywhere?", field.name()),
        }
    };
    let columns = schema.fields().iter().map(column).collect::<Result<Vec<_>>>()?;
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &rows)?)
}

/// How many workers an analysis is of use to.
pub(super) fn tasks(event: DesiredTaskCountEvent<'_>) -> Option<Result<DesiredTaskCountEventResponse>> {
    let analysis: &AnalysisExec = event.plan.downcast_ref()?;
    Some(Ok(DesiredTaskCountEventResponse::desired(analysis.parts().count().max(1))))
}

/// The parts of each worker.
pub(super) fn divided(event: ScaleUpLeafNodeEvent<'_>) -> Option<Result<ScaleUpLeafNodeEventResponse>> {
    let analysis: &AnalysisExec = event.plan.downcast_ref()?;
    let parts: Vec<Part> = analysis.parts().cloned().collect();
    // All workers have as many partitions, of which some may be empty.
    let partitions = parts.len().div_ceil(event.task_count).clamp(1, AT_ONCE);
    let of_worker = |worker: usize| -> Arc<dyn ExecutionPlan> {
        let own: Vec<Part> = parts.iter().skip(worker).step_by(event.task_count).cloned().collect();
        let mut dealt = dealt(&own, partitions);
        dealt.resize(partitions, Vec::new());
        Arc::new(AnalysisExec::new(analysis.schema(), dealt))
    };
    let leaf = DistributedLeafExec::try_new(Arc::clone(event.plan), (0..event.task_count).map(of_worker));
    Some(leaf.map(|leaf| ScaleUpLeafNodeEventResponse::new(Arc::new(leaf))))
}

/// A partition, as it is sent.
#[derive(Clone, PartialEq, Message)]
struct SentPartition {
    #[prost(message, repeated, tag = "1")]
    parts: Vec<Part>,
}

/// [`AnalysisExec`], as it is sent.
#[derive(Clone, PartialEq, Message)]
struct Sent {
    #[prost(message, optional, tag = "1")]
    schema: Option<protobuf::Schema>,
    #[prost(message, repeated, tag = "2")]
    partitions: Vec<SentPartition>,
}

/// How [`AnalysisExec`] gets to workers.
#[derive(Debug)]
pub(super) struct AnalysisCodec;

impl PhysicalExtensionCodec for AnalysisCodec {
    fn try_decode(
        &self,
        bytes: &[u8],
        _: &[Arc<dyn ExecutionPlan>],
        _: &TaskContext,
        _: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok(Sent { schema: Some(schema), partitions }) = Sent::decode(bytes) else {
            return internal_err!("a part of a query that is not known");
        };
        let schema = Schema::try_from(&schema)?;
        let partitions = partitions.into_iter().map(|partition| partition.parts).collect();
        Ok(Arc::new(AnalysisExec::new(Arc::new(schema), partitions)))
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        _: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let Some(analysis) = node.downcast_ref::<AnalysisExec>() else {
            return internal_err!("{} cannot be sent to workers", node.name());
        };
        let partitions = analysis.partitions.iter().map(|parts| SentPartition { parts: parts.clone() }).collect();
        let sent = Sent { schema: Some(analysis.schema().as_ref().try_into()?), partitions };
        sent.encode(bytes).map_err(|error| exec_datafusion_err!("a part of a query cannot be sent: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_dealt_out_whole() {
        let part = |run: usize| Part { run: run.to_string(), arguments: Vec::new() };
        let parts: Vec<Part> = (0..7).map(part).collect();
        for groups in 1..9 {
            let dealt = dealt(&parts, groups);
            assert_eq!(dealt.len(), groups.min(7));
            let mut all: Vec<Part> = dealt.into_iter().flatten().collect();
            all.sort_by(|one, other| one.run.cmp(&other.run));
            assert_eq!(all, parts);
        }
        assert_eq!(dealt(&[], 4), [Vec::new()]);
    }
}
