//! What the labels of inference servers say of one pass of the model: which requests it computes together.

use stepscope_trace::{Iteration, IterationKind};

/// What the label `name` says of an iteration; `None` when it is no label of one.
pub(crate) fn iteration(name: &str) -> Option<Iteration> {
    of_vllm(name).or_else(|| of_sglang(name))
}

/// vLLM. Requests, and their tokens, that are read in and that are continued: `execute_context_2(512)_generation_7(7)`; in
/// detail, after the sum of tokens, `execute_519_context_2(sq512sk512sqsq131072sqsk131072)_generation_7(sq7sk900sqsq7sqsk900)`;
/// in other releases, requests that are new and that are not, `execute_new_2_cached_7`.
fn of_vllm(name: &str) -> Option<Iteration> {
    let rest = name.strip_prefix("execute_")?;
    if let Some((new, cached)) = rest.strip_prefix("new_").and_then(|rest| rest.split_once("_cached_")) {
        let requests = number(new)?.checked_add(number(cached)?);
        return Some(Iteration { kind: None, requests, tokens: None });
    }
    let (all, rest) = rest.split_once("context_")?;
    if !all.is_empty() {
        number(all.strip_suffix('_')?)?;
    }
    let (context, generation) = rest.split_once("_generation_")?;
    let (context, generation) = (requests_and_tokens(context)?, requests_and_tokens(generation)?);
    let kind = match (context.0, generation.0) {
        // Requests that have ended are forgotten; the model does not run.
        (0, 0) => return None,
        (_, 0) => IterationKind::Prefill,
        (0, _) => IterationKind::Decode,
        _ => IterationKind::Mixed,
    };
    let [requests, tokens] = [context.0.checked_add(generation.0), context.1.checked_add(generation.1)];
    Some(Iteration { kind: Some(kind), requests, tokens })
}

/// `2(512)` or `2(sq512sk512…)`.
fn requests_and_tokens(text: &str) -> Option<(i64, i64)> {
    let (requests, tokens) = text.strip_suffix(')')?.split_once('(')?;
    let tokens = match tokens.strip_prefix("sq") {
        Some(sums) => sums.split_once('s').map_or(sums, |(queries, _)| queries),
        None => tokens,
    };
    Some((number(requests)?, number(tokens)?))
}

/// SGLang. A pass of the model by its mode, such as `step[EXTEND bs=2 toks=4096]`, `step[DECODE bs=16]`,
/// `step[MIXED bs=2 c=1 g=1 c_sq=5 g_sq=1]`, `step[VERIFY bs=4]`, which is `step[TARGET_VERIFY bs=4]` in other releases. What
/// the draft's model does besides, `step[DRAFT bs=4]` or `step[DRAFT_EXTEND bs=4]`, is a part of an iteration.
fn of_sglang(name: &str) -> Option<Iteration> {
    let (mode, sizes) = name.strip_prefix("step[")?.strip_suffix(']')?.split_once(' ')?;
    let is_mode = mode.starts_with(|first: char| first.is_ascii_uppercase())
        && mode.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    if !is_mode || mode == "DRAFT" || mode.starts_with("DRAFT_") || !sizes.starts_with("bs=") {
        return None;
    }
    let size = |key: &str| {
        let mut sizes = sizes.split(' ').filter_map(|size| size.split_once('='));
        sizes.find(|(name, _)| *name == key).and_then(|(_, value)| number(value))
    };
    let kind = match mode {
        "EXTEND" => Some(IterationKind::Prefill),
        "DECODE" => Some(IterationKind::Decode),
        "MIXED" => Some(IterationKind::Mixed),
        "VERIFY" | "TARGET_VERIFY" => Some(IterationKind::Verify),
        _ => None,
    };
    let requests = size("bs")?;
    let of_both = || size("c_sq")?.checked_add(size("g_sq")?);
    // Each request is continued by one token.
    let of_decode = || (mode == "DECODE").then_some(requests);
    Some(Iteration { kind, requests: Some(requests), tokens: size("toks").or_else(of_both).or_else(of_decode) })
}

/// Digits alone: no sign.
fn number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_says_what_kind_of_iteration_it_is_and_how_much_it_computes() {
        let line = |name: &str| {
            let Iteration { kind, requests, tokens } = iteration(name)?;
            let number = |number: Option<i64>| number.map_or("-".into(), |number: i64| number.to_string());
            let kind = kind.map_or("-", IterationKind::as_str);
            Some(format!("{kind} {} {}", number(requests), number(tokens)))
        };
        for (name, expected) in [
            ("execute_context_2(512)_generation_7(7)", "mixed 9 519"),
            ("execute_context_2(512)_generation_0(0)", "prefill 2 512"),
            ("execute_context_0(0)_generation_7(7)", "decode 7 7"),
            ("execute_519_context_2(sq512sk512sqsq131072sqsk131072)_generation_7(sq7sk900sqsq7sqsk900)", "mixed 9 519"),
            ("execute_new_2_cached_7", "- 9 -"),
            ("step[DECODE bs=16]", "decode 16 16"),
            ("step[DECODE bs=2 g_sqsq=2 g_sqsk=30 g_sk=30]", "decode 2 2"),
            ("step[EXTEND bs=2 toks=4096]", "prefill 2 4096"),
            ("step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 g_sk=12]", "mixed 2 6"),
            ("step[TARGET_VERIFY bs=4]", "verify 4 -"),
            ("step[VERIFY bs=4]", "verify 4 -"),
            ("step[EXTEND bs=2 toks=28 c=2 c_sq=28 forward_id=7]", "prefill 2 28"),
            ("step[IDLE bs=0]", "- 0 -"),
        ] {
            assert_eq!(line(name).as_deref(), Some(expected), "{name}");
        }
    }

    #[test]
    fn other_labels_are_none() {
        for name in [
            "execute_context_0(0)_generation_0(0)",
            "execute_context_2(512)_generation_x(7)",
            "execute_context_2_generation_7",
            "execute_context_2(sq)_generation_7(7)",
            "execute_x_context_2(512)_generation_7(7)",
            "execute_context_2(+5)_generation_7(7)",
            "execute_context_99999999999999999999(5)_generation_7(7)",
            "execute_new_2_cached_",
            "execute_",
            "step[DRAFT_EXTEND bs=4]",
            "step[DRAFT bs=4]",
            "step[DRAFT_LOOP raw_bs=3 bs=4 topk=1]",
            "step[DECODE bs=]",
            "step[ bs=4]",
            "step[3]",
            "step[DECODE bs=16",
        ] {
            assert_eq!(iteration(name), None, "{name}");
        }
    }
}
