//! What is known of a kernel beside its place in time, in activity records and in the trace.

use stepscope_capture::device::Kernel;
use stepscope_trace::DeviceEvent;

/// As a trace of another tool says it.
pub(crate) fn kernel_of(event: &DeviceEvent, name: Option<u32>) -> Kernel {
    Kernel {
        name,
        grid: event.grid,
        block: event.block,
        registers: event.registers,
        static_shared_bytes: None,
        dynamic_shared_bytes: event.shared_bytes.and_then(|bytes| u32::try_from(bytes).ok()),
    }
}

/// As the trace has it; `sm_count` is of the device.
pub(crate) fn with_kernel(event: DeviceEvent, kernel: &Kernel, sm_count: Option<u32>) -> DeviceEvent {
    let blocks = kernel.grid.map(|grid| grid.iter().map(|blocks| f64::from(*blocks)).product::<f64>());
    let sms = sm_count.filter(|sms| *sms > 0);
    DeviceEvent {
        grid: kernel.grid,
        block: kernel.block,
        registers: kernel.registers,
        shared_bytes: kernel.shared_bytes(),
        blocks_per_sm: blocks.zip(sms).map(|(blocks, sms)| (blocks / f64::from(sms)) as f32),
        ..event
    }
}
