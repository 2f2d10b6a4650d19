//! Which key means what while the person writes. It is only a table; other keys are handled elsewhere.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a key means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// This character.
    Type(char),
    /// A line break.
    Break,
    /// Send, or take what is chosen.
    Enter,
    /// Delete the grapheme before the cursor.
    Backspace,
    /// Delete the grapheme behind it.
    Delete,
    /// The same; where nothing is written it is handled outside of the composer.
    DeleteOrLeave,
    Left,
    Right,
    Up,
    Down,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    TextStart,
    TextEnd,
    /// Cut what is not blank before the cursor.
    CutBlankWord,
    /// Cut the word before the cursor.
    CutWordLeft,
    /// Cut the word behind it.
    CutWordRight,
    /// Cut up to the start of the line.
    CutToStart,
    /// Cut up to its end.
    CutToEnd,
    /// Put back what was cut.
    PutBack,
    /// Search what was written before.
    Search,
    /// Complete, or choose the next.
    Tab,
    /// Choose the one before.
    BackTab,
    /// Leave what is open.
    Escape,
    /// Leaves a search; otherwise it is handled outside of the composer.
    Interrupt,
}

/// What this key means here, if anything.
pub(super) fn act(key: KeyEvent) -> Option<Act> {
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let shift = key.modifiers.contains(KeyModifiers::SHIFT);
    Some(match key.code {
        KeyCode::Enter if ctrl || alt || shift => Act::Break,
        KeyCode::Enter => Act::Enter,
        KeyCode::Backspace if ctrl || alt => Act::CutWordLeft,
        KeyCode::Backspace => Act::Backspace,
        KeyCode::Delete if ctrl || alt => Act::CutWordRight,
        KeyCode::Delete => Act::Delete,
        KeyCode::Left if ctrl || alt => Act::WordLeft,
        KeyCode::Left => Act::Left,
        KeyCode::Right if ctrl || alt => Act::WordRight,
        KeyCode::Right => Act::Right,
        KeyCode::Up if !ctrl && !alt => Act::Up,
        KeyCode::Down if !ctrl && !alt => Act::Down,
        KeyCode::Home if ctrl => Act::TextStart,
        KeyCode::Home => Act::LineStart,
        KeyCode::End if ctrl => Act::TextEnd,
        KeyCode::End => Act::LineEnd,
        KeyCode::BackTab => Act::BackTab,
        KeyCode::Tab if shift => Act::BackTab,
        KeyCode::Tab if !ctrl && !alt => Act::Tab,
        KeyCode::Esc => Act::Escape,
        KeyCode::Char(c) => match (ctrl, alt) {
            (false, false) => Act::Type(c),
            (true, false) => return with_ctrl(c),
            (false, true) => return with_alt(c),
            (true, true) => return None,
        },
        _ => return None,
    })
}

fn with_ctrl(c: char) -> Option<Act> {
    Some(match c.to_ascii_lowercase() {
        'a' => Act::LineStart,
        'b' => Act::Left,
        'c' => Act::Interrupt,
        'd' => Act::DeleteOrLeave,
        'e' => Act::LineEnd,
        'f' => Act::Right,
        'h' => Act::Backspace,
        'j' => Act::Break,
        'k' => Act::CutToEnd,
        'n' => Act::Down,
        'p' => Act::Up,
        'r' => Act::Search,
        'u' => Act::CutToStart,
        'w' => Act::CutBlankWord,
        'y' => Act::PutBack,
        _ => return None,
    })
}

fn with_alt(c: char) -> Option<Act> {
    Some(match c.to_ascii_lowercase() {
        'b' => Act::WordLeft,
        'd' => Act::CutWordRight,
        'f' => Act::WordRight,
        _ => return None,
    })
}
