//! What a name says, found out once for each distinct name.

use super::conversion::{copy_direction, is_pageable};
use crate::collectives::of_backend;
use crate::json::text;
use crate::labels::{Label, data_parallelism, label_kind};
use crate::name_tables::{is_communication_call, is_communication_kernel, is_host_sync_call, uses_tensor_cores};
use stepscope_base::{StringId, StringTable};
use stepscope_trace::{CollectiveKind, CopyDirection, DataParallelism};

/// What Kineto puts before the name of a module.
const MODULE_PREFIX: &str = "nn.Module: ";
/// What stands before the place of a module, once an event has said it.
pub(super) const PLACE_PREFIX: &str = "nn.Module at: ";

/// What a name says in whatever category its event is, and what it says in some, once that was asked.
#[derive(Clone, Debug)]
pub(super) struct NameInfo {
    pub(super) name: StringId,
    /// The name without what marks a module.
    pub(super) module: Option<StringId>,
    /// The class of the module.
    pub(super) module_class: Option<StringId>,
    pub(super) label: Label,
    pub(super) data_parallelism: Option<DataParallelism>,
    pub(super) is_communication_call: bool,
    /// PyTorch's record of a collective.
    pub(super) is_collective_record: bool,
    /// The collective that an operator of this name is, where it says no more of it.
    pub(super) collective: Option<(StringId, CollectiveKind)>,
    /// A node of the backward pass, as autograd's engine runs it.
    pub(super) is_backward_node: bool,
    /// The text as written had to be repaired.
    pub(super) is_repaired: bool,
    kernel: Option<KernelInfo>,
    copy: Option<MemcpyInfo>,
    is_host_sync_call: Option<bool>,
}

/// What the name of a kernel says.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelInfo {
    pub(super) communicates: bool,
    pub(super) uses_tensor_cores: bool,
}

/// What the name of a copy says.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemcpyInfo {
    pub(super) direction: CopyDirection,
    pub(super) is_pageable: Option<bool>,
}

/// The class of the module that Kineto calls `Linear_3`.
fn class_of(module: &str) -> Option<&str> {
    let (class, number) = module.rsplit_once('_')?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(class)
}

impl NameInfo {
    /// What the name as written says.
    pub(super) fn of(written: &[u8], strings: &mut StringTable) -> Self {
        let decoded = text::decode(written);
        let name = decoded.text.as_ref();
        let numbered = name.strip_prefix(MODULE_PREFIX);
        Self {
            name: strings.intern(name),
            module: numbered.or_else(|| name.strip_prefix(PLACE_PREFIX)).map(|module| strings.intern(module)),
            module_class: numbered.and_then(class_of).map(|class| strings.intern(class)),
            label: label_kind(name),
            data_parallelism: data_parallelism(name),
            is_communication_call: is_communication_call(name),
            is_collective_record: name == "record_param_comms",
            collective: of_backend(name).map(|(name, kind)| (strings.intern(name), kind)),
            is_backward_node: name.starts_with("autograd::engine::evaluate_function:"),
            is_repaired: decoded.is_repaired,
            kernel: None,
            copy: None,
            is_host_sync_call: None,
        }
    }

    /// What it says of a kernel.
    pub(super) fn kernel(&mut self, strings: &StringTable) -> KernelInfo {
        *self.kernel.get_or_insert_with(|| {
            let name = strings.get(self.name);
            KernelInfo { communicates: is_communication_kernel(name), uses_tensor_cores: uses_tensor_cores(name) }
        })
    }

    /// What it says of a copy.
    pub(super) fn copy(&mut self, strings: &StringTable) -> MemcpyInfo {
        *self.copy.get_or_insert_with(|| {
            let name = strings.get(self.name).as_bytes();
            MemcpyInfo { direction: copy_direction(name), is_pageable: is_pageable(name) }
        })
    }

    /// True for an API call in which the host waits for the device.
    pub(super) fn is_host_sync_call(&mut self, strings: &StringTable) -> bool {
        *self.is_host_sync_call.get_or_insert_with(|| is_host_sync_call(strings.get(self.name)))
    }
}
