//! Styles by meaning. They reach a person only on a terminal that wants them: output goes through `anstream`.

use anstyle::{AnsiColor, Style};

/// Titles of sections and columns.
pub(crate) const HEADING: Style = Style::new().bold();
/// What matters less.
pub(crate) const DIM: Style = Style::new().dimmed();
/// The word `error`, and severe findings.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// Suspect findings.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default();
/// The word `hint`, and commands to type.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();
/// What is good.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();

/// Computation on a device.
pub(crate) const COMPUTE: Style = AnsiColor::Blue.on_default();
/// Communication between ranks.
pub(crate) const COMMUNICATION: Style = AnsiColor::Magenta.on_default();
/// Copies and fills.
pub(crate) const COPY: Style = AnsiColor::Cyan.on_default();
/// Calls of the device's API.
pub(crate) const RUNTIME: Style = AnsiColor::Yellow.on_default();
/// Waiting for data.
pub(crate) const INPUT: Style = AnsiColor::Red.on_default();
/// Operators on the CPU.
pub(crate) const OPERATOR: Style = AnsiColor::Green.on_default();
/// Nothing of all that.
pub(crate) const IDLE: Style = Style::new().dimmed();
