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
    let mut desk = TestBoard::plain(3);
    assert_eq!(desk.board.tasks().iter().map(|task| task.number).collect::<Vec<_>>(), [1, 2, 3]);
    let before = desk.board.clone();
    assert!(desk.does(&create(2, new("  task 2 "))).is_empty());
    assert_eq!(desk.board, before);
    desk.refuses(&create(2, new("something else")), &[id(2).as_str(), "task 2", "another id"]);
    assert_eq!(desk.does(&create(4, new("four"))), ["task_created"]);
    assert_eq!(desk.task(4).number, 4);
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

    let mut desk = TestBoard::default();
    let full =
        NewTask { description: "x".repeat(32 * 1024), role: Some("  ".to_owned()), ..new(&"é".repeat(200)) };
    assert_eq!(desk.does(&create(1, full)), ["task_created"]);
    assert_eq!(desk.task(1).role, None);
}

#[test]
fn a_board_takes_so_many_tasks_and_says_so() {
    let desk = TestBoard::plain(TASKS as u64);
    desk.refuses(&create(0, new("one more")), &["5000", "another session"]);
    assert!(desk.board.decide(&create(1, new("task 1")), 0).unwrap().is_empty());
}

#[test]
fn w37_dependencies_that_are_not_on_the_board_are_named() {
    TestBoard::default().refuses(&create(2, after("two", &[1])), &[id(1).as_str(), "empty"]);
    let desk = TestBoard::plain(2);
    desk.refuses(
        &create(3, after("three", &[1, 8, 9])),
        &[id(8).as_str(), id(9).as_str(), "There are", "task 1"],
    );
    desk.refuses(&edit(1, adding(&[7])), &[id(7).as_str()]);
    desk.refuses(&edit(1, removing(&[7])), &[id(7).as_str()]);
}

#[test]
fn w37_a_circle_of_dependencies_is_refused_and_spelled_out() {
    let mut desk = TestBoard::with([new("one"), after("two", &[1]), after("three", &[2])]);
    desk.refuses(&edit(1, adding(&[1])), &["itself"]);
    desk.refuses(&edit(2, adding(&[3])), &[&format!("{0} waits for {1} waits for {0}", id(2), id(3))]);
    let long = format!("{0} waits for {1} waits for {2} waits for {0}", id(1), id(3), id(2));
    desk.refuses(&edit(1, adding(&[3])), &["circle", &long, "Leave one"]);
    // Without the middle there is no way round any more.
    assert_eq!(desk.does(&edit(2, removing(&[1]))), ["task_edited"]);
    assert_eq!(desk.does(&edit(1, adding(&[3]))), ["task_edited"]);
    desk.refuses(&edit(2, adding(&[1])), &["circle"]);
}

#[test]
fn a_long_circle_is_not_spelled_out_whole() {
    let chain = (1..=100).map(|number| if number == 1 { new("1") } else { after("next", &[number - 1]) });
    let desk = TestBoard::with(chain);
    let refusal = desk.board.decide(&edit(1, adding(&[100])), 0).unwrap_err().to_string();
    assert!(refusal.contains("…") && refusal.len() < 1_000, "{refusal}");
}

#[test]
fn dependencies_change_only_while_a_task_is_pending() {
    let mut desk = TestBoard::plain(3);
    desk.does(&claim(1, &member("alice")));
    desk.refuses(&edit(1, adding(&[2])), &["only while it is pending", "held by alice"]);
    assert_eq!(desk.does(&edit(1, TaskEdit { priority: Some(3), ..TaskEdit::default() })), ["task_edited"]);
    // What is asked for is so already.
    assert!(desk.does(&edit(1, removing(&[2]))).is_empty());
    desk.does(&release(1, &member("alice"), None));
    assert_eq!(desk.does(&edit(1, adding(&[2, 2, 3]))), ["task_edited"]);
    assert_eq!(desk.task(1).blocked_by, [id(2), id(3)]);
    assert!(desk.does(&edit(1, adding(&[3]))).is_empty());
}

#[test]
fn an_edit_changes_what_it_names_and_nothing_of_a_done_task() {
    let full = NewTask { criteria: Some("green".to_owned()), priority: 2, ..for_role("one", "tester") };
    let mut desk = TestBoard::with([full]);
    let cleared = TaskEdit {
        subject: Some(" first ".to_owned()),
        criteria: Some(String::new()),
        role: Some(" ".to_owned()),
        description: Some("all of it".to_owned()),
        ..TaskEdit::default()
    };
    assert_eq!(desk.does(&edit(1, cleared.clone())), ["task_edited"]);
    let Task { subject, criteria, role, description, priority, .. } = desk.task(1);
    assert_eq!(
        (subject.as_str(), criteria, role, description.as_str(), *priority),
        ("first", &None, &None, "all of it", 2)
    );
    assert!(desk.does(&edit(1, cleared)).is_empty());
    desk.refuses(
        &edit(1, TaskEdit { subject: Some(" ".to_owned()), ..TaskEdit::default() }),
        &["needs a subject"],
    );
    desk.refuses(&edit(5, TaskEdit::default()), &["no task", "first"]);

    desk.does(&claim(1, &member("alice")));
    desk.does(&finish(1, &member("alice"), None, "fine"));
    let late = TaskEdit { priority: Some(1), ..TaskEdit::default() };
    desk.refuses(&edit(1, late), &["done (by alice)", "another task"]);
}

#[test]
fn w37_a_task_is_named_by_its_id_its_beginning_or_its_number_and_a_subject_is_answered_with_the_id() {
    let desk = TestBoard::plain(12);
    let found =
        |said: &str| desk.board.find(said).map(|task| task.number).map_err(|refusal| refusal.to_string());
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
    let mut desk = TestBoard::with([
        new("build"),
        after("test", &[1]),
        after("ship", &[2]),
        for_role("draw", "artist"),
        after("hang it up", &[4]),
        new("apart"),
    ]);
    fn check(desk: &TestBoard, number: u64, roles: &[&str], said: Option<&[&str]>) {
        let stuck = desk.board.stuck(desk.task(number), roles);
        match said {
            None => assert_eq!(stuck, None),
            Some(parts) => {
                let stuck = stuck.unwrap();
                assert!(parts.iter().all(|part| stuck.contains(part)), "{parts:?}: {stuck}");
            }
        }
    }
    check(&desk, 3, &["coder"], None);
    check(&desk, 4, &["coder", "Artist"], None);
    check(&desk, 4, &["coder"], Some(&["'artist'", "nobody"]));
    check(&desk, 5, &["coder"], Some(&[id(4).as_str(), "draw", "'artist'"]));
    desk.does(&claim(1, &member("alice")));
    check(&desk, 1, &[], None);
    desk.does(&fail(1, &member("alice"), "no compiler"));
    for number in [2, 3] {
        check(&desk, number, &["coder"], Some(&[id(1).as_str(), "build", "no compiler"]));
    }
    check(&desk, 1, &["coder"], None);
    check(&desk, 6, &[], None);
    desk.does(&BoardEntry::Retry { task: id(1), by: "lead".to_owned() });
    check(&desk, 3, &["coder"], None);
}

#[test]
fn w38_a_brief_has_the_whole_task_and_what_came_before_it() {
    let mut desk = TestBoard::with([new("look"), new("think"), after("write", &[1, 2])]);
    desk.does(&claim(1, &member("alice")));
    desk.does(&finish(1, &member("alice"), None, "it is blue"));
    let brief = desk.board.brief(desk.task(3));
    assert_eq!(&brief.task, desk.task(3));
    let each = |number: u64, subject: &str, result: &str| {
        (id(number).to_string(), subject.to_owned(), result.to_owned())
    };
    assert_eq!(brief.after, [each(1, "look", "it is blue"), each(2, "think", "not done: pending")]);
}
