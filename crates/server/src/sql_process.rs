//! A query that runs: `stepscope-sql`, a program of its own, which ends with the request that waits for it.

use crate::failure::Failure;
use crate::run_tables::RunTables;
use axum::body::Bytes;
use axum::http::StatusCode;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use stepscope_engine::SqlComplaint;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Bytes of an answer that is not sent while it comes.
const MAX_ANSWER_BYTES: usize = 256 << 20;
/// How a page ends that is not the last.
const MORE_FOLLOWS: &[u8] = b"\"is_complete\":false}\n";
/// Bytes that are sent at once.
const PIECE_BYTES: usize = 1 << 16;
/// Bytes of what the program complains about that are read.
const MAX_COMPLAINT_BYTES: usize = 16 << 10;

/// Where the programs of queries are.
pub(crate) struct SqlPrograms {
    /// What runs SQL; `None` where it is not installed.
    pub(crate) sql: Option<PathBuf>,
    /// What it calls for analyses.
    pub(crate) stepscope: Option<PathBuf>,
    /// How runs were opened, an argument of `stepscope analyze` each.
    pub(crate) opened_with: Vec<String>,
    /// Bytes of memory that a query may take, where that was said.
    pub(crate) memory: Option<u64>,
}

impl SqlPrograms {
    /// The program that runs SQL.
    ///
    /// # Errors
    /// When it is not installed.
    pub(crate) fn sql(&self) -> Result<&Path, Failure> {
        self.sql.as_deref().ok_or_else(|| {
            let failure = Failure::new(StatusCode::NOT_IMPLEMENTED, "queries need a program that is not installed");
            failure.hint("pip install 'stepscope[sql]', then start `stepscope view` again")
        })
    }

    /// Starts it on tables. `form` says what it answers. It reads `sql` where there is some.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start(&self, tables: &RunTables, form: &[&OsStr], sql: Option<&str>) -> Result<SqlProcess, Failure> {
        let program = self.sql()?;
        let mut command = Command::new(program);
        command.args(tables.told()).args(form);
        if let Some(stepscope) = &self.stepscope {
            command.arg("--stepscope").arg(stepscope);
        }
        command.args(self.opened_with.iter().map(|argument| format!("--opened-with={argument}")));
        command.args(self.memory.map(|bytes| format!("--memory={bytes}")));
        if sql.is_some() {
            command.args(["-f", "-"]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        // So that what it calls ends with it.
        #[cfg(unix)]
        command.process_group(0);
        let cannot_start = |error: std::io::Error| {
            let failure = Failure::internal(format!("the program that runs SQL cannot be started: {error}"));
            failure.at(program.display()).hint("is it for this machine, and may it be executed?")
        };
        let mut child = command.spawn().map_err(cannot_start)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(Failure::internal("the program that runs SQL has no pipes"));
        };
        let sql = sql.unwrap_or_default().to_string();
        tokio::spawn(async move {
            // A program that ends before it has read all says why by itself.
            let _ = stdin.write_all(sql.as_bytes()).await;
        });
        Ok(SqlProcess {
            child: Some(child),
            stdout: BufReader::new(stdout),
            complaint: tokio::spawn(complaint(stderr)),
        })
    }
}

/// A program that runs SQL. Dropping it ends the program at once, with what it has started.
pub(crate) struct SqlProcess {
    /// None once this is dropped.
    child: Option<Child>,
    stdout: BufReader<ChildStdout>,
    complaint: JoinHandle<String>,
}

impl SqlProcess {
    /// All that it answers.
    ///
    /// # Errors
    /// What it says of the query, or when it fails.
    pub(crate) async fn answer(mut self) -> Result<String, Failure> {
        let mut answer = Vec::new();
        let most = MAX_ANSWER_BYTES as u64 + 1;
        (&mut self.stdout).take(most).read_to_end(&mut answer).await.map_err(|error| broken(&error))?;
        self.end(&answer).await?;
        text(answer)
    }

    /// The next rows of one that gives them in pages, and the program itself where there are more.
    ///
    /// # Errors
    /// As [`SqlProcess::answer`].
    pub(crate) async fn page(mut self) -> Result<(String, Option<Self>), Failure> {
        let mut page = Vec::new();
        let most = MAX_ANSWER_BYTES as u64 + 1;
        (&mut self.stdout).take(most).read_until(b'\n', &mut page).await.map_err(|error| broken(&error))?;
        if page.ends_with(MORE_FOLLOWS) {
            return Ok((text(page)?, Some(self)));
        }
        // One that is too long has no end yet.
        if page.len() <= MAX_ANSWER_BYTES {
            self.end(&page).await?;
        }
        Ok((text(page)?, None))
    }

    /// The next bytes of its answer, as soon as there are any; none at the end.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(crate) async fn piece(&mut self) -> Result<Bytes, Failure> {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        self.stdout.read_buf(&mut piece).await.map_err(|error| broken(&error))?;
        Ok(piece.into())
    }

    /// Waits for its end, `answer` having been read.
    ///
    /// # Errors
    /// When it ended otherwise than well.
    pub(crate) async fn end(mut self, answer: &[u8]) -> Result<(), Failure> {
        let child = self.child.as_mut().expect("it is not dropped");
        let status = child.wait().await.map_err(|error| broken(&error))?;
        if status.success() {
            return Ok(());
        }
        let complaint = (&mut self.complaint).await.unwrap_or_default();
        Err(failure_of(status, answer, &complaint))
    }
}

impl Drop for SqlProcess {
    fn drop(&mut self) {
        self.complaint.abort();
        // It has no number any more once its end was seen.
        let Some(mut child) = self.child.take().filter(|child| child.id().is_some()) else { return };
        #[cfg(unix)]
        if let Some(group) = child.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed())) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = child.start_kill();
        // Until somebody has seen its end, the system keeps its number.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { child.wait().await });
        }
    }
}

/// The beginning of what a program writes to standard error. All of it is read, so that the program never waits.
async fn complaint(mut stderr: ChildStderr) -> String {
    let (mut kept, mut piece) = (Vec::new(), Vec::with_capacity(MAX_COMPLAINT_BYTES));
    while stderr.read_buf(&mut piece).await.is_ok_and(|read| read > 0) {
        kept.extend(piece.drain(..).take(MAX_COMPLAINT_BYTES - kept.len()));
    }
    String::from_utf8_lossy(&kept).trim().to_string()
}

/// What the program says is wrong, as an answer to the request.
fn failure(complaint: SqlComplaint) -> Failure {
    let failure = Failure::bad_request(complaint.what);
    let failure = complaint.location.into_iter().fold(failure, Failure::at);
    complaint.hint.into_iter().fold(failure, Failure::hint)
}

/// What is wrong as people are told it.
fn said_as_text(complaint: &str) -> SqlComplaint {
    let line = |mark: &str| complaint.lines().find_map(|line| Some(line.trim().strip_prefix(mark)?.trim().to_string()));
    let what = line("error:").unwrap_or_else(|| complaint.lines().next().unwrap_or_default().to_string());
    SqlComplaint { what, location: line("at:"), hint: line("hint:") }
}

/// Why there is no answer: what the program said as JSON, or else as text, or how it ended.
fn failure_of(status: ExitStatus, answer: &[u8], complaint: &str) -> Failure {
    if let Some(complaint) = SqlComplaint::of(answer) {
        return failure(complaint);
    }
    if status.code().is_some() && !complaint.is_empty() {
        return failure(said_as_text(complaint));
    }
    let failed = Failure::internal(format!("the program that runs SQL failed: {status}"));
    match status.code() {
        Some(_) => failed,
        None => failed.hint("it may have used too much memory: ask for fewer rows or columns"),
    }
}

/// An answer that is text and not too long.
fn text(answer: Vec<u8>) -> Result<String, Failure> {
    if answer.len() > MAX_ANSWER_BYTES {
        let what = format!("the answer is larger than {} MiB", MAX_ANSWER_BYTES >> 20);
        return Err(Failure::bad_request(what).hint("ask for fewer rows or columns, or save the result as a file"));
    }
    String::from_utf8(answer).map_err(|_| Failure::internal("the program that runs SQL answered no text"))
}

fn broken(error: &std::io::Error) -> Failure {
    Failure::internal(format!("the answer of the program that runs SQL cannot be read: {error}"))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn what_the_program_says_is_told_as_it_is() {
        let wrong = ExitStatus::from_raw(1 << 8);
        let said = br#"{"error":{"what":"no column `nme`","where":"line 1, column 8","hint":"did you mean name?"}}"#;
        let expected = Failure::bad_request("no column `nme`").at("line 1, column 8").hint("did you mean name?");
        assert_eq!(failure_of(wrong, said, "unread"), expected);
        let said = br#"{"error":{"what":"not SQL","where":null,"hint":null}}"#;
        assert_eq!(failure_of(wrong, said, ""), Failure::bad_request("not SQL"));
        let complaint = "error: no table `slce`\n   at: line 1, column 15\n hint: did you mean slice?";
        let expected = Failure::bad_request("no table `slce`").at("line 1, column 15").hint("did you mean slice?");
        assert_eq!(failure_of(wrong, b"name,count\n", complaint), expected);
        assert_eq!(failure_of(wrong, b"", "no library\nmore"), Failure::bad_request("no library"));
    }

    #[test]
    fn what_goes_wrong_after_some_rows_is_told() {
        let answer =
            br#"{"columns":[],"rows":[["{\"error\":1"],[{"error":{"what":"a cell"}}]{"error":{"what":"by zero"}}"#;
        assert_eq!(failure_of(ExitStatus::from_raw(1 << 8), answer, ""), Failure::bad_request("by zero"));
    }

    #[test]
    fn a_program_that_ends_otherwise_failed() {
        assert_eq!(failure_of(ExitStatus::from_raw(1 << 8), b"", "").status(), StatusCode::INTERNAL_SERVER_ERROR);
        let killed = failure_of(ExitStatus::from_raw(9), b"{\"columns\":[", "reading");
        assert_eq!(killed.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(format!("{killed:?}").contains("too much memory"), "{killed:?}");
    }
}
