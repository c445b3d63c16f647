//! A report as a few numbers, as trackers of experiments keep them.

use stepscope_engine::report::Report;

/// Numbers of a report, by name: times in ms, shares from 0 to 1. Those that the run cannot say are left out.
pub fn report_numbers(report: &Report) -> Vec<(String, f64)> {
    let ms = |ns: i64| ns as f64 / 1e6;
    let mut all: Vec<(String, f64)> = vec![("ranks".into(), report.run.ranks.len() as f64)];
    let mut add = |name: &str, value: f64| all.push((name.to_string(), value));
    if let Some(steps) = &report.steps {
        add("steps", steps.count as f64);
        add("step_mean_ms", ms(steps.mean_ns));
        add("step_min_ms", ms(steps.min_ns));
        add("step_max_ms", ms(steps.max_ns));
    }
    for part in report.step_breakdown.iter().flat_map(|breakdown| &breakdown.parts) {
        add(&format!("step_{}_ms", part.class), ms(part.ns));
    }
    let devices = report.devices.len() as f64;
    for class in ["compute", "exposed_comm", "exposed_copy", "idle"].into_iter().filter(|_| devices > 0.0) {
        let sum: f64 = report.devices.iter().map(|device| device.breakdown.ratio_of(class)).sum();
        add(&format!("device_{class}_ratio"), sum / devices);
    }
    add("operators_ms", ms(report.operators.total_ns));
    add("kernels_ms", ms(report.kernels.total_ns));
    for severity in ["severe", "suspect"] {
        let count = report.findings.iter().filter(|finding| finding.severity == severity).count();
        add(&format!("findings_{severity}"), count as f64);
    }
    if let Some(gain) = report.advice.iter().filter_map(|row| row.gain_ratio).reduce(f64::max) {
        add("largest_gain_ratio", gain);
    }
    all
}
