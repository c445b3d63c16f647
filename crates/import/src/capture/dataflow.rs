//! What labels say of the data that they work on, in the inputs that they are called with:
//! `{"dataflow":"fetch","worker":0,"batch":12,"samples":[96,97],"count":2}`.

use serde_json::Value;
use stepscope_base::StringTable;
use stepscope_capture::{Capture, Event, Inputs};
use stepscope_trace::{DataflowRange, DataflowStage, SliceId, TraceBuilder};

/// What each of a capture's inputs says.
pub(super) struct Dataflow(Vec<Option<DataflowRange>>);

impl Dataflow {
    pub(super) fn of(capture: &Capture, builder: &mut TraceBuilder) -> Self {
        Self(capture.inputs.iter().map(|inputs| said(inputs, builder)).collect())
    }

    /// Adds what `event`, which became `slice`, says.
    pub(super) fn add(&self, event: &Event, slice: SliceId, builder: &mut TraceBuilder) {
        let said = event.inputs.and_then(|row| self.0.get(row as usize)).copied().flatten();
        said.into_iter().for_each(|said| builder.add_dataflow(DataflowRange { slice, ..said }));
    }
}

fn said(inputs: &Inputs, builder: &mut TraceBuilder) -> Option<DataflowRange> {
    // Inputs of operators are many.
    if !inputs.keywords.contains("\"dataflow\":") {
        return None;
    }
    let details: Value = serde_json::from_str(&inputs.keywords).ok()?;
    let stage = DataflowStage::named(details.get("dataflow")?.as_str()?)?;
    let number = |key: &str| details.get(key).and_then(Value::as_i64);
    let samples = details.get("samples").filter(|samples| samples.is_array());
    let samples = samples.map(Value::to_string).or_else(|| Some(format!("[{}]", number("sample")?)));
    Some(DataflowRange {
        worker: number("worker"),
        worker_pid: number("worker_pid"),
        batch: number("batch"),
        step: number("step"),
        epoch: number("epoch"),
        samples: samples.map_or(StringTable::EMPTY, |samples| builder.strings.intern(&samples)),
        count: number("count"),
        bytes: number("size"),
        // It is set where it is added.
        ..DataflowRange::new(SliceId(0), stage)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(keywords: &str) -> Option<(DataflowRange, String)> {
        let mut builder = TraceBuilder::new("run");
        let said = said(&Inputs { keywords: keywords.into(), ..Inputs::default() }, &mut builder)?;
        let samples = builder.strings.get(said.samples).to_string();
        Some((DataflowRange { samples: StringTable::EMPTY, ..said }, samples))
    }

    #[test]
    fn details_are_read_and_what_is_no_number_is_not_known() {
        let range = |stage| DataflowRange::new(SliceId(0), stage);
        let (fetch, samples) =
            of(r#"{"dataflow":"fetch","worker":1,"batch":12,"samples":[96, 97],"count":40}"#).expect("a range");
        let expected =
            DataflowRange { worker: Some(1), batch: Some(12), count: Some(40), ..range(DataflowStage::Fetch) };
        assert_eq!((fetch, samples.as_str()), (expected, "[96,97]"));
        let (read, samples) = of(r#"{"dataflow":"data","sample":5,"size":9,"step":"?","epoch":2.5}"#).expect("a range");
        let expected = DataflowRange { bytes: Some(9), ..range(DataflowStage::Data) };
        assert_eq!((read, samples.as_str()), (expected, "[5]"));
        for nothing in ["", "{}", r#"{"dataflow":"#, r#"{"dataflow":7}"#, r#"{"dataflow":"lunch"}"#, r#"{"grid":1}"#] {
            assert_eq!(of(nothing), None, "{nothing}");
        }
    }
}
