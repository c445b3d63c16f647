//! Arrows from forward operators to their backward nodes.

use crate::Events;
use rustc_hash::FxHashMap;

/// The number of each row's arrow, 0 without one, and whether the row is where it begins. Of the operators with one
/// sequence number on one thread the last one called autograd; of the nodes with that number the first one is its own.
pub(crate) fn join(events: &Events) -> (Vec<u32>, Vec<bool>) {
    let mut flow = vec![0; events.len()];
    let mut is_start = vec![false; events.len()];
    let mut forward: FxHashMap<(u64, i64), usize> = FxHashMap::default();
    let mut next = 1;
    for row in (0..events.len()).filter(|row| events.sequence_number[*row] >= 0) {
        let (number, thread) = (events.sequence_number[row], events.forward_thread[row]);
        if thread == 0 {
            forward.insert((events.threads[events.thread[row] as usize].0, number), row);
        } else if let Some(start) = forward.remove(&(thread, number)) {
            (flow[start], flow[row]) = (next, next);
            is_start[start] = true;
            next += 1;
        }
    }
    (flow, is_start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_operator_of_a_number_is_joined_with_the_first_node() {
        // Thread, sequence number, forward thread.
        let rows = [(0, 5, 0), (0, 5, 0), (0, -1, 0), (1, 5, 0), (0, 5, 7), (0, 5, 7), (0, 5, 8), (0, 9, 7)];
        let events = Events {
            name: vec![0; rows.len()],
            threads: vec![(7, 70), (8, 80)],
            thread: rows.iter().map(|row| row.0).collect(),
            sequence_number: rows.iter().map(|row| row.1).collect(),
            forward_thread: rows.iter().map(|row| row.2).collect(),
            ..Events::default()
        };
        let (flow, is_start) = join(&events);
        assert_eq!(flow, [0, 1, 0, 2, 1, 0, 2, 0]);
        assert_eq!(is_start, [false, true, false, true, false, false, false, false]);
    }
}
