//! Which files commands can read and write, and what of it is seen outside.

use std::path::{Path, PathBuf};
use std::process::Command;

use convoke_sandbox::{Access, Ending, LayerSet, Opening, probe};

use super::{World, in_both_sets, root};
use crate::helper;

in_both_sets! {
    writes_land_only_where_the_policy_says
    what_is_hidden_cannot_be_read_and_exceptions_can
    git_metadata_is_protected_and_git_works
    a_throwaway_copy_shows_writes_inside_and_survives_a_restart
    agents_do_not_see_each_others_copies
    the_handle_of_the_tree_shows_what_commands_see
    a_journal_that_comes_later_is_still_hidden
    secrets_in_the_workspace_stay_covered_whatever_is_renamed
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

async fn writes_land_only_where_the_policy_says(set: LayerSet) {
    for access in [Access::ReadOnly, Access::Workspace] {
        let world = World::new();
        let mut inside = world.shell(set, world.policy(access, "a")).await;
        inside.check("pwd; cat src/main", &format!("{}\ncode\n", inside.shell.tree().display())).await;
        inside
            .check(
                "echo new > new && echo more >> src/main && mkdir -p d/e && mv new d/e/ && cat d/e/new \
                    src/main",
                "new\ncode\nmore\n",
            )
            .await;
        inside.check("rm -r src && ls", "d\n").await;
        let landed = access == Access::Workspace;
        assert_eq!(read(&world.at("home/project/d/e/new")).is_some(), landed);
        assert_eq!(read(&world.at("home/project/src/main")).is_none(), landed);
        inside
            .check(
                "echo t > \"$TMPDIR/t\" && cat \"$TMPDIR/t\" && rm \"$TMPDIR/t\" && f=$(mktemp) && rm \"$f\"",
                "t\n",
            )
            .await;
        for outside in ["elsewhere/new", "elsewhere/file", "journal/new", "home/out/new"] {
            inside.refused(&format!("echo x >> {}", world.at(outside).display())).await;
        }
        for outside in ["/etc/x", "/x", "/usr/bin/x", "/dev/x", "/run/x"] {
            inside.refused(&format!("echo x > {outside}")).await;
        }
        let _ = inside
            .run(&format!("echo x > {}; echo x > /tmp/convoke-escaped", world.at("home/new").display()))
            .await;
        assert_eq!(read(&world.at("home/new")), None);
        assert_eq!(read(Path::new("/tmp/convoke-escaped")), None);
        assert_eq!(read(&world.at("elsewhere/file")).as_deref(), Some("public\n"));
        inside
            .check("echo mine > ~/.settings && cat ~/.settings && cat ~/.cache/tool/thing", "mine\ncached\n")
            .await;
        assert_eq!(read(&world.at("home/.settings")), None);
        inside.refused(&format!("ln {} stolen", world.at("home/.ssh/key").display())).await;
        let link = format!("ln -s {0} link && echo x > link/by-link", world.at("elsewhere").display());
        inside.refused(&link).await;
    }
}

async fn what_is_hidden_cannot_be_read_and_exceptions_can(set: LayerSet) {
    for access in [Access::ReadOnly, Access::Workspace] {
        let world = World::new();
        let mut inside = world.shell(set, world.policy(access, "a")).await;
        for secret in ["home/.ssh/key", "journal/db", "home/.cache/tool/credentials"] {
            let finished = inside.run(&format!("cat {}", world.at(secret).display())).await;
            assert!(!finished.output.text.contains("secret"), "{secret}: {finished:?}");
        }
        inside.refused(&format!("ls {}", world.at("home/.ssh").display())).await;
        inside.check(&format!("cat {}", world.at("home/out/full").display()), "output\n").await;
        inside.check(&format!("cat {}", world.at("home/.cache/tool/thing").display()), "cached\n").await;
        let thing = world.at("home/.cache/tool/thing");
        let wrote = inside.run(&format!("echo mine > {0} && cat {0}", thing.display())).await;
        let layered = set == LayerSet::Namespaces
            && probe(&helper(), None, Path::new("/nowhere")).await.unwrap().overlay.works;
        assert_eq!(wrote.ending == Ending::Exited(0), layered, "{wrote:?}");
        assert_eq!(read(&thing).as_deref(), Some("cached\n"));
        if root() {
            inside.refused("grep -q root: /etc/shadow").await;
            inside.refused("head -c1 /dev/vda | grep -q .").await;
        }
        inside.check("head -c0 /etc/passwd; test -r /etc/passwd && echo yes", "yes\n").await;
    }
}

async fn git_metadata_is_protected_and_git_works(set: LayerSet) {
    for access in [Access::ReadOnly, Access::Workspace] {
        let world = World::new();
        let project = world.at("home/project");
        let git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            command.args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]);
            command.env("GIT_CONFIG_GLOBAL", "/dev/null").args(arguments).current_dir(&project);
            assert!(command.output().unwrap().status.success());
        };
        git(&["init", "-q"]);
        git(&["add", "."]);
        git(&["commit", "-qm", "first"]);
        let config = read(&project.join(".git/config")).unwrap();
        let mut inside = world.shell(set, world.policy(access, "a")).await;
        // A copy made file by file belongs to the same user, and so does everything else here.
        inside
            .check("echo more >> src/main; git status --short; git log --format=%s", " M src/main\nfirst\n")
            .await;
        let _ = inside
            .run(
                "echo '[core] fsmonitor = /bin/false' >> .git/config; echo x > .git/hooks/pre-commit; mv \
                .git .gitt",
            )
            .await;
        let weaker = set == LayerSet::Landlock && access == Access::Workspace;
        if !weaker {
            assert_eq!(read(&project.join(".git/config")).unwrap(), config);
            assert!(!project.join(".git/hooks/pre-commit").exists());
        }
    }
}

async fn a_throwaway_copy_shows_writes_inside_and_survives_a_restart(set: LayerSet) {
    let world = World::new();
    let mut inside = world.shell(set, world.policy(Access::ReadOnly, "a")).await;
    inside
        .check(
            "mkdir made && cd made && echo kept > kept && rm ../src/main && export MARK=here && pwd > \
            /dev/null",
            "",
        )
        .await;
    let state = inside.shell.state().clone();
    assert_eq!(
        state.set.keys().collect::<Vec<_>>(),
        ["MARK", "OLDPWD"],
        "only what the command exported is carried over"
    );
    inside.shell.stop().await.unwrap();
    assert_eq!(read(&world.at("home/project/src/main")).as_deref(), Some("code\n"));
    assert!(!world.at("home/project/made").exists());
    let mut again = world.restored(set, world.policy(Access::ReadOnly, "a"), Some(state)).await;
    let made = again.shell.tree().join("made");
    let expected = Opening { cwd: made, missing_cwd: None, tree: again.shell.tree().to_owned() };
    assert_eq!(again.shell.opening(), &expected);
    again.check("cat kept; ls ../src; echo $MARK", "kept\nhere\n").await;
}

async fn agents_do_not_see_each_others_copies(set: LayerSet) {
    let world = World::new();
    let mut first = world.shell(set, world.policy(Access::ReadOnly, "a")).await;
    let mut second = world.shell(set, world.policy(Access::ReadOnly, "b")).await;
    first.check("echo one > one; echo first > src/main; echo t > $TMPDIR/t", "").await;
    second.check("ls; cat src/main; ls $TMPDIR | grep -cx t || true", "src\ncode\n0\n").await;
    for private in ["state/a", "state/b"] {
        let finished = second.run(&format!("find {} -name one", world.at(private).display())).await;
        assert!(!finished.output.text.contains("/one\n"), "{finished:?}");
    }
}

async fn the_handle_of_the_tree_shows_what_commands_see(set: LayerSet) {
    use std::os::fd::AsRawFd;
    for access in [Access::ReadOnly, Access::Workspace] {
        let world = World::new();
        let mut inside = world.shell(set, world.policy(access, "a")).await;
        inside.check("echo inside > seen", "").await;
        let root = inside.shell.root().unwrap();
        let beneath = |name: &str| PathBuf::from(format!("/proc/self/fd/{}/{name}", root.as_raw_fd()));
        assert_eq!(read(&beneath("seen")).as_deref(), Some("inside\n"));
        std::fs::write(beneath("written"), "by the host\n").unwrap();
        inside.check("cat written", "by the host\n").await;
        assert_eq!(world.at("home/project/written").exists(), access == Access::Workspace);
    }
}

async fn a_journal_that_comes_later_is_still_hidden(set: LayerSet) {
    let world = World::new();
    let mut inside = world.shell(set, world.policy(Access::Workspace, "a")).await;
    std::fs::create_dir(world.at("journal-to-come")).unwrap();
    std::fs::write(world.at("journal-to-come/db"), "secret\n").unwrap();
    let finished = inside.run(&format!("cat {}", world.at("journal-to-come/db").display())).await;
    assert!(!finished.output.text.contains("secret"), "{finished:?}");
}

async fn secrets_in_the_workspace_stay_covered_whatever_is_renamed(set: LayerSet) {
    for access in [Access::ReadOnly, Access::Workspace] {
        let world = World::new();
        std::fs::create_dir_all(world.at("home/project/.config/tool")).unwrap();
        std::fs::write(world.at("home/project/.config/tool/token"), "secret\n").unwrap();
        let policy = || {
            let mut policy = world.policy(access, "a");
            policy.masked.push(world.at("home/project/.config/tool/token"));
            policy
        };
        let mut inside = world.shell(set, policy()).await;
        let _ = inside
            .run(
                "mv .config/tool moved; mv .config moved2; ln -s .config link; rm -f .git; ln -s ../.ssh \
                .git",
            )
            .await;
        inside.shell.stop().await.unwrap();
        let mut again = world.shell(set, policy()).await;
        let found = again.run("grep -r secret . .git/").await;
        assert!(!found.output.text.contains("secret\n"), "{access:?}: {found:?}");
    }
}
