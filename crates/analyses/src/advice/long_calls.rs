//! A device waits while the host is busy with one thing for long: initialisation, compilation, allocation, logging.

use super::facts::Facts;
use super::pauses::Pauses;
use super::words::{counted, quoted};
use super::{Advice, Judged, Priority, Rule};
use crate::temporal_breakdown::TemporalBreakdown;
use stepscope_base::units::format_ns;

const THRESHOLD: f64 = 0.05;

pub(super) const RULE: Rule = Rule {
    code: "host.long_pauses",
    fault: "The host pauses for long",
    disproof: "Steps are as long without what the host does there.",
    evidence: "idle_gaps",
    to_do: "See in the timeline what the host does there. Initialisation, compilation and first allocations belong \
            before the loop, and before the profiler's `active` steps; checkpoints, evaluation and logging can run in a \
            thread of their own.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    Ok(facts.pauses()?.filter_map(|(device, pauses)| of_device(facts, device, pauses)).collect())
}

fn of_device(facts: &Facts, device: &TemporalBreakdown, pauses: &Pauses) -> Option<Advice> {
    let pause = &pauses.long;
    let row = facts.any_pause_row(device, pause, THRESHOLD, || {
        let inside = match pause.place(facts.trace).and_then(|place| place.slice) {
            Some(name) => format!("most of it in {}", quoted(&name)),
            None => "in which nothing was recorded of the host".into(),
        };
        let longest = match pause.count {
            1 => inside,
            _ => format!("the longest takes {}, {inside}", format_ns(pause.longest_ns)),
        };
        let (pauses, stop) = (counted(pause.count, "long pause"), if pause.count == 1 { "," } else { ";" });
        format!("in {pauses} of the host{stop} {longest}")
    })?;
    // What happens once or twice need not happen again in a longer job.
    let is_habit = pause.is_habit(&row);
    Some(if is_habit { row } else { Advice { gain: None, priority: Priority::Low, ..row } })
}

#[cfg(test)]
mod tests {
    use crate::Selection;
    use crate::advice::advice;
    use crate::advice::tests::{check, drawn_ms};

    #[test]
    fn pauses_of_ten_milliseconds_are_told_apart_from_the_pace_of_the_host() {
        let tail = "C".repeat(50);
        let drawing = |pause: usize| {
            let (idle, op) = (".".repeat(pause), "a".repeat(pause - 1));
            format!("rank 0 cpu 1 ..{op}\nrank 0 launch 1 C{idle}D\nrank 0 stream 7 .C{idle}{}", tail.replace('C', "D"))
        };
        check(
            &drawn_ms(&drawing(12)),
            "host.long_pauses",
            &[
                "- of 63000 - low: GPU 0 waits 12.0 ms (19.0 %) of 63.0 ms in 1 long pause of the host, most of it in `a`.",
            ],
        );
        // Three are a habit.
        let cells = |cells: &str| cells.repeat(3);
        let (op, launch, stream) = (
            cells(&format!("..{}", "a".repeat(11))),
            cells(&format!("C{}", ".".repeat(12))),
            cells(&format!(".C{}", ".".repeat(11))),
        );
        check(
            &drawn_ms(&format!("rank 0 cpu 1 {op}\nrank 0 launch 1 {launch}C\nrank 0 stream 7 {stream}.CCC")),
            "host.long_pauses",
            &[
                "36000 of 42000 bound high: GPU 0 waits 36.0 ms (85.7 %) of 42.0 ms in 3 long pauses of the host; the longest takes 12.0 ms, most of it in `a`.",
            ],
        );
        check(&drawn_ms(&drawing(12)), "host.launch_bound", &[]);
        check(&drawn_ms(&drawing(5)), "host.long_pauses", &[]);
    }

    #[test]
    fn the_place_of_a_pause_is_where_the_host_begins_with_what_it_is_in() {
        let (idle, tail) = (".".repeat(12), "D".repeat(50));
        let drawing =
            format!("rank 0 cpu 1 ..b{}\nrank 0 launch 1 C{idle}D\nrank 0 stream 7 .C{idle}{tail}", "a".repeat(10));
        let trace = drawn_ms(&drawing);
        let rows = advice(&trace, &Selection::default());
        let place = rows.iter().find(|row| row.rule.as_str() == "host.long_pauses").and_then(|row| row.place.as_ref());
        let place = place.expect("a pause");
        assert_eq!((place.slice.as_deref(), place.start_ns), (Some("a"), 3_000_000));
    }
}
