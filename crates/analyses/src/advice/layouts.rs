//! Kernels bring tensors into another layout, which the convolution between them wants.

use super::facts::{Facts, gpu, share_of_device};
use super::kernel_work::KernelWork;
use super::words::{counted, quoted};
use super::{Advice, GainEstimate, Judged, Rule};
use crate::temporal_breakdown::TemporalBreakdown;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_trace::Trace;

/// Share of the device's time.
const THRESHOLD: f64 = 0.04;

pub(super) const RULE: Rule = Rule {
    code: "compute.layouts",
    fault: "Tensors are brought into another layout",
    disproof: "Steps are as long with `channels_last`.",
    evidence: "kernels",
    to_do: "Keep images in the layout that the kernels of convolutions want, channels last: \
            `model.to(memory_format=torch.channels_last)`, and the same for each batch. An operator that does not keep it, such \
            as a `view` of one's own, brings the copies back.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    Ok(facts.kernels()?.filter_map(|(device, work)| of_device(facts.trace, device, work)).collect())
}

fn of_device(trace: &Trace, device: &TemporalBreakdown, work: &KernelWork) -> Option<Advice> {
    // Kernels that run at the same time are a sum that can exceed the window.
    let ns = work.relaid.total_ns.min(device.compute_ns);
    let row = share_of_device(device, ns, THRESHOLD).filter(|row| work.relaid.is_habit(row))?;
    let (name, of_name_ns) = work.relaid.most(trace)?;
    Some(Advice {
        says: format!(
            "{} spends {} ({}) of {} in {} that bring tensors from one layout into another, {} of it in {}.",
            gpu(device.device),
            format_ns(ns),
            format_ratio(row.measured_ratio?),
            format_ns(device.span_ns),
            counted(work.relaid.count, "kernel"),
            format_ns(of_name_ns),
            quoted(name)
        ),
        count: Some(work.relaid.count),
        gain: Some((ns, GainEstimate::Bound)),
        place: work.relaid.place(trace),
        time: work.relaid.saved(ns),
        ..row
    })
}

/// Whether a kernel only brings images from channels first to channels last, or back: those of cuDNN and of MIOpen.
pub(super) fn changes_layout(kernel: &str) -> bool {
    ["nchwToNhwc", "nhwcToNchw", "nchwToFoldedNhwc", "nhwcToFoldedNhwc", "nhwcAddPadding", "batched_transpose_"]
        .iter()
        .any(|part| kernel.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::tests::{check, drawn_us, rename};

    #[test]
    fn kernels_between_layouts_are_said_with_their_operator() {
        let drawing = "rank 0 cpu 1    aaa.......aaa.......aaa.......
                       rank 0 launch 1 l.........l.........l.........
                       rank 0 stream 7 TCCCCCCC..TCCCCCCC..TCCCCCCC..";
        let trace = drawn_us(drawing, 1_000);
        check(&trace, "compute.layouts", &[]);
        let kernel = "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>(float const*)";
        check(
            &rename(trace, "T", kernel),
            "compute.layouts",
            &[
                "3000 of 28000 bound high: GPU 0 spends 3.00 ms (10.7 %) of 28.0 ms in 3 kernels that bring tensors from one \
                 layout into another, 3.00 ms of it in `void cudnn::ops::nchwToNhwcKernel<float,…2>(float const*)`.",
            ],
        );
    }

    #[test]
    fn names_of_kernels_say_that_they_change_a_layout() {
        for (kernel, expected) in [
            ("void nhwcToNchwKernel<float, float, float, true, false, (cudnnKernelDataType_t)0>(int, int)", true),
            ("batched_transpose_64x16_pack_4x1_ediv_2x1_half", true),
            ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16", false),
            ("void at::native::transpose_readWrite_alignment_kernel_", false),
        ] {
            assert_eq!(changes_layout(kernel), expected, "{kernel}");
        }
    }
}
