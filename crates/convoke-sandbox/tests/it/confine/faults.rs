//! What once did not hold, or did not work although it was allowed: git metadata besides the one at the top,
//! programs that commands left where the helper looks, and rules that took away more than they were meant to.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use convoke_sandbox::{Access, Ending, LayerSet, Network, Shell};

use super::{World, holds, in_both_sets};

in_both_sets! {
    a_home_can_be_written_and_the_root_listed_whatever_is_missing
    what_is_readable_in_the_workspace_takes_nothing_away_from_it
    no_git_is_taken_from_the_workspace_before_the_door_is_shut
}

fn repository(at: &Path) {
    std::fs::create_dir_all(at).unwrap();
    let mut git = Command::new("git");
    git.args(["-c", "init.defaultBranch=main", "init", "-q"])
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .current_dir(at);
    assert!(git.status().unwrap().success());
}

async fn a_home_can_be_written_and_the_root_listed_whatever_is_missing(set: LayerSet) {
    let world = World::new();
    let mut policy = world.policy(Access::Workspace, "a");
    // The `/run` directory of no user, a configuration that was never written, a home that is only a name.
    policy.hidden.extend([
        "/run/user/4294967290".into(),
        world.at("home/.config/us"),
        "/nonexistent-home".into(),
    ]);
    let mut inside = world.shell(set, policy).await;
    inside.check("touch ~/x && mkdir -p ~/.config/mine && ls ~ | grep -x x", "x\n").await;
    inside.check("git config --global user.name me && git config --global user.name", "me\n").await;
    if set == LayerSet::Namespaces {
        inside.check("ls / | grep -x etc; ls /run >/dev/null", "etc\n").await;
    }
    assert!(!world.at("home/x").exists());
}

async fn what_is_readable_in_the_workspace_takes_nothing_away_from_it(set: LayerSet) {
    let world = World::new();
    std::fs::create_dir_all(world.at("home/project/venv/bin")).unwrap();
    let mut policy = world.policy(Access::Workspace, "a");
    policy.readable.extend([world.at("home/project/venv"), world.at("home/project/venv/bin")]);
    let mut inside = world.shell(set, policy).await;
    inside
        .check(
            "touch new && mkdir d && touch venv/bin/tool && ls && ls venv/bin",
            "d\nnew\nsrc\nvenv\ntool\n",
        )
        .await;
}

async fn no_git_is_taken_from_the_workspace_before_the_door_is_shut(set: LayerSet) {
    let world = World::new();
    let project = world.at("home/project");
    repository(&project);
    std::fs::create_dir(project.join("bin")).unwrap();
    let trap = project.join("bin/git");
    let sprung = world.at("elsewhere/sprung");
    std::fs::write(&trap, format!("#!/bin/sh\ntouch {}\nexec /usr/bin/git \"$@\"\n", sprung.display()))
        .unwrap();
    std::fs::set_permissions(&trap, PermissionsExt::from_mode(0o755)).unwrap();
    let mut config = world.config(set, world.policy(Access::ReadOnly, "a"), None);
    config.env.insert("PATH".into(), format!("{}:/usr/bin:/bin", project.join("bin").display()));
    let shell = Shell::start(config).await.unwrap();
    assert!(shell.tree().is_dir() && !sprung.exists(), "a command's git has run outside");
}

#[tokio::test]
async fn nested_git_metadata_is_protected_with_the_way_to_it() {
    if !holds(LayerSet::Namespaces).await {
        return;
    }
    let world = World::new();
    let project = world.at("home/project");
    for place in ["", "sub/inner"] {
        repository(&project.join(place));
    }
    // A repository whose metadata stand elsewhere in the workspace.
    std::fs::create_dir(project.join("apart")).unwrap();
    std::fs::rename(project.join("sub/inner/.git"), project.join("meta")).unwrap();
    std::fs::write(project.join("apart/.git"), "gitdir: ../meta\n").unwrap();
    repository(&project.join("sub/inner"));
    let config = |at: &str| std::fs::read_to_string(project.join(at)).unwrap();
    let before = ["sub/inner/.git/config", "meta/config", "apart/.git"].map(config);
    let mut inside = world.shell(LayerSet::Namespaces, world.policy(Access::Workspace, "a")).await;
    for command in [
        "git -C sub/inner config core.fsmonitor x",
        "git -C apart config core.fsmonitor x",
        "echo x > sub/inner/.git/hooks/pre-commit",
        "echo 'gitdir: ../mine' > apart/.git",
        "mv sub/inner/.git away",
        "mv sub/inner away",
        "mv sub away",
        "mv apart away",
        "mv meta away",
        "rm -rf apart/.git",
    ] {
        inside.refused(command).await;
    }
    inside
        .check("echo x > sub/inner/f && mv sub/inner/f g && cat g && git -C sub/inner status --short", "x\n")
        .await;
    assert_eq!(["sub/inner/.git/config", "meta/config", "apart/.git"].map(config), before);
    assert!(!project.join("sub/inner/.git/hooks/pre-commit").exists());
}

#[tokio::test]
async fn a_workspace_whose_git_is_a_link_is_refused_in_words() {
    if !holds(LayerSet::Namespaces).await {
        return;
    }
    let world = World::new();
    let project = world.at("home/project");
    repository(&project);
    std::fs::rename(project.join(".git"), project.join("real")).unwrap();
    std::os::unix::fs::symlink("real", project.join(".git")).unwrap();
    let error =
        Shell::start(world.config(LayerSet::Namespaces, world.policy(Access::Workspace, "a"), None)).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("is a symbolic link") && error.contains("gitdir: PATH"), "{error}");
    let reading = world.config(LayerSet::Namespaces, world.policy(Access::ReadOnly, "b"), None);
    assert!(Shell::start(reading).await.is_ok(), "nothing needs protection from a throwaway copy");
}

#[tokio::test]
async fn refused_hosts_are_told_with_the_command_that_asked_for_them() {
    if !holds(LayerSet::Namespaces).await {
        return;
    }
    let world = World::new();
    let mut policy = world.policy(Access::Workspace, "a");
    policy.network = Network::Hosts(vec!["allowed.invalid".into()]);
    let mut inside = world.shell(LayerSet::Namespaces, policy).await;
    let ask = |host: &str| {
        format!(
            "exec 3<>/dev/tcp/127.0.0.1/${{http_proxy##*:}}; printf 'CONNECT {host} HTTP/1.1\\r\\nHost: \
             {host}\\r\\n\\r\\n' >&3; head -n1 <&3 | cut -d' ' -f2; exec 3>&-"
        )
    };
    let both = format!("{}; {}", ask("refused.example:443"), ask("other.example:8443"));
    let finished = inside.run(&both).await;
    assert_eq!(finished.ending, Ending::Exited(0), "{finished:?}");
    assert_eq!(finished.refused_hosts, ["other.example:8443", "refused.example"], "{finished:?}");
    let next = inside.run("true").await;
    assert!(next.refused_hosts.is_empty(), "{next:?}");
}
