//! Changes that are mechanical, as diffs: who follows such advice has to find the place, and nothing to decide.
//!
//! `…` is what the program has there. A rule that is not here asks for thought: which file, which layout, what grows.

/// By the code of the rule.
const DIFFS: [(&str, &str); 29] = [
    (
        "attention.unfused",
        "-weights = torch.softmax(query @ key.transpose(-2, -1) / query.size(-1) ** 0.5, -1)
-output = weights @ value
+output = F.scaled_dot_product_attention(query, key, value)",
    ),
    (
        "comm.backend",
        "-torch.distributed.init_process_group(\"gloo\", …)
+torch.distributed.init_process_group(\"nccl\", …)",
    ),
    (
        "comm.late_gathers",
        "-FullyShardedDataParallel(model, …)
+FullyShardedDataParallel(model, …, forward_prefetch=True, limit_all_gathers=False,
+                         backward_prefetch=BackwardPrefetch.BACKWARD_PRE)",
    ),
    (
        "comm.no_sync",
        " for at, batch in enumerate(batches):
-    loss_of(model(batch)).backward()
+    is_last = at + 1 == len(batches)
+    with contextlib.nullcontext() if is_last else model.no_sync():
+        loss_of(model(batch)).backward()
 optimizer.step()",
    ),
    (
        "comm.small_buckets",
        "-DistributedDataParallel(model, …, bucket_cap_mb=…)
+DistributedDataParallel(model, …)",
    ),
    (
        "comm.unused_parameters",
        "-DistributedDataParallel(model, …, find_unused_parameters=True)
+DistributedDataParallel(model, …)",
    ),
    (
        "compile.recompiles",
        "-torch.compile(model, …)
+torch.compile(model, …, dynamic=True)",
    ),
    (
        "compute.autotune",
        "-torch.backends.cudnn.benchmark = True
+torch.backends.cudnn.benchmark = False",
    ),
    (
        "compute.convolution_bias",
        "-torch.nn.Conv2d(…)
+torch.nn.Conv2d(…, bias=False)",
    ),
    (
        "compute.double_precision",
        "-torch.as_tensor(array)
+torch.as_tensor(array, dtype=torch.float32)",
    ),
    (
        "compute.layouts",
        "+model = model.to(memory_format=torch.channels_last)
 for images, targets in batches:
+    images = images.to(memory_format=torch.channels_last)",
    ),
    (
        "compute.recomputed",
        "-x = torch.utils.checkpoint.checkpoint(block, x, …)
+x = block(x)",
    ),
    ("compute.tensor_cores", "+torch.set_float32_matmul_precision(\"high\")"),
    ("compute.unfused", "+model = torch.compile(model)"),
    (
        "copy.pageable",
        "-DataLoader(dataset, …)
+DataLoader(dataset, …, pin_memory=True)
-batch = batch.to(device)
+batch = batch.to(device, non_blocking=True)",
    ),
    (
        "copy.repeated",
        "-torch.arange(…).to(x.device)
+torch.arange(…, device=x.device)",
    ),
    ("debug.anomaly_mode", "-torch.autograd.set_detect_anomaly(True)"),
    (
        "eval.no_grad",
        " model.eval()
-output = model(batch)
+with torch.inference_mode():
+    output = model(batch)",
    ),
    (
        "host.gc",
        "+gc.collect()
+gc.freeze()
 for batch in loader:",
    ),
    (
        "host.sync",
        "-total += loss.item()
+total += loss.detach()",
    ),
    (
        "input.few_workers",
        "-DataLoader(dataset, …, num_workers=…)
+DataLoader(dataset, …, num_workers=…, persistent_workers=True)  # more of them",
    ),
    (
        "input.main_process",
        "-DataLoader(dataset, …)
+DataLoader(dataset, …, num_workers=…, persistent_workers=True)",
    ),
    (
        "input.restarted_workers",
        "-DataLoader(dataset, …, num_workers=…)
+DataLoader(dataset, …, num_workers=…, persistent_workers=True)",
    ),
    (
        "io.checkpoints",
        "-torch.save(…)
+if step % 1_000 == 0:
+    torch.save(…)",
    ),
    ("launch.graph_possible", "+model = torch.compile(model, mode=\"reduce-overhead\")"),
    ("memory.device_allocations", "-torch.cuda.empty_cache()"),
    (
        "optimizer.for_loop",
        "-torch.optim.…(model.parameters(), …)
+torch.optim.…(model.parameters(), …, fused=True)",
    ),
    (
        "optimizer.zero_grad",
        "-optimizer.zero_grad(set_to_none=False)
+optimizer.zero_grad()",
    ),
    (
        "rank.gc",
        "+gc.disable()
 for step, batch in enumerate(loader):
+    if step % 100 == 0:
+        gc.collect()",
    ),
];

/// The change that the rule called `code` asks for, where it is mechanical.
pub(super) fn diff(code: &str) -> Option<&'static str> {
    DIFFS.iter().find(|(known, _)| *known == code).map(|(_, diff)| *diff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::RuleCode;

    #[test]
    fn each_diff_is_of_a_rule_and_changes_something() {
        assert!(DIFFS.is_sorted_by(|(a, _), (b, _)| a < b), "in order, each once");
        for (code, diff) in DIFFS {
            assert!(RuleCode::told(code).is_some(), "{code} is no rule");
            assert!(diff.lines().all(|line| line.starts_with(['+', '-', ' ']) && line.trim_end() == line), "{code}");
            assert!(diff.contains(['+', '-']), "{code} changes nothing");
            // A terminal of 100 columns shows it beside the text of a report, and a verdict in 2 KB.
            assert!(diff.lines().all(|line| line.chars().count() <= 88) && diff.len() <= 300, "{code} is long");
        }
    }

    #[test]
    fn a_rule_that_takes_thought_has_none() {
        assert_eq!(diff("step.tail"), None);
        assert_eq!(diff("debug.anomaly_mode"), Some("-torch.autograd.set_detect_anomaly(True)"));
    }
}
