//! Which steps are recorded.

/// Which steps are recorded: after `skip_first` steps, cycles of `wait` steps that are not, `warmup` steps that are not
/// either, and `active` steps that are. The numbers mean what they do in `torch.profiler.schedule`.
///
/// ```
/// use stepscope::Schedule;
///
/// let schedule = Schedule::new().wait(1).warmup(1).active(3).repeat(2);
/// let recorded: Vec<u64> = (0..20).filter(|step| schedule.is_active(*step)).collect();
/// assert_eq!(recorded, [2, 3, 4, 7, 8, 9]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Schedule {
    skip_first: u32,
    wait: u32,
    warmup: u32,
    active: u32,
    repeat: u32,
}

impl Default for Schedule {
    fn default() -> Self {
        Self::new()
    }
}

impl Schedule {
    /// Every step.
    pub const fn new() -> Self {
        Self { skip_first: 0, wait: 0, warmup: 0, active: 1, repeat: 0 }
    }

    /// Steps at the beginning that belong to no cycle.
    pub const fn skip_first(self, steps: u32) -> Self {
        Self { skip_first: steps, ..self }
    }

    /// Steps at the beginning of a cycle that are not recorded.
    pub const fn wait(self, steps: u32) -> Self {
        Self { wait: steps, ..self }
    }

    /// Steps after those that are not recorded either. This recorder needs no warm-up: the number is there so that
    /// schedules can be taken over.
    pub const fn warmup(self, steps: u32) -> Self {
        Self { warmup: steps, ..self }
    }

    /// Steps at the end of a cycle that are recorded; 0 counts as 1.
    pub const fn active(self, steps: u32) -> Self {
        Self { active: if steps == 0 { 1 } else { steps }, ..self }
    }

    /// Number of cycles; 0, as at first: for ever.
    pub const fn repeat(self, cycles: u32) -> Self {
        Self { repeat: cycles, ..self }
    }

    /// True when step `step`, counted from 0, is recorded.
    pub const fn is_active(&self, step: u64) -> bool {
        self.cycle(step).is_some()
    }

    /// The numbers alone.
    pub(crate) const fn to_fields(self) -> [u32; 5] {
        [self.skip_first, self.wait, self.warmup, self.active, self.repeat]
    }

    /// The schedule with these numbers; one without active steps is none.
    pub(crate) const fn from_fields([skip_first, wait, warmup, active, repeat]: [u32; 5]) -> Option<Self> {
        if active == 0 { None } else { Some(Self { skip_first, wait, warmup, active, repeat }) }
    }

    /// The cycle of which `step` is an active step.
    pub(crate) const fn cycle(&self, step: u64) -> Option<u64> {
        let Some(step) = step.checked_sub(self.skip_first as u64) else { return None };
        let idle = self.wait as u64 + self.warmup as u64;
        let len = idle + self.active as u64;
        let (cycle, at) = (step / len, step % len);
        let is_over = self.repeat > 0 && cycle >= self.repeat as u64;
        if at < idle || is_over { None } else { Some(cycle) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn active(schedule: Schedule) -> Vec<u64> {
        (0..24).filter(|step| schedule.is_active(*step)).collect()
    }

    #[test]
    fn cycles_repeat_after_the_first_steps() {
        let schedule = Schedule::new().skip_first(3).wait(2).warmup(1).active(2).repeat(3);
        assert_eq!(active(schedule), [6, 7, 11, 12, 16, 17]);
        assert_eq!([6, 12, 17].map(|step| schedule.cycle(step)), [Some(0), Some(1), Some(2)]);
    }

    #[test]
    fn without_numbers_every_step_is_recorded() {
        assert_eq!(active(Schedule::new()), (0..24).collect::<Vec<_>>());
        assert_eq!(active(Schedule::new().active(0)), active(Schedule::new()));
        assert!(Schedule::new().wait(u32::MAX).warmup(u32::MAX).active(u32::MAX).cycle(u64::MAX).is_some());
    }
}
