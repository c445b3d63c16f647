//! `stepscope sql`: makes the tables of runs, and starts the program that runs SQL on them.

use crate::Ending;
use crate::failure::Failure;
use crate::opening::{self, JoinArguments, MemoryArgument};
use clap::Args;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use stepscope_engine::{paths_of, sql_command};
use stepscope_export::{Destination, ExportError, kept_tables};

/// Ask any question about runs or trace files, in SQL
///
/// Without SQL there is a prompt with a history and completion. Each RUN is a run of its own; rows say which one they are
/// of in the column run. The tables are made once, and kept in .stepscope beside the run.
#[derive(Args)]
#[command(after_help = "\
Examples:
  stepscope sql runs/a \"select name, sum(self_ns) as ns from op group by name order by ns desc limit 10\"
  stepscope sql trace.json.gz                      a prompt; .help says what else there is
  stepscope sql runs/a runs/b -f question.sql --csv > answer.csv
  stepscope sql runs/a \"select * from operators(group_by => 'module')\"
  stepscope sql runs/a --schema                    tables, columns, functions
  stepscope sql runs/a --cluster node1:7700,node2:7700 --tls-authority ca.pem \"select count(*) from op\"")]
pub(crate) struct SqlArguments {
    /// A run folder, a trace file, a folder of the traces of ranks, or a folder of tables; then SQL, in one argument
    #[arg(value_name = "RUN… SQL", required = true, num_args = 1..)]
    words: Vec<OsString>,
    /// Read SQL from FILE, - for standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print the tables with their columns, and the functions
    #[arg(long, conflicts_with = "file")]
    schema: bool,
    /// Print JSON
    #[arg(long, conflicts_with_all = ["csv", "arrow", "parquet"])]
    json: bool,
    /// Print comma-separated values
    #[arg(long, conflicts_with_all = ["arrow", "parquet"])]
    csv: bool,
    /// Print a stream of Arrow's IPC
    #[arg(long, conflicts_with = "parquet")]
    arrow: bool,
    /// Write Parquet to FILE, on disk or in a store
    #[arg(long, value_name = "FILE")]
    parquet: Option<PathBuf>,
    /// Only the first N rows; 1000 where rows are printed as text or JSON
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Threads that work on a query; as many as there are processors, where it is not said
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Workers that answer together; stepscope-sql worker --listen HOST:PORT is one. They see the run at the same path
    #[arg(long, value_name = "HOST:PORT,…")]
    cluster: Option<OsString>,
    /// Bytes of a table for a thread of a worker, as in 16MiB
    #[arg(long, value_name = "SIZE", requires = "cluster")]
    part: Option<OsString>,
    /// The token that workers are asked with; else that of STEPSCOPE_CLUSTER_TOKEN
    #[arg(long, value_name = "FILE", requires = "cluster")]
    token_file: Option<OsString>,
    /// The certificate that workers are checked by, as PEM; with it, they are spoken to with TLS
    #[arg(long, value_name = "FILE", requires = "cluster")]
    tls_authority: Option<OsString>,
    #[command(flatten)]
    joined: JoinArguments,
    #[command(flatten)]
    memory: MemoryArgument,
}

/// The exit code where the program is not there, as shells have it.
const MISSING: i32 = 127;

/// Carries `stepscope sql` out.
pub(crate) fn sql(arguments: &SqlArguments) -> Ending {
    let options = arguments.memory.with(arguments.joined.options());
    let Some(mut command) = sql_command(&options) else {
        let failure = Failure::new("queries need a program that is not installed: stepscope-sql");
        return Err(failure.hint("pip install 'stepscope[sql]'").code(MISSING));
    };
    let (runs, text) = runs_and_text(&arguments.words);
    for inputs in each_run(runs, arguments.joined.is_one_job()) {
        let inputs: Vec<PathBuf> = inputs.iter().map(PathBuf::from).collect();
        let paths = paths_of(&inputs)?;
        let kept = kept_tables(&paths, &options, || opening::open(&inputs, &options))?;
        // As they were named: a pattern is one run.
        command.args(kept.told(&name_of(&paths), &inputs));
    }
    command.args(arguments.passed_on());
    let add_text = |command: &mut Command| {
        if let Some(text) = text {
            command.arg("--").arg(text);
        }
    };
    match &arguments.parquet {
        Some(address) if stepscope_store::is_remote(address) => start_and_send(command, add_text, address),
        file => {
            if let Some(file) = file {
                command.arg("--parquet").arg(file);
            }
            add_text(&mut command);
            start(command)
        }
    }
}

/// Runs the other program, and sends the file that it has written to a store.
fn start_and_send(mut command: Command, add_text: impl FnOnce(&mut Command), address: &Path) -> Ending {
    let failed = |source| ExportError::Write { path: address.into(), source };
    let folder = tempfile::tempdir().map_err(failed)?;
    let file = folder.path().join("result.parquet");
    add_text(command.arg("--parquet").arg(&file));
    let code = wait(command)?;
    if code == 0 {
        Destination::write(address, |out| std::io::copy(&mut File::open(&file)?, out).map(drop))?;
    }
    Ok(code)
}

impl SqlArguments {
    /// What the other program is told as it was said, but for the place of Parquet.
    fn passed_on(&self) -> Vec<OsString> {
        let flags = [(self.schema, "--schema"), (self.json, "--json"), (self.csv, "--csv"), (self.arrow, "--arrow")];
        let mut passed: Vec<OsString> =
            flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag.into()).collect();
        let mut add = |name: &str, value: OsString| passed.extend([name.into(), value]);
        self.file.iter().for_each(|file| add("--file", file.into()));
        self.limit.iter().for_each(|rows| add("--limit", rows.to_string().into()));
        self.threads.iter().for_each(|threads| add("--threads", threads.to_string().into()));
        let of_cluster = [
            ("--cluster", &self.cluster),
            ("--part", &self.part),
            ("--token-file", &self.token_file),
            ("--tls-authority", &self.tls_authority),
        ];
        of_cluster.iter().for_each(|(name, value)| value.iter().for_each(|value| add(name, value.clone())));
        self.memory.bytes().iter().for_each(|bytes| add("--memory", bytes.to_string().into()));
        passed
    }
}

/// The runs that `words` name, and the SQL behind them: it has white space, and is no path.
fn runs_and_text(words: &[OsString]) -> (&[OsString], Option<&OsString>) {
    let is_sql = |word: &OsString| {
        word.to_string_lossy().trim().contains(char::is_whitespace) && !stepscope_store::exists(Path::new(word))
    };
    match words.split_last() {
        Some((last, runs)) if !runs.is_empty() && is_sql(last) => (runs, Some(last)),
        _ => (words, None),
    }
}

/// What each run is named by: a word, or all of them.
fn each_run(words: &[OsString], is_one_job: bool) -> impl Iterator<Item = &[OsString]> {
    words.chunks(if is_one_job { words.len() } else { 1 })
}

/// What a run is called: the name of its folder or file.
fn name_of(paths: &[PathBuf]) -> String {
    let whole = paths.first().and_then(|path| std::fs::canonicalize(path).ok());
    let path = whole.as_ref().or(paths.first());
    path.and_then(|path| path.file_name()).map_or_else(|| "run".into(), |name| name.to_string_lossy().into_owned())
}

/// Becomes the other program.
#[cfg(unix)]
fn start(mut command: Command) -> Ending {
    use std::os::unix::process::CommandExt;
    let error = command.exec();
    Err(Failure::file("cannot start the program that runs SQL", command.get_program().as_ref(), &error))
}

/// Runs the other program.
#[cfg(not(unix))]
fn start(command: Command) -> Ending {
    wait(command)
}

/// Runs the other program until it ends.
fn wait(mut command: Command) -> Ending {
    let status = command.status();
    let program = Path::new(command.get_program());
    let status = status.map_err(|error| Failure::file("cannot start the program that runs SQL", program, &error))?;
    Ok(status.code().unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_is_sql_when_it_looks_like_it() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let split = |said: &[&str]| {
            let said = words(said);
            let (runs, text) = runs_and_text(&said);
            (runs.len(), text.map(|text| text.to_string_lossy().into_owned()))
        };
        assert_eq!(split(&["a", "b", "select 1"]), (2, Some("select 1".into())));
        assert_eq!(split(&["a", "b"]), (2, None));
        assert_eq!(split(&["select 1"]), (1, None));
        let folder = tempfile::tempdir().unwrap();
        let spaced = folder.path().join("my run");
        std::fs::write(&spaced, "").unwrap();
        assert_eq!(split(&["a", spaced.to_str().unwrap()]), (2, None));
    }
}
