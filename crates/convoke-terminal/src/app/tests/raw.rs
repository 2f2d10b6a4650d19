//! Nothing from outside reaches the terminal raw: whatever stands in a text, no row and no cell holds a
//! character that a terminal obeys or that turns the direction of writing around.

use crossterm::event::{KeyCode, KeyModifiers};
use serde_json::json;

use convoke_kernel::{Piece, Role, ToolFinished, ToolResult};

use super::play::{LEAD, Player, facts, id};
use crate::screen_update::{About, Asking, Candidate, Facts, ScreenUpdate};

/// Every control character, and every mark that reorders or hides.
fn nasty() -> Vec<char> {
    let controls = ('\0'..='\u{9f}').filter(|c| c.is_control());
    let bidi = ['\u{61c}', '\u{200e}', '\u{200f}', '\u{feff}', '\u{2028}', '\u{2029}'];
    controls.chain(bidi).chain('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}').collect()
}

#[track_caller]
fn check_seen(what: &str, seen: &str) {
    let found = nasty().into_iter().find(|c| *c != '\n' && seen.contains(*c));
    assert_eq!(found, None, "{what}: {seen:?}");
}

/// Looks at every list of the fleet, and at one row of each.
fn fleet_seen(player: &mut Player, all: bool) {
    player.press(KeyCode::Char('o'), KeyModifiers::CONTROL);
    for pane in if all { "12345" } else { "5" }.chars() {
        player.press(KeyCode::Char(pane), KeyModifiers::NONE);
        for key in [KeyCode::Down, KeyCode::Enter, KeyCode::Char('s')] {
            player.press(key, KeyModifiers::NONE);
            let buffer = player.fleet();
            let cells: String = buffer.content.iter().map(|cell| cell.symbol()).collect();
            check_seen("the fleet", &cells);
            assert!(!cells.contains('\n'), "{cells:?}");
        }
    }
    player.press(KeyCode::Char('o'), KeyModifiers::CONTROL);
}

/// Plays a session in which every text is this one, and looks at everything there is to be seen.
fn play(text: &str, size: (u16, u16)) {
    let all = |name: &str| format!("{name} {text} {text}x");
    let mut player = Player::at(size);
    player.told(ScreenUpdate::Facts(Box::new(Facts {
        dir: all("dir"),
        model: all("model"),
        effort: Some(all("effort")),
        ..facts()
    })));
    player.told(ScreenUpdate::Working(true));
    player.starts(LEAD, Role::Lead, "lead");
    player.says(&all("said"));
    player.replies(
        LEAD,
        &format!("{}\n\n```{text}\n{text}\n```\n\n| {text} | b |\n|---|---|\n| {text} | c |", all("wrote")),
        &[("bash", json!({"command": all("command")})), (all("tool").as_str(), json!({"path": all("file")}))],
    );
    let result = ToolResult { exit_code: Some(1), ..ToolResult::done(all("output")) };
    player.hears(LEAD, ToolFinished { id: "t0".into(), result });
    player.look();
    player.starts(2, Role::Worker, &all("label"));
    player.opens(2, &all("prompt"));
    player.replies(2, &all("worker"), &[("bash", json!({"command": all("command")}))]);
    player.live(Piece::Text(all("live")));
    player.live(Piece::Tool { name: all("tool") });
    player.told(ScreenUpdate::Note(all("note")));
    player.told(ScreenUpdate::Refused(all("refused")));
    player.told(ScreenUpdate::Text { title: all("title"), text: all("text") });
    player.app.paste(&all("queued"));
    player.press(KeyCode::Enter, KeyModifiers::NONE);
    player.app.paste("@s");
    player.press(KeyCode::Tab, KeyModifiers::NONE);
    let candidate = |name: &str| Candidate { text: all(name), about: all("about") };
    player.told(ScreenUpdate::Offers {
        word: "@s".into(),
        candidates: vec![candidate("one"), candidate("two")],
    });
    let seen = |player: &mut Player, what: &str| {
        // Not the helper that reads it for people: every span of every row, as it would be drawn.
        let mut rows = player.app.printed(usize::from(player.size.0) - 1);
        rows.extend(player.app.region(player.size, player.now).lines);
        for row in &rows {
            let joined: String = row.spans.iter().map(|span| span.content.as_ref()).collect();
            check_seen(what, &joined);
            assert!(!joined.contains('\n'), "{what}: {joined:?}");
        }
    };
    seen(&mut player, "the session");
    player.app.paste(&format!("{text}{}", all("draft").repeat(20)));
    seen(&mut player, "what is written");
    for (number, about) in [About::Call { always: Some(all("always")) }, About::Workflow, About::Checkpoint]
        .into_iter()
        .enumerate()
    {
        let details = vec![all("detail")];
        let who = all("who");
        let why = all("why");
        for wanted in [format!("run: {text}{}", all("wanted")), all("wanted")] {
            let (id, about, agent) = (number as u64, about.clone(), Some(id(2)));
            let who = who.clone();
            let why = why.clone();
            let details = details.clone();
            player.told(ScreenUpdate::Asked(Box::new(Asking {
                id,
                agent,
                who,
                wanted,
                why,
                details,
                about,
            })));
            seen(&mut player, "a question");
            player.app.paste(&all("answer"));
            seen(&mut player, "an answer");
        }
        fleet_seen(&mut player, number == 0);
        player.told(ScreenUpdate::Withdrawn(number as u64));
    }
    seen(&mut player, "in the end");
}

#[test]
fn whatever_a_model_a_file_name_or_a_command_holds_nothing_is_obeyed() {
    let nasty = nasty();
    let sizes = [(80, 24), (40, 10)];
    for (chars, size) in nasty.chunks(4).zip(sizes.into_iter().cycle()) {
        let [apart, together] =
            ["a", ""].map(|between| chars.iter().map(|c| format!("{between}{c}")).collect::<String>());
        play(&apart, size);
        play(&together, size);
    }
}

#[test]
fn whole_sequences_are_not_obeyed_either() {
    let sequences = [
        "\u{1b}[2J\u{1b}[H",
        "\u{1b}]0;title\u{7}",
        "\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\",
        "\u{1b}P+q\u{1b}\\",
        "\u{9b}31m",
        "\u{9d}52;c;AAAA\u{9c}",
        "\u{1b}[201~\u{1b}[?1049h",
        "\r\n\u{1b}[A",
        "&#27;[2J",
        "&#x9b;2J",
        "\\\u{1b}",
    ];
    for (text, size) in sequences.into_iter().zip([(80, 24), (200, 60), (40, 10)].into_iter().cycle()) {
        play(text, size);
    }
}
