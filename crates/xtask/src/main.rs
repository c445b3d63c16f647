//! Developer commands: `cargo xtask`. One file a command; none needs more than Rust and, where it says so, Python.

mod bench;
mod checkout;
mod child;
mod chromium;
mod demo;
mod gpu_check;
mod python_env;
mod test;
mod tidy;

use std::process::ExitCode;

/// A developer command.
struct Command {
    name: &'static str,
    usage: &'static str,
    says: &'static str,
    /// Runs it with its arguments; `Ok(false)` or a message when it failed.
    run: fn(&[String]) -> Result<bool, String>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "test",
        usage: "test [quick] [SUITE…]",
        says: "run the tests: tidy, format, clippy, rust, web, browser, python; quick: what takes minutes",
        run: test::run,
    },
    Command {
        name: "demo",
        usage: "demo [--no-torch] [--no-view]",
        says: "record a small training, show its report and its pages; --no-torch: those of a recorded one",
        run: demo::run,
    },
    Command { name: "tidy", usage: "tidy", says: "check the rules that the compiler does not know", run: tidy::run },
    Command {
        name: "bench",
        usage: "bench NAME [ARGUMENT…]",
        says: "measure: record, import, real, analyze, ranks, ui",
        run: bench::run,
    },
    Command {
        name: "gpu-check",
        usage: "gpu-check [ARGUMENT…]",
        says: "compare what is recorded of a GPU with torch.profiler; --list: of what, --help: how",
        run: gpu_check::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("help", String::as_str);
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        return print_usage(name);
    };
    match (command.run)(&arguments[1..]) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// True when `cargo xtask name` exists.
fn is_command(name: &str) -> bool {
    COMMANDS.iter().any(|command| command.name == name)
}

/// Prints what there is: on standard output when asked for, else as the error it is.
fn print_usage(name: &str) -> ExitCode {
    let list: String =
        COMMANDS.iter().map(|command| format!("  cargo xtask {:<30} {}\n", command.usage, command.says)).collect();
    if matches!(name, "help" | "--help" | "-h") {
        print!("{list}");
        return ExitCode::SUCCESS;
    }
    eprint!("error: no command is called {name:?}\n\n{list}");
    ExitCode::from(2)
}
