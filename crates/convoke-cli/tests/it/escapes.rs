//! Ways out, tried through the real binary with its own policy, its own places and its own surroundings: what
//! the escape suite of `convoke-sandbox` cannot see, because it builds its policies itself. Each way is shown
//! to lead out where nothing is held, so that none of these tests passes because the attempt was clumsy.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use convoke_sim::{Reply, Script, calls, says};
use serde_json::{Value, json};

use crate::repo::{git, read, repository, write};
use crate::stage::{Seen, Stage, to_its_end};
use crate::undo::run_id;

pub(crate) const EDITOR: &str = "str_replace_based_edit_tool";

pub(crate) fn bash(command: &str) -> Reply {
    calls("bash", json!({"command": command}))
}

pub(crate) fn view(path: &Path) -> Reply {
    calls(EDITOR, json!({"command": "view", "path": path}))
}

fn restart() -> Reply {
    calls("bash", json!({"restart": true}))
}

/// A model that does this, one after the other, and is done.
pub(crate) fn doing(replies: Vec<Reply>) -> Script {
    Script::new().conversation("*", replies.into_iter().chain([says("Done.")]))
}

/// Everything that the model was told by its tools in the newest conversation.
pub(crate) fn told(stage: &Stage) -> String {
    let last = stage.sim().requests().pop().unwrap();
    let messages = last.body["messages"].as_array().unwrap().clone();
    messages.iter().skip(1).filter(|message| message["role"] == "user").map(Value::to_string).collect()
}

/// The binary with these variables besides.
async fn run_with(stage: &Stage, vars: &[(&str, String)], args: &[&str]) -> Seen {
    let mut command = stage.command(args);
    command.envs(vars.iter().map(|(name, value)| (*name, value.as_str())));
    to_its_end(command).await
}

/// A virtual environment in the workspace, entered as people do.
fn enter_venv(stage: &Stage) -> Vec<(&'static str, String)> {
    let venv = stage.work().join(".venv");
    write(&venv, "bin/tool", "#!/bin/sh\necho tool\n");
    let path = std::env::var_os("PATH").unwrap_or_default();
    vec![
        ("PATH", format!("{}/bin:{}", venv.display(), path.to_string_lossy())),
        ("VIRTUAL_ENV", venv.to_string_lossy().into_owned()),
    ]
}

/// A command that puts programs into the virtual environment which leave a trace outside whenever they run
/// unconfined.
fn plant(trace: &Path) -> String {
    let bait = format!("#!/bin/sh\\n: > {}\\nexec /usr/bin/$name \"$@\"\\n", trace.display());
    format!(
        "for name in git bash env bwrap setpriv sh; do printf '%s' \"$(printf '{}' | sed \
         \"s/[$]name/$name/\")\" > .venv/bin/$name; chmod +x .venv/bin/$name; done; ls .venv/bin",
        bait.replace('\'', "'\\''")
    )
}

#[tokio::test]
async fn a_program_planted_in_a_venv_on_the_path_never_runs_outside() {
    for layers in ["best", "landlock", "off"] {
        let mut stage = Stage::bare();
        let trace = stage.home().join("escaped");
        let script = vec![
            bash(&plant(&trace)),
            bash("echo made > made.txt"),
            restart(),
            bash("git --version; echo on"),
        ];
        stage.turn_to(doing(script)).await;
        repository(&stage, &[("a.txt", "a\n")]);
        let vars = enter_venv(&stage);
        let flags = if layers == "off" { ["--sandbox", "off"] } else { ["--sandbox-layers", layers] };
        let seen = run_with(&stage, &vars, &[&flags[..], &["plant them"]].concat()).await.exits(0);
        assert!(told(&stage).contains("bwrap") && told(&stage).contains("on"), "{}", told(&stage));
        if layers == "off" {
            assert!(
                trace.exists(),
                "what is planted leaves a trace where nothing holds it: {}",
                told(&stage)
            );
            continue;
        }
        let clean = |when: &str| assert!(!trace.exists(), "{layers}: a planted program ran outside: {when}");
        clean("the run");
        let run = run_id(&seen);
        assert!(stage.work().join(".venv/bin/git").metadata().unwrap().permissions().mode() & 0o111 != 0);
        for args in [
            &["runs", "diff", &run][..],
            &["doctor"],
            &["worktrees", "list"],
            &["--fresh", "--isolation", "worktree", "plant", "apart"],
            &["--fresh", "look", "again"],
            &["runs", "undo", &run],
            &["runs", "prune", &run, "--yes"],
        ] {
            let seen = run_with(&stage, &vars, args).await;
            assert!(seen.code.is_some(), "{args:?}: {}", seen.stderr);
            clean(&args.join(" "));
        }
    }
}

/// The files of a person's home that no command may read, and a command that tries.
fn secrets(stage: &Stage) -> Vec<Reply> {
    write(&stage.home(), "notes.txt", "tS3kret in the notes\n");
    write(&stage.home(), ".ssh/id", "tS3kret in the key\n");
    let home = stage.home();
    let state = stage.state();
    let look = format!(
        "cat {0}/notes.txt {0}/.ssh/id; ls {1}; head -c 15 {1}/journal.db; echo looked",
        home.display(),
        state.display()
    );
    vec![bash(&look), view(&home.join("notes.txt")), view(&home.join(".ssh/id"))]
}

/// Nothing of the home and the journal was told.
#[track_caller]
fn check_kept(stage: &Stage, what: &str) {
    let told = told(stage);
    assert!(told.contains("looked"), "{what}: the attempt was not made: {told}");
    assert!(!told.contains("tS3kret") && !told.contains("SQLite"), "{what}: {told}");
}

#[tokio::test]
async fn a_git_file_that_an_agent_writes_opens_neither_the_home_nor_the_journal() {
    for flags in [
        &["--sandbox-layers", "best"][..],
        &["--sandbox-layers", "landlock"],
        &["--isolation", "worktree"],
        &["--isolation", "worktree", "--sandbox-layers", "landlock"],
    ] {
        for shape in ["home", "journal", "commondir", "directory"] {
            let mut stage = Stage::bare();
            let home = stage.home();
            let state = stage.state();
            let home = home.display();
            let state = state.display();
            let planted = match shape {
                "home" => format!("echo 'gitdir: {home}' > .git"),
                "journal" => format!("echo 'gitdir: {state}' > .git"),
                "commondir" => {
                    format!("mkdir fake; echo {home} > fake/commondir; echo 'gitdir: fake' > .git")
                }
                _ => format!("mkdir .git; echo {home} > .git/commondir; echo 'gitdir: {home}' > .git/gitdir"),
            };
            let first = vec![bash(&format!("rm -rf .git; {planted}; true")), restart()];
            let script = first.into_iter().chain(secrets(&stage)).collect();
            stage.turn_to(doing(script)).await;
            if flags[0] == "--isolation" {
                repository(&stage, &[("a.txt", "a\n")]);
            }
            let what = format!("{flags:?} {shape}");
            let seen = stage.run(&[flags, &["find", "a", "way"]].concat()).await;
            assert!(matches!(seen.code, Some(0 | 1 | 3)), "{what}: {}", seen.stderr);
            check_kept(&stage, &what);
            // What was planted is still there when the next session begins.
            let asked = stage.sim().requests().len();
            let seen = stage.run(&[flags, &["--fresh", "once", "more"]].concat()).await;
            if stage.sim().requests().len() > asked {
                check_kept(&stage, &format!("{what}, the next run: {}", seen.stderr));
            }
        }
    }
    let mut stage = Stage::bare();
    let script = secrets(&stage);
    stage.turn_to(doing(script)).await;
    stage.run(&["--sandbox", "off", "look", "around"]).await.exits(0);
    assert!(told(&stage).contains("in the notes") && told(&stage).contains("SQLite"), "{}", told(&stage));
}

#[tokio::test]
async fn a_home_that_is_a_repository_stays_closed_to_a_project_in_it() {
    for layers in ["best", "landlock"] {
        for sandbox in ["read-only", "workspace", "off"] {
            let mut stage = Stage::bare();
            let script = secrets(&stage);
            stage.turn_to(doing(script)).await;
            git(&stage.home(), &["init", "-q"]);
            let project = stage.home().join("proj");
            write(&project, "a.txt", "a\n");
            let dir = project.to_string_lossy().into_owned();
            let args = ["--cwd", &dir, "--sandbox", sandbox, "--sandbox-layers", layers, "look", "around"];
            if sandbox == "off" {
                stage.run(&[&args[..4], &args[6..]].concat()).await.exits(0);
                assert!(told(&stage).contains("in the notes"), "{}", told(&stage));
            } else {
                stage.run(&args).await.exits(0);
                check_kept(&stage, &format!("{sandbox} {layers}"));
            }
        }
    }
}

#[tokio::test]
async fn credentials_in_the_workspace_can_be_neither_read_nor_written_by_any_tool() {
    for layers in ["best", "landlock", "off"] {
        let mut stage = Stage::bare();
        let file = stage.work().join(".cargo/credentials.toml");
        symlink(".cargo", stage.work().join("link")).unwrap();
        let create = json!({"command": "create", "path": file, "file_text": "planted\n"});
        let replace =
            json!({"command": "str_replace", "path": file, "old_str": "token", "new_str": "broken"});
        let script = vec![
            bash(
                "cat .cargo/credentials.toml link/credentials.toml; cat < .cargo/credentials.toml; cp -r \
                    .cargo c; cat c/*; echo looked",
            ),
            view(&file),
            view(&stage.work().join("link/credentials.toml")),
            calls("grep", json!({"pattern": "oken", "path": "."})),
            calls("grep", json!({"pattern": "oken", "path": ".cargo"})),
            calls("grep", json!({"pattern": "oken", "path": ".cargo/credentials.toml"})),
            calls(EDITOR, replace),
            calls(EDITOR, create),
            bash("echo planted > .cargo/credentials.toml; rm -f .cargo/credentials.toml; ls -a"),
        ];
        stage.turn_to(doing(script)).await;
        write(&stage.work(), ".cargo/credentials.toml", "token = \"tS3kret\"\n");
        let vars = [("CARGO_HOME", stage.work().join(".cargo").to_string_lossy().into_owned())];
        let flags = if layers == "off" { ["--sandbox", "off"] } else { ["--sandbox-layers", layers] };
        run_with(&stage, &vars, &[&flags[..], &["look", "for", "it"]].concat()).await.exits(0);
        if layers == "off" {
            assert!(told(&stage).contains("tS3kret") && !file.exists(), "{}", told(&stage));
            continue;
        }
        check_kept(&stage, layers);
        assert_eq!(read(&stage.work(), ".cargo/credentials.toml"), "token = \"tS3kret\"\n", "{layers}");
    }
}

#[tokio::test]
async fn credentials_stay_hidden_when_the_directory_around_them_is_moved() {
    for layers in ["best", "landlock", "off"] {
        let mut stage = Stage::bare();
        let moved = stage.work().join("moved/credentials.toml");
        let script = vec![
            bash("mv .cargo moved; cat moved/credentials.toml; echo looked"),
            view(&moved),
            calls("grep", json!({"pattern": "oken", "path": "."})),
            restart(),
            bash("cat moved/credentials.toml; ln .cargo/credentials.toml l; cat l"),
        ];
        stage.turn_to(doing(script)).await;
        write(&stage.work(), ".cargo/credentials.toml", "token = \"tS3kret\"\n");
        let vars = [("CARGO_HOME", stage.work().join(".cargo").to_string_lossy().into_owned())];
        let flags = if layers == "off" { ["--sandbox", "off"] } else { ["--sandbox-layers", layers] };
        run_with(&stage, &vars, &[&flags[..], &["move", "it", "away"]].concat()).await.exits(0);
        match layers {
            "off" => assert!(told(&stage).contains("tS3kret"), "{}", told(&stage)),
            _ => check_kept(&stage, layers),
        }
    }
}

#[tokio::test]
async fn what_people_do_at_home_works_inside_and_leaves_the_home_as_it_was() {
    let work = "touch ~/x && ls / > /dev/null && ls ~ && git config --global user.name somebody && git \
        config user.name";
    let stage = Stage::with(doing(vec![bash(&format!("{work} && echo all''right"))])).await;
    stage.run(&["be", "at", "home"]).await.exits(0);
    assert!(told(&stage).contains("allright") && told(&stage).contains("somebody"), "{}", told(&stage));
    assert!(!stage.home().join("x").exists() && !stage.home().join(".gitconfig").exists());
}

#[tokio::test]
async fn a_venv_in_the_workspace_takes_nothing_from_the_workspace() {
    for layers in ["best", "landlock"] {
        let work = "touch new && mkdir d && touch d/x && ls && rm a.txt && touch .venv/lib";
        let stage = Stage::with(doing(vec![bash(&format!("{work} && echo all''right"))])).await;
        write(&stage.work(), "a.txt", "a\n");
        let vars = enter_venv(&stage);
        run_with(&stage, &vars, &["--sandbox-layers", layers, "work", "on", "it"]).await.exits(0);
        assert!(told(&stage).contains("allright"), "{layers}: {}", told(&stage));
        assert!(stage.work().join("d/x").exists() && stage.work().join(".venv/lib").exists(), "{layers}");
    }
}
