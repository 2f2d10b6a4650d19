//! What markdown looks like, and that nothing in it gets out of its rows.

use ratatui::style::Color;

use super::*;

const PLAIN: Theme = Theme { colour: false };
const COLOUR: Theme = Theme { colour: true };

fn rows(text: &str, width: usize) -> Vec<String> {
    markdown(text, width, PLAIN).iter().map(Line::to_string).collect()
}

fn check(text: &str, width: usize, expected: &[&str]) {
    assert_eq!(rows(text, width), expected, "{text:?} at {width}");
}

#[test]
fn headings_paragraphs_and_rules_stand_apart() {
    check(
        "# One\ntwo three\nfour\n\n---\nfive",
        9,
        &["One", "", "two three", "four", "", "─────────", "", "five"],
    );
    check("one  \ntwo\\\nthree", 20, &["one", "two", "three"]);
    check("", 20, &[]);
}

#[test]
fn lists_are_nested_and_their_rows_hang() {
    let text = "Text:\n- one two three\n  - deeper\n- [x] done\n- [ ] open\n\nend";
    check(
        text,
        12,
        &["Text:", "", "- one two", "  three", "  - deeper", "- [x] done", "- [ ] open", "", "end"],
    );
    check("9. a\n10. b\n    - c", 20, &["9. a", "10. b", "    - c"]);
    check("- a\n\n- b", 20, &["- a", "", "- b"]);
    check("-\n- b", 20, &["- ", "- b"]);
}

#[test]
fn quotes_have_a_bar_and_can_hold_anything() {
    check(
        "> one\n>\n> - two\n>> three\n\nfour",
        20,
        &["│ one", "│", "│ - two", "│", "│ │ three", "", "four"],
    );
}

#[test]
fn code_is_indented_and_named_and_keeps_its_blanks() {
    check(
        "```rust\nfn a() {\n    b();\n}\n```\nend",
        20,
        &["  ── rust", "  fn a() {", "      b();", "  }", "", "end"],
    );
    check("    indented\n", 20, &["  indented"]);
    check("```\nabcdefghij\n```", 8, &["  abcdef", "  ghij"]);
}

#[test]
fn what_is_not_finished_yet_is_drawn_as_far_as_it_goes() {
    check("```rust\nlet a", 20, &["  ── rust", "  let a"]);
    check("```rust", 20, &["  ── rust"]);
    check("so **far", 20, &["so **far"]);
    check("| a | b |\n| - |", 20, &["| a | b | | - |"]);
    check("| a | b |\n|---|---|\n| c", 20, &["a │ b", "──┼──", "c │ "]);
}

#[test]
fn words_are_marked_and_links_say_where_they_lead() {
    check("a `b` *c* **d** <br>e", 40, &["a `b` c d", "e"]);
    check("[text](http://x.y) <http://x.y> <a@b.c>", 60, &["text (http://x.y) http://x.y a@b.c"]);
    check("![a cat](cat.png)", 60, &["image: a cat (cat.png)"]);
    check("<b>bold</b>", 60, &["<b>bold</b>"]);
    check("<div>\n  a\n</div>\n\nb", 60, &["<div>", "  a", "</div>", "", "b"]);
    let line = &markdown("`a` **b**", 40, COLOUR)[0];
    assert_eq!(line.to_string(), "a b");
    assert_eq!(line.spans[0].style.fg, Some(Color::Yellow));
    assert!(line.spans[2].style.add_modifier.contains(Modifier::BOLD));
}

#[test]
fn tables_fit_their_columns_and_fall_apart_only_where_they_must() {
    let table = "| name | what it does |\n|:--|--:|\n| a | one two three |\n| 漢字 | x |";
    check(
        table,
        40,
        &["name │  what it does", "─────┼──────────────", "a    │ one two three", "漢字 │             x"],
    );
    check(
        table,
        16,
        &[
            "name │   what it",
            "     │      does",
            "─────┼──────────",
            "a    │   one two",
            "     │     three",
            "漢字 │         x",
        ],
    );
    check(
        table,
        12,
        &["name: a", "what it", "  does: one", "  two three", "───", "name: 漢字", "what it", "  does: x"],
    );
}

#[test]
fn nothing_is_obeyed_however_it_is_spelled() {
    let nasty = "\u{1b}[2J &#27;[31m &#x9b;1m &#x202e;abc `\u{7}` [\u{1b}]8;;](http://&#27;) \
        &#13;x\n\n```&#27;\n\u{1b}[0m&#27;\n```\n<b \u{1b}>\n";
    for width in [1, 10, 80] {
        for row in rows(nasty, width) {
            assert!(!row.contains(|c: char| c.is_control() || c == '\u{202e}'), "{row:?}");
        }
    }
    assert_eq!(rows("a&#27;[2J", 80), ["a␛[2J"]);
}

#[test]
fn no_row_is_wider_than_it_may_be() {
    let corpus = [
        include_str!("../markdown.rs"),
        "# 見出し\n\n漢字漢字漢字漢字。漢字 mixed with words 👨\u{200d}👩\u{200d}👧 and 🇩🇪🇫🇷, e\u{301}e\u{301}\n\n> > > deep \
            quote with words\n",
        "- a\n  - b\n    - c\n      - d\n        - e\n          1000000. a long item with words and \
            verylongwordsthatmustbebrokensomewhere\n",
        "| 漢字 | b | c | d | e |\n|--|:-:|--:|--|--|\n| words in a cell | 👨\u{200d}👩\u{200d}👧 | 1 | `code` | \
            **b** *i* [x](http://example.invalid/y) |\n|||\n",
        "```python\ndef f(x):\n    return '漢字漢字漢字' + \"👍🏽👍🏽\"  # comment that goes on and \
            on\n```\n~~~\nunclosed",
        "&nbsp;&#0;\u{0}<script>\n</script>\n\n***\n1) x\n\n   y\n\n\tcode\n\n[ref]: http://x\n[ref] ![]() \
            [](x)",
    ];
    // A small generator of our own, so that a failure can be had again.
    let mut state = 7_u64;
    let mut random = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    for text in corpus {
        let widths: Vec<usize> =
            (0..12).map(|_| 10 + random(190) as usize).chain([1, 2, 3, 5, 10, 200]).collect();
        // The whole text, and as it stands somewhere in the middle of being written.
        let half =
            text.char_indices().nth(random(text.chars().count() as u64) as usize).map_or(0, |(at, _)| at);
        for (width, text) in widths.into_iter().flat_map(|width| [(width, text), (width, &text[..half])]) {
            // Colours take long and change no width; without a language there are none.
            let text = text.replace("```python", "```");
            for row in markdown(&text, width, COLOUR) {
                let wide = text_columns(&row.to_string());
                assert!(wide <= width, "{wide} > {width}: {:?}", row.to_string());
            }
        }
    }
}

#[test]
fn any_nesting_at_any_width_is_drawn() {
    for mark in [">", "- ", "* ", "1. ", "[", "**", "`", "| ", "<", "  - a\n    "] {
        for width in [1, 2, 7, 80] {
            let text = format!("{}x", mark.repeat(400));
            let widest = markdown(&text, width, PLAIN).iter().map(|row| text_columns(&row.to_string())).max();
            assert!(widest.unwrap_or(0) <= width, "{mark:?} at {width}");
        }
    }
}

#[test]
fn for_a_terminal_that_is_only_written_to_it_is_lines_with_no_word_broken_and_nothing_obeyed() {
    let text = "# Head\n\nSome *words* about `src/main.rs` and \u{1b}[2Jmore of them, &#27;[2J too.\n\n- one \
        item of several words\n";
    for width in 12..100 {
        let plain = rendered(text, width, false);
        assert!(!plain.contains(|c: char| c.is_control() && c != '\n'), "{plain:?}");
        assert!(plain.lines().all(|line| text_columns(line) <= width), "{plain}");
        let words: Vec<&str> = plain.split_whitespace().collect();
        for word in ["Some", "words", "about", "several", "item"] {
            assert!(words.contains(&word), "{word} at {width}: {plain}");
        }
    }
    let coloured = rendered(text, 80, true);
    assert!(
        coloured.contains("\u{1b}[0;1;4mHead\u{1b}[0m\n") && !coloured.contains("\u{1b}[2J"),
        "{coloured:?}"
    );
}
