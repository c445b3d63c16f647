//! What stands before a slice's times: the same for all slices of a name on a track.

use super::json::Json;
use stepscope_base::StringId;
use stepscope_trace::SliceKind;

/// Prefixes that are cached at one time; a power of two.
const PREFIXES: usize = 1 << 10;

/// A cache of the prefixes of a track that were written last.
pub(super) struct SlicePrefixCache {
    row: (i64, i64),
    known: Vec<Option<SlicePrefix>>,
}

struct SlicePrefix {
    of: (StringId, SliceKind, &'static str),
    text: Vec<u8>,
}

impl SlicePrefixCache {
    /// For the track at `row`, a (pid, tid).
    pub(super) fn new(row: (i64, i64)) -> Self {
        Self { row, known: Vec::new() }
    }

    /// Everything of a slice up to the value of `ts`; `text` says its name when it is not known.
    pub(super) fn of<'a>(
        &mut self,
        name: StringId,
        kind: SliceKind,
        category: &'static str,
        text: impl FnOnce() -> std::borrow::Cow<'a, str>,
    ) -> &[u8] {
        if self.known.is_empty() {
            self.known.resize_with(PREFIXES, || None);
        }
        let of = (name, kind, category);
        let index = (name.0 as usize ^ (kind as usize) << 6) % PREFIXES;
        let known = self.known[index].take().filter(|prefix| prefix.of == of);
        let row = self.row;
        &self.known[index]
            .insert(known.unwrap_or_else(|| SlicePrefix { of, text: prefix(category, &text(), row) }))
            .text
    }
}

fn prefix(category: &'static str, name: &str, (pid, tid): (i64, i64)) -> Vec<u8> {
    let mut json = Json::default();
    json.raw(",\n");
    json.open(None);
    json.text("ph", "X");
    if !category.is_empty() {
        json.text("cat", category);
    }
    json.text("name", name);
    json.int("pid", pid);
    json.int("tid", tid);
    json.verbatim("ts", "");
    json.bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_share_a_place_have_heads_of_their_own() {
        let mut prefixes = SlicePrefixCache::new((7, 8));
        for _ in 0..2 {
            for (name, kind, category) in [(3, SliceKind::Op, "cpu_op"), (3 + PREFIXES as u32, SliceKind::Op, "cpu_op")]
            {
                let prefix = prefixes.of(StringId(name), kind, category, || format!("n{name}\"").into());
                let expected = format!(
                    ",\n{{\"ph\": \"X\",\"cat\": \"{category}\",\"name\": \"n{name}\\\"\",\"pid\": 7,\"tid\": 8,\"ts\": "
                );
                assert_eq!(std::str::from_utf8(prefix).unwrap(), expected);
            }
        }
    }
}
