//! What the name of an operator says: its category and the formula of its work. It is asked once a distinct name: a formula
//! is looked up by operator, as a schema would be.
//!
//! The table is `data/operators.txt`.

use crate::flops::Formula;
use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;
use stepscope_base::{StringId, StringTable};

const TABLE: &str = include_str!("../data/operators.txt");

/// The category of operators that the table does not know.
pub(crate) const UNKNOWN: &str = "custom";

/// The category of copies.
pub(crate) const COPY: &str = "copy";

/// The category of what sets all elements to a value, or draws them.
pub(crate) const FILL: &str = "fill";

/// The category of what takes memory and writes nothing.
pub(crate) const ALLOCATION: &str = "allocation";

/// The category of other looks at the same elements.
pub(crate) const VIEW: &str = "view";

/// The category of nodes of the backward pass, which hold what they run.
pub(crate) const AUTOGRAD: &str = "autograd";

/// The category of operators that update many parameters at once.
pub(crate) const OPTIMIZER: &str = "optimizer";

/// The category of products of matrices.
pub(crate) const MATRIX_PRODUCT: &str = "matrix_product";

/// The category of softmax.
pub(crate) const SOFTMAX: &str = "softmax";

/// The category of operators on each element by itself.
pub(crate) const ELEMENTWISE: &str = "elementwise";

/// The category of communication.
pub(crate) const COMMUNICATION: &str = "communication";

/// Stands for the category of device work of which no operator is known.
pub(crate) const NOT_LINKED: &str = "not linked";

/// The categories whose work tensor cores can do.
const TENSOR_CORE_CATEGORIES: [&str; 3] = [MATRIX_PRODUCT, "convolution", "attention"];

/// What is known of an operator by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OpClass {
    /// The kind of work: `matrix_product`, `elementwise` …
    pub(crate) category: &'static str,
    /// True when tensor cores can do its work.
    pub(crate) is_tensor_core_eligible: bool,
    /// How its work is computed from its inputs.
    pub(crate) formula: Option<Formula>,
}

struct Rows {
    exact: HashMap<&'static str, OpClass>,
    patterns: Vec<(&'static str, OpClass)>,
}

static ROWS: LazyLock<Rows> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (mut exact, mut patterns) = (HashMap::new(), Vec::new());
    for line in lines {
        let mut cells = line.split('\t');
        let mut cell = || cells.next().unwrap_or_else(|| panic!("a row of operators.txt has three cells: {line}"));
        let (name, category, formula) = (cell(), cell(), cell());
        let formula = (formula != "-").then(|| Formula::parse(formula).unwrap_or_else(|| panic!("{line}")));
        let is_tensor_core_eligible = TENSOR_CORE_CATEGORIES.contains(&category);
        let class = OpClass { category, is_tensor_core_eligible, formula };
        match name.contains('*') {
            true => patterns.push((name, class)),
            false => drop(exact.insert(name, class)),
        }
    }
    Rows { exact, patterns }
});

/// The category with this name.
pub(crate) fn category_named(name: &str) -> Option<&'static str> {
    static KNOWN: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
        let of_rows = ROWS.exact.values().chain(ROWS.patterns.iter().map(|(_, class)| class));
        of_rows.map(|class| class.category).chain([UNKNOWN, COPY, NOT_LINKED]).collect()
    });
    KNOWN.get(name).copied()
}

/// What is known of the operator called `name`.
pub(crate) fn op_class(name: &str) -> OpClass {
    let base = || name.strip_suffix('_').and_then(|base| ROWS.exact.get(base));
    let by_pattern = || ROWS.patterns.iter().find(|(pattern, _)| fits(pattern, name)).map(|(_, class)| class);
    let unknown = OpClass { category: UNKNOWN, is_tensor_core_eligible: false, formula: None };
    ROWS.exact.get(name).or_else(base).or_else(by_pattern).copied().unwrap_or(unknown)
}

fn fits(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(rest), Some(_)) => name.contains(&rest[..rest.len() - 1]),
        (Some(end), None) => name.ends_with(end),
        (None, Some(start)) => name.starts_with(start),
        (None, None) => name == pattern,
    }
}

/// What the names of a trace say, each looked up when it is first asked for.
pub(crate) struct OpClasses<'a> {
    strings: &'a StringTable,
    known: Vec<Option<OpClass>>,
}

impl<'a> OpClasses<'a> {
    /// Nothing looked up yet.
    pub(crate) fn new(strings: &'a StringTable) -> Self {
        Self { strings, known: vec![None; strings.len()] }
    }

    /// What is known of the operator called `name`.
    pub(crate) fn get(&mut self, name: StringId) -> OpClass {
        *self.known[name.index()].get_or_insert_with(|| op_class(self.strings.get(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_can_be_read_and_stands_once() {
        let rows: Vec<&str> = TABLE.lines().filter(|line| !line.starts_with('#')).collect();
        let exact = rows.iter().filter(|row| !row.split('\t').next().is_some_and(|name| name.contains('*')));
        assert_eq!(ROWS.exact.len(), exact.count());
        assert!(rows.iter().all(|row| row.split('\t').count() == 3));
    }

    #[test]
    fn names_are_known_exactly_then_without_their_underscore_then_by_pattern() {
        let category = |name| op_class(name).category;
        assert_eq!(category("aten::mm"), "matrix_product");
        assert_eq!((category("aten::add_"), category("aten::copy_")), ("elementwise", "copy"));
        assert_eq!(category("autograd::engine::evaluate_function: AddmmBackward0"), "autograd");
        assert_eq!((category("AddmmBackward0"), category("aten::never_heard")), ("autograd", "other"));
        assert_eq!((category("vllm::all_reduce"), category("c10d::allreduce_")), ("custom", "communication"));
    }

    #[test]
    fn matrix_products_convolutions_and_attention_can_use_tensor_cores() {
        let eligible = ["aten::linear", "aten::conv2d", "aten::_flash_attention_forward"];
        assert!(eligible.iter().all(|name| op_class(name).is_tensor_core_eligible));
        assert!(!op_class("aten::add").is_tensor_core_eligible);
    }
}
