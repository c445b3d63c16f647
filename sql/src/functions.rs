//! Functions of SQL beside those of the engine: spans of time, steps, stacks.

use crate::session::Run;
use crate::spans::{Span, SpanSet, intersection};
use bytes::Bytes;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, Int64Builder, ListArray, StringBuilder, StructArray,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, TypeSignature, Volatility,
};
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

/// What a function is, for people.
pub(crate) struct FunctionDescription {
    pub(crate) name: &'static str,
    pub(crate) call: &'static str,
    pub(crate) doc: &'static str,
}

/// All of them, in the order of their documentation.
pub(crate) const FUNCTIONS: &[FunctionDescription] = &[
    FunctionDescription {
        name: "busy_ns",
        call: "busy_ns(start_ns, dur_ns)",
        doc: "Aggregate: how long at least one of the rows lasted. What overlaps counts once.",
    },
    FunctionDescription {
        name: "span_union",
        call: "span_union(start_ns, dur_ns)",
        doc: "Aggregate: the spans of time in which at least one of the rows lasted, in order, as a list of start_ns and \
              dur_ns.",
    },
    FunctionDescription {
        name: "span_intersect",
        call: "span_intersect(spans, spans)",
        doc: "The spans of time that are in both of two lists of span_union.",
    },
    FunctionDescription { name: "span_ns", call: "span_ns(spans)", doc: "How long the spans of a list are together." },
    FunctionDescription {
        name: "self_time",
        call: "self_time(dur_ns, children_ns)",
        doc: "What is left of a duration without that of what lies directly in it; the column self_ns of slice and op has it \
              already.",
    },
    FunctionDescription {
        name: "step_of",
        call: "step_of(rank, time_ns)",
        doc: "The number of the step of a rank at a moment; null outside of steps. Of several runs: step_of(run, rank, \
              time_ns).",
    },
    FunctionDescription {
        name: "rank_of",
        call: "rank_of(slice)",
        doc: "The rank of a slice or track, by its number.",
    },
    FunctionDescription {
        name: "stack_text",
        call: "stack_text(stack, frames)",
        doc: "A stack with a frame on each line, innermost first: all frames, or as many as the second argument says.",
    },
];

/// Makes them known to queries.
///
/// # Errors
/// When `registry` takes none.
pub(crate) fn register(registry: &mut dyn FunctionRegistry, runs: &[Run]) -> Result<()> {
    for kind in [SpanSum::Busy, SpanSum::Union] {
        let function = AggregateUDF::from(SpanAggregate { kind, signature: span_signature() });
        registry.register_udaf(Arc::new(function))?;
    }
    let steps = Arc::new(Steps { runs: runs.to_vec(), of_ranks: OnceLock::new() });
    for call in [Call::SpanIntersect, Call::SpanNs, Call::SelfTime, Call::StepOf, Call::RankOf, Call::StackText] {
        let function = ScalarUDF::from(Scalar { call, signature: call.signature(), steps: Arc::clone(&steps) });
        registry.register_udf(Arc::new(function))?;
    }
    Ok(())
}

fn span_signature() -> Signature {
    Signature::exact(vec![DataType::Int64, DataType::Int64], Volatility::Immutable)
}

/// A list of spans as a column: each a start and a duration.
fn spans_type() -> DataType {
    DataType::List(span_field())
}

fn span_field() -> FieldRef {
    Arc::new(Field::new("item", DataType::Struct(span_fields()), true))
}

fn span_fields() -> Fields {
    Fields::from(vec![Field::new("start_ns", DataType::Int64, true), Field::new("dur_ns", DataType::Int64, true)])
}

/// A column of lists of spans, of which some are null.
fn spans_array(rows: impl Iterator<Item = Option<Vec<Span>>>) -> ListArray {
    let (mut starts, mut durations) = (Int64Builder::new(), Int64Builder::new());
    let (mut lengths, mut known) = (Vec::new(), Vec::new());
    for row in rows {
        known.push(row.is_some());
        let spans = row.unwrap_or_default();
        lengths.push(spans.len());
        for (start_ns, end_ns) in spans {
            starts.append_value(start_ns);
            durations.append_value(end_ns.saturating_sub(start_ns));
        }
    }
    let columns: Vec<ArrayRef> = vec![Arc::new(starts.finish()), Arc::new(durations.finish())];
    let values = StructArray::new(span_fields(), columns, None);
    ListArray::new(span_field(), OffsetBuffer::from_lengths(lengths), Arc::new(values), Some(NullBuffer::from(known)))
}

/// The spans of a row of such a column, in order and apart, whatever list it is.
fn spans_at(lists: &ListArray, row: usize) -> Option<SpanSet> {
    if lists.is_null(row) {
        return None;
    }
    let of_row = lists.value(row);
    let of_row = of_row.as_struct();
    let [starts, durations] = [0, 1].map(|column| of_row.column(column).as_primitive::<Int64Type>());
    let known = (0..of_row.len()).filter(|at| of_row.is_valid(*at) && starts.is_valid(*at) && durations.is_valid(*at));
    Some(known.map(|at| (starts.value(at), starts.value(at).saturating_add(durations.value(at)))).collect())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum SpanSum {
    Busy,
    Union,
}

/// `busy_ns` and `span_union`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SpanAggregate {
    kind: SpanSum,
    signature: Signature,
}

impl AggregateUDFImpl for SpanAggregate {
    fn name(&self) -> &str {
        match self.kind {
            SpanSum::Busy => "busy_ns",
            SpanSum::Union => "span_union",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.kind {
            SpanSum::Busy => DataType::Int64,
            SpanSum::Union => spans_type(),
        })
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(SpanAccumulator { kind: self.kind, spans: SpanSet::default(), is_asked: false }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format_state_name(arguments.name, "spans"), spans_type(), true))])
    }

    fn order_sensitivity(&self) -> datafusion::logical_expr::utils::AggregateOrderSensitivity {
        datafusion::logical_expr::utils::AggregateOrderSensitivity::Insensitive
    }
}

#[derive(Debug)]
struct SpanAccumulator {
    kind: SpanSum,
    spans: SpanSet,
    /// Whether there was any row: without one there is no answer.
    is_asked: bool,
}

impl Accumulator for SpanAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [starts, durations] = [0, 1].map(|column| values[column].as_primitive::<Int64Type>());
        for row in 0..starts.len() {
            if starts.is_null(row) || durations.is_null(row) {
                continue;
            }
            self.is_asked = true;
            let start_ns = starts.value(row);
            self.spans.add(start_ns, start_ns.saturating_add(durations.value(row)));
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists = states[0].as_list::<i32>();
        for mut spans in (0..lists.len()).filter_map(|row| spans_at(lists, row)) {
            self.is_asked = true;
            spans.spans().iter().for_each(|(start_ns, end_ns)| self.spans.add(*start_ns, *end_ns));
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let spans = self.is_asked.then(|| self.spans.spans().to_vec());
        Ok(vec![ScalarValue::List(Arc::new(spans_array(std::iter::once(spans))))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match self.kind {
            SpanSum::Busy => Ok(ScalarValue::Int64(self.is_asked.then(|| self.spans.total_ns()))),
            SpanSum::Union => self.state().map(|mut state| state.remove(0)),
        }
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.spans.bytes()
    }
}

/// A function of values of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Call {
    SpanIntersect,
    SpanNs,
    SelfTime,
    StepOf,
    RankOf,
    StackText,
}

impl Call {
    fn signature(self) -> Signature {
        use DataType::{Int64, Utf8};
        let exact = |types: &[DataType]| TypeSignature::Exact(types.to_vec());
        let types = match self {
            Self::SpanIntersect => vec![exact(&[spans_type(), spans_type()])],
            Self::SpanNs => vec![exact(&[spans_type()])],
            Self::SelfTime => vec![exact(&[Int64, Int64])],
            Self::StepOf => vec![exact(&[Int64, Int64]), exact(&[Utf8, Int64, Int64])],
            Self::RankOf => vec![exact(&[Int64])],
            Self::StackText => vec![exact(&[Utf8]), exact(&[Utf8, Int64])],
        };
        Signature::one_of(types, Volatility::Immutable)
    }
}

#[derive(Debug)]
struct Scalar {
    call: Call,
    signature: Signature,
    steps: Arc<Steps>,
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.call == other.call && Arc::ptr_eq(&self.steps, &other.steps)
    }
}

impl Eq for Scalar {}

impl Hash for Scalar {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.call.hash(hasher);
    }
}

impl ScalarUDFImpl for Scalar {
    fn name(&self) -> &str {
        match self.call {
            Call::SpanIntersect => "span_intersect",
            Call::SpanNs => "span_ns",
            Call::SelfTime => "self_time",
            Call::StepOf => "step_of",
            Call::RankOf => "rank_of",
            Call::StackText => "stack_text",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.call {
            Call::SpanIntersect => spans_type(),
            Call::StackText => DataType::Utf8,
            Call::SpanNs | Call::SelfTime | Call::StepOf | Call::RankOf => DataType::Int64,
        })
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&arguments.args)?;
        let ints = |column: usize| columns[column].as_primitive::<Int64Type>();
        let of_ints = |answer: &dyn Fn(i64) -> Option<i64>| -> ArrayRef {
            Arc::new(ints(0).iter().map(|value| answer(value?)).collect::<Int64Array>())
        };
        let answer: ArrayRef = match self.call {
            Call::SpanIntersect => {
                let [one, other] = [0, 1].map(|column| columns[column].as_list::<i32>());
                let both = |row| Some(intersection(spans_at(one, row)?.spans(), spans_at(other, row)?.spans()));
                Arc::new(spans_array((0..one.len()).map(both)))
            }
            Call::SpanNs => {
                let lists = columns[0].as_list::<i32>();
                Arc::new(
                    (0..lists.len())
                        .map(|row| spans_at(lists, row).map(|mut spans| spans.total_ns()))
                        .collect::<Int64Array>(),
                )
            }
            Call::SelfTime => {
                let pairs = ints(0).iter().zip(ints(1));
                Arc::new(
                    pairs.map(|(all, inner)| Some(all?.saturating_sub(inner.unwrap_or(0)))).collect::<Int64Array>(),
                )
            }
            Call::RankOf => of_ints(&|slice| Some(slice >> 32)),
            Call::StepOf => self.steps.answer(&columns)?,
            Call::StackText => stack_text(&columns)?,
        };
        Ok(ColumnarValue::Array(answer))
    }
}

fn stack_text(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let stacks = columns[0].as_string::<i32>();
    let frames = columns.get(1).map(|frames| frames.as_primitive::<Int64Type>());
    let mut texts = StringBuilder::new();
    for (row, stack) in stacks.iter().enumerate() {
        let most = frames.filter(|frames| frames.is_valid(row)).map_or(i64::MAX, |frames| frames.value(row));
        let most = usize::try_from(most).unwrap_or(if most < 0 { 0 } else { usize::MAX });
        texts.append_option(stack.map(|stack| stack.split(';').take(most).collect::<Vec<_>>().join("\n")));
    }
    Ok(Arc::new(texts.finish()))
}

/// Start, end and number of each step of a rank, in order.
type StepsOfRank = Vec<(i64, i64, i64)>;
/// By the name of the run, and the rank.
type StepsOfRanks = HashMap<(String, i64), StepsOfRank>;

/// The steps of all runs, read when they are first asked for.
#[derive(Debug)]
struct Steps {
    runs: Vec<Run>,
    of_ranks: OnceLock<Result<StepsOfRanks, String>>,
}

impl Steps {
    fn answer(&self, columns: &[ArrayRef]) -> Result<ArrayRef> {
        let of_ranks = match self.of_ranks.get_or_init(|| self.read().map_err(|error| error.to_string())) {
            Ok(of_ranks) => of_ranks,
            Err(error) => return exec_err!("cannot read the steps: {error}"),
        };
        let (names, columns) = match columns {
            [names, rest @ ..] if rest.len() == 2 => (Some(names.as_string::<i32>()), rest),
            _ if self.runs.len() > 1 => {
                return exec_err!("there are several runs: write step_of(run, rank, time_ns)");
            }
            columns => (None, columns),
        };
        let [ranks, times] = [0, 1].map(|column| columns[column].as_primitive::<Int64Type>());
        let only = self.runs.first().map_or("", |run| run.name.as_str());
        let step = |row: usize| {
            let name = names.map_or(only, |names| names.value(row));
            let rank = ranks.is_valid(row).then(|| ranks.value(row))?;
            let time_ns = times.is_valid(row).then(|| times.value(row))?;
            let steps = of_ranks.get(&(name.to_string(), rank))?;
            let at = steps.partition_point(|(start_ns, ..)| *start_ns <= time_ns).checked_sub(1)?;
            let (_, end_ns, number) = steps[at];
            (time_ns < end_ns).then_some(number)
        };
        Ok(Arc::new((0..ranks.len()).map(step).collect::<Int64Array>()))
    }

    fn read(&self) -> Result<StepsOfRanks> {
        let mut of_ranks = StepsOfRanks::new();
        for run in &self.runs {
            // Tables of another version may have no steps, but they are there.
            stepscope_store::list(&run.folder)?;
            for file in stepscope_store::list(&run.folder.join("step")).unwrap_or_default() {
                let bytes = Bytes::from(stepscope_store::read(&file)?);
                let reader = ParquetRecordBatchReaderBuilder::try_new(bytes)?.build()?;
                for batch in reader {
                    let batch = batch?;
                    let column = |name: &str| {
                        let column = batch
                            .column_by_name(name)
                            .cloned()
                            .unwrap_or_else(|| Arc::new(Int64Array::new_null(batch.num_rows())));
                        cast(&column, &DataType::Int64)
                    };
                    let columns = [column("rank")?, column("start_ns")?, column("dur_ns")?, column("step")?];
                    let [ranks, starts, durations, numbers] =
                        columns.each_ref().map(|column| column.as_primitive::<Int64Type>());
                    for row in 0..batch.num_rows() {
                        let start_ns = starts.value(row);
                        let step = (start_ns, start_ns.saturating_add(durations.value(row)), numbers.value(row));
                        of_ranks.entry((run.name.clone(), ranks.value(row))).or_default().push(step);
                    }
                }
            }
        }
        of_ranks.values_mut().for_each(|steps| steps.sort_unstable());
        Ok(of_ranks)
    }
}
