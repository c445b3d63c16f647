//! Every page of `docs` can be reached from README.md by links.

use super::Problem;
use super::links::pages_linked;
use crate::checkout::Checkout;
use std::collections::BTreeSet;

const START: &str = "README.md";

pub(super) fn check(checkout: &Checkout) -> Vec<Problem> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![START.to_string()]);
    while let Some(path) = next.pop() {
        if let Some(page) = checkout.file(&path)
            && reached.insert(path)
        {
            next.extend(pages_linked(page));
        }
    }
    let pages = checkout.with_extension("md").filter(|page| page.path.starts_with("docs/"));
    let lost = pages.filter(|page| !reached.contains(&page.path));
    lost.map(|page| Problem::new(&page.path, format!("no page that {START} leads to links to it"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(files: &[(&str, &str)]) -> Vec<String> {
        check(&Checkout::sample(files)).into_iter().map(|problem| problem.place).collect()
    }

    #[test]
    fn a_page_is_reached_through_others() {
        let files = [
            (START, "[a](docs/a.md)"),
            ("docs/a.md", "[b](deep/b.md#x) [here](#x)"),
            ("docs/deep/b.md", "[back](../a.md)"),
            ("tests/fixtures/README.md", ""),
        ];
        assert_eq!(places(&files), [""; 0]);
    }

    #[test]
    fn a_page_that_nothing_leads_to_is_a_problem() {
        let files = [(START, "`[a](docs/a.md)`"), ("docs/a.md", "[b](b.md)"), ("docs/b.md", "[a](a.md)")];
        assert_eq!(places(&files), ["docs/a.md", "docs/b.md"]);
    }
}
