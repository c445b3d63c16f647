//! How an analysis is asked to answer: what a row stands for, whose definition, how fine.

macro_rules! choices {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// Every choice.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// How a person writes it.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The choice that a person writes so; `-` and `_` are the same.
            pub fn from_name(name: &str) -> Option<Self> {
                let name = name.replace('-', "_");
                Self::ALL.iter().copied().find(|choice| choice.as_str() == name)
            }
        }
    };
}

choices! {
    /// What a row stands for.
    GroupBy {
        /// All calls of one name.
        Name = "name",
        /// All calls of one name with equal input shapes.
        Shapes = "shapes",
        /// All calls of one name from one place in the program.
        Stack = "stack",
        /// All calls of one name inside one module.
        Module = "module",
        /// One line of the program.
        Line = "line",
        /// One file: of the program, or one that it reads or writes.
        File = "file",
        /// All calls of one category.
        Category = "category",
        /// All runs of one kernel.
        Kernel = "kernel",
        /// One name below the same callers.
        Callees = "callees",
        /// One name, and below it those who call it.
        Callers = "callers",
        /// One name below the same callers, of one thread.
        CalleesByThread = "callees_by_thread",
        /// One name of one thread, and below it those who call it.
        CallersByThread = "callers_by_thread",
        /// All launches by one call of the device's API.
        Call = "call",
        /// One launch.
        Launch = "launch",
        /// All launches of one kernel with equal launch properties.
        Properties = "properties",
        /// All calls of one process.
        Process = "process",
        /// All modules of one class at one depth.
        Class = "class",
        /// One device.
        Device = "device",
        /// One stream of a device.
        Stream = "stream",
        /// One rank.
        Rank = "rank",
        /// One step.
        Step = "step",
        /// One layer of software through which files are used.
        Layer = "layer",
        /// What calls on files do: read, write, open, or anything else.
        Action = "action",
    }
}

choices! {
    /// Another tool whose definition is to be used.
    Compat {
        /// The TensorBoard plugin of PyTorch's profiler.
        Tb = "tb",
        /// Holistic Trace Analysis.
        Hta = "hta",
        /// DFAnalyzer, which reads the traces of DFTracer.
        DfAnalyzer = "dfanalyzer",
        /// The comms logger of DeepSpeed.
        DeepSpeed = "deepspeed",
    }
}

/// What an analysis accepts beside rank, step and window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// What its rows can stand for. The first is the default.
    pub group_by: &'static [GroupBy],
    /// The tools whose definitions it knows beside its own.
    pub compat: &'static [Compat],
    /// True when it has a curve, whose buckets can be of any width.
    pub bucket: bool,
    /// True when its rows are a tree, of which only a part can be asked for.
    pub tree: bool,
}

impl Options {
    /// No options.
    pub const NONE: Self = Self { group_by: &[], compat: &[], bucket: false, tree: false };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_found_by_the_names_they_print() {
        GroupBy::ALL.iter().for_each(|choice| assert_eq!(GroupBy::from_name(choice.as_str()), Some(*choice)));
        assert_eq!(Compat::from_name("hta"), Some(Compat::Hta));
        assert_eq!(Compat::from_name("tensorboard"), None);
    }
}
