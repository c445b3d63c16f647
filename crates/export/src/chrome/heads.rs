//! What stands before a slice's times: the same for all slices of a name on a track.

use super::json::Json;
use stepscope_base::StringId;
use stepscope_trace::SliceKind;

/// Heads that are known at one time; a power of two.
const HEADS: usize = 1 << 10;

/// The heads of a track that were written last.
pub(super) struct Heads {
    row: (i64, i64),
    known: Vec<Option<Head>>,
}

struct Head {
    of: (StringId, SliceKind, &'static str),
    text: Vec<u8>,
}

impl Heads {
    /// Heads of the track at `row`, a (pid, tid).
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
            self.known.resize_with(HEADS, || None);
        }
        let of = (name, kind, category);
        let place = (name.0 as usize ^ (kind as usize) << 6) % HEADS;
        let known = self.known[place].take().filter(|head| head.of == of);
        let row = self.row;
        &self.known[place].insert(known.unwrap_or_else(|| Head { of, text: head(category, &text(), row) })).text
    }
}

fn head(category: &'static str, name: &str, (pid, tid): (i64, i64)) -> Vec<u8> {
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
        let mut heads = Heads::new((7, 8));
        for _ in 0..2 {
            for (name, kind, category) in [(3, SliceKind::Op, "cpu_op"), (3 + HEADS as u32, SliceKind::Op, "cpu_op")] {
                let head = heads.of(StringId(name), kind, category, || format!("n{name}\"").into());
                let expected = format!(
                    ",\n{{\"ph\": \"X\",\"cat\": \"{category}\",\"name\": \"n{name}\\\"\",\"pid\": 7,\"tid\": 8,\"ts\": "
                );
                assert_eq!(std::str::from_utf8(head).unwrap(), expected);
            }
        }
    }
}
