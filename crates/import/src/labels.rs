//! What a label (`record_function`) says by its name: the one place that knows the names frameworks give to steps,
//! waits for data and optimizers.

use crate::server_iterations;
use stepscope_trace::{DataParallelism, Iteration};

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
    Iteration(Iteration),
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
    server_iterations::iteration(name).map_or(Label::Annotation, Label::Iteration)
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
}
