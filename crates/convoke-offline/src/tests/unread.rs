//! Trees of which a part may not be read: what is said of it, and what is not.

use super::harness::Tree;

const TODOS: &str = "TODO, FIXME, XXX, HACK";

/// One file and one directory that may not be read, beside these.
fn locked(others: &[(&str, &str)]) -> Tree {
    let mut tree = Tree::new(&[("a.py", "# TODO hidden\n"), ("locked/b.py", "# TODO hidden\n")]);
    for (path, text) in others {
        tree.put(path, text);
    }
    tree.lock(0o000, &["a.py", "locked"]);
    tree
}

#[test]
fn what_cannot_be_read_is_counted_and_named_and_never_taken_for_empty() {
    let tree = locked(&[("z.py", "x = 1\n"), ("y.rs", "fn f() {}\n")]);
    let played = tree.play("Review this");
    let here = played.section("What is here");
    assert!(here.contains("3 files, found by walking; 2 lines in known languages"), "{here}");
    assert!(
        here.contains("- Python: 1 file, 1 line; lines not known for 1 more that could not be read"),
        "{here}"
    );
    assert!(
        here.contains("Nothing is known of what these hold, 1 file and 1 directory that could not be read:"),
        "{here}"
    );
    assert!(here.contains("- `a.py`\n- `locked/`\n"), "{here}");
    for section in [TODOS, "Functions of more than 80 lines"] {
        let section = played.section(section);
        assert!(section.contains("Looked into 2 source files"), "{section}");
        assert!(
            section.contains("not known for 1 file and 1 directory that could not be read."),
            "{section}"
        );
        assert!(section.contains("None found in what could be read."), "{section}");
    }
    let section = played.section("Unhandled errors");
    assert!(section.contains("None of these was found in what could be read"), "{section}");
    assert!(
        played.section("Largest files").contains("Not known for 1 file and 1 directory"),
        "{}",
        played.report()
    );
    let section = played.section("Source files that no test mentions");
    assert!(section.contains("that no test file that could be read"), "{section}");
    assert!(!played.report().contains("None found.\n"), "{}", played.report());
}

#[test]
fn in_a_git_repository_the_same_is_said_of_tracked_and_untracked_files() {
    let mut tree =
        Tree::new(&[("a.py", "# TODO\n"), ("in/b.py", "# TODO\n"), ("new/c.py", ""), ("z.py", "x = 1\n")]);
    tree.git();
    tree.run("git add a.py in z.py");
    tree.lock(0o000, &["a.py", "in", "new"]);
    let played = tree.play("find TODOs");
    let here = played.section("What is here");
    assert!(here.contains("3 files, tracked or not ignored by git; 1 line in known languages"), "{here}");
    for name in ["- `a.py`\n", "- `in/b.py`\n", "- `in/`\n", "- `new/`\n"] {
        assert!(here.contains(name), "{name:?}: {here}");
    }
    let unread = "not known for 2 files and 2 directories that could not be read";
    assert!(played.section(TODOS).contains(unread), "{}", played.report());
}

#[test]
fn a_directory_whose_names_may_be_read_and_nothing_else_is_no_different() {
    let mut tree = Tree::new(&[("names/b.py", "# TODO\n"), ("z.py", "x = 1\n")]);
    tree.lock(0o444, &["names"]);
    let played = tree.play("find TODOs");
    assert!(played.section("What is here").contains("- `names/b.py`"), "{}", played.report());
    assert!(
        played.section(TODOS).contains("not known for 1 file that could not be read"),
        "{}",
        played.report()
    );
}

#[test]
fn a_search_and_a_count_say_what_they_do_not_know() {
    let tree = locked(&[("notes.md", "nothing\n")]);
    let search = tree.play("where is `hidden` used?");
    let section = search.section("Search");
    assert!(
        section.contains("0 lines in 0 files hold the text `hidden`; not known for 1 file and 1 directory"),
        "{section}"
    );
    let count = tree.play("How many lines of Python are there?");
    assert!(
        count.report().contains("Python: lines not known for 1 file that could not be read."),
        "{}",
        count.report()
    );
    let list = tree.play("List the files");
    assert!(list.section("Files").contains("Not known for 1 file and 1 directory"), "{}", list.report());
}

#[test]
fn where_nothing_can_be_read_there_is_no_review() {
    for (task, files) in
        [("Review this", vec![]), ("find TODOs", vec![]), ("find TODOs", vec![("n.md", "x\n")])]
    {
        let played = locked(&files).play(task);
        let why = played.refusal();
        assert!(why.contains("1 file and 1 directory that could not be read"), "{task}: {why}");
    }
    let why = locked(&[]).play("Review this").refusal().to_owned();
    assert!(why.contains("(a.py, locked)") && why.contains("is not known"), "{why}");
}

#[test]
fn a_part_that_lies_behind_a_locked_door_is_not_said_to_be_missing() {
    let played = locked(&[("z.py", "x = 1\n")]).play("review locked/b.py");
    assert!(played.refusal().contains("1 directory that could not be read (locked)"), "{}", played.refusal());
}

#[test]
fn a_file_that_goes_away_under_the_command_makes_it_fail() {
    let tree = Tree::new(&[("a.py", "# TODO\n"), ("b.py", "# TODO\n")]);
    let played = tree.play("Review this");
    let command = played.request["messages"][1]["content"][1]["input"]["command"].as_str().unwrap();
    let vanishing = command.replace("small() {", "small() { cat; }; unused() {");
    assert_ne!(vanishing, command);
    assert!(tree.run(&vanishing).ends_with("end\n"));
    let vanishing = vanishing.replace("small() { cat; }", "small() { cat; printf './gone.py\\0'; }");
    assert_eq!(tree.run(&vanishing), "# a file could not be opened while the command ran\n");
}

#[test]
fn links_are_not_followed_and_a_dangling_one_is_not_counted_as_a_file() {
    let tree = Tree::new(&[("a.py", "# TODO one\n")]);
    tree.run("ln -s nowhere.py b.py && ln -s a.py c.py");
    let played = tree.play("Review this");
    assert!(played.report().contains("- Python: 1 file, 1 line\n"), "{}", played.report());
    assert!(!played.report().contains("could not be read"), "{}", played.report());
}
