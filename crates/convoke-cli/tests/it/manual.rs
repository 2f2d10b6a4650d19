//! The manual pages: printed and written, whole, and understood by `man` where there is one.

use std::process::{Command, Stdio};

use crate::support::{TestHome, ran};

#[test]
fn the_page_about_everything_has_examples_exit_codes_the_environment_and_the_files() {
    let got = TestHome::new().convoke(&["man"]);
    assert_eq!((got.code, got.err.as_str()), (0, ""));
    let page = &got.out;
    let parts = [
        ".TH CONVOKE 1",
        ".SH NAME",
        ".SH SYNOPSIS",
        ".SH \"EXAMPLES\"\n.nf\n",
        ".SH \"EXIT STATUS\"\n.nf\n",
        "0 done",
        "130, 143, 129",
        ".SH ENVIRONMENT",
        "ANTHROPIC_API_KEY",
        ".SH FILES",
        "journal.db",
        "convoke\\-session(1)",
    ];
    let mut rest = page.as_str();
    for part in parts {
        let found =
            rest.find(part).unwrap_or_else(|| panic!("{part:?} is missing after the ones before in\n{page}"));
        rest = &rest[found..];
    }
    for command in ["run", "resume", "sessions", "team", "man", "completions"] {
        assert!(page.contains(&format!("convoke\\-{command}(1)")), "{command}: {page}");
    }
}

#[test]
fn a_command_has_a_page_of_its_own_and_an_unknown_one_is_told_the_nearest() {
    let place = TestHome::new();
    let page = place.convoke(&["man", "sessions", "undo"]).out;
    assert_eq!(place.convoke(&["man", "runs", "undo"]).out, page, "the old name works the same");
    assert!(
        page.contains(".TH CONVOKE\\-SESSIONS\\-UNDO 1") || page.contains(".TH CONVOKE-SESSIONS-UNDO 1"),
        "{page}"
    );
    assert!(page.contains("EXAMPLES") && page.contains("convoke sessions undo s_k3"), "{page}");
    let got = place.convoke(&["man", "runs", "unod"]);
    assert_eq!(got.code, 2);
    let expected = "convoke: there is no page about 'runs unod': no such command\n  the nearest is 'undo'\n";
    assert_eq!(got.err, expected);
}

#[test]
fn one_page_for_every_command_is_written_and_man_understands_all_of_them() {
    let place = TestHome::new();
    let got = place.convoke(&["man", "--dir", "pages/man1"]);
    assert_eq!((got.code, got.out.as_str()), (0, ""), "{}", got.err);
    let dir = place.path("work/pages/man1");
    let mut names: Vec<String> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(got.err, format!("{} pages are in pages/man1\n", names.len()));
    for name in [
        "convoke.1",
        "convoke-run.1",
        "convoke-session.1",
        "convoke-sessions-diff.1",
        "convoke-workflow-run.1",
    ] {
        assert!(names.iter().any(|written| written == name), "{name} in {names:?}");
    }
    let below = place.convoke(&["man", "runs", "--dir", "few"]);
    let few = std::fs::read_dir(place.path("work/few")).unwrap().count();
    assert_eq!(
        (below.code, few),
        (0, names.iter().filter(|name| name.starts_with("convoke-sessions")).count())
    );
    if Command::new("man").arg("--version").stdout(Stdio::null()).status().is_err() {
        return;
    }
    for name in &names {
        let mut man = Command::new("man");
        man.args(["--warnings", "-E", "UTF-8", "-P", "cat", "-l"])
            .arg(dir.join(name))
            .env("MANWIDTH", "80")
            .env("LC_ALL", "C.UTF-8");
        let shown = ran(&mut man);
        assert_eq!((shown.code, shown.err.as_str()), (0, ""), "{name}");
        assert!(shown.out.contains("SYNOPSIS"), "{name}: {}", shown.out);
    }
    let mut man = Command::new("man");
    let shown =
        ran(man.args(["-E", "UTF-8", "-P", "cat", "-l"]).arg(dir.join("convoke.1")).env("MANWIDTH", "80"));
    let kept = "  git diff | convoke run -      the task comes from stdin";
    assert!(shown.out.lines().any(|line| line.ends_with(kept)), "examples stay as they are: {}", shown.out);
}
