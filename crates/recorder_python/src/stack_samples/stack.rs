//! The stack of a thread that runs on meanwhile. What it calls and leaves in these microseconds may be in it or not; what
//! does not fit together is not read.

use super::file_names::FileNames;
use super::layout::{BYTES, CLASS, Innermost, Layout, SIZE};
use super::lines::Lines;
use super::memory::Memory;
use crate::cpython::PyCode_Type;
use std::collections::HashMap;
use std::rc::Rc;

/// Frames of one stack; a deeper one lacks its outermost.
const MAX_FRAMES: usize = 512;
/// Frames that are gone through for them: some are not shown, and what is no frame any more may lead back to itself.
const MAX_STEPS: usize = 8 * MAX_FRAMES;
/// Threads whose outermost frames are remembered.
const MAX_THREADS: usize = 1024;
/// Functions that are remembered.
const MAX_FUNCTIONS: usize = 1 << 14;
/// How often a stack is read that does not fit together, or does not end where the thread's stacks do.
const TRIES: usize = 5;
/// Stacks that end alike, one after the other, are taken for whole though others of the thread ended elsewhere.
const ALIKE: usize = 3;
/// Bytes of the longest table of locations and the longest text.
const MAX_TABLE_BYTES: usize = 1 << 20;
const MAX_TEXT: usize = 4096;

/// What is known of a code object at an address: until it is another one.
struct Function {
    /// Its texts, its table, and where it begins.
    identity: [usize; 4],
    /// `None` for those that are not shown.
    place: Option<(String, String)>,
    lines: Lines,
    /// Frames as text, by line.
    frames: HashMap<Option<u32>, Rc<str>>,
}

/// Reads stacks.
pub(super) struct Reader {
    layout: Layout,
    pub(super) names: FileNames,
    /// Files below it are not shown.
    own: String,
    functions: HashMap<usize, Function>,
    /// The outermost frame of each thread.
    outermost: HashMap<usize, usize>,
}

impl Reader {
    pub(super) fn new(layout: Layout, names: FileNames, own: String) -> Self {
        Self { layout, names, own, functions: HashMap::new(), outermost: HashMap::new() }
    }

    /// The frames of a thread, the outermost first; `None` where they cannot be read. A frame that is just being left,
    /// such as a generator's, has no caller for a moment: so a stack has to end where those before did.
    pub(super) fn read(&mut self, thread: usize, memory: &mut Memory) -> Option<Vec<Rc<str>>> {
        if self.outermost.len() > MAX_THREADS {
            self.outermost.clear();
        }
        let (mut last, mut alike) = (0, 0);
        for _ in 0..TRIES {
            if let Some((frames, outermost)) = self.read_once(thread, memory) {
                alike = if outermost == last { alike + 1 } else { 1 };
                last = outermost;
                if self.outermost.get(&thread) == Some(&outermost) || alike == ALIKE {
                    self.outermost.insert(thread, outermost);
                    return Some(frames);
                }
            }
            memory.forget();
        }
        None
    }

    /// The same as it is found, and its outermost frame; 0 where there is none.
    fn read_once(&mut self, thread: usize, memory: &mut Memory) -> Option<(Vec<Rc<str>>, usize)> {
        let layout = self.layout;
        let mut frame = match layout.innermost {
            Innermost::InThread(at) => memory.word(thread.wrapping_add(at))?,
            Innermost::Behind(at, behind) => match memory.word(thread.wrapping_add(at))? {
                0 => 0,
                place => memory.word(place.checked_add(behind)?)?,
            },
        };
        let (mut frames, mut outermost) = (Vec::new(), 0);
        for _ in 0..MAX_STEPS {
            if frame == 0 || frames.len() == MAX_FRAMES {
                break;
            }
            let code = memory.word(frame.checked_add(layout.code)?)?;
            let instruction = memory.word(frame.checked_add(layout.instruction)?)?;
            if memory.word(code.checked_add(CLASS)?)? == (&raw const PyCode_Type) as usize {
                let begin = code.checked_add(layout.first_instruction)?;
                // Before its first instruction a frame points in front of it.
                let offset = u32::try_from(instruction.saturating_sub(begin)).ok()?;
                frames.extend(self.frame(code, offset, memory)?);
            }
            outermost = frame;
            frame = memory.word(frame.checked_add(layout.caller)?)?;
        }
        if frame != 0 && frames.len() < MAX_FRAMES {
            return None;
        }
        frames.reverse();
        Some((frames, outermost))
    }

    /// A frame as text; nothing for one that is not shown.
    fn frame(&mut self, code: usize, offset: u32, memory: &mut Memory) -> Option<Option<Rc<str>>> {
        let layout = self.layout;
        let first_line = memory.number(code.wrapping_add(layout.first_line))?;
        let identity = [
            memory.word(code.wrapping_add(layout.file))?,
            memory.word(code.wrapping_add(layout.function))?,
            memory.word(code.wrapping_add(layout.locations))?,
            first_line as usize,
        ];
        let is_known = self.functions.get(&code).is_some_and(|known| known.identity == identity);
        if !is_known {
            if self.functions.len() >= MAX_FUNCTIONS {
                self.functions.clear();
            }
            let function = self.function(identity, first_line, memory)?;
            self.functions.insert(code, function);
        }
        let function = self.functions.get_mut(&code)?;
        let Some((file, name)) = &function.place else { return Some(None) };
        let line = function.lines.at(offset);
        let frame = function.frames.entry(line).or_insert_with(|| match line {
            Some(line) => format!("{file}({line}): {name}").into(),
            None => format!("{file}({first_line}): {name}").into(),
        });
        Some(Some(Rc::clone(frame)))
    }

    fn function(&mut self, identity: [usize; 4], first_line: i32, memory: &mut Memory) -> Option<Function> {
        let [file, name, table, _] = identity;
        let (file, name) = (self.text(file, memory)?, self.text(name, memory)?);
        let len = memory.word(table.wrapping_add(SIZE)).filter(|len| *len <= MAX_TABLE_BYTES)?;
        let lines = Lines::read(&memory.bytes(table.wrapping_add(BYTES), len)?, first_line);
        // The interpreter's own frames, at which C calls Python, have no file.
        let is_hidden =
            file.starts_with(&self.own) || file.is_empty() || name.starts_with('<') && file.starts_with('<');
        let place = (!is_hidden).then(|| (self.names.short(&file).replace(';', ":"), name.replace(';', ":")));
        Some(Function { identity, place, lines, frames: HashMap::new() })
    }

    /// A text of CPython's: of one, two or four bytes a character.
    fn text(&self, object: usize, memory: &mut Memory) -> Option<String> {
        const STATE: usize = 32;
        /// What lies between the head of a text of ASCII and that of others, before 3.12 and since.
        const MORE_BEFORE_3_12: usize = 24;
        const MORE: usize = 16;
        const ASCII_SINCE_3_12: usize = 40;
        let state = memory.number(object.checked_add(STATE)?)?;
        let len = memory.word(object.wrapping_add(SIZE)).filter(|len| *len <= MAX_TEXT)?;
        let (size, is_compact, is_ascii) = (state as usize >> 2 & 7, state >> 5 & 1 == 1, state >> 6 & 1 == 1);
        if !is_compact || !matches!(size, 1 | 2 | 4) {
            return None;
        }
        let more = if self.layout.ascii == ASCII_SINCE_3_12 { MORE } else { MORE_BEFORE_3_12 };
        let at = if is_ascii { self.layout.ascii } else { self.layout.ascii + more };
        let bytes = memory.bytes(object.wrapping_add(at), len * size)?;
        let character = |bytes: &[u8]| {
            let number = bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte));
            char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
        };
        Some(bytes.chunks_exact(size).map(character).collect())
    }
}
