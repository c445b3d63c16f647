//! What an event is, by its category and name; asked once a name.

use super::text;
use super::typed::few_bytes;
use crate::name_tables::{is_open_call, is_process_call, is_read_call, is_write_call};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use stepscope_base::StringId;
use stepscope_trace::{DataflowStage, FindingCode, IoAction, IoLayer, SliceKind, SliceRole, TraceBuilder};

/// What all events of one category and name are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Call {
    /// Its name in the trace.
    pub(super) name: StringId,
    /// What its slice is.
    pub(super) kind: SliceKind,
    /// For calls that use files: through what, and to do what.
    pub(super) io: Option<(IoLayer, IoAction)>,
    /// What else its rows say.
    pub(super) role: Role,
    /// For labels: what is done with data in them, where their category says that.
    pub(super) stage: Option<DataflowStage>,
}

/// What a row says beyond its slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// Nothing.
    Plain,
    /// DFTracer began to record a process.
    Start,
    /// DFTracer ended.
    End,
    /// The process forked another.
    Fork,
    /// One turn of a loop over batches waits for its batch.
    IterationWait,
    /// The body of a loop over batches.
    IterationBody,
    /// An event of the application, which may number its steps.
    Application,
}

/// What all events are, by category and name as written.
#[derive(Debug, Default)]
pub(super) struct Calls {
    known: FxHashMap<Vec<u8>, FxHashMap<Vec<u8>, Call>>,
    /// Those used of late, by a few of their bytes.
    recent: Vec<Option<Recent>>,
    /// What labels are about, by their name.
    roles: BTreeMap<StringId, SliceRole>,
}

#[derive(Clone, Debug)]
struct Recent {
    category: Vec<u8>,
    name: Vec<u8>,
    call: Call,
}

const RECENT: usize = 128;

impl Calls {
    /// What events called `name` are, both texts as written.
    pub(super) fn get(&mut self, category: &[u8], name: &[u8], builder: &mut TraceBuilder) -> Call {
        let few = few_bytes(category, name);
        self.recent.resize(RECENT, None);
        if let Some(recent) = &self.recent[few % RECENT]
            && recent.name == name
            && recent.category == category
        {
            return recent.call;
        }
        let known = self.known.get(category).and_then(|names| names.get(name)).copied();
        let call = known.unwrap_or_else(|| self.learn(category, name, builder));
        self.recent[few % RECENT] = Some(Recent { category: category.to_vec(), name: name.to_vec(), call });
        call
    }

    /// What labels are about, by their name.
    pub(super) fn roles(&self) -> Vec<(StringId, SliceRole)> {
        self.roles.iter().map(|(name, role)| (*name, *role)).collect()
    }

    fn learn(&mut self, category: &[u8], name: &[u8], builder: &mut TraceBuilder) -> Call {
        let text = text::decode(name);
        if text.is_repaired {
            builder.findings.add(FindingCode::RepairedText, || text.text.chars().take(80).collect());
        }
        let decoded = text::decode(category);
        let call = Call::of(&decoded.text, &text.text, builder.strings.intern(&text.text));
        if call.kind == SliceKind::Annotation {
            self.roles.extend(role_of_label(&decoded.text, &text.text).map(|role| (call.name, role)));
        }
        self.known.entry(category.to_vec()).or_default().insert(name.to_vec(), call);
        call
    }
}

impl Call {
    /// What events of `category` called `text` are; `name` is the interned `text`.
    pub(super) fn of(category: &str, text: &str, name: StringId) -> Self {
        let plain = Self { name, kind: SliceKind::Other, io: None, role: Role::Plain, stage: None };
        match category {
            "dftracer" => match text {
                "start" => Self { role: Role::Start, ..plain },
                "end" => Self { role: Role::End, ..plain },
                _ => Self { kind: SliceKind::Overhead, ..plain },
            },
            "POSIX" if is_process_call(text) => {
                Self { role: if matches!(text, "fork" | "vfork") { Role::Fork } else { Role::Plain }, ..plain }
            }
            "POSIX" => Self::io(plain, IoLayer::Posix, text),
            "STDIO" => Self::io(plain, IoLayer::Stdio, text),
            "MPIIO" | "MPI-IO" => Self::io(plain, IoLayer::MpiIo, text),
            "MPI" | "HDF5" | "HIP" | "CUDA" => plain,
            _ => Self::of_application(plain, category, text),
        }
    }

    fn io(plain: Self, layer: IoLayer, text: &str) -> Self {
        let action = match () {
            () if is_read_call(text) => IoAction::Read,
            () if is_write_call(text) => IoAction::Write,
            () if is_open_call(text) => IoAction::Open,
            () => IoAction::Metadata,
        };
        Self { kind: SliceKind::Io, io: Some((layer, action)), ..plain }
    }

    /// Only a loader's own `fetch` and the `.iter` of its loop are waits. The `next` of DLIO's loaders makes an
    /// iterator, and `__getitem__` works in a worker.
    fn of_application(plain: Self, category: &str, text: &str) -> Self {
        let stage = matches!(category, "checkpoint" | "ai.checkpoint").then_some(DataflowStage::Checkpoint);
        let application = Self { kind: SliceKind::Annotation, role: Role::Application, stage, ..plain };
        if !matches!(category, "dataloader" | "data_loader" | "ai.dataloader") {
            return application;
        }
        match text.rsplit('.').next() {
            Some("fetch") => Self { kind: SliceKind::DataLoader, ..application },
            Some("iter") => Self { kind: SliceKind::DataLoader, role: Role::IterationWait, ..plain },
            Some("block" | "yield") => Self { role: Role::IterationBody, ..application },
            _ => application,
        }
    }
}

/// What a label is about. DLIO's category for its framework has more than computing; what reads a sample in its
/// category of loaders is `__getitem__`.
fn role_of_label(category: &str, text: &str) -> Option<SliceRole> {
    let last = text.rsplit('.').next();
    match category {
        "compute" | "ai.compute" => Some(SliceRole::Compute),
        "ai_framework" if last == Some("compute") => Some(SliceRole::Compute),
        "reader" | "data" | "ai.data" => Some(SliceRole::Reader),
        "data_loader" if last == Some("__getitem__") => Some(SliceRole::Reader),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_say_what_computes_and_what_reads() {
        assert_eq!(role_of_label("compute", "forward"), Some(SliceRole::Compute));
        assert_eq!(role_of_label("ai_framework", "TorchFramework.compute"), Some(SliceRole::Compute));
        assert_eq!(role_of_label("ai_framework", "TorchFramework.checkpoint"), None);
        assert_eq!(role_of_label("reader", "NPZReader.open"), Some(SliceRole::Reader));
        assert_eq!(role_of_label("data_loader", "TorchDataset.__getitem__"), Some(SliceRole::Reader));
        assert_eq!(role_of_label("data_loader", "TorchDataset.__len__"), None);
    }

    fn call(category: &str, text: &str) -> (SliceKind, Option<(IoLayer, IoAction)>, Role) {
        let call = Call::of(category, text, StringId(1));
        (call.kind, call.io, call.role)
    }

    #[test]
    fn calls_that_use_files_are_told_by_their_name() {
        let io = |category, text| call(category, text).1;
        assert_eq!(io("POSIX", "pread64"), Some((IoLayer::Posix, IoAction::Read)));
        assert_eq!(io("POSIX", "openat64"), Some((IoLayer::Posix, IoAction::Open)));
        assert_eq!(io("STDIO", "fopen64"), Some((IoLayer::Stdio, IoAction::Open)));
        assert_eq!(io("POSIX", "opendir"), Some((IoLayer::Posix, IoAction::Metadata)));
        assert_eq!(io("POSIX", "__xstat64"), Some((IoLayer::Posix, IoAction::Metadata)));
        assert_eq!(io("POSIX", "readlink"), Some((IoLayer::Posix, IoAction::Metadata)));
        assert_eq!(io("STDIO", "fwrite"), Some((IoLayer::Stdio, IoAction::Write)));
        assert_eq!(io("MPIIO", "MPI_File_read_at_all"), Some((IoLayer::MpiIo, IoAction::Read)));
        assert_eq!(call("POSIX", "fork"), (SliceKind::Other, None, Role::Fork));
        assert_eq!(call("POSIX", "waitpid"), (SliceKind::Other, None, Role::Plain));
    }

    #[test]
    fn only_a_loop_over_batches_waits_for_them() {
        assert_eq!(call("dataloader", "fetch.iter"), (SliceKind::DataLoader, None, Role::IterationWait));
        assert_eq!(call("dataloader", "fetch"), (SliceKind::DataLoader, None, Role::Application));
        assert_eq!(call("dataloader", "fetch.block"), (SliceKind::Annotation, None, Role::IterationBody));
        assert_eq!(call("data_loader", "TorchDataLoader.next"), (SliceKind::Annotation, None, Role::Application));
        assert_eq!(call("compute", "forward"), (SliceKind::Annotation, None, Role::Application));
        assert_eq!(call("app", "loop.iter"), (SliceKind::Annotation, None, Role::Application));
        assert_eq!(call("dftracer", "start"), (SliceKind::Other, None, Role::Start));
    }
}
