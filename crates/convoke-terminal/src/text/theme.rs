//! Colours by meaning, from the sixteen of every terminal, and none where none are wanted. Nothing is said by
//! colour alone.

use ratatui::style::{Color, Modifier, Style};

/// What something means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tone {
    /// Nothing in particular.
    Plain,
    /// Of less interest.
    Dim,
    /// A heading, or something to be seen.
    Strong,
    /// What the person said.
    Person,
    /// What can be typed or pressed.
    Key,
    /// Good.
    Good,
    /// Bad.
    Bad,
    /// Wants attention.
    Warn,
    /// Under way.
    Busy,
    /// The row that is chosen.
    Chosen,
    /// Code, and parts of it.
    Code,
    /// A keyword of code.
    Keyword,
    /// A string of code.
    Literal,
    /// A comment of code.
    Comment,
    /// A name that is defined or called.
    Name,
    /// A line that was added.
    Added,
    /// A line that was removed.
    Removed,
}

/// Whether and how things are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// Whether colours are used at all; without them there is bold, dim, underlined and reversed.
    pub colour: bool,
}

impl Theme {
    /// The style of a tone.
    pub fn style(self, tone: Tone) -> Style {
        let (colour, modifier) = match tone {
            Tone::Plain | Tone::Code => (None, Modifier::empty()),
            Tone::Dim | Tone::Comment => (None, Modifier::DIM),
            Tone::Strong => (None, Modifier::BOLD),
            Tone::Person => (Some(Color::Cyan), Modifier::BOLD),
            Tone::Key => (Some(Color::Cyan), Modifier::UNDERLINED),
            Tone::Good | Tone::Literal | Tone::Added => (Some(Color::Green), Modifier::empty()),
            Tone::Bad => (Some(Color::Red), Modifier::BOLD),
            Tone::Warn => (Some(Color::Yellow), Modifier::BOLD),
            Tone::Busy => (Some(Color::Cyan), Modifier::empty()),
            Tone::Chosen => (None, Modifier::REVERSED),
            Tone::Keyword => (Some(Color::Magenta), Modifier::BOLD),
            Tone::Name => (Some(Color::Blue), Modifier::empty()),
            Tone::Removed => (Some(Color::Red), Modifier::empty()),
        };
        match (self.colour, colour) {
            // A colour says enough by itself, unless it is to be seen from afar.
            (true, Some(colour)) => {
                let modifier = modifier
                    & if matches!(tone, Tone::Person | Tone::Bad) {
                        Modifier::BOLD
                    } else {
                        Modifier::empty()
                    };
                Style::new().fg(colour).add_modifier(modifier)
            }
            _ => Style::new().add_modifier(modifier),
        }
    }

    /// Slanted, or underlined where only the plainest marks are wanted.
    pub(super) fn emphasis(self) -> Style {
        Style::new().add_modifier(if self.colour { Modifier::ITALIC } else { Modifier::UNDERLINED })
    }

    /// The style of code inside a sentence.
    pub(super) fn inline_code(self) -> Style {
        if self.colour { Style::new().fg(Color::Yellow) } else { Style::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Tone; 17] = [
        Tone::Plain,
        Tone::Dim,
        Tone::Strong,
        Tone::Person,
        Tone::Key,
        Tone::Good,
        Tone::Bad,
        Tone::Warn,
        Tone::Busy,
        Tone::Chosen,
        Tone::Code,
        Tone::Keyword,
        Tone::Literal,
        Tone::Comment,
        Tone::Name,
        Tone::Added,
        Tone::Removed,
    ];

    #[test]
    fn without_colour_there_is_only_bold_dim_underlined_and_reversed() {
        let few = Modifier::BOLD | Modifier::DIM | Modifier::UNDERLINED | Modifier::REVERSED;
        let plain = Theme { colour: false };
        for style in
            ALL.map(|tone| plain.style(tone)).into_iter().chain([plain.emphasis(), plain.inline_code()])
        {
            assert_eq!((style.fg, style.bg), (None, None), "{style:?}");
            assert!(few.contains(style.add_modifier), "{style:?}");
        }
    }

    #[test]
    fn with_colour_only_the_sixteen_are_used_and_no_background() {
        for tone in ALL {
            let style = Theme { colour: true }.style(tone);
            assert!(!matches!(style.fg, Some(Color::Rgb(..) | Color::Indexed(_))), "{tone:?}");
            assert_eq!(style.bg, None, "{tone:?}");
        }
        assert_eq!(
            Theme { colour: true }.style(Tone::Bad),
            Style::new().fg(Color::Red).add_modifier(Modifier::BOLD)
        );
    }
}
