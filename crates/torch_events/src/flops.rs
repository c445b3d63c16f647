//! The operations of events, where `torch.profiler` counts some.

use crate::Events;
use rustc_hash::FxHashMap;
use stepscope_analyses::{is_counted_by_torch_profiler, torch_profiler_flops};

/// The operations of each row; 0 where none are counted. Each distinct call is worked out once.
pub(crate) fn count(events: &Events) -> Vec<i64> {
    let is_counted: Vec<bool> = events.names.iter().map(|name| is_counted_by_torch_profiler(name)).collect();
    let mut known: FxHashMap<(u32, u32), i64> = FxHashMap::default();
    let mut of_row = |row: usize| {
        let (name, inputs) = (events.name[row], *events.inputs.get(row)?);
        if !is_counted[name as usize] || events.is_label(row) {
            return None;
        }
        let texts = events.input_texts.get(inputs as usize)?;
        let flops = || torch_profiler_flops(&events.names[name as usize], &texts.dims, &texts.types, &texts.concrete);
        Some(*known.entry((name, inputs)).or_insert_with(|| flops().unwrap_or(0)))
    };
    (0..events.len()).map(|row| of_row(row).unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InputTexts, NO_ROW};

    #[test]
    fn only_operators_that_are_counted_and_whose_inputs_are_known_have_some() {
        let texts = |dims: &str| InputTexts { dims: dims.into(), ..InputTexts::default() };
        let events = Events {
            names: ["aten::mm", "aten::relu"].map(String::from).to_vec(),
            name: vec![0, 0, 1, 0, 0, 0],
            scope: vec![0, 0, 0, 0, 7, 0],
            inputs: vec![0, 1, 0, NO_ROW, 0, 0],
            input_texts: vec![texts("[[2,3],[3,4]]"), texts("[[2,3],[4,4]]")],
            ..Events::default()
        };
        assert_eq!(count(&events), [48, 0, 0, 0, 0, 48]);
        assert_eq!(count(&Events { inputs: vec![], ..events }), [0; 6]);
    }
}
