//! How the rows of a text are laid out, learned while reading it: one profiler writes the same keys in the same order
//! with the same white space between them, so what stands between two values is nearly always what stood there before.
//! Where it is, the key need not be read again.
//!
//! ```text
//! {"ph": "X", "cat": "kernel", "ts": 1.5, "dur": 2, "args": {"stream": 7}}
//!  ╰─────────────┬────────────────╯╰──┬───╯ ╰──────────┬──────────────╯ ╰┤
//!   phase X, category kernel; time  duration   arguments begin; stream   end
//! ```
//!
//! Each of these pieces is a *step* to the next value; steps form a tree from the begin of a row. What a step means was
//! found by reading it once, and depends on its bytes and on the steps before it alone: reading by steps gives what
//! reading without them gives.

use super::categories::Category;
use super::keys::Key;

/// What a step means, and whose value comes behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct KeyMeaning {
    /// Whose value comes next; `None` at the end of the row.
    pub(super) key: Option<Key>,
    /// The fields that the step itself sets, if any.
    pub(super) fields: Option<StepFields>,
}

/// The fields of a row that a step itself sets. Positions are bytes from its begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct StepFields {
    /// Where a phase of one letter stands.
    pub(super) phase: Option<u8>,
    pub(super) category: Option<Category>,
    /// Where the opening bracket of the arguments stands.
    pub(super) args_begin: Option<u8>,
    /// Where the closing bracket of the arguments stands.
    pub(super) args_end: Option<u8>,
}

/// A node of the tree of steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NodeId(u16);

/// Longer steps are not learned. A row's begin with its category takes 100 bytes where its keys stand far to the right.
const STEP_BYTES: usize = 128;
/// Most steps are no longer than this, or at least than twice as much.
const SHORT_BYTES: usize = 16;
/// The bytes of a step, eight a word.
type Words = [u64; STEP_BYTES / 8];
/// More steps than rows of one text have layouts; what comes later is read without.
const MAX_STEPS: usize = 2_048;
/// More different steps than this behind one node are no layout.
const MAX_CHOICES: usize = 32;

#[derive(Debug)]
struct Step {
    /// The step that was taken from here last; 0 is none.
    likely: u16,
    len: u8,
    meaning: KeyMeaning,
    /// The bytes, and behind them zeros.
    bytes: Words,
    /// Ones for each of the bytes.
    mask: Words,
    /// Steps from here: the first of them, and the next one beside this one.
    first: u16,
    beside: u16,
}

/// The steps learned so far.
#[derive(Debug)]
pub(super) struct Layouts {
    steps: Vec<Step>,
}

impl Default for Layouts {
    fn default() -> Self {
        Self { steps: vec![Step::new(b"", KeyMeaning { key: None, fields: None })] }
    }
}

impl Layouts {
    /// The begin of a row, behind its opening bracket.
    pub(super) const BEGIN: NodeId = NodeId(0);

    /// Takes a known step from `node`, when `text` begins with one: where it leads, its length, what it means.
    #[inline(always)]
    pub(super) fn step(&mut self, node: NodeId, text: &[u8]) -> Option<(NodeId, usize, KeyMeaning)> {
        let text = text.first_chunk::<STEP_BYTES>()?;
        let likely = self.steps[node.0 as usize].likely;
        let step = &self.steps[likely as usize];
        if step.begins(text) && likely != 0 {
            return Some((NodeId(likely), step.len as usize, step.meaning));
        }
        self.other_step(node, text)
    }

    #[inline(never)]
    fn other_step(&mut self, node: NodeId, text: &[u8; STEP_BYTES]) -> Option<(NodeId, usize, KeyMeaning)> {
        let mut at = self.steps[node.0 as usize].first;
        while at != 0 {
            let step = &self.steps[at as usize];
            if step.begins(text) {
                let found = (NodeId(at), step.len as usize, step.meaning);
                self.steps[node.0 as usize].likely = at;
                return Some(found);
            }
            at = step.beside;
        }
        None
    }

    /// Learns a step that was read and was not known: where it leads. `None` when there is no room for it; what comes
    /// behind it in the row then cannot be learned either.
    pub(super) fn learn(&mut self, node: NodeId, bytes: &[u8], meaning: KeyMeaning) -> Option<NodeId> {
        let (mut at, mut last, mut choices) = (self.steps[node.0 as usize].first, 0, 0);
        while at != 0 {
            let step = &self.steps[at as usize];
            if step.is(bytes, meaning) {
                return Some(NodeId(at));
            }
            (last, at, choices) = (at, step.beside, choices + 1);
        }
        if bytes.len() > STEP_BYTES || self.steps.len() == MAX_STEPS || choices == MAX_CHOICES {
            return None;
        }
        let new = self.steps.len() as u16;
        self.steps.push(Step::new(bytes, meaning));
        match last {
            0 => self.steps[node.0 as usize].first = new,
            _ => self.steps[last as usize].beside = new,
        }
        self.steps[node.0 as usize].likely = new;
        Some(NodeId(new))
    }
}

impl Step {
    fn new(written: &[u8], meaning: KeyMeaning) -> Self {
        let (mut bytes, mut mask) = ([0; STEP_BYTES], [0; STEP_BYTES]);
        let len = written.len().min(STEP_BYTES);
        bytes[..len].copy_from_slice(&written[..len]);
        mask[..len].fill(0xff);
        let words = |bytes: &[u8; STEP_BYTES]| std::array::from_fn(|at| word(bytes, at));
        Self { bytes: words(&bytes), mask: words(&mask), len: len as u8, meaning, likely: 0, first: 0, beside: 0 }
    }

    fn is(&self, bytes: &[u8], meaning: KeyMeaning) -> bool {
        let other = Self::new(bytes, meaning);
        self.meaning == meaning && self.len as usize == bytes.len() && self.bytes == other.bytes
    }

    /// True when `text` begins with the bytes: many are compared at once.
    #[inline(always)]
    fn begins(&self, text: &[u8; STEP_BYTES]) -> bool {
        let differs = |bytes: std::ops::Range<usize>| {
            let words = bytes.start / 8..bytes.end / 8;
            words.fold(0, |all, at| all | (word(text, at) ^ self.bytes[at]) & self.mask[at]) != 0
        };
        let len = self.len as usize;
        !differs(0..SHORT_BYTES)
            && (len <= SHORT_BYTES || !differs(SHORT_BYTES..2 * SHORT_BYTES))
            && (len <= 2 * SHORT_BYTES || !differs(2 * SHORT_BYTES..4 * SHORT_BYTES))
            && (len <= 4 * SHORT_BYTES || !differs(4 * SHORT_BYTES..STEP_BYTES))
    }
}

#[inline(always)]
fn word(bytes: &[u8; STEP_BYTES], at: usize) -> u64 {
    u64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: KeyMeaning = KeyMeaning { key: Some(Key::Time), fields: None };

    /// Text long enough to be looked at.
    fn padded(text: &str) -> Vec<u8> {
        format!("{text}{}", " ".repeat(STEP_BYTES)).into_bytes()
    }

    #[test]
    fn a_step_is_known_again_where_it_was_learned() {
        let mut layouts = Layouts::default();
        let text = padded("\"ts\": 12");
        assert_eq!(layouts.step(Layouts::BEGIN, &text), None);
        let behind = layouts.learn(Layouts::BEGIN, b"\"ts\": ", VALUE).unwrap();
        assert_eq!(layouts.step(Layouts::BEGIN, &text), Some((behind, 6, VALUE)));
        assert_eq!(layouts.step(behind, &text), None);
        assert_eq!(layouts.step(Layouts::BEGIN, &padded("\"ts\":12")), None);
        assert_eq!(layouts.step(Layouts::BEGIN, b"\"ts\": 12"), None, "more bytes could be needed to tell");
    }

    #[test]
    fn steps_of_any_length_differ_by_any_byte() {
        for len in 1..=STEP_BYTES {
            let bytes = vec![b'x'; len];
            let mut layouts = Layouts::default();
            let behind = layouts.learn(Layouts::BEGIN, &bytes, VALUE).unwrap();
            let mut text = [b'x'; STEP_BYTES + 1];
            assert_eq!(layouts.step(Layouts::BEGIN, &text), Some((behind, len, VALUE)));
            for at in 0..len {
                text[at] = b'y';
                assert_eq!(layouts.step(Layouts::BEGIN, &text), None);
                text[at] = b'x';
            }
        }
    }

    #[test]
    fn what_is_learned_is_bounded() {
        let mut layouts = Layouts::default();
        assert_eq!(layouts.learn(Layouts::BEGIN, &[b' '; STEP_BYTES + 1], VALUE), None);
        for number in 0..MAX_CHOICES {
            assert!(layouts.learn(Layouts::BEGIN, format!("{number:03}").as_bytes(), VALUE).is_some());
        }
        assert_eq!(layouts.learn(Layouts::BEGIN, b"one more", VALUE), None);
        assert!(layouts.step(Layouts::BEGIN, &padded("001")).is_some());
        let mut node = layouts.learn(Layouts::BEGIN, b"000", VALUE);
        while let Some(deeper) = node {
            node = layouts.learn(deeper, b"000", VALUE);
        }
        assert_eq!(layouts.steps.len(), MAX_STEPS);
    }
}
