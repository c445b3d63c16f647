//! What queries run in: the tables of the runs, functions, and limits.

use crate::arguments::Arguments;
use crate::cluster::Cluster;
use crate::error::QueryError;
use crate::functions;
use crate::run_tables::RunTables;
use crate::stored::{self, Files};
use datafusion::dataframe::DataFrame;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::process::Command;
use tokio::sync::OnceCell;

/// Memory where the system does not say how much is free.
const MEMORY_BYTES: u64 = 4 << 30;

/// What stands before the name of a table, where it is written out.
const CATALOG: &str = "stepscope";
const SCHEMA: &str = "run";

/// A run whose tables can be asked.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// What it is called in the column `run`.
    pub(crate) name: String,
    /// The folder of its tables.
    pub(crate) folder: PathBuf,
    /// What its tables were made of: what analyses open.
    pub(crate) inputs: Vec<PathBuf>,
}

impl Run {
    /// The ranks that its tables are of, in order.
    pub(crate) fn ranks(&self) -> Vec<u32> {
        let files = stepscope_store::list(&self.folder.join("slice")).unwrap_or_default();
        let rank = |name: &str| name.strip_prefix("rank-")?.split(['-', '.']).next()?.parse().ok();
        let ranks: BTreeSet<u32> = files.iter().filter_map(|file| rank(&file.file_name()?.to_string_lossy())).collect();
        ranks.into_iter().collect()
    }
}

/// The tables of some runs, ready to be asked.
pub(crate) struct Session {
    pub(crate) context: SessionContext,
    pub(crate) runs: Vec<Run>,
    pub(crate) tables: Arc<RunTables>,
    /// The program that runs analyses.
    pub(crate) stepscope: PathBuf,
    /// Bytes of memory that a query may take, where it was said.
    pub(crate) memory: Option<u64>,
    /// What it is told beside the analysis and the run.
    pub(crate) opened_with: Vec<String>,
    /// Who answers queries; `None` for this process alone.
    pub(crate) cluster: Option<Cluster>,
    /// The analyses whose rows come by rank, and depend on no other rank.
    by_rank: OnceCell<BTreeSet<String>>,
    /// Files of results of analyses; they go with the session.
    pub(crate) scratch: tempfile::TempDir,
}

impl Session {
    /// # Errors
    /// When tables cannot be read.
    pub(crate) async fn open(arguments: &Arguments) -> Result<Self, QueryError> {
        let mut config = SessionConfig::new()
            .with_target_partitions(arguments.threads())
            .with_information_schema(true)
            .with_default_catalog_and_schema(CATALOG, SCHEMA);
        let options = config.options_mut();
        // A place for each error.
        options.sql_parser.collect_spans = true;
        options.execution.parquet.pushdown_filters = true;
        options.execution.parquet.reorder_filters = true;
        let cluster = Cluster::of(&arguments.cluster).await?;
        let runs = runs(arguments, cluster.is_some())?;
        let runtime = runtime_env(arguments.memory)?;
        let tables = Arc::new(RunTables::of(&runs, &runtime)?);
        let builder = SessionStateBuilder::new().with_config(config).with_runtime_env(runtime).with_default_features();
        let builder = match &cluster {
            Some(cluster) => cluster.plan_for(builder, &runs, &arguments.stepscope)?,
            None => builder,
        };
        let mut state = builder.build();
        functions::register(&mut state, &runs)?;
        let context = SessionContext::new_with_state(state);
        let catalog = context.catalog(CATALOG).ok_or_else(|| QueryError::new("the engine has no catalog"))?;
        catalog.register_schema(SCHEMA, Arc::clone(&tables) as _)?;
        let scratch = tempfile::tempdir()
            .map_err(|error| QueryError::new(format!("cannot make a folder for temporary files: {error}")))?;
        Ok(Self {
            context,
            runs,
            tables,
            stepscope: arguments.stepscope.clone(),
            opened_with: arguments.opened_with.clone(),
            memory: arguments.memory,
            cluster,
            by_rank: OnceCell::new(),
            scratch,
        })
    }

    /// The rows of a query.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) async fn rows(&self, frame: DataFrame) -> Result<SendableRecordBatchStream, QueryError> {
        match &self.cluster {
            Some(cluster) => cluster.rows(frame, self.scratch.path()).await,
            None => Ok(frame.execute_stream().await?),
        }
    }

    /// What the program that runs analyses says of each; nothing where it is not there.
    pub(crate) async fn analyses(&self) -> Vec<Value> {
        let listed = Command::new(&self.stepscope).args(["analyze", "--json"]).kill_on_drop(true).output().await;
        listed.ok().and_then(|listed| serde_json::from_slice(&listed.stdout).ok()).unwrap_or_default()
    }

    /// Whether the rows of an analysis come by rank, and depend on no other rank.
    pub(crate) async fn is_by_rank(&self, analysis: &str) -> bool {
        let by_rank = || async {
            let analyses = self.analyses().await.into_iter().filter(|analysis| analysis["is_by_rank"] == true);
            analyses.filter_map(|analysis| analysis["name"].as_str().map(String::from)).collect()
        };
        self.by_rank.get_or_init(by_rank).await.contains(analysis)
    }
}

/// What queries run in: all files as [`Files`], no more memory than this, half of what is free where it is not said, and then the disk.
///
/// # Errors
/// When there is no folder for temporary files.
pub(crate) fn runtime_env(memory: Option<u64>) -> Result<Arc<RuntimeEnv>, QueryError> {
    let memory = memory.unwrap_or_else(|| free_bytes().map_or(MEMORY_BYTES, |free| free / 2));
    let pool = FairSpillPool::new(usize::try_from(memory).unwrap_or(usize::MAX));
    let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::OsTmpDirectory);
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(pool)).with_disk_manager_builder(disk);
    let runtime = runtime.build_arc()?;
    runtime.register_object_store(stored::url().as_ref(), Arc::new(Files));
    Ok(runtime)
}

/// The runs that are named, each with a name of its own. Others than this process need whole paths.
fn runs(arguments: &Arguments, are_for_others: bool) -> Result<Vec<Run>, QueryError> {
    let mut runs: Vec<Run> = Vec::new();
    for (at, (name, folder)) in arguments.runs.iter().enumerate() {
        let is_taken = |name: &str| runs.iter().any(|run| run.name == name);
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        let name = std::iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or_default();
        let inputs = match (arguments.runs.len(), at) {
            (1, _) => arguments.inputs.clone(),
            _ => arguments.inputs.get(at).cloned().into_iter().collect(),
        };
        let inputs = inputs.into_iter().map(|input| if are_for_others { whole(input) } else { Ok(input) });
        let folder = if are_for_others { whole(folder.clone())? } else { folder.clone() };
        runs.push(Run { name, folder, inputs: inputs.collect::<Result<_, _>>()? });
    }
    Ok(runs)
}

/// A path of this machine from its root on; an address as it is.
fn whole(path: PathBuf) -> Result<PathBuf, QueryError> {
    if stepscope_store::is_remote(&path) {
        return Ok(path);
    }
    let failed = |error| QueryError::new(format!("cannot find out where this is: {error}"));
    std::path::absolute(&path).map_err(|error| failed(error).at(path.display().to_string()))
}

/// Bytes of memory that the system has free, as it says.
fn free_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
