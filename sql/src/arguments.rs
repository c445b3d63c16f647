//! What the program was called with.

use crate::error::QueryError;
use clap::{ArgGroup, Args, Parser, Subcommand};
use std::io::{IsTerminal, Read};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// SQL over the tables of runs
///
/// `stepscope sql RUN` makes the tables and starts this program.
#[derive(Parser)]
#[command(version, subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) role: Option<Role>,
    /// What to ask; without it there is a prompt
    #[arg(value_name = "SQL")]
    sql: Option<String>,
    /// The tables of a run, and what the run is called; once for each run
    #[arg(long = "tables", value_name = "NAME=FOLDER", required = true, value_parser = named_folder)]
    pub(crate) runs: Vec<(String, PathBuf)>,
    /// What the run was made of, once for each path: for analyses. Of several runs, once for each
    #[arg(long = "input", value_name = "PATH")]
    pub(crate) inputs: Vec<PathBuf>,
    /// How the run was opened, an argument of `stepscope analyze` each
    #[arg(long = "opened-with", value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub(crate) opened_with: Vec<String>,
    /// The program that runs analyses
    #[arg(long, value_name = "PROGRAM", default_value = "stepscope")]
    pub(crate) stepscope: PathBuf,
    /// Read SQL from FILE, - for standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "sql")]
    file: Option<PathBuf>,
    /// Print the tables with their columns, the functions, and examples
    #[arg(long)]
    pub(crate) schema: bool,
    /// Bytes of memory that a query may take, as in 8GiB; more goes to disk. Half of what is free, where it is not said
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) memory: Option<u64>,
    /// Threads that work on a query; as many as there are processors, where it is not said
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    pub(crate) cluster: ClusterArguments,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

/// What else the program may be.
#[derive(Subcommand)]
pub(crate) enum Role {
    /// Answer parts of queries, for those that name this process with --cluster
    Worker(WorkerArguments),
}

/// How a worker serves.
#[derive(Args)]
pub(crate) struct WorkerArguments {
    /// Where to listen; a port of 0 is any that is free. Beyond this machine, with a certificate alone
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7700")]
    pub(crate) listen: String,
    /// The certificate that the worker shows, as PEM
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "tls_authority"])]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// The key of the certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,
    /// The program that runs analyses
    #[arg(long, value_name = "PROGRAM", default_value = "stepscope")]
    pub(crate) stepscope: PathBuf,
    /// Bytes of memory that queries may take, as in 8GiB; more goes to disk. Half of what is free, where it is not said
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) memory: Option<u64>,
    /// Threads that work on queries; as many as there are processors, where it is not said
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    pub(crate) security: SecurityArguments,
}

/// Whom a query is asked of.
#[derive(Args)]
pub(crate) struct ClusterArguments {
    /// Workers that answer together, which see the tables at the same paths
    #[arg(long = "cluster", value_name = "HOST:PORT,…", value_delimiter = ',')]
    pub(crate) workers: Vec<String>,
    /// Bytes of a table for a thread of a worker; a table of fewer is read by fewer workers
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "16MiB", requires = "workers")]
    part: u64,
    #[command(flatten)]
    pub(crate) security: SecurityArguments,
}

impl ClusterArguments {
    /// Bytes of a table for a thread of a worker, at least one.
    pub(crate) fn part_bytes(&self) -> usize {
        usize::try_from(self.part).unwrap_or(usize::MAX).max(1)
    }
}

/// How a client and workers know each other.
#[derive(Args)]
pub(crate) struct SecurityArguments {
    /// The token that workers are asked with; else that of STEPSCOPE_CLUSTER_TOKEN
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// The certificate that workers are checked by, as PEM; with it, they are spoken to with TLS
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_authority: Option<PathBuf>,
}

/// Where rows go.
#[derive(Args, Clone)]
#[command(group(ArgGroup::new("form").args(["json", "pages", "csv", "arrow", "parquet"])))]
pub(crate) struct OutputArguments {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print all rows as JSON, N to a line: what reads a line lets the query go on
    #[arg(long, value_name = "N")]
    pub(crate) pages: Option<NonZeroUsize>,
    /// Print comma-separated values
    #[arg(long)]
    pub(crate) csv: bool,
    /// Print a stream of Arrow's IPC
    #[arg(long)]
    pub(crate) arrow: bool,
    /// Write Parquet to FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) parquet: Option<PathBuf>,
    /// Only the first N rows; 1000 where rows are printed as text or JSON
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

impl Arguments {
    /// What is asked; none where a person is to be prompted.
    pub(crate) fn text(&self) -> Result<Option<String>, QueryError> {
        let failed = |place: &dyn std::fmt::Display, error: std::io::Error| {
            QueryError::new(format!("cannot read SQL: {error}")).at(place.to_string())
        };
        let standard_input = || {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .map(|_| Some(text))
                .map_err(|error| failed(&"standard input", error))
        };
        match (&self.sql, &self.file) {
            (Some(sql), _) => Ok(Some(sql.clone())),
            (_, Some(file)) if file.as_os_str() == "-" => standard_input(),
            (_, Some(file)) => std::fs::read_to_string(file).map(Some).map_err(|error| failed(&file.display(), error)),
            _ if std::io::stdin().is_terminal() => Ok(None),
            _ => standard_input(),
        }
    }

    /// Threads that work on a query.
    pub(crate) fn threads(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = match &self.role {
            Some(Role::Worker(worker)) => worker.threads,
            None => self.threads,
        };
        threads.filter(|threads| *threads > 0).unwrap_or_else(processors)
    }
}

fn named_folder(text: &str) -> Result<(String, PathBuf), String> {
    let (name, folder) = text.split_once('=').ok_or("expected NAME=FOLDER")?;
    Ok((name.to_string(), folder.into()))
}

fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 8] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
    ];
    let unit = UNITS.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)));
    let (number, bytes) = unit.unwrap_or((text, 1));
    let number = number.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(bytes));
    number.ok_or_else(|| "expected a whole number of bytes, as in 8GiB or 500MB".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!((bytes("8GiB"), bytes("500 MB"), bytes("7")), (Ok(8 << 30), Ok(500_000_000), Ok(7)));
        assert!(bytes("1.5GiB").is_err() && bytes("").is_err() && bytes("99999999TiB").is_err());
    }

    #[test]
    fn a_folder_may_have_the_sign_in_its_name() {
        assert_eq!(named_folder("a=/b=c"), Ok(("a".to_string(), "/b=c".into())));
        assert!(named_folder("a").is_err());
    }
}
