//! Time that passes now faster and now slower, in another way in each step. What was before something else stays before
//! it: calls stay inside their callers, and work starts after its launch and in the order of its stream.

use crate::random::Random;

/// From the times of the one step that there is to those of another.
pub(super) struct Warp {
    /// When each piece of the step begins, and how long it takes, in 256ths of what it took.
    pieces: Vec<(i64, i64)>,
}

const PIECE_NS: i64 = 1 << 13;

impl Warp {
    /// That of one step of a job; no step needs those before it.
    pub(super) fn of(seed: u64, step: u64, length_ns: i64) -> Self {
        let mut random = Random::from(seed ^ step.wrapping_mul(0xa076_1d64_78bd_642f));
        random.next();
        let mut start_ns = 0;
        let mut piece = |_| {
            let (begin_ns, stretch) = (start_ns, stretch(&mut random));
            start_ns += (PIECE_NS * stretch) >> 8;
            (begin_ns, stretch)
        };
        Self { pieces: (0..=length_ns / PIECE_NS).map(&mut piece).collect() }
    }

    /// When something happens that happened at `ns` of the step.
    pub(super) fn at(&self, ns: i64) -> i64 {
        let (begin_ns, stretch) = self.pieces[(ns / PIECE_NS) as usize];
        begin_ns + ((ns % PIECE_NS * stretch) >> 8)
    }
}

/// 256ths, spread as times on a host are: up to half as much again, now and then several times as long. Never less
/// than all of it, so that no two moments become one.
fn stretch(random: &mut Random) -> i64 {
    let number = random.next();
    let times = match number >> 54 {
        0 => 8,
        1..16 => 2,
        _ => 1,
    };
    (256 + (number & 127) as i64) * times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_later_stays_later() {
        let warp = Warp::of(3, 5, 1_000_000);
        assert!((0..1_000_000).all(|ns| warp.at(ns) < warp.at(ns + 1)));
        assert!((1_100_000..1_700_000).contains(&warp.at(1_000_000)), "{}", warp.at(1_000_000));
    }

    #[test]
    fn a_step_takes_the_same_time_every_time_and_others_take_another() {
        let end = |seed, step| Warp::of(seed, step, 1_000_000).at(1_000_000);
        assert_eq!(end(1, 2), end(1, 2));
        assert!(end(1, 2) != end(1, 3) && end(1, 2) != end(2, 2));
    }
}
