//! Bars of block characters: a whole divided into classes, and a row of small columns.

use anstyle::Style;

/// One class of a bar. The glyph alone tells it from the others, so that a bar reads without colours too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// Its share of the whole.
    pub(crate) ratio: f64,
    /// What its cells are filled with.
    pub(crate) glyph: char,
    /// Its colour.
    pub(crate) style: Style,
}

/// A bar of exactly `width` cells (blanks when all shares are 0): each segment gets its share, rounded so that the cells
/// add up.
pub(crate) fn stacked_bar(segments: &[Segment], width: usize) -> String {
    let cells = cells_of(&segments.iter().map(|segment| segment.ratio).collect::<Vec<_>>(), width);
    if cells.iter().sum::<usize>() == 0 {
        return " ".repeat(width);
    }
    let filled = segments.iter().zip(cells).filter(|(_, cells)| *cells > 0);
    let drawn = filled.map(|(segment, cells)| {
        let style = segment.style;
        format!("{style}{}{style:#}", segment.glyph.to_string().repeat(cells))
    });
    drawn.collect()
}

/// The swatch of a segment, for a legend.
pub(crate) fn swatch(segment: &Segment) -> String {
    let style = segment.style;
    format!("{style}{}{style:#}", segment.glyph)
}

/// Whole cells by largest remainder; shares are taken relative to their sum.
fn cells_of(ratios: &[f64], width: usize) -> Vec<usize> {
    let sum: f64 = ratios.iter().sum();
    if sum <= 0.0 {
        return vec![0; ratios.len()];
    }
    let exact: Vec<f64> = ratios.iter().map(|ratio| ratio / sum * width as f64).collect();
    let mut cells: Vec<usize> = exact.iter().map(|cells| cells.floor() as usize).collect();
    let mut by_remainder: Vec<usize> = (0..ratios.len()).collect();
    by_remainder.sort_by(|a, b| exact[*b].fract().total_cmp(&exact[*a].fract()));
    let missing = width.saturating_sub(cells.iter().sum());
    by_remainder.into_iter().take(missing).for_each(|segment| cells[segment] += 1);
    cells
}

/// One column a value, its height relative to the largest; when there are more values than `width`, a column stands
/// for several and shows the largest of them.
pub(crate) fn columns(values: &[i64], width: usize) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let largest = values.iter().copied().max().unwrap_or(0).max(1);
    let a_column = values.len().div_ceil(width.max(1)).max(1);
    let tallest = values.chunks(a_column).map(|values| values.iter().copied().max().unwrap_or(0).max(0));
    let height = |value: i64| (value as f64 / largest as f64 * HEIGHTS.len() as f64).ceil() as usize;
    tallest.map(|value| HEIGHTS[height(value).clamp(1, HEIGHTS.len()) - 1]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(ratios: &[f64], width: usize) -> String {
        let glyphs = ['█', '▒', '·'];
        let segment = |(ratio, glyph): (&f64, char)| Segment { ratio: *ratio, glyph, style: Style::new() };
        stacked_bar(&ratios.iter().zip(glyphs).map(segment).collect::<Vec<_>>(), width)
    }

    #[test]
    fn cells_always_add_up_to_the_width() {
        assert_eq!(bar(&[0.5, 0.25, 0.25], 8), "████▒▒··");
        assert_eq!(bar(&[1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0], 10), "████▒▒▒···");
        assert_eq!(bar(&[0.999, 0.001, 0.0], 10), "██████████");
        assert_eq!(bar(&[0.0, 0.0, 0.0], 3), "   ");
    }

    #[test]
    fn a_column_shows_the_largest_of_what_it_stands_for() {
        assert_eq!(columns(&[8, 4, 1, 0], 10), "█▄▁▁");
        assert_eq!(columns(&[1, 8, 4, 4, 2], 3), "█▄▂");
        assert_eq!(columns(&[], 3), "");
    }
}
