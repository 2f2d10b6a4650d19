//! Mail from outside: a person sends it and may look at it, and only its reader takes it.

use serde_json::json;

use super::TeamPlace;

#[tokio::test(flavor = "multi_thread")]
async fn w12_looking_at_mail_takes_none_of_it() {
    let team = TeamPlace::new().await;
    let sent = team.ends(0, &["mail", "send", "alice", "Look at the lexer first.", "--urgent"]);
    let id = sent.out.trim_end().to_owned();
    assert!(
        id.starts_with("m_") && sent.err.contains("it is read when one does"),
        "{}{}",
        sent.out,
        sent.err
    );
    team.ends(0, &["mail", "send", "lead", "And you wait."]);
    for _ in 0..3 {
        let all = team.json(&["mail", "list"]);
        let told: Vec<_> = all["letters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| (it["to"].clone(), it["state"].clone()))
            .collect();
        assert_eq!(told, [(json!("lead"), json!("waiting")), (json!("alice"), json!("waiting"))]);
    }
    let letter = &team.json(&["mail", "list", "alice", "--all"])["letters"][0];
    let said =
        ["letter", "from", "to", "kind", "text", "urgent", "read_at"].map(|member| letter[member].clone());
    let expected = [
        json!(id),
        json!("person"),
        json!("alice"),
        json!("message"),
        json!("Look at the lexer first."),
        json!(true),
        json!(null),
    ];
    assert_eq!(said, expected);
    let text = team.ends(0, &["mail", "list", "alice"]).out;
    assert!(text.contains("waiting, urgent") && text.contains("Look at the lexer first."), "{text}");
    assert_eq!(team.json(&["team", "show", "alice"])["member"]["unread"], 1);
    let none = team.ends(0, &["mail", "list", "bob"]);
    assert_eq!((none.out.as_str(), none.err.contains("no letter waits for bob")), ("", true), "{}", none.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_to_nobody_is_refused_with_the_names_there_are() {
    let team = TeamPlace::new().await;
    for name in ["alcie", "carol", "../alice", "coder"] {
        team.refused(1, &["mail", "send", name, "Hello."], "alice");
    }
    team.refused(1, &["mail", "list", "carol"], "alice");
    team.refused(2, &["mail", "send", "alice", "  "], "the letter is empty");
    let long = "x".repeat(33_000);
    team.refused(1, &["mail", "send", "alice", &long], "33000 bytes");
    assert_eq!(team.json(&["mail", "list"])["letters"], json!([]), "nothing of it was sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_comes_from_stdin_and_a_full_queue_is_told() {
    let team = TeamPlace::new().await;
    let file = team.place.path("work/letter.md");
    team.place.write(&file, "From stdin.\n");
    let mut command = team.place.command(&["mail", "send", "bob", "-"]);
    assert_eq!(crate::support::ran(command.stdin(std::fs::File::open(&file).unwrap())).code, 0);
    assert_eq!(team.json(&["mail", "list", "bob"])["letters"][0]["text"], "From stdin.");
    let post = |number: u32| {
        let id = convoke_kernel::MessageId::derived(&[&number.to_string()]);
        let from = "lead".to_owned();
        let to = "bob".to_owned();
        let kind = convoke_kernel::LetterKind::Message;
        convoke_kernel::RosterEntry::Post(convoke_kernel::LetterHeader { id, from, to, kind, urgent: false })
    };
    team.roster((1..convoke_kernel::QUEUE).map(post).collect()).await;
    team.refused(1, &["mail", "send", "bob", "one too many"], "unread letters");
}
