//! The description of a collective as a capture stores it: lines `key=value`.

/// Writes a description. Line breaks in values become spaces.
pub fn describe<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let lines: Vec<String> =
        pairs.into_iter().map(|(key, value)| format!("{key}={}", value.replace(['\n', '\r'], " "))).collect();
    lines.join("\n")
}

/// The keys and values of a description, in its order.
pub fn pairs(description: &str) -> impl Iterator<Item = (&str, &str)> {
    description.lines().filter_map(|line| line.split_once('='))
}

/// The value of `key`.
pub fn value<'a>(description: &'a str, key: &str) -> Option<&'a str> {
    pairs(description).find(|(found, _)| *found == key).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_described_is_found() {
        let text = describe([("name", "all=reduce".to_string()), ("group_description", "a\nb".to_string())]);
        assert_eq!(pairs(&text).collect::<Vec<_>>(), [("name", "all=reduce"), ("group_description", "a b")]);
        assert_eq!((value(&text, "group_description"), value(&text, "group")), (Some("a b"), None));
    }
}
