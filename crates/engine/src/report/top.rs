//! The operators and kernels that take the most time.

use super::DeviceTime;
use crate::{Rows, Selection, Table, Trace};
use serde::{Serialize, Serializer};
use std::cmp::Reverse;
use stepscope_analyses::kernels::Kernel;
use stepscope_analyses::operators::Operator;
use stepscope_analyses::{Row, columns};

/// How many rows a report shows.
const SHOWN: usize = 10;

/// The first rows of a longer result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Top {
    /// The rows, most time first, with their share of the sum over all rows.
    #[serde(serialize_with = "rows")]
    pub table: Table,
    /// Rows of the whole result.
    pub count: usize,
    /// The column that decides the order, and the shares.
    pub by: &'static str,
    /// The sum of that column over the whole result.
    pub total_ns: i64,
    #[serde(skip)]
    first: Option<(String, f64)>,
}

fn rows<S: Serializer>(table: &Table, serializer: S) -> Result<S::Ok, S::Error> {
    Rows(table).serialize(serializer)
}

columns! {
    /// What all rows have.
    #[derive(Clone)]
    struct Place {
        /// The name of the operator or kernel.
        name: Option<String> => Text,
        /// Its share of the time of all.
        share_ratio: f64 => Ratio,
        /// Number of calls or runs.
        count: i64 => Count,
    }
}

columns! {
    /// An operator of a run without device time.
    struct HostOperator {
        /// Its place.
        place: Place,
        ..Place = |row| &row.place,
        /// Time on the host, without the operators directly inside.
        host_self_ns: i64 => Nanoseconds,
        /// Time on the host.
        host_total_ns: i64 => Nanoseconds,
        /// Mean time of a call on the host.
        mean_ns: Option<i64> => Nanoseconds,
    }
}

columns! {
    /// An operator of a run with device time.
    struct DeviceOperator {
        /// Its place.
        place: Place,
        ..Place = |row| &row.place,
        /// Time on the host, without the operators directly inside.
        host_self_ns: i64 => Nanoseconds,
        /// Time on the host.
        host_total_ns: i64 => Nanoseconds,
        /// Time of the device work launched inside, but not by an operator inside.
        device_self_ns: i64 => Nanoseconds,
        /// Time of the device work launched inside.
        device_total_ns: i64 => Nanoseconds,
    }
}

columns! {
    /// A kernel.
    struct TopKernel {
        /// Its place.
        place: Place,
        ..Place = |row| &row.place,
        /// Time of all runs.
        total_ns: i64 => Nanoseconds,
        /// Mean time of a run.
        mean_ns: i64 => Nanoseconds,
        /// Time of the longest run.
        max_ns: i64 => Nanoseconds,
    }
}

/// By the side that takes the time: device time when the devices are busy for at least half of it and operators have
/// any, else operators' own time on the host.
pub(super) fn top_operators(operators: &[Operator], devices: &[DeviceTime]) -> Top {
    let sum = |class: &str| devices.iter().map(|device| device.breakdown.ns_of(class)).sum::<i64>();
    let busy_ns = sum("compute") + sum("exposed_comm") + sum("exposed_copy");
    let has_device_time = operators.iter().any(|row| row.device_self_ns > 0);
    let is_by_device = has_device_time && busy_ns >= sum("idle");
    let ns = move |row: &Operator| if is_by_device { row.device_self_ns } else { row.host_self_ns };
    let order = Order::of(if is_by_device { "device_self_ns" } else { "host_self_ns" }, operators, ns);
    let place = |row: &Operator| {
        let name = (!row.label.name.is_empty()).then(|| row.label.name.clone());
        order.place(name, row.count, ns(row))
    };
    match has_device_time {
        true => order.top(place, |row, place| DeviceOperator {
            place,
            host_self_ns: row.host_self_ns,
            host_total_ns: row.host_total_ns,
            device_self_ns: row.device_self_ns,
            device_total_ns: row.device_total_ns,
        }),
        false => order.top(place, |row, place| HostOperator {
            place,
            host_self_ns: row.host_self_ns,
            host_total_ns: row.host_total_ns,
            mean_ns: row.host_total_ns.checked_div(row.count),
        }),
    }
}

/// By total time.
pub(super) fn top_kernels(kernels: &[Kernel]) -> Top {
    let order = Order::of("total_ns", kernels, |row| row.total_ns);
    let place = |row: &Kernel| order.place(Some(row.name.clone()), row.count, row.total_ns);
    order.top(place, |row, place| TopKernel { place, total_ns: row.total_ns, mean_ns: row.mean_ns, max_ns: row.max_ns })
}

/// Rows of a result, ordered.
struct Order<'a, R> {
    shown: Vec<&'a R>,
    count: usize,
    by: &'static str,
    total_ns: i64,
}

impl<'a, R> Order<'a, R> {
    fn of(by: &'static str, rows: &'a [R], ns: impl Fn(&R) -> i64) -> Self {
        let mut shown: Vec<&R> = rows.iter().filter(|row| ns(row) > 0).collect();
        shown.sort_by_key(|row| Reverse(ns(row)));
        shown.truncate(SHOWN);
        Self { shown, count: rows.len(), by, total_ns: rows.iter().map(ns).sum() }
    }

    fn place(&self, name: Option<String>, count: i64, ns: i64) -> Place {
        Place { name, share_ratio: ns as f64 / self.total_ns as f64, count }
    }

    fn top<T: Row>(&self, place: impl Fn(&R) -> Place, row: impl Fn(&R, Place) -> T) -> Top {
        let first = self.shown.first().and_then(|row| {
            let Place { name, share_ratio, .. } = place(row);
            Some((name?, share_ratio))
        });
        let rows: Vec<T> = self.shown.iter().map(|shown| row(shown, place(shown))).collect();
        let table = T::table(&rows, &Trace::default(), &Selection::default());
        Top { table, count: self.count, by: self.by, total_ns: self.total_ns, first }
    }
}

impl Top {
    /// Name and share of the first row.
    pub fn first(&self) -> Option<(&str, f64)> {
        self.first.as_ref().map(|(name, share)| (name.as_str(), *share))
    }
}
