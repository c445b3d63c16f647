//! What the engine of autograd runs says which forward operator it belongs to, as the node inside does.

use crate::{Events, activity};

/// The scope of a backward node.
const NODE_SCOPE: u8 = 1;
/// What the names of the engine's own ranges begin with.
const ENGINE: &str = "autograd::engine::evaluate_function: ";

/// Gives the engine's ranges the numbers of the nodes that they run: what begins next on their thread.
pub(crate) fn give_numbers_of_nodes(events: &mut Events) {
    let is_engine: Vec<bool> = events.names.iter().map(|name| name.starts_with(ENGINE)).collect();
    let mut last: Vec<Option<usize>> = vec![None; events.threads.len()];
    let is_call = |row: usize| events.call.get(row).is_some_and(|call| *call != 0);
    let is_op = |row: usize| !events.is_memory[row] && !is_call(row) && events.device.activity(row) == activity::HOST;
    let rows: Vec<usize> = (0..events.len()).filter(|row| is_op(*row)).collect();
    for row in rows {
        let before = last[events.thread[row] as usize].replace(row);
        let Some(before) = before.filter(|_| events.scope[row] == NODE_SCOPE) else { continue };
        if events.scope[before] == 0 && is_engine[events.name[before] as usize] {
            events.sequence_number[before] = events.sequence_number[row];
            events.forward_thread[before] = events.forward_thread[row];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_node_of_the_thread_gives_its_numbers() {
        // Name, thread, scope, sequence number.
        let rows =
            [(0, 0, 0, -1), (0, 1, 0, -1), (1, 0, 1, 5), (0, 0, 0, -1), (2, 0, 0, -1), (1, 0, 1, 6), (1, 1, 1, 7)];
        let mut events = Events {
            names: [format!("{ENGINE}A"), "A".into(), "other".into()].to_vec(),
            threads: vec![(1, 1), (2, 2)],
            name: rows.iter().map(|row| row.0).collect(),
            thread: rows.iter().map(|row| row.1).collect(),
            scope: rows.iter().map(|row| row.2).collect(),
            sequence_number: rows.iter().map(|row| row.3).collect(),
            forward_thread: rows.iter().map(|row| u64::from(row.2)).collect(),
            is_memory: vec![false; rows.len()],
            ..Events::default()
        };
        give_numbers_of_nodes(&mut events);
        assert_eq!(events.sequence_number, [5, 7, 5, -1, -1, 6, 7]);
        assert_eq!(events.forward_thread, [1, 1, 1, 0, 0, 1, 1]);
    }
}
