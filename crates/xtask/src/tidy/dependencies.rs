//! Cargo.lock takes every dependency from the public registry, so that everyone can build.

use super::Problem;
use crate::checkout::Checkout;

const PUBLIC: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

pub(super) fn check(checkout: &Checkout) -> Vec<Problem> {
    let Some(lock) = checkout.file("Cargo.lock") else { return vec![Problem::new("Cargo.lock", "is missing")] };
    let text = lock.text();
    let sources = text.lines().enumerate().filter(|(_, line)| line.starts_with("source = "));
    let other = sources.filter(|(_, line)| *line != PUBLIC);
    other
        .map(|(index, line)| Problem::at_line("Cargo.lock", index, format!("not the public registry: {line}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_source_is_a_problem() {
        let lock = format!("[[package]]\n{PUBLIC}\n[[package]]\nsource = \"git+https://example.org/x\"\n");
        let problems = check(&Checkout::sample(&[("Cargo.lock", &lock)]));
        assert_eq!(problems.iter().map(|problem| problem.place.as_str()).collect::<Vec<_>>(), ["Cargo.lock:4"]);
    }

    #[test]
    fn a_missing_lock_is_a_problem() {
        assert_eq!(check(&Checkout::sample(&[])).len(), 1);
    }
}
