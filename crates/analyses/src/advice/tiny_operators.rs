//! A loop of the program repeats a few short operators, very many times in a step.

use super::facts::Facts;
use super::loops::{Loop, median};
use super::recompiles::has_compiled_code;
use super::step_operators::StepOp;
use super::words::quoted;
use super::{Advice, GainEstimate, Judged, Place, Rule};
use crate::module_contexts::ModuleContexts;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use stepscope_base::units::{format_count, format_ns, format_ratio};
use stepscope_base::{IntervalSet, Span, StringId};
use stepscope_trace::{SliceKind, Trace};

/// Operators of a step in such loops; fewer are no storm.
const LEAST_OPERATORS: i64 = 300;
/// Their median, and that of the names in which most of the time is; longer ones have enough to do.
pub(super) const SHORT_NS: i64 = 20_000;
/// Where one loop goes round as often as this in a step, longer ones are not enough work either: a product of 32 by 32 numbers
/// takes 100 µs where threads are woken for it.
const MANY_ROUNDS: usize = 300;
const SHORT_OF_MANY_NS: i64 = 200_000;
/// Share of the steps, and how often a loop goes round at least;
const WITH_MODULES: (f64, usize) = (0.10, 10);
/// and where no module is known, so that a deep model looks like a loop.
const WITHOUT_MODULES: (f64, usize) = (0.20, 100);
/// Operators of one round at most.
const LONGEST_ROUND: usize = 24;
/// Names that are said of a round.
const NAMED: usize = 4;

pub(super) const RULE: Rule = Rule {
    code: "host.tiny_operators",
    fault: "A loop over very many short operators",
    disproof: "Half as many rounds of the loop leave steps as long.",
    evidence: "operators",
    to_do: "Do in one operator what the loop does in many: put its tensors into one with another dimension \
            (`torch.stack`, `torch.bmm`, `torch.vmap`), use an operator that loops itself (`nn.LSTM`, `cumsum`, \
            `index_add`, `torch._foreach_…`), or let `torch.compile` fuse a round.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let found: Vec<(&Loop, &[StepOp])> = facts.step_operators()?.collect();
    let mut modules = None;
    let mut of_loop = |(of, operators): (&Loop, &[StepOp])| {
        // Where a device computes, `host.launch_bound` says whether the host is fast enough.
        let may_be = of.device.is_empty() && operators.len() as i64 >= LEAST_OPERATORS * of.steps.len() as i64;
        may_be.then(|| {
            of_loop(facts.trace, of, operators, modules.get_or_insert_with(|| ModuleContexts::of(facts.trace)))
        })?
    };
    Ok(found.into_iter().filter_map(&mut of_loop).collect())
}

/// What makes an operator the same as one before: its name, and its module and pass.
type Kind = (StringId, Option<(u32, bool)>);

/// Operators that are a loop: rounds of the same.
struct Rounds<'a> {
    operators: &'a [StepOp],
    /// Operators of a round.
    len: usize,
}

impl Rounds<'_> {
    fn count(&self) -> usize {
        self.operators.len() / self.len
    }

    fn span(&self) -> Span {
        Span::new(self.operators[0].span.start_ns, self.operators[self.operators.len() - 1].span.end_ns)
    }
}

fn of_loop(trace: &Trace, of: &Loop, operators: &[StepOp], modules: &ModuleContexts) -> Option<Advice> {
    let kind =
        |op: &StepOp| -> Kind { (op.name, modules.get(op.slice).map(|context| (context.module, context.is_backward))) };
    // The optimizer has a rule of its own, and batches are made elsewhere.
    let own = operators.chunk_by(|a, b| (a.step, a.inside.is_none()) == (b.step, b.inside.is_none()));
    let own = own.filter(|operators| operators[0].inside.is_none());
    // Of what lies in compiled code, only the outermost module is known.
    let has_modules = trace.slices.kind.contains(&SliceKind::Module) && !has_compiled_code(trace);
    let (threshold, least_rounds) = if has_modules { WITH_MODULES } else { WITHOUT_MODULES };
    let rounds: Vec<Rounds> = own.flat_map(|operators| rounds(operators, least_rounds, kind)).collect();
    let in_rounds = || rounds.iter().flat_map(|rounds| rounds.operators);
    let (count, steps) = (in_rounds().count() as i64, of.steps.len() as i64);
    let median_ns = median(in_rounds().map(|op| op.span.duration_ns()));
    let operators_of = |rounds: &Rounds| rounds.operators.len() as i64;
    let of_many: i64 = rounds.iter().filter(|rounds| rounds.count() >= MANY_ROUNDS).map(operators_of).sum();
    let short_ns = if 2 * of_many > count { SHORT_OF_MANY_NS } else { SHORT_NS };
    if count < LEAST_OPERATORS * steps || median_ns >= short_ns || are_mostly_long(in_rounds(), short_ns) {
        return None;
    }
    let spans = IntervalSet::from_unsorted(rounds.iter().map(Rounds::span)).intersect(&of.windows);
    let row = of.row(spans.total_ns()).filter(|row| row.measured_ratio.is_some_and(|ratio| ratio > threshold))?;
    // The loop in which most of the time is, forward if that is known: that is where it is written.
    let longest = rounds.iter().max_by_key(|rounds| {
        let is_backward = kind(&rounds.operators[0]).1.is_some_and(|(_, is_backward)| is_backward);
        (!is_backward, rounds.span().duration_ns(), Reverse(rounds.operators[0].slice))
    })?;
    let (first, module) = (&longest.operators[0], kind(&longest.operators[0]).1);
    let place = module.map_or_else(
        || "outside of modules".into(),
        |(module, _)| format!("in {}", quoted(&modules.path(trace, module))),
    );
    Some(Advice {
        says: format!(
            "{} operators a step (mean of {steps}), of {} each (median), are rounds of loops over the same few, the longest \
             {place}: {} rounds of {}. They take {} ({}) of {}.",
            format_count(of.per_step(count)),
            format_ns(median_ns),
            format_count(longest.count() as i64),
            names(trace, &longest.operators[..longest.len]),
            format_ns(spans.total_ns()),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns())
        ),
        count: Some(count),
        threshold_ratio: Some(threshold),
        gain: Some((spans.total_ns(), GainEstimate::Bound)),
        place: Some(Place::of(trace, first.slice)),
        time: spans,
        ..row
    })
}

/// Whether most of the time of operators is in those whose name takes so long by the median: one that is held up is not long.
fn are_mostly_long<'a>(operators: impl Iterator<Item = &'a StepOp>, short_ns: i64) -> bool {
    let mut by_name: FxHashMap<StringId, Vec<i64>> = FxHashMap::default();
    operators.for_each(|op| by_name.entry(op.name).or_default().push(op.span.duration_ns()));
    let typical = by_name.into_values().map(|durations| {
        let count = durations.len() as i64;
        let median_ns = median(durations);
        (median_ns >= short_ns, median_ns.saturating_mul(count))
    });
    let (long, short): (Vec<_>, Vec<_>) = typical.partition(|(is_long, _)| *is_long);
    let sum = |all: Vec<(bool, i64)>| all.into_iter().fold(0_i64, |sum, (_, ns)| sum.saturating_add(ns));
    sum(long) > sum(short)
}

/// The loops among operators, none over another: the shortest round that fits, from the first operator that it does.
fn rounds<'a>(operators: &'a [StepOp], least_rounds: usize, kind: impl Fn(&StepOp) -> Kind) -> Vec<Rounds<'a>> {
    // Compared often: a number each.
    let mut numbers: FxHashMap<Kind, u32> = FxHashMap::default();
    let numbered = |op: &StepOp| {
        let next = numbers.len() as u32;
        *numbers.entry(kind(op)).or_insert(next)
    };
    let kinds: Vec<u32> = operators.iter().map(numbered).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < kinds.len() {
        let fits = |len: usize| {
            let same = (at + len..kinds.len()).take_while(|next| kinds[*next] == kinds[*next - len]).count();
            (same + len >= least_rounds * len).then_some((len, (same + len) / len * len))
        };
        match (1..=LONGEST_ROUND).find_map(fits) {
            Some((len, all)) => {
                found.push(Rounds { operators: &operators[at..at + all], len });
                at += all;
            }
            None => at += 1,
        }
    }
    found
}

/// The first operators of a round.
fn names(trace: &Trace, round: &[StepOp]) -> String {
    let shown: Vec<String> = round.iter().take(NAMED).map(|op| quoted(trace.strings.get(op.name))).collect();
    let more = round.len().saturating_sub(NAMED);
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use crate::advice::loops::tests::repeated;
    use crate::advice::tests::{check, drawn_us};
    use stepscope_trace::{SliceRole, Trace};

    /// Five steps of a module that goes round so often.
    fn looping(count: usize, column_us: usize, round: &str) -> Trace {
        let ops = round.repeat(count);
        let module = "m".repeat(ops.len());
        let (ops, module) = (format!("{ops}{}", "L".repeat(200)), format!("{module}{}", ".".repeat(200)));
        drawn_us(&repeated(5, &[("module 1", &module), ("cpu 1", &ops)]), column_us)
    }

    #[test]
    fn a_loop_of_short_operators_is_said_with_its_place_and_its_round() {
        check(
            &looping(150, 10, "ab."),
            "host.tiny_operators",
            &[
                "22450 of 32500 bound high: 300 operators a step (mean of 5), of 10.0 µs each (median), are rounds of loops over the same few, the longest in `m`: 150 rounds of `a`, `b`. They take 22.4 ms (69.1 %) of 32.5 ms.",
            ],
        );
    }

    #[test]
    fn longer_operators_are_said_of_a_loop_of_very_many_rounds() {
        check(
            &looping(300, 100, "ab."),
            "host.tiny_operators",
            &[
                "449500 of 550000 bound high: 600 operators a step (mean of 5), of 100 µs each (median), are rounds of loops over the same few, the longest in `m`: 300 rounds of `a`, `b`. They take 450 ms (81.7 %) of 550 ms.",
            ],
        );
    }

    #[test]
    fn few_long_or_different_operators_are_no_such_loop() {
        check(&looping(149, 10, "ab."), "host.tiny_operators", &[]);
        check(&looping(150, 20, "ab."), "host.tiny_operators", &[]);
        check(&looping(299, 20, "ab."), "host.tiny_operators", &[]);
        check(&looping(300, 200, "ab."), "host.tiny_operators", &[]);
        // Most are short, but the time is in one that is not.
        check(&looping(300, 10, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabcdef"), "host.tiny_operators", &[]);
        check(&looping(9, 10, "abcdefghijklmnopqrstuvwxyzabdcefhgjilknmporqtsvuxwzy"), "host.tiny_operators", &[]);
    }

    #[test]
    fn the_layers_of_a_compiled_model_are_no_loop() {
        let mut trace = looping(99, 10, "abcd.");
        check(
            &trace,
            "host.tiny_operators",
            &[
                "24700 of 34750 bound high: 396 operators a step (mean of 5), of 10.0 µs each (median), are rounds of loops over the same few, the longest in `m`: 99 rounds of `a`, `b`, `c`, `d`. They take 24.7 ms (71.1 %) of 34.8 ms.",
            ],
        );
        trace.roles = vec![(trace.strings.intern("compiled"), SliceRole::CompiledRegion)];
        check(&trace, "host.tiny_operators", &[]);
    }

    #[test]
    fn without_modules_a_deep_model_is_no_loop() {
        let rounds = |count: usize, round: &str| drawn_us(&repeated(5, &[("cpu 1", &round.repeat(count))]), 10);
        check(&rounds(99, "abcd."), "host.tiny_operators", &[]);
        check(
            &rounds(100, "abcd."),
            "host.tiny_operators",
            &[
                "24950 of 25000 bound high: 400 operators a step (mean of 5), of 10.0 µs each (median), are rounds of loops over the same few, the longest outside of modules: 100 rounds of `a`, `b`, `c`, `d`. They take 24.9 ms (99.8 %) of 25.0 ms.",
            ],
        );
    }
}
