//! The machine: system, clock, disk, GPUs.

use super::Check;
use std::path::Path;
use stepscope_base::units::format_bytes;

/// Free space below which a run may not fit.
const LITTLE_SPACE: u64 = 2 << 30;

/// Operating system and processor.
pub(super) fn platform() -> Check {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    match (os, arch) {
        ("linux", "x86_64") => Check::good("system", format!("{os} {arch}")),
        _ => Check::missing("system", format!("{os} {arch}: recording needs Linux on x86-64"))
            .hint("traces that were recorded elsewhere can be read here"),
    }
}

/// The clock that the recorder reads for every event.
pub(super) fn clock() -> Check {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let flags =
        read("/proc/cpuinfo").and_then(|text| text.lines().find(|line| line.starts_with("flags")).map(str::to_string));
    let source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    clock_of(std::env::consts::ARCH, flags.as_deref(), source.as_deref().map(str::trim))
}

fn clock_of(arch: &str, cpu_flags: Option<&str>, source: Option<&str>) -> Check {
    let source_says = source.map_or(String::new(), |source| format!(", system clock source {source}"));
    if arch != "x86_64" {
        return Check::good("clock", format!("the processor's own counter{source_says}"));
    }
    let Some(flags) = cpu_flags else {
        return Check::limited(
            "clock",
            format!("the processor does not say whether its counter is steady{source_says}"),
        );
    };
    let has = |flag: &str| flags.split_whitespace().any(|word| word == flag);
    if has("constant_tsc") && has("nonstop_tsc") {
        return Check::good(
            "clock",
            format!("the processor's counter is steady (constant_tsc, nonstop_tsc){source_says}"),
        );
    }
    Check::limited("clock", format!("the processor's counter is not known to be steady{source_says}"))
        .hint("the system's clock is read instead: recording costs more")
}

/// Room where runs would be written.
pub(super) fn disk(folder: &Path) -> Check {
    match free_bytes(folder) {
        Ok(bytes) => {
            let says =
                format!("{} free in {}", format_bytes(i64::try_from(bytes).unwrap_or(i64::MAX)), folder.display());
            let hint = "a run takes some tens of bytes an event: name a roomier place with record -o";
            if bytes < LITTLE_SPACE { Check::limited("disk", says).hint(hint) } else { Check::good("disk", says) }
        }
        Err(reason) => Check::limited("disk", format!("free space in {} is not known: {reason}", folder.display())),
    }
}

#[cfg(unix)]
fn free_bytes(folder: &Path) -> Result<u64, String> {
    let stats = rustix::fs::statvfs(folder).map_err(|error| error.kind().to_string())?;
    Ok(stats.f_bavail.saturating_mul(stats.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_folder: &Path) -> Result<u64, String> {
    Err("it is not asked on this system".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Health;

    #[test]
    fn a_steady_counter_needs_both_flags() {
        let health = |flags| clock_of("x86_64", flags, Some("tsc")).health;
        assert_eq!(health(Some("flags : fpu constant_tsc nonstop_tsc")), Health::Good);
        assert_eq!(health(Some("flags : fpu constant_tsc")), Health::Limited);
        assert_eq!(health(None), Health::Limited);
        assert_eq!(clock_of("aarch64", None, None).health, Health::Good);
    }

    #[test]
    fn a_folder_that_is_not_there_has_no_known_space() {
        assert_eq!(disk(Path::new("/not/there")).health, Health::Limited);
    }
}
