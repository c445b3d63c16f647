//! Queries that several processes answer together, on one machine or many: each reads its part of the tables.
//!
//! ```text
//! stepscope-sql --cluster a:7700,b:7700 ─▶ plan ─▶ worker a, worker b ─▶ rows, kept until they are all there ─▶ output
//!                                           ▲                                   │
//!                                           └──── asked again without a ◀───────┘ a is gone
//! ```
//!
//! Planning, exchanging rows and ending what nobody waits for is done by the crate `datafusion-distributed`.

mod analysis;
mod answer;
mod connection;
mod runs;
mod worker;
mod workers;

pub(crate) use analysis::{AnalysisTable, Part};
pub(crate) use worker::serve;

use crate::arguments::ClusterArguments;
use crate::error::QueryError;
use crate::session::Run;
use analysis::{AnalysisCodec, AnalysisProgram};
use connection::Connection;
use datafusion::dataframe::DataFrame;
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion_distributed::{DistributedExt, SessionStateBuilderExt};
use runs::RunsOfQuery;
use std::path::Path;
use std::sync::Arc;
use workers::Workers;

/// The workers that answer queries, as a client knows them.
pub(crate) struct Cluster {
    workers: Arc<Workers>,
    connection: Connection,
    part_bytes: usize,
}

impl Cluster {
    /// Those that are named, of which at least one answers; `None` where none is named.
    ///
    /// # Errors
    /// When a file cannot be read, a worker refuses, or none answers.
    pub(crate) async fn of(arguments: &ClusterArguments) -> Result<Option<Self>, QueryError> {
        let named: Vec<String> = arguments.workers.iter().filter(|name| !name.is_empty()).cloned().collect();
        if named.is_empty() {
            return Ok(None);
        }
        let connection = Connection::of(&arguments.security)?;
        let workers = Arc::new(Workers::named(&named, &connection)?);
        workers.look().await?;
        Ok(Some(Self { workers, connection, part_bytes: arguments.part_bytes() }))
    }

    /// Makes a session plan for them.
    ///
    /// # Errors
    /// When the engine takes no such options.
    pub(crate) fn plan_for(
        &self,
        builder: SessionStateBuilder,
        runs: &[Run],
        stepscope: &Path,
    ) -> Result<SessionStateBuilder, QueryError> {
        let builder = builder
            .with_distributed_planner()
            .with_distributed_worker_resolver(workers::Resolver(Arc::clone(&self.workers)))
            .with_distributed_channel_resolver(self.connection.clone())
            .with_distributed_option_extension(RunsOfQuery::of(runs))
            .with_distributed_user_codec(AnalysisCodec)
            .with_distributed_desired_task_count_handler(analysis::tasks)
            .with_distributed_scale_up_leaf_node_handler(analysis::divided)
            .with_distributed_file_scan_config_bytes_per_partition(self.part_bytes)?;
        Ok(AnalysisProgram::known_to(builder, stepscope))
    }

    /// How many workers answer.
    pub(crate) fn count(&self) -> usize {
        self.workers.answering().len()
    }

    /// The rows of a query, which are all there before the first is given.
    ///
    /// # Errors
    /// What is wrong with the query; when no worker is left.
    pub(crate) async fn rows(&self, frame: DataFrame, scratch: &Path) -> Result<SendableRecordBatchStream, QueryError> {
        match frame.logical_plan().clone() {
            LogicalPlan::Explain(explain) => answer::plan(frame, &explain).await,
            _ => answer::rows(&self.workers, frame, scratch).await,
        }
    }
}
