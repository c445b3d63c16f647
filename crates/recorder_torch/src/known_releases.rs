//! Layouts found by running the probe on released PyTorch wheels for Linux x86-64.

use crate::Layout;

const fn layout(sequence_number: usize, scope: usize, forward_thread: usize, inputs: usize) -> Layout {
    Layout { sequence_number, scope, thread: scope - 8, forward_thread, inputs }
}

/// (major, minor) and the layout; `docs/torch-versions.md` has the runs.
const KNOWN: &[((u32, u32), Layout)] = &[
    ((2, 5), layout(176, 96, 280, 184)),
    ((2, 8), layout(200, 96, 304, 208)),
    ((2, 11), layout(200, 96, 304, 208)),
    ((2, 13), layout(200, 96, 304, 208)),
];

/// The layout that `release` (`2.13.0+cu130`) is known to have; `None` for releases nobody looked at.
pub(crate) fn known_layout(release: &str) -> Option<Layout> {
    let mut numbers = release.split('.').map(|number| number.parse().ok());
    let version = (numbers.next()??, numbers.next()??);
    KNOWN.iter().find(|(known, _)| *known == version).map(|(_, layout)| *layout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_known_by_major_and_minor() {
        assert_eq!(known_layout("2.13.0+cu130").map(|layout| layout.inputs), Some(208));
        assert_eq!(known_layout("2.5.1"), Some(layout(176, 96, 280, 184)));
        assert_eq!(known_layout("2.14.0"), None);
        assert_eq!(known_layout("main"), None);
    }
}
