//! Rows one after the other: what stands between the values of a row is looked up in what the rows before it taught,
//! and read only where it is new.

use super::categories;
use super::event::{Event, written};
use super::keys::{self, Key};
use super::known_inputs::KnownInputs;
use super::layouts::{KeyMeaning, Layouts, NodeId, StepFields};
use crate::json::scanner::{Scanner, Stop, Value};

/// What was learned from the rows so far, to read the next ones. It changes how fast they are read, never what is read.
#[derive(Debug, Default)]
pub(super) struct RowCache {
    pub(super) layouts: Layouts,
    pub(super) inputs: KnownInputs,
}

impl RowCache {
    /// Between two chunks, which number inputs apart: forgets them when there are many.
    pub(super) fn make_room(&mut self) {
        if self.inputs.is_nearly_full() {
            self.inputs.clear();
        }
    }
}

impl<'a> Event<'a> {
    /// Reads the object that begins here.
    ///
    /// # Errors
    /// When it ends or breaks where the scanner then stands.
    #[inline(always)]
    pub(super) fn read(&mut self, scanner: &mut Scanner<'a>, row_cache: &mut RowCache) -> Result<(), Stop> {
        self.clear();
        scanner.expect(b'{', "an object")?;
        let mut row = Row { event: self, node: Some(Layouts::BEGIN), args_from: None, inputs: Inputs::Ahead };
        while row.read_part(scanner, row_cache)? {}
        Ok(())
    }
}

/// A row that is being read.
struct Row<'e, 'a> {
    event: &'e mut Event<'a>,
    /// The node of its layout, as long as it is one that can be learned.
    node: Option<NodeId>,
    /// Where the arguments begin, within them.
    args_from: Option<usize>,
    inputs: Inputs,
}

/// An operator's inputs.
#[derive(Clone, Copy, Debug)]
enum Inputs {
    /// None yet.
    Ahead,
    /// Read one after the other so far, from one byte to another; the layout's places before the first and last value.
    Among { from: usize, to: usize, first: NodeId, last: NodeId },
    /// All were read.
    Behind,
}

impl<'a> Row<'_, 'a> {
    /// Reads what stands before a value, and the value; false at the end of the row.
    #[inline(always)]
    fn read_part(&mut self, scanner: &mut Scanner<'a>, row_cache: &mut RowCache) -> Result<bool, Stop> {
        let known = self.node.and_then(|node| row_cache.layouts.step(node, scanner.rest()));
        let key = match known {
            Some((node, len, meaning)) => {
                let from = scanner.at();
                scanner.go_to(from + len);
                self.node = Some(node);
                if let Some(fields) = meaning.fields {
                    self.apply_fields(fields, from, scanner.bytes());
                }
                meaning.key
            }
            None => self.learn_step(scanner, &mut row_cache.layouts)?,
        };
        if let Some(key @ Key::Input(_)) = key {
            return self.read_inputs(key, scanner, &mut row_cache.inputs).map(|()| true);
        }
        if let Inputs::Among { .. } = self.inputs {
            self.learn_inputs(scanner.bytes(), &mut row_cache.inputs);
        }
        let Some(key) = key else { return Ok(false) };
        if !self.event.read_plain(key, scanner) {
            self.event.read_value(key, scanner)?;
        }
        Ok(true)
    }

    /// Takes what a step that begins at `from` says.
    #[inline(always)]
    fn apply_fields(&mut self, fields: StepFields, from: usize, bytes: &'a [u8]) {
        if let Some(at) = fields.phase {
            self.event.phase = &bytes[from + at as usize..][..1];
        }
        if let Some(category) = fields.category {
            self.event.category = category;
        }
        if let Some(at) = fields.args_begin {
            self.args_from = Some(from + at as usize);
        }
        if let Some(at) = fields.args_end {
            let args_from = self.args_from.take().unwrap_or(from);
            self.event.args = &bytes[args_from..from + at as usize + 1];
        }
    }

    /// Reads what stands before a value, and learns it.
    #[inline(never)]
    fn learn_step(&mut self, scanner: &mut Scanner<'a>, layouts: &mut Layouts) -> Result<Option<Key>, Stop> {
        let from = scanner.at();
        let (mut fields, mut is_clear) = (StepFields::default(), true);
        // What does not fit is too long to be learned.
        let near = |at: usize| u8::try_from(at - from).ok();
        let key = loop {
            match self.read_key(scanner)? {
                None => match self.args_from.take() {
                    Some(args_from) => {
                        self.event.args = &scanner.bytes()[args_from..scanner.at()];
                        fields.args_end = near(scanner.at() - 1);
                    }
                    None => break None,
                },
                Some(Key::Args) if scanner.peek()? == b'{' => {
                    // Arguments behind arguments: what a step says has one place for them.
                    is_clear &= fields.args_end.is_none();
                    self.args_from = Some(scanner.at());
                    fields.args_begin = near(scanner.at());
                    scanner.go_to(scanner.at() + 1);
                }
                Some(Key::Phase) => {
                    let phase = scanner.skip_value()?;
                    self.event.phase = written(phase).unwrap_or_default();
                    is_clear &= matches!(phase, Value::Text([_]));
                    fields.phase = near(scanner.at() - 2);
                }
                Some(Key::Category) => {
                    let category = scanner.skip_value()?;
                    self.event.category = categories::category(written(category).unwrap_or_default());
                    is_clear &= matches!(category, Value::Text(_));
                    fields.category = Some(self.event.category);
                }
                // Whether an object follows decides what comes behind it.
                Some(Key::Args) => {
                    is_clear = false;
                    break Some(Key::Args);
                }
                key => break key,
            }
        };
        let meaning = KeyMeaning { key, fields: Some(fields).filter(|fields| *fields != StepFields::default()) };
        let bytes = &scanner.bytes()[from..scanner.at()];
        self.node = self.node.filter(|_| is_clear).and_then(|node| layouts.learn(node, bytes, meaning));
        Ok(key)
    }

    /// Reads up to a value, whose key it gives, or up to the end of the arguments or the row.
    fn read_key(&mut self, scanner: &mut Scanner<'a>) -> Result<Option<Key>, Stop> {
        if scanner.bytes()[..scanner.at()].last() != Some(&b'{') {
            scanner.after_item(b'}')?;
        }
        while scanner.peek()? == b',' {
            scanner.go_to(scanner.at() + 1);
        }
        if scanner.peek()? == b'}' {
            scanner.go_to(scanner.at() + 1);
            return Ok(None);
        }
        let name = scanner.string()?;
        scanner.expect(b':', "':' after a key")?;
        scanner.peek()?;
        Ok(Some(if self.args_from.is_some() { keys::of_args(name) } else { keys::of_row(name) }))
    }

    /// Reads one of an operator's inputs, or all at once where they are known.
    #[inline(always)]
    fn read_inputs(&mut self, key: Key, scanner: &mut Scanner<'a>, known: &mut KnownInputs) -> Result<(), Stop> {
        let from = scanner.at();
        if let (Inputs::Ahead, Some(node)) = (self.inputs, self.node)
            && let Some(known) = known.find(self.event.name(), node, scanner.rest())
        {
            scanner.go_to(from + known.len);
            self.event.set_inputs(known.texts_in(&scanner.bytes()[from..]));
            self.event.known_inputs = Some(known.number);
            (self.node, self.inputs) = (Some(known.behind), Inputs::Behind);
            return Ok(());
        }
        self.event.read_value(key, scanner)?;
        let to = scanner.at();
        self.inputs = match (self.inputs, self.node) {
            (Inputs::Ahead, Some(node)) => Inputs::Among { from, to, first: node, last: node },
            (Inputs::Among { from, first, .. }, Some(last)) => Inputs::Among { from, to, first, last },
            _ => {
                // They do not stand together.
                self.event.known_inputs = None;
                Inputs::Behind
            }
        };
        Ok(())
    }

    fn learn_inputs(&mut self, bytes: &'a [u8], known: &mut KnownInputs) {
        if let Inputs::Among { from, to, first, last } = self.inputs {
            let (written, inputs) = (&bytes[from..to], self.event.inputs());
            self.event.known_inputs = known.learn(self.event.name(), (first, last), written, &inputs);
            self.inputs = Inputs::Behind;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::{Fraction, Integer, Size, Text};
    use super::*;
    use proptest::prelude::*;

    /// What was read, and where reading ended.
    fn parsed(text: &[u8], row_cache: &mut RowCache) -> String {
        let (mut event, mut scanner) = (Event::default(), Scanner::new(text));
        let result = event.read(&mut scanner, row_cache);
        let at = scanner.at();
        if result.is_err() {
            return format!("{result:?} at {at}");
        }
        let integers = [Integer::Id, Integer::Stream, Integer::Correlation, Integer::SequenceNumber];
        let texts =
            [Text::Name, Text::CopyKind, Text::CallStack].map(|which| (event.has_text(which), event.text(which)));
        format!(
            "{:?} {at} {:?}",
            (event.phase, event.category, event.pid, event.tid, event.time, event.duration, event.args, texts),
            (
                event.inputs(),
                integers.map(|which| event.integer(which)),
                event.size(Size::Grid),
                event.fraction(Fraction::Occupancy)
            ),
        )
    }

    fn value() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "1",
            "12",
            "12.5",
            "-3",
            "null",
            "NaN",
            "\"\"",
            "\"X\"",
            "\"kernel\"",
            "\"cpu_op\"",
            "\"a\\\"b\"",
            "{}",
            "[]",
            "[1, 2, 3]",
            "[[4], []]",
            "{\"stream\": 3}",
            "true",
            "what",
            "123456789012345678",
            " 7 ",
            "\"[1]\"",
        ])
    }

    fn key() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "ph",
            "cat",
            "name",
            "pid",
            "tid",
            "ts",
            "dur",
            "id",
            "args",
            "stream",
            "correlation",
            "Sequence number",
            "Input Dims",
            "Input type",
            "Concrete Inputs",
            "grid",
            "est. achieved occupancy %",
            "copy kind",
            "Ev Idx",
        ])
    }

    fn separator() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![", ", ",", ",\n    ", ", ", ", ", ",,", " "])
    }

    fn members() -> impl Strategy<Value = String> {
        let member = (key(), value(), separator());
        prop::collection::vec(member, 0..5).prop_map(|members| {
            members.iter().map(|(key, value, separator)| format!("\"{key}\": {value}{separator}")).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn what_was_learned_changes_nothing(
            rows in prop::collection::vec((members(), members(), members(), any::<bool>()), 1..12),
            order in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
            cut in any::<prop::sample::Index>(),
        ) {
            let rows: Vec<String> = rows
                .iter()
                .map(|(before, args, behind, is_closed)| {
                    let end = if *is_closed { "}" } else { ", " };
                    format!("{{{before}\"ph\": \"X\", \"args\": {{{args}}}, {behind}\"ts\": 1{end}{}", " ".repeat(160))
                })
                .collect();
            let mut row_cache = RowCache::default();
            for at in order {
                let row = at.get(&rows).as_bytes();
                prop_assert_eq!(parsed(row, &mut row_cache), parsed(row, &mut RowCache::default()));
            }
            let row = &rows[0].as_bytes()[..cut.index(rows[0].len())];
            prop_assert_eq!(parsed(row, &mut row_cache), parsed(row, &mut RowCache::default()));
        }
    }

    #[test]
    fn arguments_behind_arguments_are_read_each_time_as_the_first_time() {
        let row = format!("{{\"args\": {{\"stream\": 7}}, \"args\": {{\"stream\": 8}}}}{}", " ".repeat(160));
        let mut row_cache = RowCache::default();
        let first = parsed(row.as_bytes(), &mut row_cache);
        assert!(first.contains("Some(8)"), "{first}");
        assert_eq!(parsed(row.as_bytes(), &mut row_cache), first);
    }

    #[test]
    fn inputs_are_known_again_when_nothing_about_them_changed() {
        let row = |inputs: &str| {
            format!("{{\"name\": \"aten::mm\", \"args\": {{{inputs}, \"Ev Idx\": 3}}}}{}", " ".repeat(160))
        };
        let same = row("\"Input Dims\": [[2, 3], [3, 4]], \"Input type\": [\"float\", \"float\"]");
        let other = row("\"Input Dims\": [[2, 3], [3, 5]], \"Input type\": [\"float\", \"float\"]");
        let mut row_cache = RowCache::default();
        let mut known = |text: &str| {
            let mut event = Event::default();
            event.read(&mut Scanner::new(text.as_bytes()), &mut row_cache).unwrap();
            (event.known_inputs, event.inputs()[0].to_vec())
        };
        assert_eq!(known(&same), (Some(0), b"[[2, 3], [3, 4]]".to_vec()));
        assert_eq!(known(&other), (Some(1), b"[[2, 3], [3, 5]]".to_vec()));
        assert_eq!((known(&same).0, known(&other).0, known(&same).0), (Some(0), Some(1), Some(0)));
    }
}
