//! Numbers that look random and are the same every time, and durations spread with them.

/// A generator of numbers (splitmix64).
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    /// The numbers of one step of a job: no step needs those before it.
    pub(super) fn of(seed: u64, step: u64) -> Self {
        let mut random = Self(seed ^ step.wrapping_mul(0xa076_1d64_78bd_642f));
        random.next();
        random
    }

    /// The next number.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// About `ns`, spread as times on a host are: a little less or more, now and then several times as long.
    pub(super) fn host_ns(&mut self, ns: u32) -> i64 {
        let number = self.next();
        let stretch = match number >> 54 {
            0 => 8,
            1..16 => 2,
            _ => 1,
        };
        let factor = 208 + (number & 127) as i64;
        (i64::from(ns) * factor * stretch) >> 8
    }

    /// About `ns`, spread as the durations of one kernel are: within 3 %.
    pub(super) fn device_ns(&mut self, ns: u32) -> i64 {
        let factor = 1008 + (self.next() & 63) as i64;
        (i64::from(ns) * factor) >> 10
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_the_same_numbers_every_time_and_other_steps_have_others() {
        let numbers = |seed, step| {
            let mut random = Random::of(seed, step);
            [random.next(), random.next()]
        };
        assert_eq!(numbers(1, 2), numbers(1, 2));
        assert_ne!(numbers(1, 2), numbers(1, 3));
        assert_ne!(numbers(1, 2), numbers(2, 2));
    }

    #[test]
    fn durations_stay_near_what_was_asked_for() {
        let mut random = Random::of(0, 0);
        let host: Vec<i64> = (0..4096).map(|_| random.host_ns(1000)).collect();
        let mean = host.iter().sum::<i64>() / host.len() as i64;
        assert!((950..1250).contains(&mean) && *host.iter().min().unwrap() > 800, "{mean}");
        assert!((0..4096).all(|_| (980..1050).contains(&random.device_ns(1000))));
    }
}
