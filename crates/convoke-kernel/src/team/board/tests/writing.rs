//! Writing, changing and naming tasks.

use super::super::TASKS;
use super::*;

fn adding(numbers: &[u64]) -> TaskEdit {
    TaskEdit { add_blocked_by: numbers.iter().map(|number| id(*number)).collect(), ..TaskEdit::default() }
}

fn removing(numbers: &[u64]) -> TaskEdit {
    TaskEdit { remove_blocked_by: numbers.iter().map(|number| id(*number)).collect(), ..TaskEdit::default() }
}

#[test]
fn w39_tasks_are_numbered_by_the_board_and_a_repeated_creation_changes_nothing() {
    let mut fixture = TestBoard::plain(3);
    assert_eq!(fixture.board.tasks().iter().map(|task| task.number).collect::<Vec<_>>(), [1, 2, 3]);
    let before = fixture.board.clone();
    assert!(fixture.does(&create(2, new("  task 2 "))).is_empty());
    assert_eq!(fixture.board, before);
    fixture.refuses(&create(2, new("something else")), &[id(2).as_str(), "task 2", "another id"]);
    assert_eq!(fixture.does(&create(4, new("four"))), ["task_created"]);
    assert_eq!(fixture.task(4).number, 4);
}

#[test]
fn a_task_needs_a_subject_of_one_line_and_texts_that_fit() {
    fn check(task: NewTask, said: &str) {
        TestBoard::default().refuses(&create(1, task), &[said]);
    }
    check(new(" \t "), "needs a subject");
    check(new("two\nlines"), "one line");
    check(new("red \u{1b}[31m"), "one line");
    check(new(&"é".repeat(201)), "201 characters");
    check(NewTask { description: "x".repeat(32 * 1024 + 1), ..new("long") }, "32769 bytes");
    check(NewTask { criteria: Some("x".repeat(32 * 1024 + 1)), ..new("long") }, "criteria");
    check(for_role("role", "two\nlines"), "role");

    let mut fixture = TestBoard::default();
    let full =
        NewTask { description: "x".repeat(32 * 1024), role: Some("  ".to_owned()), ..new(&"é".repeat(200)) };
    assert_eq!(fixture.does(&create(1, full)), ["task_created"]);
    assert_eq!(fixture.task(1).role, None);
}

#[test]
fn a_board_takes_so_many_tasks_and_says_so() {
    let fixture = TestBoard::plain(TASKS as u64);
    fixture.refuses(&create(0, new("one more")), &["5000", "another session"]);
    assert!(fixture.board.decide(&create(1, new("task 1")), 0).unwrap().is_empty());
}

#[test]
fn w37_dependencies_that_are_not_on_the_board_are_named() {
    TestBoard::default().refuses(&create(2, after("two", &[1])), &[id(1).as_str(), "empty"]);
    let fixture = TestBoard::plain(2);
    fixture.refuses(
        &create(3, after("three", &[1, 8, 9])),
        &[id(8).as_str(), id(9).as_str(), "There are", "task 1"],
    );
    fixture.refuses(&edit(1, adding(&[7])), &[id(7).as_str()]);
    fixture.refuses(&edit(1, removing(&[7])), &[id(7).as_str()]);
}

#[test]
fn w37_a_circle_of_dependencies_is_refused_and_spelled_out() {
    let mut fixture = TestBoard::with([new("one"), after("two", &[1]), after("three", &[2])]);
    fixture.refuses(&edit(1, adding(&[1])), &["itself"]);
    fixture.refuses(&edit(2, adding(&[3])), &[&format!("{0} waits for {1} waits for {0}", id(2), id(3))]);
    let long = format!("{0} waits for {1} waits for {2} waits for {0}", id(1), id(3), id(2));
    fixture.refuses(&edit(1, adding(&[3])), &["circle", &long, "Leave one"]);
    // Without the middle there is no way round any more.
    assert_eq!(fixture.does(&edit(2, removing(&[1]))), ["task_edited"]);
    assert_eq!(fixture.does(&edit(1, adding(&[3]))), ["task_edited"]);
    fixture.refuses(&edit(2, adding(&[1])), &["circle"]);
}

#[test]
fn a_long_circle_is_not_spelled_out_whole() {
    let chain = (1..=100).map(|number| if number == 1 { new("1") } else { after("next", &[number - 1]) });
    let fixture = TestBoard::with(chain);
    let refusal = fixture.board.decide(&edit(1, adding(&[100])), 0).unwrap_err().to_string();
    assert!(refusal.contains("…") && refusal.len() < 1_000, "{refusal}");
}

#[test]
fn dependencies_change_only_while_a_task_is_pending() {
    let mut fixture = TestBoard::plain(3);
    fixture.does(&claim(1, &member("alice")));
    fixture.refuses(&edit(1, adding(&[2])), &["only while it is pending", "held by alice"]);
    assert_eq!(
        fixture.does(&edit(1, TaskEdit { priority: Some(3), ..TaskEdit::default() })),
        ["task_edited"]
    );
    // What is asked for is so already.
    assert!(fixture.does(&edit(1, removing(&[2]))).is_empty());
    fixture.does(&release(1, &member("alice"), None));
    assert_eq!(fixture.does(&edit(1, adding(&[2, 2, 3]))), ["task_edited"]);
    assert_eq!(fixture.task(1).blocked_by, [id(2), id(3)]);
    assert!(fixture.does(&edit(1, adding(&[3]))).is_empty());
}

#[test]
fn an_edit_changes_what_it_names_and_nothing_of_a_done_task() {
    let full = NewTask { criteria: Some("green".to_owned()), priority: 2, ..for_role("one", "tester") };
    let mut fixture = TestBoard::with([full]);
    let cleared = TaskEdit {
        subject: Some(" first ".to_owned()),
        criteria: Some(String::new()),
        role: Some(" ".to_owned()),
        description: Some("all of it".to_owned()),
        ..TaskEdit::default()
    };
    assert_eq!(fixture.does(&edit(1, cleared.clone())), ["task_edited"]);
    let Task { subject, criteria, role, description, priority, .. } = fixture.task(1);
    assert_eq!(
        (subject.as_str(), criteria, role, description.as_str(), *priority),
        ("first", &None, &None, "all of it", 2)
    );
    assert!(fixture.does(&edit(1, cleared)).is_empty());
    fixture.refuses(
        &edit(1, TaskEdit { subject: Some(" ".to_owned()), ..TaskEdit::default() }),
        &["needs a subject"],
    );
    fixture.refuses(&edit(5, TaskEdit::default()), &["no task", "first"]);

    fixture.does(&claim(1, &member("alice")));
    fixture.does(&finish(1, &member("alice"), None, "fine"));
    let late = TaskEdit { priority: Some(1), ..TaskEdit::default() };
    fixture.refuses(&edit(1, late), &["done (by alice)", "another task"]);
}

#[test]
fn w37_a_task_is_named_by_its_id_its_beginning_or_its_number_and_a_subject_is_answered_with_the_id() {
    let fixture = TestBoard::plain(12);
    let found =
        |said: &str| fixture.board.find(said).map(|task| task.number).map_err(|refusal| refusal.to_string());
    let seven = id(7).to_string();
    for said in [&seven, &seven[..9], &seven[2..10], &format!(" {} ", seven.to_uppercase()), "#7", "7"] {
        assert_eq!(found(said), Ok(7), "{said}");
    }
    fn check(refusal: Result<u64, String>, said: &[&str]) {
        let refusal = refusal.unwrap_err();
        assert!(said.iter().all(|part| refusal.contains(part)), "{said:?}: {refusal}");
    }
    check(found("TASK 7"), &[&seven, "subject", "Use that id"]);
    check(
        found("nothing like it"),
        &["no task 'nothing like it'", id(1).as_str(), id(10).as_str(), "and 2 more"],
    );
    check(found("#13"), &["no task '#13'"]);
    check(found(&seven[..4]), &["no task"]);
    check(found(""), &["no task"]);
    check(
        TestBoard::default().board.find("7").map(|task| task.number).map_err(|no| no.to_string()),
        &["empty", "Create"],
    );
}

#[test]
fn a_beginning_that_several_ids_have_is_refused_with_those() {
    let twins = ["t_abcaaaaaaaaaaaaa", "t_abcbbbbbbbbbbbbb", "t_ccccccccccccccccc"];
    let mut board = Board::default();
    for (twin, subject) in twins.iter().zip(["left", "right"]) {
        let entry =
            BoardEntry::Create { id: twin.parse().unwrap(), task: new(subject), by: "lead".to_owned() };
        let events = board.decide(&entry, 0).unwrap();
        events.iter().for_each(|event| board.apply(event, 0));
    }
    let refusal = board.find("abc").unwrap_err().to_string();
    assert!(
        [twins[0], twins[1], "several", "more of the id"].iter().all(|part| refusal.contains(part)),
        "{refusal}"
    );
    assert_eq!(board.find("abcb").unwrap().subject, "right");
}

#[test]
fn w37_a_task_that_waits_for_a_failed_one_or_for_nobodys_role_is_called_stuck() {
    let mut fixture = TestBoard::with([
        new("build"),
        after("test", &[1]),
        after("ship", &[2]),
        for_role("draw", "artist"),
        after("hang it up", &[4]),
        new("apart"),
    ]);
    fn check(fixture: &TestBoard, number: u64, roles: &[&str], said: Option<&[&str]>) {
        let stuck = fixture.board.stuck(fixture.task(number), roles);
        match said {
            None => assert_eq!(stuck, None),
            Some(parts) => {
                let stuck = stuck.unwrap();
                assert!(parts.iter().all(|part| stuck.contains(part)), "{parts:?}: {stuck}");
            }
        }
    }
    check(&fixture, 3, &["coder"], None);
    check(&fixture, 4, &["coder", "Artist"], None);
    check(&fixture, 4, &["coder"], Some(&["'artist'", "no member"]));
    check(&fixture, 5, &["coder"], Some(&[id(4).as_str(), "draw", "'artist'"]));
    fixture.does(&claim(1, &member("alice")));
    check(&fixture, 1, &[], None);
    fixture.does(&fail(1, &member("alice"), "no compiler"));
    for number in [2, 3] {
        check(&fixture, number, &["coder"], Some(&[id(1).as_str(), "build", "no compiler"]));
    }
    check(&fixture, 1, &["coder"], None);
    check(&fixture, 6, &[], None);
    fixture.does(&BoardEntry::Retry { task: id(1), by: "lead".to_owned() });
    check(&fixture, 3, &["coder"], None);
}

#[test]
fn w38_a_brief_has_the_whole_task_and_what_came_before_it() {
    let mut fixture = TestBoard::with([new("look"), new("think"), after("write", &[1, 2])]);
    fixture.does(&claim(1, &member("alice")));
    fixture.does(&finish(1, &member("alice"), None, "it is blue"));
    let brief = fixture.board.brief(fixture.task(3));
    assert_eq!(&brief.task, fixture.task(3));
    let each = |number: u64, subject: &str, result: &str| {
        (id(number).to_string(), subject.to_owned(), result.to_owned())
    };
    assert_eq!(brief.after, [each(1, "look", "it is blue"), each(2, "think", "not done: pending")]);
}
