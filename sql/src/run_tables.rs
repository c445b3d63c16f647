//! The tables of the runs by name, each read when it is first asked: a large run has many files.

use crate::error::QueryError;
use crate::session::Run;
use crate::tables::RunTable;
use async_trait::async_trait;
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider, TableProvider};
use datafusion::common::{Result, exec_err};
use datafusion::execution::runtime_env::RuntimeEnv;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stepscope_store::{StoreError, is_folder, list};
use tokio::sync::Mutex;

/// The tables of the runs, and what queries give a name to.
#[derive(Debug)]
pub(crate) struct RunTables {
    /// The files of each table, with the run that they are of.
    files: BTreeMap<String, Vec<(String, PathBuf)>>,
    runtime: Arc<RuntimeEnv>,
    opened: Mutex<BTreeMap<String, Arc<RunTable>>>,
    /// Views, and results of analyses.
    named: MemorySchemaProvider,
}

impl RunTables {
    /// Those of these runs: a folder of Parquet files each.
    ///
    /// # Errors
    /// When a folder cannot be read, or there are none.
    pub(crate) fn of(runs: &[Run], runtime: &Arc<RuntimeEnv>) -> Result<Self, QueryError> {
        let mut files = BTreeMap::<String, Vec<(String, PathBuf)>>::new();
        for run in runs {
            let failed = |error: std::io::Error| {
                let hint = StoreError::in_error(&error).and_then(StoreError::hint).map(str::to_string);
                let what = format!("cannot read the tables: {error}");
                QueryError { hint, ..QueryError::new(what).at(run.folder.display().to_string()) }
            };
            for table in list(&run.folder).map_err(failed)? {
                let name = table.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if !is_folder(&table) || name.starts_with('.') {
                    continue;
                }
                let parquet = list(&table).map_err(failed)?.into_iter().filter(|file| is_parquet(file));
                files.entry(name).or_default().extend(parquet.map(|file| (run.name.clone(), file)));
            }
        }
        files.retain(|_, files| !files.is_empty());
        if files.is_empty() {
            let folder = runs.first().map(|run| run.folder.display().to_string()).unwrap_or_default();
            return Err(QueryError::new("there are no tables").at(folder).hint("stepscope sql RUN makes them"));
        }
        Ok(Self { files, runtime: Arc::clone(runtime), opened: Mutex::default(), named: MemorySchemaProvider::new() })
    }

    /// The names of the tables of runs, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The table of runs that is called `name`.
    ///
    /// # Errors
    /// When a file of it cannot be read.
    pub(crate) async fn open(&self, name: &str) -> Result<Option<Arc<RunTable>>> {
        let Some(files) = self.files.get(name) else { return Ok(None) };
        let mut opened = self.opened.lock().await;
        if let Some(table) = opened.get(name) {
            return Ok(Some(Arc::clone(table)));
        }
        let table = Arc::new(RunTable::open(files, &self.runtime).await?);
        opened.insert(name.to_string(), Arc::clone(&table));
        Ok(Some(table))
    }

    /// All tables of runs, in order.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(crate) async fn all(&self) -> Result<Vec<(&str, Arc<RunTable>)>> {
        let mut all = Vec::new();
        for name in self.names() {
            all.extend(self.open(name).await?.map(|table| (name, table)));
        }
        Ok(all)
    }
}

fn is_parquet(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "parquet")
}

#[async_trait]
impl SchemaProvider for RunTables {
    fn table_names(&self) -> Vec<String> {
        self.names().map(String::from).chain(self.named.table_names()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        match self.open(name).await? {
            Some(table) => Ok(Some(table)),
            None => self.named.table(name).await,
        }
    }

    fn register_table(&self, name: String, table: Arc<dyn TableProvider>) -> Result<Option<Arc<dyn TableProvider>>> {
        if self.files.contains_key(&name) {
            return exec_err!("the table {name} already exists");
        }
        self.named.register_table(name, table)
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.named.deregister_table(name)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.files.contains_key(name) || self.named.table_exist(name)
    }
}
