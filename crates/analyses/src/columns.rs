//! A result's columns, declared once: [`columns!`](crate::columns) makes the struct of a row, its documentation and
//! the table of it.

use crate::{Column, Selection, Table, Unit, Values};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use stepscope_base::StringId;
use stepscope_trace::{SliceId, StackId, Trace, TrackId};

/// Declares a struct of rows with their columns. An entry is one of
///
/// ```text
/// /// Doc.
/// name: Type => Unit,                 a field that is a column
/// name: Type,                         a field only
/// name => Unit = |row| …,             a column only
/// name => Unit with |row, trace| …,   the same, from the trace
/// name => Unit if (|selection| …) = |row| …,   a column that only some selections have
/// ..Inner = |row| …,                  the columns of another such struct
/// ```
#[macro_export]
macro_rules! columns {
    ($(#[$meta:meta])* $vis:vis struct $Row:ident { $($entries:tt)* }) => {
        $crate::columns!(@ builder rows [$(#[$meta])* $vis struct $Row] [] [] $($entries)*);
    };
    (@ $b:ident $r:ident $head:tt [$($fields:tt)*] [$($columns:tt)*]
        $(#[doc = $doc:literal])+ $name:ident: $type:ty => $unit:ident, $($rest:tt)*) => {
        $crate::columns!(@ $b $r $head [$($fields)* $(#[doc = $doc])+ pub $name: $type,] [$($columns)*
            $b.column($r, (stringify!($name), $crate::Unit::$unit, concat!($($doc),+)), |row, _| &row.$name);
        ] $($rest)*);
    };
    (@ $b:ident $r:ident $head:tt [$($fields:tt)*] $columns:tt
        $(#[doc = $doc:literal])+ $(#[serde($serde:ident)])? $name:ident: $type:ty, $($rest:tt)*) => {
        $crate::columns!(@ $b $r $head
            [$($fields)* $(#[doc = $doc])+ $(#[serde($serde)])? pub $name: $type,] $columns $($rest)*);
    };
    (@ $b:ident $r:ident $head:tt $fields:tt [$($columns:tt)*]
        $(#[doc = $doc:literal])+ $name:ident => $unit:ident $(if ($has:expr))? = $value:expr, $($rest:tt)*) => {
        $crate::columns!(@ $b $r $head $fields [$($columns)*
            if true $(&& $b.selects($has))? {
                let of_row = $b.of_row($r, $value);
                $b.column($r, (stringify!($name), $crate::Unit::$unit, concat!($($doc),+)), |row, _| of_row(row));
            }
        ] $($rest)*);
    };
    (@ $b:ident $r:ident $head:tt $fields:tt [$($columns:tt)*]
        $(#[doc = $doc:literal])+ $name:ident => $unit:ident with $value:expr, $($rest:tt)*) => {
        $crate::columns!(@ $b $r $head $fields [$($columns)*
            $b.column($r, (stringify!($name), $crate::Unit::$unit, concat!($($doc),+)), $value);
        ] $($rest)*);
    };
    (@ $b:ident $r:ident $head:tt $fields:tt [$($columns:tt)*] ..$Inner:ident = $value:expr, $($rest:tt)*) => {
        $crate::columns!(@ $b $r $head $fields [$($columns)*
            <$Inner as $crate::Row>::add_columns($b, &$b.inner($r, $value));
        ] $($rest)*);
    };
    (@ $b:ident $r:ident [$(#[$meta:meta])* $vis:vis struct $Row:ident] [$($fields:tt)*] [$($columns:tt)*]) => {
        $(#[$meta])*
        $vis struct $Row { $($fields)* }

        impl $crate::Row for $Row {
            fn add_columns<'a>($b: &mut $crate::TableBuilder<'a>, $r: &[&'a Self]) {
                $($columns)*
            }
        }
    };
}

/// A row of a result: a struct that [`columns!`](crate::columns) declares.
pub trait Row: Sized {
    /// Adds the columns of `rows`.
    fn add_columns<'a>(builder: &mut TableBuilder<'a>, rows: &[&'a Self]);

    /// The table of `rows`, which are of a selection of `trace`.
    fn table(rows: &[Self], trace: &Trace, selection: &Selection) -> Table {
        let texts = Texts { trace, known: FxHashMap::default() };
        let mut builder = TableBuilder { selection, texts, table: Table::default() };
        Self::add_columns(&mut builder, &rows.iter().collect::<Vec<_>>());
        builder.table
    }
}

/// A table to which rows add their columns.
pub struct TableBuilder<'a> {
    selection: &'a Selection,
    texts: Texts<'a>,
    table: Table,
}

impl<'a> TableBuilder<'a> {
    /// Adds a column, given as name, unit and documentation, of what `value` makes of each row.
    pub fn column<R, C: Cell>(
        &mut self,
        rows: &[&'a R],
        (name, unit, doc): (&'static str, Unit, &'static str),
        value: impl Fn(&'a R, &'a Trace) -> C,
    ) {
        let trace = self.texts.trace;
        let cells: Vec<_> = rows.iter().map(|row| value(row, trace).cell(&mut self.texts)).collect();
        self.table.push(Column::new(name, unit, doc, cells));
    }

    /// `value`, with its type known.
    pub fn of_row<R, C, F: Fn(&'a R) -> C>(&self, _: &[&'a R], value: F) -> F {
        value
    }

    /// What the rows have inside.
    pub fn inner<R, Inner>(&self, rows: &[&'a R], value: impl Fn(&'a R) -> &'a Inner) -> Vec<&'a Inner> {
        rows.iter().map(|row| value(row)).collect()
    }

    /// Whether the selection is one of these.
    pub fn selects(&self, is_one: impl Fn(&Selection) -> bool) -> bool {
        is_one(self.selection)
    }
}

/// Texts of cells. Rows are many and texts few: each is made once.
pub struct Texts<'a> {
    trace: &'a Trace,
    known: FxHashMap<(Source, usize), Arc<str>>,
}

/// What a text is known by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Source {
    Name,
    Track,
    Stack,
    /// The length of a text that is part of the program.
    Fixed(usize),
}

impl Texts<'_> {
    fn get(&mut self, source: Source, at: usize, text: impl FnOnce(&Trace) -> Arc<str>) -> Arc<str> {
        Arc::clone(self.known.entry((source, at)).or_insert_with(|| text(self.trace)))
    }
}

/// What can be in a cell.
pub trait Cell {
    /// What the column holds.
    type Value: CellValue;

    /// The value; `None` for no answer.
    fn cell(&self, texts: &mut Texts<'_>) -> Option<Self::Value>;
}

/// What a column can hold.
pub trait CellValue: Sized {
    /// The values of a column.
    fn values(cells: Vec<Option<Self>>) -> Values;
}

/// A text of the program, which all its cells share.
pub struct Fixed(pub &'static str);

macro_rules! cell_values {
    ($($type:ty => $variant:ident,)*) => {
        $(impl CellValue for $type {
            fn values(cells: Vec<Option<Self>>) -> Values {
                Values::$variant(cells)
            }
        })*
    };
}

cell_values! { i64 => Int, f64 => Float, bool => Bool, Arc<str> => Text, }

impl CellValue for &str {
    fn values(cells: Vec<Option<Self>>) -> Values {
        Arc::values(cells.into_iter().map(|cell| cell.map(Arc::from)).collect())
    }
}

macro_rules! cells {
    ($($type:ty => $value:ty: |$cell:ident, $texts:ident| $make:expr,)*) => {
        $(impl Cell for $type {
            type Value = $value;

            fn cell(&self, $texts: &mut Texts<'_>) -> Option<$value> {
                let $cell = self;
                $make
            }
        })*
    };
}

cells! {
    i64 => i64: |cell, _texts| Some(*cell),
    u32 => i64: |cell, _texts| Some(i64::from(*cell)),
    u64 => i64: |cell, _texts| i64::try_from(*cell).ok(),
    f64 => f64: |cell, _texts| Some(*cell),
    bool => bool: |cell, _texts| Some(*cell),
    str => Arc<str>: |cell, _texts| Some(cell.into()),
    String => Arc<str>: |cell, _texts| Some(cell.as_str().into()),
    Arc<str> => Arc<str>: |cell, _texts| Some(Arc::clone(cell)),
    Fixed => Arc<str>: |cell, texts| {
        Some(texts.get(Source::Fixed(cell.0.len()), cell.0.as_ptr() as usize, |_| cell.0.into()))
    },
    StringId => Arc<str>: |cell, texts| {
        Some(texts.get(Source::Name, cell.index(), |trace| trace.strings.get(*cell).into()))
    },
    SliceId => Arc<str>: |cell, texts| texts.trace.slices.name[cell.index()].cell(texts),
    TrackId => Arc<str>: |cell, texts| {
        Some(texts.get(Source::Track, cell.index(), |trace| trace.tracks[cell.index()].name.as_str().into()))
    },
    StackId => Arc<str>: |cell, texts| {
        Some(texts.get(Source::Stack, cell.index(), |trace| trace.stacks.text(*cell, &trace.strings).into()))
    },
}

impl<T: Cell + ?Sized> Cell for &T {
    type Value = T::Value;

    fn cell(&self, texts: &mut Texts<'_>) -> Option<T::Value> {
        (**self).cell(texts)
    }
}

impl<T: Cell> Cell for Option<T> {
    type Value = T::Value;

    fn cell(&self, texts: &mut Texts<'_>) -> Option<T::Value> {
        self.as_ref()?.cell(texts)
    }
}

/// Cells of types whose `as_str` is their text.
macro_rules! named_cells {
    ($($type:ty),*) => {
        $(impl $crate::Cell for $type {
            type Value = std::sync::Arc<str>;

            fn cell(&self, texts: &mut $crate::Texts<'_>) -> Option<Self::Value> {
                $crate::Fixed(self.as_str()).cell(texts)
            }
        })*
    };
}

named_cells!(
    stepscope_trace::CopyDirection,
    stepscope_trace::DataflowStage,
    stepscope_trace::DeviceEventClass,
    stepscope_trace::IoAction,
    stepscope_trace::IoLayer,
    stepscope_trace::IterationKind,
    stepscope_trace::StepSource,
    stepscope_trace::SyncKind
);
