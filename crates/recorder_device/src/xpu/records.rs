//! Records of Intel's PTI (`libpti_view.so`), read by offsets.
//!
//! No package has the headers of PTI, so this is what its libraries do: where they put the fields, and how long they
//! say that records are. Six releases from 0.10 to 1.2 agree, but that calls have their names in them before 0.11 and
//! that 1.0 made kernels, copies and fills longer at their end. How long records of the library at hand are, it is
//! asked ([`Sizes::of`]), and a kind of another length is not read.

use crate::demangle::Demangler;
use crate::fields::Fields;
use crate::numbers::Numbers;
use std::collections::HashMap;
use std::ffi::CStr;
use stepscope_recorder::device::{
    ActivityRecord, Api, Call, DeviceWork, Direction, Kernel, Memcpy, MemoryKind, Memset, Overhead, Synchronization,
    SynchronizationKind, WorkKind,
};

/// Kinds of records ("views"), by PTI's numbers.
pub(super) mod view {
    pub(crate) const KERNEL: u32 = 1;
    pub(crate) const DRIVER_API: u32 = 3;
    pub(crate) const OVERHEAD: u32 = 5;
    pub(crate) const RUNTIME_API: u32 = 6;
    pub(crate) const COPY: u32 = 8;
    pub(crate) const FILL: u32 = 9;
    pub(crate) const COPY_BETWEEN: u32 = 10;
    pub(crate) const SYNCHRONIZATION: u32 = 11;
}

/// The lengths that a kind is known to have.
const KNOWN: &[(u32, &[usize])] = &[
    (view::KERNEL, &[168, 184]),
    (view::DRIVER_API, &[48]),
    (view::OVERHEAD, &[56]),
    (view::RUNTIME_API, &[48]),
    (view::COPY, &[136, 152]),
    (view::FILL, &[136, 152]),
    (view::COPY_BETWEEN, &[168, 192]),
    (view::SYNCHRONIZATION, &[72]),
];

/// Kinds that are asked about.
pub(super) const KINDS: usize = 32;

/// How long the records of each kind are; 0 of those that the library does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sizes(pub(super) [usize; KINDS]);

impl Sizes {
    /// Asks `length`, which knows how far behind a record of a kind the next one stands.
    pub(super) fn of(length: impl Fn(u32) -> Option<usize>) -> Self {
        Self(std::array::from_fn(|kind| length(kind as u32).unwrap_or(0)))
    }

    /// True where the fields of this kind are where they are known to be.
    pub(super) fn is_known(&self, kind: u32) -> bool {
        let known = KNOWN.iter().find(|(known, _)| *known == kind);
        known.is_some_and(|(_, lengths)| lengths.contains(&self.0[kind as usize]))
    }

    /// The records of a buffer; what cannot be told apart is left over and comes as an error.
    pub(super) fn split<'a>(&self, mut bytes: &'a [u8]) -> impl Iterator<Item = Result<(u32, Fields<'a>), ()>> {
        std::iter::from_fn(move || {
            if bytes.is_empty() {
                return None;
            }
            let kind = Fields(bytes).u32(0);
            let size = self.0.get(kind as usize).copied().filter(|size| *size > 0 && *size <= bytes.len());
            let Some(size) = size else {
                bytes = &[];
                return Some(Err(()));
            };
            let (record, rest) = bytes.split_at(size);
            bytes = rest;
            Some(Ok((kind, Fields(record))))
        })
    }
}

/// What the library says of numbers.
pub(super) trait Texts {
    /// The name of a call of an API group; `None` where nobody knows it.
    fn call(&self, group: u32, id: u32) -> Option<String>;
    /// What an overhead was for.
    fn overhead(&self, kind: u32) -> String;
    /// The text at an address that a record holds.
    fn at(&self, address: u64) -> Option<&'static CStr>;
    /// False of a library that names calls in their records, by an address, and not by numbers.
    fn has_call_ids(&self) -> bool;
}

/// In place of the id of a queue: none.
const NO_QUEUE: u64 = u64::MAX;

/// A queue: SYCL's number where the work came from SYCL, else the driver's handle.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Queue {
    Sycl(u64),
    Driver(u64),
}

/// Turns records into activity records.
pub(super) struct Decoder<T> {
    texts: T,
    queues: Numbers<Queue>,
    contexts: Numbers<u64>,
    /// Devices, by what identifies them everywhere; those of the driver's list come first, in its order.
    devices: Numbers<[u8; 16]>,
    calls: HashMap<(u32, u32), Option<String>>,
    kernels: Demangler,
}

/// The most names of calls that are kept.
const CALLS_LIMIT: usize = 4096;

impl<T: Texts> Decoder<T> {
    pub(super) fn new(texts: T, devices: &[[u8; 16]]) -> Self {
        let mut numbers = Numbers::default();
        for device in devices {
            numbers.of(*device);
        }
        let (queues, contexts, calls, kernels) = Default::default();
        Self { texts, queues, contexts, devices: numbers, calls, kernels }
    }

    /// Hands over what a record says; false when it says nothing that could be shown.
    pub(super) fn decode(
        &mut self,
        kind: u32,
        fields: Fields<'_>,
        write: &mut dyn FnMut(ActivityRecord, Option<&str>),
    ) -> bool {
        let decoded = match kind {
            view::KERNEL => self.kernel(fields),
            view::COPY => self.copy(fields),
            view::COPY_BETWEEN => self.copy_between(fields),
            view::FILL => self.fill(fields),
            view::RUNTIME_API => self.call(Api::Runtime, fields),
            view::DRIVER_API => self.call(Api::Driver, fields),
            view::SYNCHRONIZATION => self.wait(fields),
            view::OVERHEAD => self.overhead(fields),
            // The library says how long it is, and nobody asked for it.
            _ => return true,
        };
        let Some((record, name)) = decoded else { return false };
        write(record, name.as_deref());
        true
    }

    fn kernel(&mut self, fields: Fields<'_>) -> Option<(ActivityRecord, Option<String>)> {
        let name = self.texts.at(fields.u64(24)).map(|name| self.kernels.demangle(name).to_string());
        // Neither the size of the launch nor what a kernel takes is reported.
        let kind = WorkKind::Kernel(Kernel::default());
        let queue = self.queue(fields.u64(152), fields.u64(8));
        let work = self.work(fields, kind, (104, 112), (16, 80, 56), queue)?;
        Some((ActivityRecord::Work(work), name))
    }

    fn copy(&mut self, fields: Fields<'_>) -> Option<(ActivityRecord, Option<String>)> {
        let [source, destination] = [fields.u32(8), fields.u32(12)].map(memory);
        let direction = direction(source, destination);
        let bytes = Some(fields.u64(120));
        let kind = WorkKind::Memcpy(Memcpy { bytes, direction, source, destination, devices: None });
        let queue = self.queue(fields.u64(128), fields.u64(16));
        let work = self.work(fields, kind, (96, 104), (24, 56, 80), queue)?;
        Some((ActivityRecord::Work(work), None))
    }

    fn copy_between(&mut self, fields: Fields<'_>) -> Option<(ActivityRecord, Option<String>)> {
        let [source, destination] = [fields.u32(8), fields.u32(12)].map(memory);
        let between = [72, 88].map(|at| self.devices.of(fields.bytes16(at)));
        let kind = WorkKind::Memcpy(Memcpy {
            bytes: Some(fields.u64(152)),
            direction: Direction::PeerToPeer,
            source,
            destination,
            devices: Some(between.into()),
        });
        let queue = self.queue(fields.u64(160), fields.u64(16));
        let work = self.work(fields, kind, (128, 136), (24, 72, 112), queue)?;
        Some((ActivityRecord::Work(work), None))
    }

    fn fill(&mut self, fields: Fields<'_>) -> Option<(ActivityRecord, Option<String>)> {
        let kind = WorkKind::Memset(Memset { bytes: Some(fields.u64(112)), memory: memory(fields.u32(4)) });
        let queue = self.queue(fields.u64(128), fields.u64(8));
        let work = self.work(fields, kind, (88, 96), (16, 48, 72), queue)?;
        Some((ActivityRecord::Work(work), None))
    }

    /// What all work has: times, and where its context, its device and its correlation id stand.
    fn work(
        &mut self,
        fields: Fields<'_>,
        kind: WorkKind,
        times: (usize, usize),
        (context, device, correlation): (usize, usize, usize),
        stream: u32,
    ) -> Option<DeviceWork> {
        let (start_ns, end_ns) = fields.span(times.0, times.1)?;
        Some(DeviceWork {
            kind,
            start_ns,
            end_ns,
            device: self.devices.of(fields.bytes16(device)),
            context: Some(self.contexts.of(fields.u64(context))),
            stream: Some(stream),
            correlation: fields.u32(correlation),
            graph: 0,
            graph_node: 0,
        })
    }

    /// The stream of a queue. Waits name it by the driver's handle alone, so that is remembered, too.
    fn queue(&mut self, sycl: u64, handle: u64) -> u32 {
        if sycl == NO_QUEUE {
            return self.queues.of(Queue::Driver(handle));
        }
        let stream = self.queues.of(Queue::Sycl(sycl));
        self.queues.share(Queue::Driver(handle), stream);
        stream
    }

    fn call(&mut self, api: Api, fields: Fields<'_>) -> Option<(ActivityRecord, Option<String>)> {
        let has_ids = self.texts.has_call_ids();
        let (start, end) = if has_ids { (8, 16) } else { (16, 24) };
        let (start_ns, end_ns) = fields.span(start, end)?;
        let name = if has_ids {
            self.call_name(fields.u32(24), fields.u32(28))
        } else {
            self.texts.at(fields.u64(8)).map(|name| name.to_string_lossy().into_owned())
        };
        let status = if has_ids { fields.u32(44) } else { 0 };
        let (thread, correlation) = (fields.u32(36), fields.u32(40));
        Some((ActivityRecord::Call(Call { api, name: None, start_ns, end_ns, thread, correlation, status }), name))
    }

    fn call_name(&mut self, group: u32, id: u32) -> Option<String> {
        if self.calls.len() >= CALLS_LIMIT && !self.calls.contains_key(&(group, id)) {
            return self.texts.call(group, id);
        }
        self.calls.entry((group, id)).or_insert_with(|| self.texts.call(group, id)).clone()
    }

    fn wait(&mut self, fields: Fields<'_>) -> Option<(ActivityRecord, Option<String>)> {
        let (start_ns, end_ns) = fields.span(32, 40)?;
        let kind = match fields.u32(4) {
            // A fence, a command list, a queue: all that the queue has.
            3 | 5 | 6 => SynchronizationKind::Stream,
            4 => SynchronizationKind::Event,
            // Barriers: among them those that only the device waits at.
            _ => SynchronizationKind::Unknown,
        };
        let wait = Synchronization {
            kind,
            start_ns,
            end_ns,
            context: Some(self.contexts.of(fields.u64(8))),
            stream: self.queues.known(&Queue::Driver(fields.u64(16))),
            correlation: fields.u32(52),
            event: 0,
            event_sync: 0,
        };
        Some((ActivityRecord::Synchronization(wait), None))
    }

    fn overhead(&mut self, fields: Fields<'_>) -> Option<(ActivityRecord, Option<String>)> {
        let (start_ns, end_ns) = fields.span(8, 16)?;
        let name = self.texts.overhead(fields.u32(48));
        Some((ActivityRecord::Overhead(Overhead { name: None, start_ns, end_ns, thread: fields.u32(24) }), Some(name)))
    }
}

/// PTI's kinds of memory.
fn memory(number: u32) -> MemoryKind {
    match number {
        // What the program allocated itself.
        0 => MemoryKind::Pageable,
        1 => MemoryKind::Pinned,
        2 => MemoryKind::Device,
        3 => MemoryKind::Managed,
        _ => MemoryKind::Unknown,
    }
}

fn direction(source: MemoryKind, destination: MemoryKind) -> Direction {
    let side = |memory| match memory {
        MemoryKind::Pageable | MemoryKind::Pinned => Some(true),
        MemoryKind::Device => Some(false),
        // The driver moves it between host and device.
        _ => None,
    };
    match (side(source), side(destination)) {
        (Some(true), Some(true)) => Direction::HostToHost,
        (Some(true), Some(false)) => Direction::HostToDevice,
        (Some(false), Some(true)) => Direction::DeviceToHost,
        (Some(false), Some(false)) => Direction::DeviceToDevice,
        _ => Direction::Unknown,
    }
}

#[cfg(test)]
mod tests;
