//! The condensed trace and its results as rows, and back.

use crate::{Summary, SummaryError};
use arrow_schema::FieldRef;
use serde::{Deserialize, Serialize};
use serde_arrow::schema::{SchemaLike, TracingOptions};
use stepscope_analyses::{RankAdvice, RankResults, RankRows};
use stepscope_base::{StringId, StringTable};
use stepscope_trace::{
    ClockCorrection, Collective, Contents, Device, DeviceEvent, DeviceEventClass, DeviceId, FindingCode, Findings,
    IoEvent, OpInfo, OpInputs, Ops, Process, SliceId, SliceRole, Slices, Step, Trace, Track,
};

/// What a file holds beside tables.
#[derive(Serialize, Deserialize)]
pub(crate) struct Stored {
    trace: StoredTrace,
    contents: Contents,
    results: RankResults,
    /// Of all, then of complete steps alone where that is not all.
    rows: Vec<RankRows>,
    advice: RankAdvice,
}

/// A trace. Ids are places in these lists.
#[derive(Serialize, Deserialize)]
struct StoredTrace {
    name: String,
    sources: Vec<String>,
    start_unix_ns: Option<i64>,
    start_source_ns: i64,
    texts: Vec<String>,
    processes: Vec<Process>,
    devices: Vec<Device>,
    tracks: Vec<Track>,
    slices: Slices,
    ops: Vec<Op>,
    collectives: Vec<Collective>,
    communication: Vec<Communication>,
    roles: Vec<Role>,
    io: Vec<IoEvent>,
    steps: Vec<Step>,
    clocks: Vec<ClockCorrection>,
    findings: Vec<StoredFinding>,
    facts: Vec<Fact>,
}

/// What is known of an operator.
#[derive(Serialize, Deserialize)]
struct Op {
    slice: SliceId,
    info: OpInfo,
}

/// A kernel that communicates.
#[derive(Serialize, Deserialize)]
struct Communication {
    slice: SliceId,
    device: DeviceId,
    launch: Option<SliceId>,
    op: Option<SliceId>,
}

#[derive(Serialize, Deserialize)]
struct Role {
    name: StringId,
    role: SliceRole,
}

#[derive(Serialize, Deserialize)]
struct StoredFinding {
    code: String,
    count: u64,
    examples: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Fact {
    key: String,
    value: String,
}

/// The columns that [`Stored`] is written as.
pub(crate) fn fields() -> Result<Vec<FieldRef>, serde_arrow::Error> {
    let options = TracingOptions::default().enums_without_data_as_strings(true).from_type_budget(1_000);
    Vec::<FieldRef>::from_type::<Stored>(options)
}

impl Stored {
    pub(crate) fn of(summary: &Summary) -> Self {
        Self {
            trace: StoredTrace::of(&summary.trace),
            contents: summary.contents,
            results: summary.results.clone(),
            rows: std::iter::once(&summary.rows).chain(&summary.rows_in_steps).cloned().collect(),
            advice: summary.advice.clone(),
        }
    }

    /// The summary, without tables.
    pub(crate) fn into_summary(self) -> Result<Summary, SummaryError> {
        let trace = self.trace.into_trace()?;
        if !trace.is_sound() || !self.results.fits(&trace) || !self.advice.is_known() {
            return Err(damaged("rows"));
        }
        let Self { contents, results, rows, advice, .. } = self;
        let mut rows = rows.into_iter();
        let (rows, rows_in_steps) = (rows.next().ok_or_else(|| damaged("rows"))?, rows.next());
        Ok(Summary { trace, contents, results, rows, rows_in_steps, advice, ..Summary::default() })
    }
}

fn damaged(what: &str) -> SummaryError {
    SummaryError(format!("its {what} do not fit together"))
}

impl StoredTrace {
    fn of(trace: &Trace) -> Self {
        let text = |at: usize| trace.strings.get(StringId::from_index(at)).to_string();
        let op = |(slice, info): (&SliceId, &OpInfo)| Op { slice: *slice, info: *info };
        let kernels = trace.device_events.iter().map(|event| {
            let DeviceEvent { slice, device, launch, op, .. } = event;
            Communication { slice, device, launch, op }
        });
        let findings = trace.findings.iter().map(|finding| StoredFinding {
            code: finding.code.code().into(),
            count: finding.count,
            examples: finding.examples.clone(),
        });
        Self {
            name: trace.name.clone(),
            sources: trace.sources.clone(),
            start_unix_ns: trace.start_unix_ns,
            start_source_ns: trace.start_source_ns,
            texts: (0..trace.strings.len()).map(text).collect(),
            processes: trace.processes.clone(),
            devices: trace.devices.clone(),
            tracks: trace.tracks.clone(),
            slices: trace.slices.clone(),
            ops: trace.ops.slice.iter().zip(&trace.ops.info).map(op).collect(),
            collectives: trace.collectives.clone(),
            communication: kernels.collect(),
            roles: trace.roles.iter().map(|(name, role)| Role { name: *name, role: *role }).collect(),
            io: trace.io.clone(),
            steps: trace.steps.clone(),
            clocks: trace.clocks.clone(),
            findings: findings.collect(),
            facts: trace.facts.iter().map(|(key, value)| Fact { key: key.clone(), value: value.clone() }).collect(),
        }
    }

    fn into_trace(self) -> Result<Trace, SummaryError> {
        let mut strings = StringTable::default();
        for (at, text) in self.texts.iter().enumerate() {
            if strings.intern(text).index() != at {
                return Err(damaged("texts"));
            }
        }
        let mut findings = Findings::default();
        for StoredFinding { code, count, examples } in self.findings {
            let known = FindingCode::ALL.iter().find(|known| known.code() == code);
            let known = *known.ok_or_else(|| SummaryError(format!("it has an unknown finding, {code}")))?;
            let more = count.checked_sub(examples.len() as u64).ok_or_else(|| damaged("findings"))?;
            examples.into_iter().for_each(|example| findings.add(known, || example));
            findings.add_count(known, more);
        }
        let event = |row: &Communication| {
            let event = DeviceEvent::new(row.slice, row.device, DeviceEventClass::Communication);
            DeviceEvent { launch: row.launch, op: row.op, ..event }
        };
        let (slice, info) = self.ops.iter().map(|op| (op.slice, op.info)).unzip();
        Ok(Trace {
            name: self.name,
            sources: self.sources,
            start_unix_ns: self.start_unix_ns,
            start_source_ns: self.start_source_ns,
            strings,
            processes: self.processes,
            devices: self.devices,
            tracks: self.tracks,
            slices: self.slices,
            ops: Ops { slice, info, inputs: vec![OpInputs::UNKNOWN] },
            device_events: self.communication.iter().map(event).collect(),
            collectives: self.collectives,
            roles: self.roles.iter().map(|row| (row.name, row.role)).collect(),
            io: self.io,
            steps: self.steps,
            clocks: self.clocks,
            findings,
            facts: self.facts.into_iter().map(|fact| (fact.key, fact.value)).collect(),
            ..Trace::default()
        })
    }
}
