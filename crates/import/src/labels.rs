//! What a label (`record_function`) says by its name: the one place that knows the names frameworks give to steps,
//! waits for data and optimizers.

use stepscope_trace::DataParallelism;

/// What a label stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Label {
    /// The profiler's label of the step with this number.
    Step(i64),
    /// The training loop waits for its next batch.
    DataLoader,
    /// `Optimizer.step` or `Optimizer.zero_grad`.
    Optimizer,
    /// A server's turn: the requests that it computes together.
    Iteration,
    /// A label of the user's or of a library.
    Annotation,
}

/// How the model runs whose forward pass the label `name` is.
pub(crate) fn data_parallelism(name: &str) -> Option<DataParallelism> {
    match name {
        "DataParallel.forward" => Some(DataParallelism::OneProcess),
        "DistributedDataParallel.forward" => Some(DataParallelism::Distributed),
        _ => None,
    }
}

/// What the label `name` stands for.
pub(crate) fn label_kind(name: &str) -> Label {
    if let Some(number) = name.strip_prefix("ProfilerStep#").and_then(|digits| digits.parse().ok()) {
        return Label::Step(number);
    }
    let is_next_batch = name.starts_with("enumerate(DataLoader)#") && name.ends_with(".__next__");
    if is_next_batch || name.starts_with("enumerate(DataPipe)#") {
        return Label::DataLoader;
    }
    if name.starts_with("Optimizer.step#") || name.starts_with("Optimizer.zero_grad#") {
        return Label::Optimizer;
    }
    if is_iteration_of_vllm(name) || is_iteration_of_sglang(name) {
        return Label::Iteration;
    }
    Label::Annotation
}

/// Requests, and their tokens, that are read in and that are continued: `execute_context_2(512)_generation_7(7)`; in detail,
/// after the sum of tokens, `execute_519_context_2(sq512sk512sqsq131072sqsk131072)_generation_7(sq7sk900sqsq7sqsk900)`;
/// before release 0.14, requests that are new and that are not, `execute_new_2_cached_7`.
fn is_iteration_of_vllm(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("execute_") else { return false };
    if let Some((new, cached)) = rest.strip_prefix("new_").and_then(|rest| rest.split_once("_cached_")) {
        return is_number(new) && is_number(cached);
    }
    let (all, rest) = rest.split_once("context_").unwrap_or(("", ""));
    let is_all = |text: &str| text.is_empty() || text.strip_suffix('_').is_some_and(is_number);
    let is_count = |text: &str| {
        let counts = text.strip_suffix(')').and_then(|text| text.split_once('('));
        let is_of_tokens = |tokens: &str| is_number(tokens) || tokens.strip_prefix("sq").is_some_and(begins_with_digit);
        counts.is_some_and(|(requests, tokens)| is_number(requests) && is_of_tokens(tokens))
    };
    let parts = rest.split_once("_generation_");
    is_all(all) && parts.is_some_and(|(context, generation)| is_count(context) && is_count(generation))
}

/// A pass of the model by its mode, such as `step[EXTEND bs=2 toks=4096]`, `step[DECODE bs=16]`, `step[MIXED bs=2 c=1 g=1]`,
/// `step[TARGET_VERIFY bs=4]`. What the draft's model does besides, `step[DRAFT_EXTEND bs=4]`, is a part of an iteration.
fn is_iteration_of_sglang(name: &str) -> bool {
    let inside = name.strip_prefix("step[").and_then(|rest| rest.strip_suffix(']'));
    let Some((mode, size)) = inside.and_then(|inside| inside.split_once(" bs=")) else { return false };
    let is_mode = mode.starts_with(|first: char| first.is_ascii_uppercase())
        && mode.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    is_mode && !mode.starts_with("DRAFT_") && size.split(' ').next().is_some_and(is_number)
}

fn is_number(text: &str) -> bool {
    begins_with_digit(text) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn begins_with_digit(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_frameworks_give() {
        assert_eq!(label_kind("ProfilerStep#12"), Label::Step(12));
        assert_eq!(label_kind("ProfilerStep*"), Label::Annotation);
        assert_eq!(label_kind("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"), Label::DataLoader);
        assert_eq!(label_kind("enumerate(DataPipe)#Mapper"), Label::DataLoader);
        assert_eq!(label_kind("Optimizer.step#AdamW.step"), Label::Optimizer);
        assert_eq!(label_kind("Optimizer.zero_grad#SGD.zero_grad"), Label::Optimizer);
        assert_eq!(label_kind("forward"), Label::Annotation);
        assert_eq!(data_parallelism("DataParallel.forward"), Some(DataParallelism::OneProcess));
        assert_eq!(data_parallelism("DistributedDataParallel.forward"), Some(DataParallelism::Distributed));
        assert_eq!(data_parallelism("DistributedDataParallel"), None);
    }

    #[test]
    fn iterations_of_servers() {
        for name in [
            "execute_context_2(512)_generation_7(7)",
            "execute_519_context_2(sq512sk512sqsq131072sqsk131072)_generation_7(sq7sk900sqsq7sqsk900)",
            "execute_new_2_cached_7",
            "step[DECODE bs=16]",
            "step[DECODE bs=2 g_sqsq=2 g_sqsk=30 g_sk=30]",
            "step[EXTEND bs=2 toks=4096]",
            "step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 g_sk=12 g_sqsq=1 g_sqsk=12]",
            "step[TARGET_VERIFY bs=4]",
        ] {
            assert_eq!(label_kind(name), Label::Iteration, "{name}");
        }
        for name in [
            "execute_context_2(512)_generation_x(7)",
            "execute_context_2_generation_7",
            "execute_context_2(sq)_generation_7(7)",
            "execute_x_context_2(512)_generation_7(7)",
            "execute_new_2_cached_",
            "execute_",
            "step[DRAFT_EXTEND bs=4]",
            "step[DECODE bs=]",
            "step[ bs=4]",
            "step[3]",
            "step[DECODE bs=16",
        ] {
            assert_eq!(label_kind(name), Label::Annotation, "{name}");
        }
    }
}
