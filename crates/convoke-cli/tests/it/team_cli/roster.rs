//! The members of a team, from outside: lists, one member, and a person's word to it.

use serde_json::{Value, json};

use super::{TeamPlace, lead, session};

#[tokio::test(flavor = "multi_thread")]
async fn b18_c21_the_team_is_listed_with_roles_and_states_for_people_and_programs() {
    let team = TeamPlace::new().await;
    let got = team.ends(0, &["team", "list"]);
    let rows: Vec<Vec<&str>> =
        got.out.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
    assert_eq!(rows[0], ["NAME", "ROLE", "STATE"]);
    assert_eq!(rows[1][..2], ["lead", "lead"]);
    assert_eq!(rows[2], ["alice", "coder", "starting"]);
    assert_eq!(rows[3], ["bob", "tester", "starting"]);
    assert!(!got.out.contains('\u{1b}'), "no colour when piped");
    assert!(
        got.err.contains("alice has work open, and no process drives it; go on with `convoke resume"),
        "{}",
        got.err
    );
    let listed = team.json(&["team", "list", session(1).as_str()]);
    let alice = &listed["members"][1];
    assert_eq!((&listed["schema_version"], &listed["driven"]), (&json!(1), &json!(false)));
    let state =
        ["name", "role", "state", "unread", "requires_plan", "by"].map(|member| alice[member].clone());
    assert_eq!(
        state,
        [json!("alice"), json!("coder"), json!("starting"), json!(0), json!(true), json!("lead")]
    );
    let lines = team.ends(0, &["team", "list", "--output", "jsonl"]).out;
    let names: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["name"].clone()).collect();
    assert_eq!(names, ["lead", "alice", "bob"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_fits_any_width() {
    let team = TeamPlace::new().await;
    team.ends(
        0,
        &["tasks", "add", "a subject that is far too long for a narrow terminal, and says so at length"],
    );
    for width in [40, 60, 100] {
        for command in [["team", "list"], ["tasks", "list"], ["mail", "list"]] {
            let got = crate::support::ran(team.place.command(&command).env("COLUMNS", width.to_string()));
            let longest = got.out.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(got.code == 0 && longest <= width, "{command:?} at {width}: {}", got.out);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_member_is_shown_with_its_mail_its_requests_and_its_last_words() {
    let team = TeamPlace::new().await;
    team.ends(0, &["mail", "send", "alice", "Look at the lexer first."]);
    let request = team.plan().await;
    let got = team.ends(0, &["team", "show", "alice"]);
    assert!(got.out.starts_with("alice · coder · "), "{}", got.out);
    for part in ["1 unread letter\n", "person (message): Look at the lexer first.", request.as_str()] {
        assert!(got.out.contains(part), "{part}: {}", got.out);
    }
    let shown = team.json(&["team", "show", "lead"]);
    assert_eq!(shown["member"]["last"], json!({"status": "ok", "text": "Done."}));
    assert!(team.ends(0, &["team", "show", "lead"]).out.ends_with("last words:\n    Done.\n"));
    team.refused(
        1,
        &["team", "show", "alcie"],
        "the nearest name is alice\n  its members: lead, alice, bob\n",
    );
    team.refused(2, &["team", "show", "alice", "--output", "jsonl"], "has no jsonl form");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_asks_a_teammate_to_stop_and_it_is_written_down() {
    let team = TeamPlace::new().await;
    let got = team.ends(0, &["team", "stop", "bob", "--timeout", "2m"]);
    assert!(
        got.err.contains("bob was asked to stop; after 120 s without an answer it is stopped"),
        "{}",
        got.err
    );
    assert!(got.err.contains("no process drives it now"), "{}", got.err);
    let listed = team.json(&["team", "list"]);
    assert_eq!(listed["members"][2]["state"], "stopping");
    assert_eq!(
        (&listed["requests"][0]["kind"], &listed["requests"][0]["to"]),
        (&json!("shutdown"), &json!("bob"))
    );
    team.refused(1, &["team", "stop", "lead"], "lead");
    team.refused(1, &["team", "stop", "carol"], "carol");
    team.refused(2, &["team", "stop", "bob", "--patience", "soon"], "such as 90s");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_answers_a_plan_once() {
    let team = TeamPlace::new().await;
    team.refused(1, &["team", "plan", "m_", "--approve"], "no plan waits for approval");
    let request = team.plan().await;
    team.refused(1, &["team", "plan", "zz", "--approve"], &format!("these do: {request} (alice)"));
    team.refused(2, &["team", "plan", request.as_str()], "required");
    team.refused(2, &["team", "plan", request.as_str(), "--approve", "--reject"], "cannot be used with");
    let prefix = &request.as_str()[..6];
    let answer = team.json(&["team", "plan", prefix, "--reject", "--feedback", "Smaller steps."]);
    assert_eq!((&answer["name"], &answer["approved"]), (&json!("alice"), &json!(false)));
    let letters = team.json(&["mail", "list", "alice"]);
    let letter = &letters["letters"][0];
    let said = ["kind", "from", "text", "approve", "request"].map(|member| letter[member].clone());
    assert_eq!(
        said,
        [
            json!("plan_answer"),
            json!("person"),
            json!("Smaller steps."),
            json!(false),
            json!(request.as_str())
        ]
    );
    team.refused(1, &["team", "plan", prefix, "--approve"], "no plan waits for approval");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_has_a_member_begin_a_new_history() {
    let team = TeamPlace::new().await;
    let done = team.json(&["team", "compact", "alice", "--focus", "the parser"]);
    let inputs = team
        .writer
        .journal
        .inputs(&convoke_journal::StreamId::new(done["agent"].as_str().unwrap()).unwrap())
        .await;
    let body: Value = serde_json::from_str(&inputs.unwrap().last().unwrap().body).unwrap();
    assert_eq!(body["compact"], "the parser");
    assert_eq!(team.json(&["team", "compact", "lead"])["agent"], lead(1).as_str());
    team.refused(1, &["team", "compact", "carol"], "its members: lead, alice, bob");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_name_the_newest_run_that_has_a_team_is_meant() {
    let team = TeamPlace::new().await;
    team.answered(2).await;
    assert_eq!(team.json(&["team", "list"])["run"], session(1).as_str());
    assert_eq!(team.json(&["team", "list", session(2).as_str()])["members"], json!([]));
    let got = team.ends(0, &["team", "list", session(2).as_str()]);
    assert_eq!((got.out.as_str(), got.err.contains("its lead works alone")), ("", true), "{}", got.err);
    team.ends(0, &["tasks", "add", "more", "--run", session(2).as_str()]);
    assert_eq!(team.json(&["tasks", "list"])["run"], session(2).as_str(), "tasks make a team too");
    team.refused(2, &["-C", "../elsewhere", "team", "list"], "no session was ever started in");
    team.refused(2, &["team", "list", "zz"], "there is no session 'zz'");
    let empty = crate::support::TestHome::new();
    let got = empty.convoke(&["tasks", "list"]);
    assert_eq!((got.code, got.err.contains("no session was ever started in")), (2, true), "{}", got.err);
    assert!(!empty.journal_file().exists(), "looking leaves no journal behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lead_without_a_team_has_mail_and_a_board_all_the_same() {
    let team = TeamPlace::alone().await;
    team.ends(0, &["tasks", "add", "first"]);
    team.ends(0, &["mail", "send", "lead", "Hello."]);
    assert_eq!(team.json(&["team", "list"])["members"][0]["unread"], 1);
    team.refused(1, &["mail", "send", "alice", "Hello."], "alice");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_show_teammates_by_their_names_and_pruning_a_run_takes_its_team_along() {
    let team = TeamPlace::new().await;
    team.ends(0, &["tasks", "add", "first"]);
    let shown = team.ends(0, &["runs", "show", session(1).as_str()]).out;
    let row = shown.lines().find(|line| line.contains("teammate") && line.ends_with("alice"));
    assert!(row.is_some(), "{shown}");
    let exported = team.ends(0, &["runs", "export", session(1).as_str()]).out;
    assert!(exported.contains("\"member_spawned\"") && exported.contains("\"task_created\""), "{exported}");
    team.ends(0, &["runs", "prune", session(1).as_str(), "--yes"]);
    let all = team.writer.journal.list(&convoke_journal::Filter::default()).await.unwrap();
    let left: Vec<&str> = all.iter().map(|listing| listing.stream.as_str()).collect();
    assert!(left.is_empty(), "{left:?}");
}
