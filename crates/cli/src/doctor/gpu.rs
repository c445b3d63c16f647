//! GPUs: what their own profilers are able to tell here, as the recorder's package finds out in a process of its own.

use super::Check;
use super::python::search_path;
use crate::python::{ask, last_line};
use serde::Deserialize;
use std::path::Path;
use std::process::Command;

/// What `stepscope._device_check` prints.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Answer {
    torch_cuda: Option<String>,
    torch_hip: Option<String>,
    kinds: Vec<Kind>,
}

/// A kind of device that this machine has a driver for.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Kind {
    /// `cuda`, `rocm`, `xpu`.
    kind: String,
    /// Why its profiler cannot be used.
    refused: Option<String>,
    library: String,
    version: String,
    interface: String,
    remarks: Vec<String>,
    devices: Vec<Device>,
    driver: Option<String>,
    /// Names that the driver gives without being used.
    models: Vec<String>,
    is_for_admins_only: Option<bool>,
    is_privileged: bool,
    nvml: bool,
    /// A library that CUDA loads into every process: another tool's.
    injected: String,
    proof: Option<Proof>,
}

/// What came of a trial of the profiler in another process.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Proof {
    /// `proven`, `refused`, `late`, `untried`.
    state: String,
    /// What was tried, or why it is not proven.
    why: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Device {
    name: Option<String>,
}

/// The checks of what `python` is able to record of GPUs with the recorder's `package`.
pub(super) fn checks(python: &Path, package: Option<&Path>) -> Vec<Check> {
    // Why there is no answer without either is said by other checks.
    let (Ok(answer), Some(package)) = (ask(python), package) else {
        return vec![Check::limited("GPU", "not known: it needs a Python and the recorder")];
    };
    let mut command = Command::new(python);
    command.args(["-m", "stepscope._device_check"]);
    if !answer.has_package {
        command.env("PYTHONPATH", search_path(package));
    }
    match last_line(&mut command) {
        Ok(line) => about(&line),
        Err(reason) => vec![Check::limited("GPU", format!("it could not be tried: {reason}"))],
    }
}

fn about(line: &str) -> Vec<Check> {
    let Ok(answer) = serde_json::from_str::<Answer>(line) else {
        return vec![Check::limited("GPU", format!("it could not be tried: {line}"))];
    };
    if answer.kinds.is_empty() {
        return vec![Check::good("GPU", "no GPU driver: only the CPU is recorded")];
    }
    let of_kind = |kind: &Kind| match kind.kind.as_str() {
        "cuda" => about_cuda(kind, answer.torch_cuda.as_deref()),
        "rocm" => vec![about_other("AMD GPU", "roctracer", kind, answer.torch_hip.is_some())],
        // Its driver is that of every display.
        _ if kind.refused.is_some() => vec![],
        _ => vec![about_other("Intel GPU", "PTI", kind, true)],
    };
    let checks: Vec<Check> = answer.kinds.iter().flat_map(of_kind).collect();
    if checks.is_empty() { about(r#"{"kinds": []}"#) } else { checks }
}

fn about_cuda(kind: &Kind, torch_cuda: Option<&str>) -> Vec<Check> {
    let driver = kind.driver.as_ref().map_or("driver of unknown version".to_string(), |v| format!("driver {v}"));
    let built = torch_cuda.map_or("PyTorch without CUDA".to_string(), |v| format!("PyTorch with CUDA {v}"));
    let says = format!("{}, {driver}, {built}", names(kind));
    let mut checks = vec![match torch_cuda {
        Some(_) => Check::good("GPU", says),
        None => Check::limited("GPU", says).hint("a PyTorch that was built for CUDA uses it"),
    }];
    checks.push(match &kind.refused {
        None => {
            let tried = kind.proof.as_ref().map_or("tried: kernels can be recorded".into(), |proof| {
                format!("proven: what ran was reported as it ran ({})", proof.why)
            });
            Check::good("CUPTI", format!("{}, {tried}", library(kind)))
        }
        Some(reason) if kind.proof.as_ref().is_some_and(|proof| matches!(proof.state.as_str(), "refused" | "late")) => {
            Check::limited("CUPTI", format!("tried, and not used: {reason}")).hint(
                "torch.profiler records the GPU instead; python -m stepscope._device_proof tries again, \
                 --gpu native uses it all the same",
            )
        }
        Some(reason) => {
            let check = Check::limited("CUPTI", format!("kernels cannot be recorded: {reason}"));
            let is_forbidden = kind.is_for_admins_only == Some(true) && !kind.is_privileged;
            match () {
                () if is_forbidden => check.hint(
                    "the driver lets only administrators profile: set NVreg_RestrictProfilingToAdminUsers=0 \
                     for the module nvidia, or give the job CAP_SYS_ADMIN",
                ),
                () if !kind.injected.is_empty() => check.hint(format!(
                    "CUDA_INJECTION64_PATH names another tool, and only one may listen: {}",
                    kind.injected
                )),
                () => check.hint("PyTorch's profiler is tried instead; --gpu torch says so from the start"),
            }
        }
    });
    checks.push(match kind.nvml {
        true => Check::good("NVML", "found: utilization, memory, clocks, power, temperature and PCIe link are sampled"),
        false => Check::limited("NVML", "libnvidia-ml.so.1 not found: utilization, clocks and power are not sampled"),
    });
    checks
}

fn about_other(name: &'static str, profiler: &str, kind: &Kind, has_torch: bool) -> Check {
    let doubt = "not verified on hardware";
    match &kind.refused {
        _ if !has_torch => Check::limited(name, format!("{}: this PyTorch is not built for it", names(kind))),
        Some(reason) => Check::limited(name, format!("cannot be recorded: {reason}")),
        None => Check::limited(name, format!("{}, {profiler} {}: {doubt}", names(kind), library(kind))),
    }
}

/// The devices, as their profiler or else the driver names them.
fn names(kind: &Kind) -> String {
    let devices = kind.devices.iter().filter_map(|device| device.name.as_deref());
    let names: Vec<&str> = devices.chain(kind.models.iter().map(String::as_str)).collect();
    let count = if kind.devices.is_empty() { kind.models.len() } else { kind.devices.len() };
    match (names.first(), count) {
        (None, _) => "a device without a name".into(),
        (Some(first), 0 | 1) => (*first).to_string(),
        (Some(first), count) => format!("{first} and {} more", count - 1),
    }
}

fn library(kind: &Kind) -> String {
    let interface = if kind.interface.is_empty() { String::new() } else { format!(" ({})", kind.interface) };
    let remarks: String = kind.remarks.iter().map(|remark| format!(", {remark}")).collect();
    format!("{}{interface}, {}{remarks}", kind.version, kind.library)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Health;

    fn said(line: &str) -> Vec<(&'static str, Health, String)> {
        about(line).into_iter().map(|check| (check.name, check.health, check.says)).collect()
    }

    #[test]
    fn without_a_driver_one_line_says_so() {
        let says = "no GPU driver: only the CPU is recorded".to_string();
        assert_eq!(said(r#"{"torch_cuda": "13.0", "kinds": []}"#), [("GPU", Health::Good, says.clone())]);
        // A display of Intel's has the same driver as its GPUs.
        let display = r#"{"kinds": [{"kind": "xpu", "refused": "libpti_view.so: not found"}]}"#;
        assert_eq!(said(display), [("GPU", Health::Good, says)]);
    }

    #[test]
    fn a_gpu_that_can_be_recorded() {
        let line = r#"{"torch_cuda": "13.0", "kinds": [{"kind": "cuda", "driver": "580.65.06", "nvml": true,
            "models": ["NVIDIA H200"], "devices": [{"name": "NVIDIA H200"}, {"name": "NVIDIA H200"}],
            "library": "/l/libcupti.so.13", "version": "13.0.1", "interface": "one subscriber", "remarks": []}]}"#;
        let expected = [
            ("GPU", Health::Good, "NVIDIA H200 and 1 more, driver 580.65.06, PyTorch with CUDA 13.0"),
            ("CUPTI", Health::Good, "13.0.1 (one subscriber), /l/libcupti.so.13, tried: kernels can be recorded"),
            ("NVML", Health::Good, "found: utilization, memory, clocks, power, temperature and PCIe link are sampled"),
        ];
        assert_eq!(said(line), expected.map(|(name, health, says)| (name, health, says.to_string())));
    }

    #[test]
    fn what_a_trial_showed_is_said() {
        let proven = r#"{"kinds": [{"kind": "cuda", "library": "l", "version": "13.0", "interface": "v1",
            "proof": {"state": "proven", "why": "24 pieces of work on NVIDIA H200, CUPTI 13.0", "at": 1.5}}]}"#;
        let says =
            "13.0 (v1), l, proven: what ran was reported as it ran (24 pieces of work on NVIDIA H200, CUPTI 13.0)";
        assert_eq!(said(proven)[1], ("CUPTI", Health::Good, says.to_string()));
        let line = |state| {
            format!(
                r#"{{"kinds": [{{"kind": "cuda", "refused": "it crashed",
                    "proof": {{"state": "{state}", "why": "it crashed"}}}}]}}"#
            )
        };
        for (state, says) in [
            ("refused", "tried, and not used: it crashed"),
            ("late", "tried, and not used: it crashed"),
            ("untried", "kernels cannot be recorded: it crashed"),
        ] {
            assert_eq!(said(&line(state))[1], ("CUPTI", Health::Limited, says.to_string()));
        }
        assert!(about(&line("late"))[1].hint.as_ref().unwrap().contains("python -m stepscope._device_proof"));
    }

    #[test]
    fn what_is_refused_says_what_to_do() {
        let hint = |members: &str| {
            let line = format!(r#"{{"kinds": [{{"kind": "cuda", "refused": "no", {members}}}]}}"#);
            let checks = about(&line);
            assert_eq!((checks[0].health, checks[1].health), (Health::Limited, Health::Limited));
            assert_eq!(checks[1].says, "kernels cannot be recorded: no");
            checks[1].hint.clone().unwrap()
        };
        assert!(hint(r#""is_for_admins_only": true"#).contains("NVreg_RestrictProfilingToAdminUsers=0"));
        assert!(hint(r#""is_for_admins_only": true, "is_privileged": true"#).contains("--gpu torch"));
        assert!(hint(r#""injected": "/opt/nsys.so""#).ends_with("/opt/nsys.so"));
    }

    #[test]
    fn other_vendors_are_not_verified() {
        let line = r#"{"torch_hip": "6.4", "kinds": [{"kind": "rocm", "library": "/l/libroctracer64.so.4",
            "version": "1.0"}, {"kind": "xpu", "library": "/l/libpti_view.so", "version": "0.12"}]}"#;
        let checks = said(line);
        assert!(
            checks
                .iter()
                .all(|(_, health, says)| *health == Health::Limited && says.ends_with("not verified on hardware"))
        );
        assert_eq!(checks.iter().map(|(name, ..)| *name).collect::<Vec<_>>(), ["AMD GPU", "Intel GPU"]);
        let other = r#"{"kinds": [{"kind": "rocm", "library": "l", "models": ["MI300X"]}]}"#;
        assert_eq!(said(other)[0].2, "MI300X: this PyTorch is not built for it");
    }

    #[test]
    fn an_answer_that_is_none_is_no_reason_to_stop() {
        assert_eq!(said("Segmentation fault")[0].1, Health::Limited);
    }
}
