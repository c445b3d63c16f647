//! What messages, hints and examples in the sources tell to type exists: `stepscope NAME`, by the list of commands of the
//! command line itself.

use super::Problem;
use crate::checkout::Checkout;

/// Where the commands are listed, and how the list begins.
const COMMANDS: &str = "crates/cli/src/lib.rs";
const LIST: &str = "enum Command {";
/// What stands before a command that is meant to be typed.
const BEFORE: [&str; 3] = ["`", ": ", "hint(\""];

pub(super) fn check(checkout: &Checkout) -> Vec<Problem> {
    let Some(source) = checkout.file(COMMANDS) else { return Vec::new() };
    let commands = commands(&source.text());
    let sources = checkout.files.iter().filter(|file| is_source(&file.path));
    let lines = |file: &crate::checkout::File| {
        let text = file.text();
        let visible_lines = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
        let broken = visible_lines.flat_map(|(index, line)| {
            let unknown = typed(line).filter(|name| !commands.contains(name));
            unknown.map(move |name| (index, name)).collect::<Vec<_>>()
        });
        let problem = |(index, name): (usize, String)| {
            Problem::at_line(&file.path, index, format!("there is no command `stepscope {name}`"))
        };
        broken.map(problem).collect::<Vec<_>>()
    };
    sources.flat_map(lines).collect()
}

fn is_source(path: &str) -> bool {
    let is_ours = path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
    let is_here = path.starts_with("crates/xtask/src/tidy/");
    (is_ours && !is_here) || (path.starts_with("python/stepscope/") && path.ends_with(".py"))
}

/// The names in the list, as they are typed.
fn commands(source: &str) -> Vec<String> {
    let list = source.split_once(LIST).map_or("", |(_, list)| list.split('}').next().unwrap_or_default());
    let names = list.lines().filter_map(|line| line.trim().split_once('('));
    names.map(|(name, _)| name.to_lowercase()).collect()
}

/// The words behind `stepscope` where a line tells to type it.
fn typed(line: &str) -> impl Iterator<Item = String> {
    line.match_indices("stepscope ").filter_map(|(at, word)| {
        let is_typed = BEFORE.iter().any(|before| line[..at].ends_with(before));
        let rest = &line[at + word.len()..];
        let name: String = rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
        (is_typed && name.starts_with(|c: char| c.is_ascii_lowercase())).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(line: &str) -> Vec<String> {
        let list = "enum Command {\n    Record(record::RecordArguments),\n    View(view::ViewArguments),\n}\n";
        let checkout = Checkout::sample(&[(COMMANDS, list), ("crates/a/src/b.rs", line)]);
        check(&checkout).into_iter().map(|problem| format!("{}: {}", problem.place, problem.says)).collect()
    }

    #[test]
    fn what_exists_may_be_told() {
        assert_eq!(problems("\"try `stepscope view`, or: stepscope record -- true\"\n"), [""; 0]);
    }

    #[test]
    fn a_command_that_is_not_there_is_a_problem() {
        let says = "crates/a/src/b.rs:2: there is no command `stepscope merge`";
        assert_eq!(problems("\n\"several come with `stepscope merge`\"\n"), [says]);
    }

    #[test]
    fn prose_is_not_typed() {
        assert_eq!(problems("\"what stepscope reads; `stepscope {command}`\"\n"), [""; 0]);
    }
}
