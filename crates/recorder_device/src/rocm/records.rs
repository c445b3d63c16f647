//! Records of AMD's roctracer, read by the offsets of `prof_protocol.h`, which every release of ROCm has had since 4.1.

use crate::demangle::Demangler;
use crate::fields::Fields;
use crate::numbers::Numbers;
use std::collections::HashMap;
use std::ffi::CStr;
use stepscope_recorder::device::{
    ActivityRecord, Api, Call, DeviceWork, Direction, Kernel, Memcpy, MemoryKind, Memset, WorkKind,
};

/// Bytes of a record, `activity_record_t`.
pub(super) const RECORD_BYTES: usize = 64;
/// Bytes of a name that are kept: as many as the capture keeps.
const NAME_BYTES: usize = 4096;

/// Where records come from.
pub(super) mod domain {
    /// What devices do.
    pub(crate) const OPERATIONS: u32 = 2;
    /// Calls of HIP.
    pub(crate) const CALLS: u32 = 3;
}

/// What a device does, in [`domain::OPERATIONS`].
mod operation {
    pub(super) const DISPATCH: u32 = 0;
    pub(super) const COPY: u32 = 1;
    /// Queues wait for each other: no work.
    pub(super) const BARRIER: u32 = 2;
}

/// Where a record's fields stand.
mod at {
    pub(super) const DOMAIN: usize = 0;
    pub(super) const KIND: usize = 4;
    pub(super) const OPERATION: usize = 8;
    pub(super) const CORRELATION: usize = 16;
    pub(super) const BEGIN: usize = 24;
    pub(super) const END: usize = 32;
    /// Of what devices do.
    pub(super) const DEVICE: usize = 40;
    pub(super) const QUEUE: usize = 48;
    /// Of calls.
    pub(super) const THREAD: usize = 44;
    /// Of copies their bytes, of kernels the address of their name.
    pub(super) const BYTES: usize = 56;
}

/// Where the name of a kernel stands, that a record points to.
pub(super) fn name_address(record: &[u8]) -> Option<usize> {
    let fields = Fields(record);
    let is_kernel = fields.u32(at::DOMAIN) == domain::OPERATIONS && fields.u32(at::OPERATION) == operation::DISPATCH;
    Some(fields.u64(at::BYTES) as usize).filter(|address| is_kernel && *address != 0)
}

/// Puts records and names into a buffer: the record, how long its name is with the zeros behind it, and the name. Each
/// begins at a multiple of 8.
pub(super) struct Writer<'a> {
    buffer: &'a mut [u8],
    len: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(buffer: &'a mut [u8]) -> Self {
        Self { buffer, len: 0 }
    }

    /// False where there is no room.
    pub(super) fn add(&mut self, record: &[u8], name: &[u8]) -> bool {
        let name = &name[..name.len().min(NAME_BYTES)];
        let padded = (name.len() + 1).next_multiple_of(8);
        let whole = RECORD_BYTES + 8 + padded;
        let Some(room) = self.buffer.get_mut(self.len..self.len + whole) else { return false };
        room[..RECORD_BYTES].copy_from_slice(record);
        room[RECORD_BYTES..RECORD_BYTES + 8].copy_from_slice(&(padded as u64).to_ne_bytes());
        room[RECORD_BYTES + 8..][..name.len()].copy_from_slice(name);
        room[RECORD_BYTES + 8 + name.len()..].fill(0);
        self.len += whole;
        true
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }
}

/// What [`Writer`] has put into a buffer.
pub(super) fn written(mut bytes: &[u8]) -> impl Iterator<Item = (Fields<'_>, &CStr)> {
    std::iter::from_fn(move || {
        let (record, rest) = bytes.split_at_checked(RECORD_BYTES)?;
        let name = rest.get(8..)?.get(..usize::try_from(Fields(rest).u64(0)).ok()?)?;
        bytes = &rest[8 + name.len()..];
        Some((Fields(record), CStr::from_bytes_until_nul(name).unwrap_or_default()))
    })
}

/// What the library says of numbers.
pub(super) trait Texts {
    /// The name of a call, or what a device does.
    fn operation(&self, domain: u32, op: u32, kind: u32) -> Option<String>;
}

/// The most names that are kept.
const TEXTS_LIMIT: usize = 4096;

/// Turns records into activity records.
pub(super) struct Decoder<T> {
    texts: T,
    known: HashMap<(u32, u32, u32), Option<String>>,
    /// Queues whose ids are too long for a stream's number.
    queues: Numbers<u64>,
    kernels: Demangler,
    /// The thread whose calls nobody wants to see: ours.
    own_thread: u32,
    /// The process has used a device.
    pub(super) has_work: bool,
}

impl<T: Texts> Decoder<T> {
    pub(super) fn new(texts: T, own_thread: u32) -> Self {
        let (known, queues, kernels) = Default::default();
        Self { texts, known, queues, kernels, own_thread, has_work: false }
    }

    /// Hands over what a record says; false when it says nothing that could be shown.
    pub(super) fn decode(
        &mut self,
        fields: Fields<'_>,
        name: &CStr,
        write: &mut dyn FnMut(ActivityRecord, Option<&str>),
    ) -> bool {
        let [domain, op, kind] = [at::DOMAIN, at::OPERATION, at::KIND].map(|at| fields.u32(at));
        let Some(times) = fields.span(at::BEGIN, at::END) else { return false };
        match (domain, op) {
            (domain::CALLS, _) if fields.u32(at::THREAD) == self.own_thread => {}
            (domain::CALLS, _) => {
                let name = self.text(domain, op, 0);
                write(ActivityRecord::Call(call(fields, times)), name.as_deref());
            }
            (domain::OPERATIONS, operation::DISPATCH) => {
                // Neither the size of the launch nor what it takes is reported.
                let work = self.work(fields, times, WorkKind::Kernel(Kernel::default()));
                let name = self.kernels.demangle(name);
                write(ActivityRecord::Work(work), Some(name).filter(|name| !name.is_empty()));
            }
            (domain::OPERATIONS, operation::COPY) => {
                let text = self.text(domain, op, kind).unwrap_or_default();
                let work = self.work(fields, times, transfer(&text, fields.u64(at::BYTES)));
                write(ActivityRecord::Work(work), None);
            }
            (domain::OPERATIONS, operation::BARRIER) => {}
            _ => return false,
        }
        true
    }

    fn work(&mut self, fields: Fields<'_>, (start_ns, end_ns): (i64, i64), kind: WorkKind) -> DeviceWork {
        self.has_work = true;
        let queue = fields.u64(at::QUEUE);
        let stream = u32::try_from(queue).unwrap_or_else(|_| self.queues.of(queue));
        let correlation = fields.u64(at::CORRELATION) as u32;
        DeviceWork {
            kind,
            start_ns,
            end_ns,
            device: fields.u32(at::DEVICE),
            stream: Some(stream),
            correlation,
            ..DeviceWork::default()
        }
    }

    fn text(&mut self, domain: u32, op: u32, kind: u32) -> Option<String> {
        let key = (domain, op, kind);
        if self.known.len() >= TEXTS_LIMIT && !self.known.contains_key(&key) {
            return self.texts.operation(domain, op, kind);
        }
        self.known.entry(key).or_insert_with(|| self.texts.operation(domain, op, kind)).clone()
    }
}

fn call(fields: Fields<'_>, (start_ns, end_ns): (i64, i64)) -> Call {
    Call {
        api: Api::Runtime,
        name: None,
        start_ns,
        end_ns,
        thread: fields.u32(at::THREAD),
        correlation: fields.u64(at::CORRELATION) as u32,
        status: 0,
    }
}

/// A copy or a fill, which only the library's words for it tell: `CopyHostToDevice`, `CopyDeviceToHost2D`,
/// `FillBuffer`.
fn transfer(text: &str, bytes: u64) -> WorkKind {
    if text.starts_with("Fill") {
        return WorkKind::Memset(Memset { bytes: Some(bytes), memory: MemoryKind::Device });
    }
    let (direction, source, destination) = match text {
        _ if text.starts_with("CopyHostToDevice") => (Direction::HostToDevice, MemoryKind::Unknown, MemoryKind::Device),
        _ if text.starts_with("CopyDeviceToHost") => (Direction::DeviceToHost, MemoryKind::Device, MemoryKind::Unknown),
        _ if text.starts_with("CopyDeviceToDevice") => {
            (Direction::DeviceToDevice, MemoryKind::Device, MemoryKind::Device)
        }
        _ => (Direction::Unknown, MemoryKind::Unknown, MemoryKind::Unknown),
    };
    WorkKind::Memcpy(Memcpy { bytes: Some(bytes), direction, source, destination, devices: None })
}

#[cfg(test)]
mod tests;
