//! The rules that judge each rank by itself.

use super::*;

/// Those that judge each rank by itself, in the order in which time is theirs.
pub(super) const RULES: &[Rule] = &[
    // What happens there is named.
    collections::RULE,
    checkpoints::RULE,
    slow_folder::RULE,
    slow_file::RULE,
    open_storm::RULE,
    random_reads::RULE,
    metadata_calls::RULE,
    small_io::RULE,
    page_faults::RULE,
    main_process_batches::RULE,
    loader_workers::FEW,
    loader_workers::MANY,
    dataloader::RULE,
    blocking_output::RULE,
    unoverlapped_input::RULE,
    exposed_io::RULE,
    recomputed::RULE,
    optimizer_loop::RULE,
    tiny_operators::RULE,
    double_precision::RULE,
    copied::RULE,
    // The line is.
    cpu_contention::RULE,
    host_lines::SLEEP,
    host_lines::LOCK,
    host_lines::INTERPRETER,
    host_lines::OTHERS,
    host_lines::PYTHON,
    // The part of the step is.
    step_tail::RULE,
    step_slower::RULE,
    // What the device waits for is.
    host_sync::RULE,
    queue_wait::RULE,
    short_kernels::RULE,
    launch_bound::RULE,
    long_calls::RULE,
    host_code::RULE,
    // These compete with none.
    data_parallel::RULE,
    comm_backend::RULE,
    comm_overlap::RULE,
    exposed_comm::RULE,
    low_utilization::RULE,
    profiler_overhead::RULE,
    pageable_copies::RULE,
    tensor_cores::RULE,
    unfused::RULE,
    few_blocks::RULE,
    gemm_shapes::RULE,
    wasted_time::RULE,
    first_step::RULE,
    memory_near_full::RULE,
    memory_fragmentation::RULE,
    memory_growth::RULE,
];
