//! What queries run in: the tables of the runs, functions, and limits.

use crate::arguments::Arguments;
use crate::error::QueryError;
use crate::functions;
use crate::tables::RunTable;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Memory where the system does not say how much is free.
const MEMORY_BYTES: u64 = 4 << 30;

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

/// The tables of some runs, ready to be asked.
pub(crate) struct Session {
    pub(crate) context: SessionContext,
    pub(crate) runs: Vec<Run>,
    /// The tables by name, with what a row of each is.
    pub(crate) tables: BTreeMap<String, Arc<RunTable>>,
    /// The program that runs analyses.
    pub(crate) stepscope: PathBuf,
    /// Bytes of memory that a query may take, where it was said.
    pub(crate) memory: Option<u64>,
    /// What it is told beside the analysis and the run.
    pub(crate) opened_with: Vec<String>,
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
            .with_default_catalog_and_schema("stepscope", "run");
        let options = config.options_mut();
        // A place for each error.
        options.sql_parser.collect_spans = true;
        options.execution.parquet.pushdown_filters = true;
        options.execution.parquet.reorder_filters = true;
        let memory = arguments.memory.unwrap_or_else(|| free_bytes().map_or(MEMORY_BYTES, |free| free / 2));
        let pool = FairSpillPool::new(usize::try_from(memory).unwrap_or(usize::MAX));
        let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::OsTmpDirectory);
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(pool)).with_disk_manager_builder(disk);
        let context = SessionContext::new_with_config_rt(config, runtime.build_arc()?);
        let runs = runs(arguments);
        let tables = tables(&runs)?;
        for (name, table) in &tables {
            context.register_table(name.as_str(), Arc::clone(table) as _)?;
        }
        functions::register(&context, &runs);
        let scratch = tempfile::tempdir()
            .map_err(|error| QueryError::new(format!("cannot make a folder for temporary files: {error}")))?;
        Ok(Self {
            context,
            runs,
            tables,
            stepscope: arguments.stepscope.clone(),
            opened_with: arguments.opened_with.clone(),
            memory: arguments.memory,
            scratch,
        })
    }
}

/// The runs that are named, each with a name of its own.
fn runs(arguments: &Arguments) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (at, (name, folder)) in arguments.runs.iter().enumerate() {
        let is_taken = |name: &str| runs.iter().any(|run| run.name == name);
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        let name = std::iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or_default();
        let inputs = match (arguments.runs.len(), at) {
            (1, _) => arguments.inputs.clone(),
            _ => arguments.inputs.get(at).cloned().into_iter().collect(),
        };
        runs.push(Run { name, folder: folder.clone(), inputs });
    }
    runs
}

/// The tables of the runs: a folder of Parquet files each.
fn tables(runs: &[Run]) -> Result<BTreeMap<String, Arc<RunTable>>, QueryError> {
    let mut files = BTreeMap::<String, Vec<(String, PathBuf)>>::new();
    for run in runs {
        let failed = |error: std::io::Error| {
            QueryError::new(format!("cannot read the tables: {error}")).at(run.folder.display().to_string())
        };
        for table in sorted(&run.folder).map_err(failed)? {
            let name = table.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !table.is_dir() || name.starts_with('.') {
                continue;
            }
            let parquet = sorted(&table).map_err(failed)?.into_iter().filter(|file| is_parquet(file));
            files.entry(name).or_default().extend(parquet.map(|file| (run.name.clone(), file)));
        }
    }
    files.retain(|_, files| !files.is_empty());
    if files.is_empty() {
        let folder = runs.first().map(|run| run.folder.display().to_string()).unwrap_or_default();
        return Err(QueryError::new("there are no tables").at(folder).hint("stepscope sql RUN makes them"));
    }
    let opened = files.into_iter().map(|(name, files)| Ok((name, Arc::new(RunTable::open(&files)?))));
    opened.collect()
}

fn is_parquet(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "parquet")
}

fn sorted(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut entries = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    entries.sort();
    Ok(entries)
}

/// Bytes of memory that the system has free, as it says.
fn free_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
