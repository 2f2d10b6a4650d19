//! Markdown as rows of a terminal. Any text at any width comes out as rows that fit: what is not finished
//! yet, as while it is being written, is drawn as far as it goes. Nothing in it is obeyed or fetched.

mod table;
#[cfg(test)]
mod tests;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::flow::{broken_line, flow};
use super::highlight::highlight;
use super::measure::{cut, text_columns};
use super::shown;
use super::theme::{Theme, Tone};
use crate::stage::{harmless, pieces, row};
use table::Table;

/// A text in markdown as rows of at most this width. Everything in it is made harmless first.
pub(crate) fn markdown(text: &str, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let harmless = shown(text);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut page = Page::new(width.max(1), theme);
    for event in Parser::new_ext(&harmless, options) {
        page.take(event);
    }
    page.settle();
    page.rows
}

/// A text in markdown as lines of at most this width, for a terminal that is written to and not drawn on.
/// Everything in it is made harmless; without colours it has no mark of style at all.
pub fn rendered(text: &str, width: usize, colour: bool) -> String {
    printed(&markdown(text, width, Theme { colour }), colour)
}

/// Lines as the text that a terminal is sent that is written to and not drawn on: each on a row of its own,
/// with its style where that is wanted.
fn printed(lines: &[Line<'_>], styled: bool) -> String {
    let mut text = String::new();
    for line in lines {
        match styled {
            true => text.push_str(&String::from_utf8_lossy(&row(line, u16::MAX).bytes)),
            false => {
                let plain: String = pieces(line).map(|(piece, _)| harmless(piece)).collect();
                text.push_str(plain.trim_end());
            }
        }
        text.push('\n');
    }
    text
}

/// Rows under construction.
struct Page {
    width: usize,
    theme: Theme,
    rows: Vec<Line<'static>>,
    /// What stands before every row, from the outside in.
    prefixes: Vec<Prefix>,
    /// How many of them have been drawn once.
    begun: usize,
    /// The lists that are open, with the number of the next item.
    lists: Vec<Option<u64>>,
    /// The styles that are open, each with all those around it.
    styles: Vec<Style>,
    /// The sentence, cell or heading under construction.
    inline: Vec<Span<'static>>,
    /// The links that are open: where each begins and where it leads.
    links: Vec<(usize, String)>,
    /// The code under construction, behind what its fence says.
    code: Option<(String, String)>,
    table: Option<Table>,
    /// Whether a blank row is due before the next block.
    gap: bool,
}

/// What stands before rows: `first` before the first one, `rest`, which is as wide, before the others.
struct Prefix {
    first: Span<'static>,
    rest: Span<'static>,
}

impl Page {
    fn new(width: usize, theme: Theme) -> Self {
        Self {
            width,
            theme,
            rows: Vec::new(),
            prefixes: Vec::new(),
            begun: 0,
            lists: Vec::new(),
            styles: Vec::new(),
            inline: Vec::new(),
            links: Vec::new(),
            code: None,
            table: None,
            gap: false,
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.open(tag),
            Event::End(tag) => self.close(tag),
            Event::Text(text) | Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text),
            Event::Code(code) => {
                // Where there is no colour to tell it by, it keeps its marks.
                let code = if self.theme.colour { code.into_string() } else { format!("`{code}`") };
                let style = self.style().patch(self.theme.inline_code());
                self.say(&code, style);
            }
            Event::Html(html) | Event::InlineHtml(html) => match html.as_ref() {
                "<br>" | "<br/>" | "<br />" => self.text("\n"),
                html => self.text(html),
            },
            Event::FootnoteReference(name) => self.text(&format!("[^{name}]")),
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.text("\n"),
            Event::Rule => {
                self.separate();
                let rule = Span::styled("─".repeat(self.room()), self.theme.style(Tone::Dim));
                self.row(Line::from(rule));
                self.gap = true;
            }
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }),
        }
    }

    fn open(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock | Tag::FootnoteDefinition(_) => self.separate(),
            Tag::Heading { level, .. } => {
                self.separate();
                let strong = self.theme.style(Tone::Strong);
                self.styles.push(match level {
                    HeadingLevel::H1 => strong.add_modifier(Modifier::UNDERLINED),
                    _ => strong,
                });
            }
            Tag::BlockQuote(_) => {
                self.separate();
                let bar = Span::styled("│ ", self.theme.style(Tone::Dim));
                self.prefixes.push(Prefix { first: bar.clone(), rest: bar });
            }
            Tag::CodeBlock(kind) => {
                self.separate();
                let info = match kind {
                    CodeBlockKind::Fenced(info) => shown(&info).replace('\n', " "),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((info, String::new()));
            }
            Tag::List(first) => {
                self.separate();
                self.lists.push(first);
            }
            Tag::Item => {
                self.separate();
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let mark = format!("{number}. ");
                        *number = number.saturating_add(1);
                        mark
                    }
                    _ => "- ".to_owned(),
                };
                let rest = Span::raw(" ".repeat(text_columns(&mark)));
                self.prefixes.push(Prefix { first: Span::styled(mark, self.theme.style(Tone::Dim)), rest });
            }
            Tag::Table(alignments) => {
                self.separate();
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.begin_row();
                }
            }
            Tag::TableCell => self.inline.clear(),
            Tag::Emphasis => self.within(self.theme.emphasis()),
            Tag::Strong => self.within(self.theme.style(Tone::Strong)),
            Tag::Strikethrough => {
                self.within(Style::new().add_modifier(Modifier::DIM | Modifier::CROSSED_OUT))
            }
            Tag::Link { dest_url, .. } => self.link(&dest_url),
            Tag::Image { dest_url, .. } => {
                self.text("image: ");
                self.link(&dest_url);
            }
            Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn close(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock | TagEnd::FootnoteDefinition => self.end_block(),
            TagEnd::Heading(_) => {
                self.end_block();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.end_block();
                self.leave();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.settle();
                self.lists.pop();
                self.gap |= self.lists.is_empty();
            }
            TagEnd::Item => {
                self.settle();
                if self.begun < self.prefixes.len() {
                    // An item with nothing in it is still an item.
                    self.row(Line::default());
                }
                self.leave();
            }
            TagEnd::Table => {
                let rows = self.table.take().map(|table| table.lines(self.room(), self.theme));
                rows.into_iter().flatten().for_each(|row| self.row(row));
                self.gap = true;
            }
            TagEnd::TableHead | TagEnd::TableRow => {}
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn within(&mut self, style: Style) {
        self.styles.push(self.style().patch(style));
    }

    fn text(&mut self, text: &str) {
        match &mut self.code {
            Some((_, code)) => code.push_str(&shown(text)),
            None => self.say(text, self.style()),
        }
    }

    /// Markdown can spell any character as an entity, so what it says is made harmless again.
    fn say(&mut self, text: &str, style: Style) {
        self.inline.push(Span::styled(shown(text), style));
    }

    fn link(&mut self, url: &str) {
        self.links.push((self.inline.len(), shown(url).replace('\n', " ")));
        self.within(Style::new().add_modifier(Modifier::UNDERLINED));
    }

    /// A link says where it leads, unless that is what it says already.
    fn end_link(&mut self) {
        self.styles.pop();
        let Some((from, url)) = self.links.pop() else { return };
        let said: String = self.inline.iter().skip(from).map(|span| span.content.as_ref()).collect();
        let leads = url.strip_prefix("mailto:").unwrap_or(&url);
        if !url.is_empty() && said != url && said != leads {
            self.say(&format!(" ({url})"), self.theme.style(Tone::Dim));
        }
    }

    fn end_code(&mut self) {
        let Some((info, code)) = self.code.take() else { return };
        let indent = Span::raw("  ");
        self.prefixes.push(Prefix { first: indent.clone(), rest: indent });
        let room = self.room();
        if !info.trim().is_empty() {
            let label = cut(&format!("── {}", info.trim()), room);
            self.row(Line::from(Span::styled(label, self.theme.style(Tone::Dim))));
        }
        for line in highlight(&code, &info, self.theme) {
            broken_line(&line.spans, room).into_iter().for_each(|row| self.row(row));
        }
        self.leave();
        self.gap = true;
    }

    /// A blank row, if one is due.
    fn separate(&mut self) {
        self.settle();
        if std::mem::take(&mut self.gap) && !self.rows.is_empty() {
            let kept = self.kept();
            let mut spans: Vec<Span<'static>> =
                self.prefixes.iter().skip(kept).map(|p| p.rest.clone()).collect();
            while spans.last().is_some_and(|span| span.content.trim().is_empty()) {
                spans.pop();
            }
            if let Some(last) = spans.last_mut() {
                *last = Span::styled(last.content.trim_end().to_owned(), last.style);
            }
            self.rows.push(Line::from(spans));
        }
    }

    fn end_block(&mut self) {
        self.settle();
        self.gap = true;
    }

    /// Puts the sentence under construction into rows.
    fn settle(&mut self) {
        // A cell of a table is put into its place when the table is whole.
        if self.inline.is_empty() || self.table.is_some() {
            return;
        }
        let mut inline = std::mem::take(&mut self.inline);
        if let Some(last) = inline.last_mut() {
            *last = Span::styled(last.content.trim_end().to_owned(), last.style);
        }
        flow(&inline, self.room()).into_iter().for_each(|row| self.row(row));
    }

    /// Puts a row behind everything that stands before rows here.
    fn row(&mut self, row: Line<'static>) {
        let kept = self.kept();
        let mut spans = Vec::with_capacity(self.prefixes.len() - kept + row.spans.len());
        for (place, prefix) in self.prefixes.iter().enumerate().skip(kept) {
            spans.push(if place >= self.begun { prefix.first.clone() } else { prefix.rest.clone() });
        }
        self.begun = self.prefixes.len();
        spans.extend(row.spans);
        self.rows.push(Line::from(spans));
    }

    /// From which prefix on they are drawn: together they never take more than half of the width, and the
    /// innermost say the most.
    fn kept(&self) -> usize {
        let mut left = self.width / 2;
        let mut kept = self.prefixes.len();
        for prefix in self.prefixes.iter().rev() {
            match left.checked_sub(text_columns(&prefix.rest.content)) {
                Some(rest) => {
                    left = rest;
                    kept -= 1;
                }
                None => break,
            }
        }
        kept
    }

    /// The columns behind what stands before rows here.
    fn room(&self) -> usize {
        let taken: usize =
            self.prefixes.iter().skip(self.kept()).map(|p| text_columns(&p.rest.content)).sum();
        self.width - taken
    }

    fn leave(&mut self) {
        self.prefixes.pop();
        self.begun = self.begun.min(self.prefixes.len());
    }
}
