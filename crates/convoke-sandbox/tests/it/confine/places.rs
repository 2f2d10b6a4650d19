//! What of a workspace reaches further than the workspace: files that are linked to places outside, what is
//! run later when the tree is used, and places that are seen twice.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use convoke_sandbox::{Access, LayerSet};

use super::{World, in_both_sets};

in_both_sets! {
    a_file_that_is_linked_to_a_place_outside_is_written_for_this_tree_alone
    a_link_to_a_file_outside_cannot_be_made_by_a_command
    what_git_and_others_run_later_cannot_be_written_where_there_are_mounts
    a_person_is_known_by_name_and_their_tokens_stay_with_them
}

/// Names the second place at which the temporary directory is mounted, for the run of a test in a mount
/// namespace of its own.
const AGAIN_VARIABLE: &str = "CONVOKE_TEST_AGAIN";

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

async fn a_file_that_is_linked_to_a_place_outside_is_written_for_this_tree_alone(set: LayerSet) {
    for access in [Access::ReadOnly, Access::Workspace] {
        let world = World::new();
        std::fs::create_dir_all(world.at("home/project/.venv/lib")).unwrap();
        for name in ["home/project/.venv/lib/linked", "home/project/second"] {
            std::fs::hard_link(world.at("elsewhere/file"), world.at(name)).unwrap();
        }
        std::fs::hard_link(world.at("home/project/src/main"), world.at("home/project/inside")).unwrap();
        let mut inside = world.shell(set, world.policy(access, "a")).await;
        inside.check("echo x >> .venv/lib/linked; cat .venv/lib/linked second", "public\nx\npublic\n").await;
        let _ = inside.run("perl -e 'open(F, \"+<\", \"second\"); print F \"y\"'; chmod 600 second").await;
        assert_eq!(read(&world.at("elsewhere/file")), "public\n", "{access:?}");
        let stays = access == Access::Workspace;
        let linked = world.at("elsewhere/file").metadata().unwrap().nlink() == 1;
        assert_eq!(linked, stays, "only where commands write the tree itself its names are parted");
        let said = inside.shell.notes().join("\n");
        assert_eq!(said.contains("2 are now private copies"), stays, "{said}");
        assert_eq!(
            world.at("home/project/inside").metadata().unwrap().nlink(),
            2,
            "links within the tree stay"
        );
        inside.shell.stop().await.unwrap();
        let again = world.shell(set, world.policy(access, "a")).await;
        assert!(again.shell.notes().is_empty(), "told once");
    }
}

async fn a_link_to_a_file_outside_cannot_be_made_by_a_command(set: LayerSet) {
    let world = World::new();
    let mut inside = world.shell(set, world.policy(Access::Workspace, "a")).await;
    for (name, text) in [
        ("elsewhere/file", "public\n"),
        ("home/.cache/tool/thing", "cached\n"),
        ("home/out/full", "output\n"),
    ] {
        let at = world.at(name);
        inside.refused(&format!("ln {} link", at.display())).await;
        let _ = inside.run("test -e link && echo x >> link; rm -f link").await;
        assert_eq!((read(&at).as_str(), at.metadata().unwrap().nlink()), (text, 1), "{name}");
    }
}

async fn what_git_and_others_run_later_cannot_be_written_where_there_are_mounts(set: LayerSet) {
    let world = World::new();
    let project = world.at("home/project");
    let git = |dir: &Path, arguments: &[&str]| {
        let mut command = Command::new("git");
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").args(arguments).current_dir(dir);
        assert!(command.output().unwrap().status.success(), "{arguments:?}");
    };
    std::fs::create_dir(project.join("nested")).unwrap();
    for dir in [&project, &project.join("nested")] {
        git(dir, &["init", "-q"]);
        git(dir, &["config", "core.hooksPath", ".husky/_"]);
    }
    git(&project, &["config", "include.path", "../included"]);
    for directory in [".husky/_", "nested/.husky/_", ".hg", "deep/.svn"] {
        std::fs::create_dir_all(project.join(directory)).unwrap();
    }
    let files = [
        ".husky/_/pre-commit",
        "nested/.husky/_/pre-commit",
        "included",
        "further",
        ".hg/hgrc",
        "deep/.svn/entries",
    ];
    for file in files {
        std::fs::write(project.join(file), "\n").unwrap();
    }
    std::fs::write(project.join("included"), "[include]\n\tpath = further\n").unwrap();
    let before: Vec<String> = files.iter().map(|file| read(&project.join(file))).collect();
    let mut inside = world.shell(set, world.policy(Access::Workspace, "a")).await;
    for file in files {
        let above = Path::new(file).parent().unwrap().display();
        let _ = inside
            .run(&format!(
                "echo x >> {file}; rm -rf {file}; [ {above} ] && mv {above} gone; mkdir -p {above}; echo x > \
                    {file}"
            ))
            .await;
    }
    let _ = inside.run("mv .husky gone; rm -rf .husky; mv deep away").await;
    if set == LayerSet::Namespaces {
        let after: Vec<String> = files.iter().map(|file| read(&project.join(file))).collect();
        assert_eq!(after, before);
        inside.check("echo y > .husky/other && cat .husky/other && ls .husky/_", "y\npre-commit\n").await;
    }
    let named: Vec<PathBuf> = inside.shell.named_by_git().to_vec();
    assert_eq!(
        named,
        [".husky/_", "further", "included"].map(|name| project.join(name)),
        "the file tools go by this"
    );
}

async fn a_person_is_known_by_name_and_their_tokens_stay_with_them(set: LayerSet) {
    for access in [Access::ReadOnly, Access::Workspace] {
        let world = World::new();
        std::fs::create_dir_all(world.at("home/.config/git")).unwrap();
        std::fs::write(world.at("home/.config/git/config"), "[http]\n\textraheader = KEY\n").unwrap();
        let text = "[user]\n\tname = Some Body\n[url \"https://KEY@host/\"]\n\tinsteadOf = https://host/\n";
        std::fs::write(world.at("home/.gitconfig"), text).unwrap();
        let mut inside = world.shell(set, world.policy(access, "a")).await;
        inside.check("git config --global user.name", "Some Body\n").await;
        let home = world.at("home");
        let look = format!(
            "cat ~/.gitconfig ~/.config/git/config {0}/.gitconfig {0}/.config/git/config; git config -l",
            home.display()
        );
        let finished = inside.run(&look).await;
        assert!(!finished.output.text.contains("KEY"), "{finished:?}");
        // What a command left in its place is not written through.
        let _ = inside.run("rm -f ~/.gitconfig; ln -s ~/target ~/.gitconfig").await;
        inside.shell.stop().await.unwrap();
        let mut again = world.shell(set, world.policy(access, "a")).await;
        again.refused("cat ~/target").await;
    }
}

#[tokio::test]
async fn what_is_hidden_is_hidden_at_a_second_mount_too() {
    let Some(again) = std::env::var_os(AGAIN_VARIABLE).map(PathBuf::from) else {
        println!("not run: `outside` runs this where a directory is mounted twice");
        return;
    };
    for set in [LayerSet::Namespaces, LayerSet::Landlock] {
        for access in [Access::ReadOnly, Access::Workspace] {
            let world = World::new();
            let rest = world
                .at("home")
                .strip_prefix(std::env::temp_dir().canonicalize().unwrap())
                .unwrap()
                .to_owned();
            let second = again.join(rest);
            assert_eq!(read(&second.join(".ssh/key")), "secret\n", "without a sandbox it can be read");
            let mut inside = world.shell(set, world.policy(access, "a")).await;
            for secret in [".ssh/key", ".cache/tool/credentials", "../journal/db"] {
                let finished = inside.run(&format!("cat {}", second.join(secret).display())).await;
                assert!(
                    !finished.output.text.contains("secret"),
                    "{set:?} {access:?} {secret}: {finished:?}"
                );
            }
            inside.check("cat src/main", "code\n").await;
        }
    }
}

mod outside {
    use super::*;
    use crate::confine::outside::{AS_NOBODY, open_directory};
    use crate::confine::{again, root};

    #[test]
    fn a_home_that_is_mounted_twice_is_hidden_twice_from_root_and_from_a_user() {
        if !root() {
            println!("not run: only root can mount something twice");
            return;
        }
        // Not in `/tmp`, which is covered as a whole.
        let twice = tempfile::Builder::new().prefix("twice").tempdir_in("/var/lib").unwrap();
        std::fs::set_permissions(twice.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let dir = open_directory();
        let from = dir.path().display();
        let to = twice.path().display();
        let script =
            format!("mount --bind {from} {to} && {AGAIN_VARIABLE}={to} && export {AGAIN_VARIABLE} && \"$@\"");
        for user in [&[][..], &AS_NOBODY[..]] {
            let wrapper: Vec<&str> =
                ["unshare", "-m", "sh", "-c", &script, "sh"].iter().chain(user).copied().collect();
            again(&wrapper, dir.path(), &["what_is_hidden_is_hidden_at_a_second_mount_too"]);
        }
    }
}
