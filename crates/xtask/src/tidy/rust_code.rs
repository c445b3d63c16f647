//! Rust source reduced to its code.

/// `source` with comments and the text of literals blanked out; every line stays where it is.
pub(super) fn without_comments_and_strings(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let is_in_word = code.ends_with(|last: char| last.is_alphanumeric() || last == '_');
        let skipped = length_of_text(rest, is_in_word);
        if skipped == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            let (text, after) = rest.split_at(skipped);
            code.extend(text.chars().map(|character| if character == '\n' { '\n' } else { ' ' }));
            rest = after;
        }
    }
    code
}

/// Length in bytes of the comment or literal that `rest` starts with; 0 when it starts with code. An `r` inside a word
/// starts no literal.
fn length_of_text(rest: &str, is_in_word: bool) -> usize {
    let up_to = |end: &str, start: usize| rest[start..].find(end).map_or(rest.len(), |at| start + at + end.len());
    let hashes = rest.strip_prefix('r').map_or(0, |rest| rest.len() - rest.trim_start_matches('#').len());
    if rest.starts_with("//") {
        rest.find('\n').unwrap_or(rest.len())
    } else if rest.starts_with("/*") {
        up_to("*/", 2)
    } else if rest.starts_with('r') && rest[1 + hashes..].starts_with('"') && !is_in_word {
        up_to(&format!("\"{}", "#".repeat(hashes)), 2 + hashes)
    } else if rest.starts_with('"') {
        length_with_quotes(rest, '"')
    } else if rest.starts_with("'\\") || rest.chars().nth(2) == Some('\'') && rest.starts_with('\'') {
        // A character, not a lifetime.
        length_with_quotes(rest, '\'')
    } else {
        0
    }
}

/// Length of the literal that `rest` starts with, up to the next `quote` that no backslash escapes.
fn length_with_quotes(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (index, character) in rest.char_indices().skip(1) {
        if character == quote && !is_escaped {
            return index + character.len_utf8();
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> String {
        without_comments_and_strings(source).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_go() {
        assert_eq!(words("a // b\nc /* d\ne */ f"), "a c f");
    }

    #[test]
    fn literals_go() {
        assert_eq!(words(r####"a("b \" c", r#"d " e"#, b"f", 'g', '\'', '"') h"####), "a( , , b , , , ) h");
    }

    #[test]
    fn lifetimes_and_words_that_end_in_r_stay() {
        assert_eq!(words("fn f<'a>(x: &'a str) { var\"s\" }"), "fn f<'a>(x: &'a str) { var }");
    }

    #[test]
    fn lines_stay_where_they_are() {
        let source = "a\n\"b\nc\"\n// d\ne";
        assert_eq!(without_comments_and_strings(source).lines().count(), source.lines().count());
    }
}
