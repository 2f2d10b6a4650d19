//! Programs from the door: what they begin with, what they see, and how they end.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Instant;

use super::*;

const LONG: Duration = Duration::from_secs(60);

/// A shell that sees everything: the door itself starts none.
fn sh(script: &str) -> Program {
    let mut program = Program {
        sight: Sight::Everything,
        cwd: "/usr".into(),
        cap: 1000,
        ..Program::new(Path::new("/bin/sh"))
    };
    program.env =
        [("PATH", "/usr/bin:/bin"), ("A", "b")].map(|(name, value)| (name.into(), value.into())).into();
    program.args(["-c", script])
}

/// A program of the machine that sees what it is given.
fn held(program: &str, args: &[&str]) -> Program {
    Program::new(&Path::new(program).canonicalize().unwrap()).args(args)
}

#[tokio::test]
async fn output_error_output_and_code_come_apart_and_the_environment_is_exact() {
    let output = sh("pwd; echo $A; echo err >&2; cat; exit 3").run().await.unwrap();
    let expected =
        ProgramOutput { stdout: b"/usr\nb\n".to_vec(), stderr: b"err\n".to_vec(), truncated: false, code: 3 };
    assert_eq!(output, expected);
    assert_eq!(sh("kill -9 $$").run().await.unwrap().code, 137);
    assert_eq!(
        sh("kill -PIPE $$").run().await.unwrap().code,
        141,
        "the host ignores this signal, and programs do not"
    );
    let seen = held("/usr/bin/env", &[]).run().await.unwrap();
    assert_eq!((seen.stdout.as_slice(), seen.code), (&b""[..], 0));
}

#[tokio::test]
async fn more_than_the_cap_is_read_and_dropped() {
    let output = sh("yes | head -c 3000000; echo x >&2").run().await.unwrap();
    assert_eq!((output.stdout.len(), output.stderr.as_slice(), output.truncated), (1000, &b"x\n"[..], true));
}

#[tokio::test]
async fn a_process_left_behind_delays_nothing() {
    let since = Instant::now();
    let output = sh("sleep 3000 & echo $!").run().await.unwrap();
    assert!(since.elapsed() < Duration::from_secs(30));
    let pid = String::from_utf8(output.stdout).unwrap();
    assert!(std::process::Command::new("kill").arg(pid.trim()).status().unwrap().success());
}

/// Waits until a process is gone.
async fn gone(pid: &str) {
    let since = Instant::now();
    let is_there =
        || fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
    while is_there() {
        assert!(since.elapsed() < LONG, "{pid} is still there");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn the_deadline_and_the_end_of_the_wish_kill_the_group() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let script = format!("sleep 3000 & echo $! > {0}.new; mv {0}.new {0}; sleep 3000", file.display());
    let outcome = Program { deadline: Duration::from_secs(2), ..sh(&script) }.run().await;
    assert!(matches!(outcome, Err(Error::ProgramDeadline { .. })), "{outcome:?}");
    gone(fs::read_to_string(&file).unwrap().trim()).await;
    fs::remove_file(&file).unwrap();
    let started = async {
        while !file.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        outcome = sh(&script).run() => panic!("{outcome:?}"),
        () = started => {}
    }
    gone(fs::read_to_string(&file).unwrap().trim()).await;
}

#[tokio::test]
async fn a_missing_program_and_a_missing_directory_are_clear_errors() {
    let outcome = Program { sight: Sight::Everything, ..Program::new(Path::new("/no/such")) }.run().await;
    assert!(
        matches!(&outcome, Err(Error::ProgramStart { program, .. }) if program == Path::new("/no/such")),
        "{outcome:?}"
    );
    let outcome = Program { cwd: "/no/such".into(), ..sh("true") }.run().await;
    assert!(matches!(&outcome, Err(Error::ProgramStart { .. })), "{outcome:?}");
}

#[tokio::test]
async fn a_program_that_stands_still_is_killed_and_what_it_waits_for_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().canonicalize().unwrap().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut cat = held("/bin/cat", &[pipe.to_str().unwrap()]);
    cat.reads.push(pipe.clone());
    cat.patience = Duration::from_secs(2);
    let outcome = cat.run().await;
    let named =
        matches!(&outcome, Err(Error::ProgramStalled { waiting_for: Some(file), .. }) if *file == pipe);
    assert!(named, "{outcome:?}");
}

#[tokio::test]
async fn a_program_that_works_is_not_killed_however_long_it_takes() {
    let mut busy = sh("i=0; while [ $i -lt 30 ]; do sleep 0.1; i=$((i+1)); done; echo done");
    busy.patience = Duration::from_secs(1);
    assert_eq!(busy.run().await.unwrap().stdout, b"done\n");
}

#[tokio::test]
async fn a_program_reads_what_it_is_given_and_nothing_behind_a_link_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for (place, name) in [("tree", "a"), ("outside", "key")] {
        fs::create_dir(root.join(place)).unwrap();
        fs::write(root.join(place).join(name), name).unwrap();
    }
    symlink(root.join("outside"), root.join("tree/d")).unwrap();
    let cat = |file: &str, sight: Sight| {
        let mut cat = held("/bin/cat", &[root.join(file).to_str().unwrap()]);
        cat.reads.push(root.join("tree"));
        Program { sight, ..cat }.run()
    };
    let like_commands = || Sight::LikeCommands(Unseen::default());
    assert_eq!(cat("tree/a", like_commands()).await.unwrap().stdout, b"a");
    assert_eq!(cat("tree/d/key", Sight::Everything).await.unwrap().stdout, b"key");
    let refused = cat("tree/d/key", like_commands()).await.unwrap();
    assert_eq!((refused.stdout.as_slice(), refused.code), (&b""[..], 1));
    let masked = Unseen { masked: vec![root.join("tree/a")], ..Unseen::default() };
    assert_eq!(cat("tree/a", Sight::LikeCommands(masked)).await.unwrap().code, 1);
    let mut linked = held("/bin/cat", &[]);
    linked.reads.push(root.join("tree/d"));
    assert!(
        matches!(linked.run().await, Err(Error::ProgramLock { why, .. }) if why.contains("without links"))
    );
}

#[tokio::test]
async fn a_program_writes_where_it_may_and_executes_nothing_that_it_finds() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let touch = |file: &str| {
        let mut touch = held("/usr/bin/touch", &[root.join(file).to_str().unwrap()]);
        touch.writes.push(root.join("in"));
        touch.run()
    };
    for place in ["in", "out"] {
        fs::create_dir(root.join(place)).unwrap();
    }
    assert_eq!((touch("in/a").await.unwrap().code, touch("out/a").await.unwrap().code), (0, 1));
    assert!(root.join("in/a").exists() && !root.join("out/a").exists());
    // `env` would become another program, and `sh` would start one.
    let became = held("/usr/bin/env", &["/bin/true"]).run().await.unwrap();
    assert_ne!(became.code, 0, "{became:?}");
    for children in [false, true] {
        let started =
            Program { children, ..held("/bin/sh", &["-c", "/bin/true && echo ran"]) }.run().await.unwrap();
        assert_eq!(started.stdout, b"", "{children}: {started:?}");
    }
    let alone = held("/bin/sh", &["-c", "(echo $(echo x))"]);
    let with_children = true;
    assert_eq!(alone.clone().run().await.unwrap().stdout, b"", "no process is started");
    assert_eq!(Program { children: with_children, ..alone }.run().await.unwrap().stdout, b"x\n");
}

#[tokio::test]
async fn no_command_but_those_on_the_list_is_given_to_git() {
    let git = Git::new("/usr/bin/git".into(), Sight::Everything);
    for command in ["push", "fetch", "commit", "checkout", "-c", ""] {
        let outcome = git.call().args([command]).run().await;
        assert!(matches!(outcome, Err(Error::NotListed { .. })), "{command}: {outcome:?}");
    }
}
