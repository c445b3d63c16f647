//! Places in a program's source, as call stacks name them.

/// One place in a call stack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Frame<'a> {
    /// The file; none for functions that are built in.
    pub file: Option<&'a str>,
    /// The line in it.
    pub line: Option<u32>,
    /// The function.
    pub function: &'a str,
}

impl<'a> Frame<'a> {
    /// The frame that is written `file.py(12): function`, as PyTorch writes it; anything else is a function's name.
    pub fn parse(text: &'a str) -> Self {
        let place = text.split_once("): ").and_then(|(place, function)| {
            let (file, line) = place.rsplit_once('(')?;
            Some(Self { file: Some(file), line: Some(line.parse().ok()?), function })
        });
        place.unwrap_or(Self { file: None, line: None, function: text })
    }

    /// The frames of a stack in which they stand one after another with `;` between.
    pub fn of_stack(stack: &'a str) -> impl Iterator<Item = Self> {
        stack.split(';').filter(|text| !text.is_empty()).map(Self::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_files_lines_and_functions() {
        let summary = |text| {
            let frame = Frame::parse(text);
            (frame.file, frame.line, frame.function)
        };
        assert_eq!(summary("/a (b)/train.py(12): step"), (Some("/a (b)/train.py"), Some(12), "step"));
        assert_eq!(summary("<built-in method add>"), (None, None, "<built-in method add>"));
        assert_eq!(summary("x(y): z"), (None, None, "x(y): z"), "no line");
        assert_eq!(summary("a.py(3): f(1): g"), (Some("a.py"), Some(3), "f(1): g"));
        assert_eq!(Frame::of_stack(";a.py(3): f;;g;").map(|frame| frame.function).collect::<String>(), "fg");
    }
}
