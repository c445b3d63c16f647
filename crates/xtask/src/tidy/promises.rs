//! The commands in README's code blocks exist: developer commands, and the scripts they name. (That `stepscope …` exists
//! is tested with the installed package, in `tests/python`.)

use super::Problem;
use crate::checkout::Checkout;

const PAGE: &str = "README.md";

pub(super) fn check(checkout: &Checkout) -> Vec<Problem> {
    let Some(page) = checkout.file(PAGE) else { return vec![Problem::new(PAGE, "is missing")] };
    let text = page.text();
    let broken = code(&text).filter_map(|(index, line)| Some((index, why_broken(checkout, line)?)));
    broken.map(|(index, says)| Problem::at_line(PAGE, index, says)).collect()
}

/// The lines inside code blocks, numbered from zero.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        is_code && !is_fence
    })
}

fn why_broken(checkout: &Checkout, line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().take_while(|word| !word.starts_with('#')).collect();
    let xtask = words.windows(3).find(|words| words[..2] == ["cargo", "xtask"]).map(|words| words[2]);
    if let Some(name) = xtask.filter(|name| !crate::is_command(name)) {
        return Some(format!("`cargo xtask {name}` does not exist"));
    }
    let is_ours =
        |word: &&&str| word.starts_with("examples/") || word.starts_with("tests/") || word.starts_with("benches/");
    let gone = words.iter().filter(is_ours).find(|word| !checkout.has(word.trim_end_matches('/')))?;
    Some(format!("{gone} does not exist"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(readme: &str) -> Vec<String> {
        let checkout = Checkout::sample(&[(PAGE, readme), ("examples/gpt/train.py", "")]);
        check(&checkout).into_iter().map(|problem| format!("{}: {}", problem.place, problem.says)).collect()
    }

    #[test]
    fn commands_that_exist_are_fine() {
        let readme = "```sh\ncargo xtask test   # cargo xtask nothing\n\
            stepscope record -- python examples/gpt/train.py\ncargo xtask demo --no-torch\n```\n";
        assert_eq!(problems(readme), [""; 0]);
    }

    #[test]
    fn a_developer_command_that_is_gone_is_a_problem() {
        assert_eq!(problems("```\ncargo xtask release\n```\n"), ["README.md:2: `cargo xtask release` does not exist"]);
    }

    #[test]
    fn a_script_that_is_gone_is_a_problem() {
        assert_eq!(problems("```\npython examples/bert.py\n```\n"), ["README.md:2: examples/bert.py does not exist"]);
    }

    #[test]
    fn prose_promises_nothing() {
        assert_eq!(problems("Some day, cargo xtask release.\n"), [""; 0]);
    }
}
