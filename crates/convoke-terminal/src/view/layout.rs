//! Where everything stands at which size. Arithmetic alone: it draws nothing and knows nothing of what is
//! shown.

use ratatui::layout::{Constraint, Layout, Rect};

/// The parts of every picture. A part for which there is no room has no height.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) header: Rect,
    pub(super) tabs: Rect,
    pub(super) body: Rect,
    pub(super) footer: Rect,
}

/// The boxes of a large screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Boxes {
    pub(super) list: Rect,
    /// Everything to the right of the list.
    pub(super) right: Rect,
    /// The upper part of it.
    pub(super) page: Rect,
    pub(super) tasks: Rect,
    pub(super) mail: Rect,
    pub(super) findings: Rect,
}

/// The parts of a screen. What is being written comes before everything else.
pub(super) fn parts(area: Rect, is_writing: bool) -> Parts {
    let footer = u16::from(area.height >= 2 || is_writing);
    let header = u16::from(area.height >= 3);
    let tabs = u16::from(area.height >= 14 && area.width >= 60);
    let rows = [
        Constraint::Length(header),
        Constraint::Length(tabs),
        Constraint::Fill(1),
        Constraint::Length(footer),
    ];
    let [header, tabs, body, footer] = Layout::vertical(rows).areas(area);
    Parts { header, tabs, body, footer }
}

/// The boxes, if there is room for them.
pub(super) fn boxes(body: Rect) -> Option<Boxes> {
    if body.width < 140 || body.height < 30 {
        return None;
    }
    let [list, right] = Layout::horizontal([Constraint::Percentage(42), Constraint::Fill(1)]).areas(body);
    let [page, below] = Layout::vertical([Constraint::Percentage(62), Constraint::Fill(1)]).areas(right);
    let [tasks, mail, findings] = Layout::horizontal([Constraint::Fill(1); 3]).areas(below);
    Some(Boxes { list, right, page, tasks, mail, findings })
}

/// The questions above and the chosen one below, with a row between them.
pub(super) fn question(area: Rect, questions: usize) -> (Rect, Rect, Rect) {
    let most = (area.height / 3).max(1);
    let list = u16::try_from(questions.max(1)).unwrap_or(u16::MAX).min(most);
    let between = u16::from(area.height > list + 1);
    let rows = [Constraint::Length(list), Constraint::Length(between), Constraint::Fill(1)];
    let [list, between, below] = Layout::vertical(rows).areas(area);
    (list, between, below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(width: u16, height: u16, expected: [u16; 4], is_wide: bool) {
        let parts = parts(Rect::new(0, 0, width, height), false);
        let heights = [parts.header, parts.tabs, parts.body, parts.footer].map(|part| part.height);
        assert_eq!((heights, boxes(parts.body).is_some()), (expected, is_wide), "at {width}x{height}");
    }

    #[test]
    fn a_part_is_left_out_where_there_is_no_room_for_it_and_the_list_comes_last() {
        check(80, 24, [1, 1, 21, 1], false);
        check(200, 60, [1, 1, 57, 1], true);
        check(40, 10, [1, 0, 8, 1], false);
        check(40, 3, [1, 0, 1, 1], false);
        check(40, 2, [0, 0, 1, 1], false);
        check(1, 1, [0, 0, 1, 0], false);
        check(200, 24, [1, 1, 21, 1], false);
    }

    #[test]
    fn what_is_being_written_has_a_row_even_if_there_is_only_one() {
        assert_eq!(parts(Rect::new(0, 0, 40, 1), true).footer.height, 1);
    }
}
