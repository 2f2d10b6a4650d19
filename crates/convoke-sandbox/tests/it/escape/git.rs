//! Git metadata: what a command leaves there is run, or believed, by a person's git in the tree afterwards.

use super::attempt::{Attempt, Tried};
use super::world::World;

/// The trap is sprung by a person's git, later, and what it does is done outside.
fn sprung(world: &World, _: &Tried<'_>) -> bool {
    world.later_git();
    world.exists("elsewhere/sprung")
}

fn rewritten(world: &World, _: &Tried<'_>) -> bool {
    world.host("git log --format=%s main") != "first\n"
        || !world.host("git fsck --full 2>&1").trim().is_empty()
}

const fn trap(name: &'static str, command: &'static str) -> Attempt {
    Attempt::new(name, "git", command, sprung).laid(World::repository)
}

pub(super) const ALL: &[Attempt] = &[
    trap(
        "git-hook",
        "for h in pre-commit post-checkout post-index-change; do printf '#!/bin/sh\\ntouch \
            {elsewhere}/sprung\\n' > .git/hooks/$h; chmod +x .git/hooks/$h; done",
    ),
    trap(
        "git-hooks-path",
        "mkdir h; printf '#!/bin/sh\\ntouch {elsewhere}/sprung\\n' > h/pre-commit; chmod +x h/pre-commit; \
            git config core.hooksPath h",
    ),
    trap(
        "git-hook-in-the-tree",
        "printf '#!/bin/sh\\ntouch {elsewhere}/sprung\\n' > .husky/_/pre-commit; \
        chmod +x .husky/_/pre-commit",
    )
    .laid(|world| {
        world.repository();
        world.host(
            "mkdir -p .husky/_; echo '*' > .husky/_/.gitignore; git config core.hooksPath \
                .husky/_",
        );
    }),
    trap(
        "git-hooks-in-the-tree-exchanged",
        "mkdir -p h/_; printf '#!/bin/sh\\ntouch {elsewhere}/sprung\\n' > h/_/pre-commit; chmod +x \
         h/_/pre-commit; mv .husky old; mv h .husky",
    )
    .laid(|world| {
        world.repository();
        world.host(
            "mkdir -p .husky/_; echo '*' > .husky/_/.gitignore; git config core.hooksPath \
                .husky/_",
        );
    }),
    trap(
        "git-included-file",
        "printf '[core]\\n\\tfsmonitor = \"touch {elsewhere}/sprung; false\"\\n' >> \
        deep/inner",
    )
    .laid(|world| {
        world.repository();
        world.host(
            "mkdir deep; : > deep/inner; printf '[include]\\n\\tpath = inner\\n' > deep/c; git \
                config include.path ../deep/c",
        );
    }),
    Attempt::new(
        "mercurial-settings",
        "git",
        "printf '[hooks]\\nupdate = touch {elsewhere}/sprung\\n' >> .hg/hgrc",
        |world, _| {
            std::fs::read_to_string(world.at("home/project/.hg/hgrc"))
                .is_ok_and(|text| text.contains("sprung"))
        },
    )
    .laid(|world| {
        world.host("mkdir .hg; : > .hg/hgrc");
    }),
    trap("git-file-watcher", "git config core.fsmonitor 'touch {elsewhere}/sprung; false'"),
    trap(
        "git-filter",
        "git config filter.x.clean 'touch {elsewhere}/sprung; cat'; echo '* filter=x' > \
        .gitattributes",
    ),
    trap("git-difference-program", "git config diff.external 'touch {elsewhere}/sprung; :'"),
    trap(
        "git-configuration-included",
        "printf '[core]\\n\\tfsmonitor = \"touch {elsewhere}/sprung; false\"\\n' > c; printf \
            '[include]\\n\\tpath = ../c\\n' >> .git/config",
    ),
    trap(
        "git-directory-replaced",
        "cp -r .git g; git --git-dir=g config core.fsmonitor 'touch {elsewhere}/sprung; false'; mv .git old; \
            rm -rf .git; echo 'gitdir: g' > .git",
    ),
    trap(
        "git-directory-exchanged",
        r#"cp -r .git g; git --git-dir=g config core.fsmonitor 'touch {elsewhere}/sprung; false'; perl -e 'call({sys:renameat2}, -100, "g", -100, ".git", 2)'"#,
    ),
    trap(
        "git-directory-shared",
        "cp -r .git g; git --git-dir=g config core.fsmonitor 'touch {elsewhere}/sprung; false'; echo ../g > \
            .git/commondir",
    ),
    Attempt::new(
        "git-history-rewritten",
        "git",
        "git -c user.name=t -c user.email=t@t commit -q --amend -m changed",
        rewritten,
    )
    .laid(World::repository),
    Attempt::new(
        "git-objects-removed",
        "git",
        "rm -rf .git/objects/*; rm -rf {project}/.git/objects/*",
        rewritten,
    )
    .laid(World::repository),
    Attempt::new(
        "git-index-locked",
        "git",
        ": > .git/index.lock; : > {project}/.git/index.lock",
        |world, _| world.host("echo z > z; git add z && git ls-files z").trim() != "z",
    )
    .laid(World::repository),
];
