//! Memory of the device as the caching allocator reports it: where each piece lies, and what is taken in total.

/// What a piece of memory is for. Each has addresses of its own, and gives back last what it took first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    /// Kept from the forward pass for the backward pass.
    Activation,
    /// A parameter's gradient.
    Gradient,
    /// Gone before the operator or the node around it ends.
    Temporary,
}

/// Weights and the optimizer's state, there from the start.
const RESIDENT_BYTES: u64 = 6_217_728_000;
const RESERVED_BYTES: u64 = 31_415_336_960;
/// The allocator's grain.
const GRAIN_BYTES: u64 = 512;

/// What is taken now.
#[derive(Debug)]
pub(super) struct Memory {
    allocated: u64,
    /// Of each use: address after what is taken, sizes of what is taken.
    stacks: [(u64, Vec<u64>); 3],
}

impl Memory {
    /// Nothing but what is always there.
    pub(super) fn new() -> Self {
        let stack = |at: u64| (at, Vec::new());
        let stacks = [stack(0x7d62_0000_0000), stack(0x7d68_0000_0000), stack(0x7d6b_0000_0000)];
        Self { allocated: RESIDENT_BYTES, stacks }
    }

    /// Takes `bytes`; the arguments of the row.
    pub(super) fn take(&mut self, purpose: Use, bytes: u64) -> String {
        let bytes = bytes.next_multiple_of(GRAIN_BYTES);
        self.allocated += bytes;
        let (end, sizes) = &mut self.stacks[purpose as usize];
        let address = *end;
        *end += bytes;
        sizes.push(bytes);
        self.arguments(bytes as i64, address)
    }

    /// Gives back what was taken last; the arguments of the row.
    ///
    /// # Panics
    /// When nothing is left: a workload gives back what it took, no more.
    pub(super) fn give_back(&mut self, purpose: Use) -> String {
        let (end, sizes) = &mut self.stacks[purpose as usize];
        let bytes = sizes.pop().expect("something was taken");
        *end -= bytes;
        self.allocated -= bytes;
        let address = *end;
        self.arguments(-(bytes as i64), address)
    }

    /// How many pieces are taken for `purpose`.
    pub(super) fn count(&self, purpose: Use) -> usize {
        self.stacks[purpose as usize].1.len()
    }

    fn arguments(&self, bytes: i64, address: u64) -> String {
        format!(
            r#""Total Reserved": {RESERVED_BYTES}, "Total Allocated": {}, "Bytes": {bytes}, "Addr": {address}, "Device Id": 0, "Device Type": 1, "#,
            self.allocated
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_lay_where_it_was_taken() {
        let mut memory = Memory::new();
        let taken = memory.take(Use::Temporary, 1000);
        let given_back = memory.give_back(Use::Temporary);
        assert!(taken.contains(r#""Total Allocated": 6217729024, "Bytes": 1024, "Addr": 137898514972672"#), "{taken}");
        assert!(given_back.contains(r#""Total Allocated": 6217728000, "Bytes": -1024, "Addr": 137898514972672"#));
        assert_eq!(memory.count(Use::Temporary), 0);
    }
}
