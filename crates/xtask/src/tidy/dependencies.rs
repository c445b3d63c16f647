//! The lock files take every dependency from the public registry, so that everyone can build.

use super::Problem;
use crate::checkout::Checkout;

const PUBLIC: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

const LOCKS: [&str; 2] = ["Cargo.lock", "fuzz/Cargo.lock"];

pub(super) fn check(checkout: &Checkout) -> Vec<Problem> {
    LOCKS.iter().flat_map(|path| check_lock(checkout, path)).collect()
}

fn check_lock(checkout: &Checkout, path: &str) -> Vec<Problem> {
    let Some(lock) = checkout.file(path) else { return vec![Problem::new(path, "is missing")] };
    let text = lock.text();
    let sources = text.lines().enumerate().filter(|(_, line)| line.starts_with("source = "));
    let other = sources.filter(|(_, line)| *line != PUBLIC);
    other.map(|(index, line)| Problem::at_line(path, index, format!("not the public registry: {line}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_source_is_a_problem() {
        let lock = format!("[[package]]\n{PUBLIC}\n[[package]]\nsource = \"git+https://example.org/x\"\n");
        let problems = check(&Checkout::sample(&[("Cargo.lock", &lock), ("fuzz/Cargo.lock", "")]));
        assert_eq!(problems.iter().map(|problem| problem.place.as_str()).collect::<Vec<_>>(), ["Cargo.lock:4"]);
        let problems = check(&Checkout::sample(&[("Cargo.lock", ""), ("fuzz/Cargo.lock", &lock)]));
        assert_eq!(problems.iter().map(|problem| problem.place.as_str()).collect::<Vec<_>>(), ["fuzz/Cargo.lock:4"]);
    }

    #[test]
    fn a_missing_lock_is_a_problem() {
        assert_eq!(check(&Checkout::sample(&[])).len(), LOCKS.len());
    }
}
