//! Samples of what threads of Python run, written by the one that takes them.

use crate::buffer::with_buffer;
use crate::clock::ticks;
use crate::names::Name;
use std::collections::HashMap;
use stepscope_capture::layout::{Tag, padded};
use stepscope_capture::stack_samples::pack;
use stepscope_capture::{Called, StackSample};

/// Distinct stacks of a capture; samples of what comes later have none.
const MAX_STACKS: usize = 1 << 18;

/// The stacks that a capture knows, for one thread that writes samples.
#[derive(Default)]
pub struct StackWriter {
    /// The capture that they are of.
    epoch: u64,
    ids: HashMap<Called, u32>,
}

impl StackWriter {
    /// Writes a sample of the thread with this number of the system. `frames` are its stack, the outermost first, each as
    /// `file.py(12): function`; empty where it could not be read.
    pub fn write<'a>(&mut self, tid: u32, frames: impl Iterator<Item = &'a str>, sample: StackSample) {
        let stack = self.stack_of(frames);
        with_buffer(|buffer| {
            if buffer.reserve(4) && (stack.is_none() || buffer.epoch() == self.epoch) {
                buffer.write(ticks(), Tag::StackSample, &pack(tid, &StackSample { stack, ..sample }), &[]);
            }
        });
    }

    /// The id of a stack, which is defined when it is new.
    fn stack_of<'a>(&mut self, frames: impl Iterator<Item = &'a str>) -> Option<u32> {
        let mut caller = None;
        for frame in frames {
            caller = Some(self.called(frame, caller)?);
        }
        caller
    }

    fn called(&mut self, frame: &str, caller: Option<u32>) -> Option<u32> {
        with_buffer(|buffer| {
            // A new capture knows nothing, and what was found of this stack so far is not of it.
            let has_room = buffer.reserve(6 + padded(frame.len()) / 8);
            if buffer.epoch() != self.epoch {
                (self.epoch, self.ids) = (buffer.epoch(), HashMap::new());
                if caller.is_some() {
                    return None;
                }
            }
            // SAFETY: the text lives during the call.
            let frame = unsafe { buffer.name_id(Name::text(frame)) }?;
            let (called, next) = (Called { frame, caller }, self.ids.len());
            if let Some(id) = self.ids.get(&called) {
                return Some(*id);
            }
            if !has_room || next >= MAX_STACKS {
                return None;
            }
            let caller = caller.map_or(0, |caller| u64::from(caller) + 1);
            buffer.append(ticks(), Tag::Stack, &[next as u64 | caller << 32, u64::from(frame)], &[]);
            self.ids.insert(called, next as u32);
            Some(next as u32)
        })
        .flatten()
    }
}
