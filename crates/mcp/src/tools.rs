//! The tools: what each is called, accepts and answers.

use crate::comparison::comparison;
use crate::explain::explain;
use crate::failure::Failure;
use crate::pages::{Asked, Page, analyses};
use crate::runs::Runs;
use crate::schema::schema_of;
use crate::slowest::{What, slowest};
use crate::sql::sql;
use crate::verdict::verdict;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use stepscope_engine::Selection;

/// A tool.
struct Known {
    name: &'static str,
    /// What a model reads to choose it.
    says: &'static str,
    schema: fn() -> JsonObject,
    call: fn(&Runs, JsonObject) -> Result<String, Failure>,
}

const TOOLS: [Known; 8] = [
    Known {
        name: "verdict",
        says: "What slows a run down, in at most 2 KB: the first answers, most gain first, with id, place (rank, line, \
               slice), gain_ns (a forecast, the least or the most: gain_estimate; gains overlap, do not add them) and what to \
               do; what could not be judged; findings. A healthy run says so.",
        schema: schema_of::<VerdictArguments>,
        call: |runs, arguments| {
            let VerdictArguments { run } = parsed::<VerdictArguments>(arguments)?;
            let run = runs.get(run.as_deref())?;
            verdict(&run)
        },
    },
    Known {
        name: "explain",
        says: "One answer of `verdict` in full, with the first rows of its evidence.",
        schema: schema_of::<ExplainArguments>,
        call: |runs, arguments| {
            let ExplainArguments { run, id } = parsed::<ExplainArguments>(arguments)?;
            let run = runs.get(run.as_deref())?;
            explain(&run, &id)
        },
    },
    Known {
        name: "slowest",
        says: "What takes the most time, of one kind.",
        schema: schema_of::<SlowestArguments>,
        call: |runs, arguments| {
            let SlowestArguments { run, what, limit } = parsed::<SlowestArguments>(arguments)?;
            let run = runs.get(run.as_deref())?;
            slowest(&run, what, limit)
        },
    },
    Known {
        name: "lines",
        says: "The lines of Python that hold steps up outside of operators, from samples of stacks.",
        schema: schema_of::<LinesArguments>,
        call: |runs, arguments| {
            let LinesArguments { run, rank, limit } = parsed::<LinesArguments>(arguments)?;
            let selection = Selection { ranks: rank.into(), ..Selection::default() };
            let asked = Asked { selection, limit, ..Asked::default() };
            let note = "Lines are sampled: time_ns is a line's share of the samples of a time that is exact, error_ns \
                        its standard error. Without rows, no stacks were sampled in that time.";
            let run = runs.get(run.as_deref())?;
            Ok(Page::of(&run, "host_lines", &asked)?.with_note(note).to_json())
        },
    },
    Known {
        name: "compare",
        says: "What changed from run a to run b: step time, whether that may be chance, the difference of the mean steps as \
               a sum, and the largest changes of operators, kernels and modules, per step.",
        schema: schema_of::<CompareArguments>,
        call: |runs, arguments| {
            let CompareArguments { a, b, limit } = parsed::<CompareArguments>(arguments)?;
            let [a, b] = [runs.get(Some(&a))?, runs.get(Some(&b))?];
            comparison(&a, &b, limit)
        },
    },
    Known {
        name: "table",
        says: "Rows of any analysis. rows_total says how many there are, next_offset where the rest begins.",
        schema: schema_of::<TableArguments>,
        call: |runs, arguments| {
            let arguments = parsed::<TableArguments>(arguments)?;
            let run = runs.get(arguments.run.as_deref())?;
            let analysis = arguments.analysis.clone();
            Ok(Page::of(&run, &analysis, &arguments.asked())?.to_json())
        },
    },
    Known {
        name: "sql",
        says: "Rows of a query over the tables of a run; without a query, the tables with their columns. It only reads.",
        schema: schema_of::<SqlArguments>,
        call: |runs, arguments| {
            let SqlArguments { run, query, limit } = parsed::<SqlArguments>(arguments)?;
            sql(runs, run.as_deref(), query.as_deref(), limit)
        },
    },
    Known {
        name: "analyses",
        says: "The analyses that `table` knows; of one, its columns with units and meaning.",
        schema: schema_of::<AnalysesArguments>,
        call: |_, arguments| analyses(parsed::<AnalysesArguments>(arguments)?.analysis.as_deref()),
    },
];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VerdictArguments {
    /// Path of a run folder, a trace, or a folder of the traces of ranks; not needed where the server has one run
    run: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExplainArguments {
    run: Option<String>,
    /// An id of `verdict`, or not_judged
    id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SlowestArguments {
    run: Option<String>,
    /// Modules count with those inside
    what: What,
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LinesArguments {
    run: Option<String>,
    rank: Option<u32>,
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CompareArguments {
    /// Path of the run before
    a: String,
    /// Path of the run after
    b: String,
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TableArguments {
    run: Option<String>,
    /// A name of `analyses`
    analysis: String,
    /// Only these; their texts are never shortened
    columns: Option<Vec<String>>,
    /// Order by this column, largest first
    sort: Option<String>,
    /// Default 20, at most 200
    limit: Option<usize>,
    offset: Option<usize>,
    rank: Option<u32>,
    step: Option<i64>,
    /// What a row stands for, where the analysis accepts it: line, module, shapes, stack, file …
    group_by: Option<String>,
}

impl TableArguments {
    fn asked(self) -> Asked {
        Asked {
            selection: Selection { ranks: self.rank.into(), step: self.step, ..Selection::default() },
            group_by: self.group_by,
            has_whole_texts: self.columns.as_ref().is_some_and(|columns| !columns.is_empty()),
            columns: self.columns.unwrap_or_default(),
            sort: self.sort,
            limit: self.limit,
            offset: self.offset.unwrap_or(0),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SqlArguments {
    run: Option<String>,
    /// One select, as in: select name, sum(self_ns) as ns from op group by name order by ns desc
    query: Option<String>,
    /// Default 20, at most 200
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AnalysesArguments {
    /// The analysis whose columns are asked for
    analysis: Option<String>,
}

/// The tools as a client lists them.
pub(crate) fn list() -> Vec<Tool> {
    let reads_only = || ToolAnnotations::new().read_only(true);
    TOOLS.iter().map(|tool| Tool::new(tool.name, tool.says, (tool.schema)()).with_annotations(reads_only())).collect()
}

/// What the tool called `name` answers, as JSON on one line.
///
/// # Errors
/// When there is no such tool, or no answer.
pub(crate) fn call(runs: &Runs, name: &str, arguments: JsonObject) -> Result<String, Failure> {
    let known = TOOLS.iter().find(|tool| tool.name == name);
    let names = || TOOLS.iter().map(|tool| tool.name).collect::<Vec<_>>().join(", ");
    let tool = known.ok_or_else(|| {
        Failure::new(format!("there is no tool called {name:?}")).hint(format!("the tools are {}", names()))
    })?;
    (tool.call)(runs, arguments)
}

fn parsed<T: DeserializeOwned + JsonSchema>(arguments: JsonObject) -> Result<T, Failure> {
    // What is null was left out.
    let said = arguments.into_iter().filter(|(_, value)| !value.is_null()).collect();
    serde_json::from_value(Value::Object(said)).map_err(|error| {
        let schema = schema_of::<T>();
        let names: Vec<&str> = schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(|all| all.keys().map(String::as_str))
            .collect();
        Failure::new(format!("arguments: {error}")).hint(format!("its arguments are {}", names.join(", ")))
    })
}
