//! Modules of one class at one depth together.

use super::profile::{ModuleProfile, top_of_each_depth};
use super::{ModuleRow, ModuleTree};
use crate::AnalysisContext;
use std::cmp::Reverse;
use std::collections::BTreeMap;

columns! {
    /// All modules of one class at one depth.
    #[derive(Clone, PartialEq, Eq, Debug, Default)]
    pub struct ModuleClass {
        /// Number of modules around them.
        depth: i64 => Count,
        /// Their class. Absent when not known.
        module_class: Option<String> => Text,
        /// Number of modules.
        modules: i64 => Count,
        /// Number of calls.
        count: i64 => Count,
        /// How large they are, and what their forward passes compute.
        profile: ModuleProfile,
        ..ModuleProfile = |row| &row.profile,
    }
}

/// Every class of every depth asked for: by depth, the longest forward pass first.
pub(super) fn rows(context: &AnalysisContext<'_>) -> Vec<ModuleClass> {
    of_modules(context.get::<ModuleTree>().rows(), context.selection.depth, context.selection.top)
}

fn of_modules(modules: Vec<ModuleRow>, depth: Option<i64>, top: Option<usize>) -> Vec<ModuleClass> {
    let mut whole = ModuleProfile::default();
    modules.iter().filter(|module| module.depth == 0).for_each(|module| whole.add(&module.profile));
    let mut classes: BTreeMap<(i64, Option<String>), ModuleClass> = BTreeMap::new();
    for module in modules.into_iter().filter(|module| depth.is_none_or(|depth| module.depth <= depth)) {
        let ModuleRow { depth, module_class, count, profile, .. } = module;
        let row = classes.entry((depth, module_class.clone())).or_insert_with(|| {
            let profile = ModuleProfile { whole: whole.as_whole(), ..ModuleProfile::default() };
            ModuleClass { depth, module_class, profile, ..ModuleClass::default() }
        });
        row.modules += 1;
        row.count += count;
        row.profile.add(&profile);
    }
    let mut rows: Vec<ModuleClass> = classes.into_values().collect();
    rows.sort_by_key(|row| (row.depth, Reverse(row.profile.forward_ns)));
    top_of_each_depth(rows, top, |row| (row.depth, &row.profile))
}
