//! The `stepscope` command.

fn main() {
    let code = stepscope_cli::main_with_args(std::env::args_os().collect());
    std::process::exit(code);
}
