//! Mail from outside: a person sends it and may look at it, and only its reader takes it.

use serde_json::json;

use super::Crew;

#[tokio::test(flavor = "multi_thread")]
async fn w12_looking_at_mail_takes_none_of_it() {
    let crew = Crew::new().await;
    let sent = crew.ends(0, &["mail", "send", "alice", "Look at the lexer first.", "--urgent"]);
    let id = sent.out.trim_end().to_owned();
    assert!(
        id.starts_with("m_") && sent.err.contains("it is read when one does"),
        "{}{}",
        sent.out,
        sent.err
    );
    crew.ends(0, &["mail", "send", "lead", "And you wait."]);
    for _ in 0..3 {
        let all = crew.json(&["mail", "list"]);
        let told: Vec<_> = all["letters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| (it["to"].clone(), it["state"].clone()))
            .collect();
        assert_eq!(told, [(json!("lead"), json!("waiting")), (json!("alice"), json!("waiting"))]);
    }
    let letter = &crew.json(&["mail", "list", "alice", "--all"])["letters"][0];
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
    let text = crew.ends(0, &["mail", "list", "alice"]).out;
    assert!(text.contains("waiting, urgent") && text.contains("Look at the lexer first."), "{text}");
    assert_eq!(crew.json(&["team", "show", "alice"])["member"]["unread"], 1);
    let none = crew.ends(0, &["mail", "list", "bob"]);
    assert_eq!((none.out.as_str(), none.err.contains("no letter waits for bob")), ("", true), "{}", none.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_to_nobody_is_refused_with_the_names_there_are() {
    let crew = Crew::new().await;
    for name in ["alcie", "carol", "../alice", "coder"] {
        crew.refused(1, &["mail", "send", name, "Hello."], "alice");
    }
    crew.refused(1, &["mail", "list", "carol"], "alice");
    crew.refused(2, &["mail", "send", "alice", "  "], "the letter is empty");
    let long = "x".repeat(33_000);
    crew.refused(1, &["mail", "send", "alice", &long], "33000 bytes");
    assert_eq!(crew.json(&["mail", "list"])["letters"], json!([]), "nothing of it was sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_comes_from_stdin_and_a_full_queue_is_told() {
    let crew = Crew::new().await;
    let file = crew.place.path("work/letter.md");
    crew.place.write(&file, "From stdin.\n");
    let mut command = crew.place.command(&["mail", "send", "bob", "-"]);
    assert_eq!(crate::support::ran(command.stdin(std::fs::File::open(&file).unwrap())).code, 0);
    assert_eq!(crew.json(&["mail", "list", "bob"])["letters"][0]["text"], "From stdin.");
    let post = |number: u32| {
        let id = convoke_kernel::MessageId::derived(&[&number.to_string()]);
        let from = "lead".to_owned();
        let to = "bob".to_owned();
        let kind = convoke_kernel::LetterKind::Message;
        convoke_kernel::RosterEntry::Post(convoke_kernel::LetterHeader { id, from, to, kind, urgent: false })
    };
    crew.roster((1..convoke_kernel::QUEUE).map(post).collect()).await;
    crew.refused(1, &["mail", "send", "bob", "one too many"], "unread letters");
}
