//! The curve as a page that opens offline: areas above each other in SVG, light and dark as the reader's system is.

use super::{CATEGORIES, points};
use std::fmt::Write;
use stepscope_base::units::{format_bytes, format_ns};
use stepscope_engine::MemoryChange;

const WIDTH: usize = 1_000;
const HEIGHT: f64 = 400.0;
/// Where the areas begin, and what stands below them.
const LEFT: usize = 90;
const BELOW: usize = 40;
/// Of each category, so that they are told apart on light and on dark ground.
const COLORS: [&str; CATEGORIES.len()] =
    ["#2a7f3e", "#d9a021", "#5b5f66", "#9673c9", "#d94a4a", "#3559c7", "#62a3e0", "#9aa0a6"];
const STYLE: &str = "body{font:14px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:1100px;padding:0 1rem}\
                     svg{width:100%;height:auto}text{font-size:12px;fill:currentColor}\
                     .grid{stroke:currentColor;opacity:.2}ul{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:0 1.5rem}\
                     i{display:inline-block;width:.8em;height:.8em;margin-right:.4em}";

/// The page of some changes of one memory.
pub(super) fn page(changes: &[MemoryChange]) -> String {
    let columns = columns(&points(changes, 1, 0));
    let span_ns = span_ns(changes);
    let total = |bytes: &[i64; CATEGORIES.len()]| bytes.iter().sum::<i64>();
    let peak = columns.iter().map(total).max().unwrap_or(0);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>Memory in use</title>\n<style>{STYLE}</style>\n\
         </head>\n<body>\n<h1>Memory in use</h1>\n<p>At most {} in {}.</p>\n",
        format_bytes(peak),
        format_ns(span_ns)
    );
    let _ = writeln!(page, "<svg viewBox=\"0 0 {} {}\" role=\"img\">", LEFT + WIDTH, HEIGHT as usize + BELOW);
    let mut below = vec![0_i64; columns.len()];
    for (category, color) in COLORS.iter().enumerate() {
        let above: Vec<i64> = columns.iter().zip(&below).map(|(bytes, below)| below + bytes[category]).collect();
        if above != below {
            let _ = writeln!(page, "<path fill=\"{color}\" d=\"{}\"/>", area(&below, &above, peak));
        }
        below = above;
    }
    axes(&mut page, peak, span_ns);
    page.push_str("</svg>\n<ul>\n");
    for (category, color) in COLORS.iter().enumerate() {
        let most = columns.iter().map(|bytes| bytes[category]).max().unwrap_or(0);
        if most != 0 {
            let (name, most) = (CATEGORIES[category].replace('_', " "), format_bytes(most));
            let _ = writeln!(page, "<li><i style=\"background:{color}\"></i>{name}, at most {most}</li>");
        }
    }
    page + "</ul>\n</body>\n</html>\n"
}

fn span_ns(changes: &[MemoryChange]) -> i64 {
    let mut times = changes.iter().filter_map(|change| change.time_ns);
    times.next().map_or(0, |first| times.next_back().map_or(0, |last| last - first))
}

/// What is shown at each place from left to right: of all moments that fall there the one with most in use.
fn columns(points: &[(i64, [i64; CATEGORIES.len()])]) -> Vec<[i64; CATEGORIES.len()]> {
    let (Some((first, _)), Some((last, _))) = (points.first(), points.last()) else { return Vec::new() };
    let span = i128::from(last - first).max(1);
    let place = |time: i64| (i128::from(time - first) * (WIDTH as i128 - 1) / span) as usize;
    let mut columns: Vec<[i64; CATEGORIES.len()]> = Vec::with_capacity(WIDTH);
    let mut held = [0; CATEGORIES.len()];
    for (time, bytes) in points {
        // Between two moments what was in use before holds.
        columns.resize(columns.len().max(place(*time)), held);
        match columns.get_mut(place(*time)) {
            Some(column) if column.iter().sum::<i64>() < bytes.iter().sum() => *column = *bytes,
            Some(_) => {}
            None => {
                let is_more = bytes.iter().sum::<i64>() >= held.iter().sum();
                columns.push(if is_more { *bytes } else { held });
            }
        }
        held = *bytes;
    }
    columns.resize(WIDTH, held);
    columns
}

/// An outline: along the upper edge to the right, and back along the lower one. Only where the height changes is a
/// corner.
fn area(below: &[i64], above: &[i64], peak: i64) -> String {
    let y = |bytes: i64| HEIGHT - HEIGHT * bytes as f64 / peak.max(1) as f64;
    let mut path = format!("M{LEFT} {:.1}", y(above[0]));
    for (at, bytes) in above.iter().enumerate().skip(1).filter(|(at, bytes)| above[at - 1] != **bytes) {
        let _ = write!(path, "H{}V{:.1}", LEFT + at, y(*bytes));
    }
    let _ = write!(path, "H{}V{:.1}", LEFT + WIDTH, y(below[below.len() - 1]));
    for at in (1..below.len()).rev().filter(|at| below[at - 1] != below[*at]) {
        let _ = write!(path, "H{}V{:.1}", LEFT + at, y(below[at - 1]));
    }
    let _ = write!(path, "H{LEFT}Z");
    path
}

fn axes(page: &mut String, peak: i64, span_ns: i64) {
    for part in 0..=4 {
        let y = HEIGHT - HEIGHT * f64::from(part) / 4.0;
        let bytes = format_bytes(peak / 4 * i64::from(part));
        let _ = writeln!(
            page,
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{}\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{bytes}</text>",
            LEFT + WIDTH,
            LEFT - 6,
            (y + 4.0).max(12.0)
        );
        let x = LEFT + WIDTH * part as usize / 4;
        let anchor = if part == 4 { "end" } else { "middle" };
        let (text_y, time) = (HEIGHT + 20.0, format_ns(span_ns / 4 * i64::from(part)));
        let _ = writeln!(page, "<text x=\"{x}\" y=\"{text_y}\" text-anchor=\"{anchor}\">{time}</text>");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(time: i64, unknown: i64) -> (i64, [i64; CATEGORIES.len()]) {
        let mut bytes = [0; CATEGORIES.len()];
        bytes[CATEGORIES.len() - 1] = unknown;
        (time, bytes)
    }

    fn unknown(columns: &[[i64; CATEGORIES.len()]]) -> Vec<i64> {
        columns.iter().map(|bytes| bytes[CATEGORIES.len() - 1]).collect()
    }

    #[test]
    fn a_peak_is_seen_however_short_it_is() {
        let columns = unknown(&columns(&[point(0, 5), point(500_000, 90), point(500_001, 7), point(1_000_000, 3)]));
        assert_eq!((columns.len(), columns[0], columns[498]), (WIDTH, 5, 5));
        assert_eq!((columns[499], columns[500], columns[998], columns[999]), (90, 7, 7, 7));
    }

    #[test]
    fn what_is_not_there_is_an_empty_page_and_one_moment_a_flat_area() {
        assert!(columns(&[]).is_empty());
        assert_eq!(unknown(&columns(&[point(7, 4)])), vec![4; WIDTH]);
        assert!(page(&[]).contains("At most 0 B in"));
    }

    #[test]
    fn an_area_has_a_corner_where_its_height_changes() {
        let found = area(&[0, 0, 50], &[100, 50, 50], 100);
        assert_eq!(found, "M90 0.0H91V200.0H1090V200.0H92V400.0H90Z");
    }
}
