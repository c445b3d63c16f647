//! The operators and kernels that take the most time.

use super::DeviceTime;
use crate::cells::Cells;
use crate::{Rows, Table, Unit};
use serde::{Serialize, Serializer};

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
}

impl Top {
    /// Name and share of the first row.
    pub fn first(&self) -> Option<(&str, f64)> {
        Some((self.table.text_at("name", 0)?, self.table.float_at("share_ratio", 0)?))
    }
}

fn rows<S: Serializer>(table: &Table, serializer: S) -> Result<S::Ok, S::Error> {
    Rows(table).serialize(serializer)
}

/// By the side that takes the time: device time when the devices are busy for at least half of it and operators have
/// any, else operators' own time on the host.
pub(super) fn top_operators(operators: &Table, devices: &[DeviceTime]) -> Top {
    let sum = |class: &str| devices.iter().map(|device| device.breakdown.ns_of(class)).sum::<i64>();
    let busy_ns = sum("compute") + sum("exposed_comm") + sum("exposed_copy");
    let has_device_time = sum_ns(operators, "device_self_ns") > 0;
    let by = if has_device_time && busy_ns >= sum("idle") { "device_self_ns" } else { "host_self_ns" };
    let order = largest_first(operators, by);
    let ns = |column: &str| order.shown.iter().map(|row| operators.int_at(column, *row)).collect::<Vec<_>>();
    let table = order.named(operators).ns("host_self_ns", ns("host_self_ns")).ns("host_total_ns", ns("host_total_ns"));
    let table = match has_device_time {
        true => table.ns("device_self_ns", ns("device_self_ns")).ns("device_total_ns", ns("device_total_ns")),
        false => table.ns("mean_ns", order.means(operators, "host_total_ns")),
    };
    order.top(table, operators, by)
}

/// By total time.
pub(super) fn top_kernels(kernels: &Table) -> Top {
    let order = largest_first(kernels, "total_ns");
    let ns = |column: &str| order.shown.iter().map(|row| kernels.int_at(column, *row)).collect::<Vec<_>>();
    let table = order.named(kernels).ns("total_ns", ns("total_ns")).ns("mean_ns", ns("mean_ns"));
    let table = table.ns("max_ns", ns("max_ns"));
    order.top(table, kernels, "total_ns")
}

/// Rows of a result, ordered.
struct Order {
    shown: Vec<usize>,
    shares: Vec<Option<f64>>,
    total_ns: i64,
}

fn sum_ns(table: &Table, column: &str) -> i64 {
    (0..table.len()).filter_map(|row| table.int_at(column, row)).sum()
}

fn largest_first(table: &Table, by: &'static str) -> Order {
    let total_ns = sum_ns(table, by);
    let mut shown: Vec<usize> = (0..table.len()).collect();
    shown.sort_by_key(|row| (std::cmp::Reverse(table.int_at(by, *row)), *row));
    shown.retain(|row| table.int_at(by, *row).is_some_and(|ns| ns > 0));
    shown.truncate(SHOWN);
    let share = |row: &usize| Some(table.int_at(by, *row)? as f64 / total_ns as f64).filter(|_| total_ns > 0);
    Order { shares: shown.iter().map(share).collect(), shown, total_ns }
}

impl Order {
    /// The columns that every top has: name, share, calls.
    fn named(&self, table: &Table) -> Table {
        Table::default()
            .text("name", self.shown.iter().map(|row| table.text_at("name", *row).map(str::to_string)))
            .float("share_ratio", Unit::Ratio, self.shares.iter().copied())
            .count("count", self.shown.iter().map(|row| table.int_at("count", *row)))
    }

    fn means(&self, table: &Table, total: &str) -> Vec<Option<i64>> {
        let mean = |row: &usize| Some(table.int_at(total, *row)? / table.int_at("count", *row).filter(|n| *n > 0)?);
        self.shown.iter().map(mean).collect()
    }

    fn top(self, table: Table, whole: &Table, by: &'static str) -> Top {
        Top { table, count: whole.len(), by, total_ns: self.total_ns }
    }
}
