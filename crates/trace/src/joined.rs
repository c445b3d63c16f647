//! What a trace was put together from.

/// How files became one trace; its files are divided by where their rank is from.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Joined {
    /// Files that say their rank.
    pub ranks_stated: u32,
    /// Files whose rank their names say.
    pub ranks_named: u32,
    /// Files that have the rank of a file about the same process.
    pub ranks_of_processes: u32,
    /// Files of which the rank is not known.
    pub ranks_unknown: u32,
    /// Ranks of the job without a file, ascending.
    pub missing_ranks: Vec<u32>,
    /// What put the clocks together.
    pub clocks: ClockSource,
}

impl Joined {
    /// Number of files.
    pub fn files(&self) -> u32 {
        self.ranks_stated + self.ranks_named + self.ranks_of_processes + self.ranks_unknown
    }
}

/// What put the clocks of files together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ClockSource {
    /// The times that files state.
    #[default]
    Stated,
    /// Collectives that ranks leave together.
    Collectives,
    /// Nothing: all clocks begin together.
    BegunTogether,
}

impl ClockSource {
    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stated => "stated",
            Self::Collectives => "collectives",
            Self::BegunTogether => "begun_together",
        }
    }
}
