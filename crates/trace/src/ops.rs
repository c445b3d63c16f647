//! What is known of ops beyond their slice.

use crate::SliceId;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use stepscope_base::{StringId, StringTable};

stepscope_base::id_type! {
    /// A row of [`Ops::inputs`]; 0 stands for ops whose inputs are not known.
    OpInputsId
}

/// The inputs of an op, as JSON texts without white space between values; empty where not known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OpInputs {
    /// The shape of each: `[[64,3],[],[[2,3],[2,3]]]`.
    pub dims: StringId,
    /// The type of each: `["float","","TensorList"]`.
    pub types: StringId,
    /// The strides of each, as `dims`.
    pub strides: StringId,
    /// The value of each that is no tensor: `["","[-1]","True"]`.
    pub concrete: StringId,
    /// Inputs that have names, as an object: `{"grid":"grid(1,)","stream":0}`.
    pub keywords: StringId,
}

impl OpInputs {
    /// Nothing known.
    pub const UNKNOWN: Self = Self {
        dims: StringTable::EMPTY,
        types: StringTable::EMPTY,
        strides: StringTable::EMPTY,
        concrete: StringTable::EMPTY,
        keywords: StringTable::EMPTY,
    };
}

/// Facts about one op.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OpInfo {
    /// Autograd's sequence number; joins a forward op with its backward node.
    pub sequence_number: Option<i64>,
    /// For a backward node: the framework's id of the thread that ran the forward op.
    pub forward_thread: Option<u64>,
    /// The framework's scope of the op (PyTorch's `RecordScope`: 0 function, 1 backward, 7 user …).
    pub scope: u8,
    /// Its inputs.
    pub inputs: OpInputsId,
    /// The Python call stack, one frame after another with `;` between, innermost first; empty when not known.
    pub stack: StringId,
    /// Which overload of its name it is: `Tensor` of `aten::add.Tensor`; empty when it is the only one, or not known.
    pub overload: StringId,
}

impl Default for OpInfo {
    fn default() -> Self {
        let (sequence_number, forward_thread, scope) = (None, None, 0);
        let (stack, overload) = (StringTable::EMPTY, StringTable::EMPTY);
        Self { sequence_number, forward_thread, scope, inputs: OpInputsId(0), stack, overload }
    }
}

/// Facts about ops and labels; a row belongs to one slice, ordered by slice. Slices without facts have no row.
#[derive(Clone, Debug, Default)]
pub struct Ops {
    /// The op's slice.
    pub slice: Vec<SliceId>,
    /// Its facts.
    pub info: Vec<OpInfo>,
    /// Distinct inputs; row 0 is [`OpInputs::UNKNOWN`] once the trace is built.
    pub inputs: Vec<OpInputs>,
}

impl Ops {
    /// The facts of an op's slice, when there are any.
    pub fn get(&self, slice: SliceId) -> Option<OpInfo> {
        self.slice.binary_search(&slice).ok().map(|row| self.info[row])
    }

    /// The inputs with this id.
    pub fn inputs(&self, id: OpInputsId) -> OpInputs {
        self.inputs.get(id.index()).copied().unwrap_or(OpInputs::UNKNOWN)
    }
}

/// Distinct inputs while a trace is built.
#[derive(Clone, Debug)]
pub(crate) struct InputsTable {
    pub(crate) rows: Vec<OpInputs>,
    ids: FxHashMap<OpInputs, OpInputsId>,
}

impl Default for InputsTable {
    fn default() -> Self {
        Self { rows: vec![OpInputs::UNKNOWN], ids: [(OpInputs::UNKNOWN, OpInputsId(0))].into_iter().collect() }
    }
}

impl InputsTable {
    /// The id of `inputs`, added when they are new.
    pub(crate) fn intern(&mut self, inputs: OpInputs) -> OpInputsId {
        *self.ids.entry(inputs).or_insert_with(|| {
            self.rows.push(inputs);
            OpInputsId::from_index(self.rows.len() - 1)
        })
    }
}
