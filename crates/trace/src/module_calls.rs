//! What is known of a module that is called, beyond the name of its call.

use crate::SliceId;
use stepscope_base::StringId;

/// What a call says of its module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModuleCall {
    /// The call.
    pub slice: SliceId,
    /// The class of the module: `Linear`.
    pub class: StringId,
    /// How large the module is; `None` when not known.
    pub size: Option<ModuleSize>,
}

/// How many parameters a module has, those of the modules in it included, each counted once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct ModuleSize {
    /// All of them.
    pub parameters: i64,
    /// Those that are trained: that have a gradient.
    pub trainable: i64,
}
