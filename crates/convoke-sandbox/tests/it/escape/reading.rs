//! Reading keys, the journal, other agents' notes and other processes. Here the command itself must not learn
//! the secret, so what it printed is what is looked at.

use super::attempt::{Attempt, Tried};
use super::world::World;

const fn read(name: &'static str, command: &'static str) -> Attempt {
    Attempt::new(name, "reading", command, |world, tried| world.told(&tried.text))
}

/// A person's or the harness's own opening of a file that a command has prepared: by the handle of the tree
/// where there is one, as the file tools do it, and by its path where there is none.
fn host_reads(world: &World, tried: &Tried<'_>) -> bool {
    use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
    let read = || match tried.shell.and_then(convoke_sandbox::Shell::root) {
        Some(root) => {
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
            let file =
                openat2(root, "door/key", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty(), resolve).ok()?;
            std::io::read_to_string(std::fs::File::from(file)).ok()
        }
        None => std::fs::read_to_string(world.at("home/project/door/key")).ok(),
    };
    (0..300).any(|_| read().is_some_and(|text| world.told(&text)))
}

pub(super) const ALL: &[Attempt] = &[
    read("ssh-key", "cat {home}/.ssh/key; cat ~/.ssh/key"),
    read("cloud-credentials", "cat {home}/.aws/credentials"),
    read("token-in-cache", "cat {home}/.cache/tool/token ~/.cache/tool/token"),
    read("journal", "cat {journal}/db"),
    read("configuration", "cat {config}/config.toml"),
    read("other-agent", "cat {state}/b/notes"),
    read("everything-below", "grep -rs KEY {home} {journal} {config} {state} 2>/dev/null"),
    read("key-by-symlink", "ln -s {home}/.ssh s && cat s/key"),
    read("key-by-dot-dot", "cat ../.ssh/key ../../home/.ssh/key ../../../home/.ssh/key"),
    read("key-by-hard-link", "ln {home}/.ssh/key k && cat k"),
    read("key-by-rename", "mv {home}/.ssh s; cat s/key"),
    read("key-by-proc-root", "cat /proc/self/root/{home}/.ssh/key /proc/1/root/{home}/.ssh/key"),
    read("key-by-foreign-root", "cat /proc/{foreign}/root/{home}/.ssh/key").laid(World::stranger),
    read("key-by-foreign-cwd", "cat /proc/{foreign}/cwd/../home/.ssh/key").laid(World::stranger),
    read("key-by-foreign-descriptor", "cat /proc/{foreign}/fd/0").laid(World::stranger),
    read("key-by-stolen-descriptor", r#"perl -e '$p = call({sys:pidfd_open}, {foreign}, 0); $f = call({sys:pidfd_getfd}, $p, 0, 0); open(F, "<&=", $f); print <F>'"#)
        .laid(World::stranger),
    read(
        "key-by-file-handle",
        r#"perl -e '$h = pack("H*", "{handle}"); opendir(D, "."); $f = call({sys:open_by_handle_at}, fileno(D), $h, 0); open(F, "<&=", $f); print <F>'"#,
    )
    .laid(|world| {
        world.host_word(
            "{handle}",
            r#"perl -e '$h = pack("Ii", 64, 0) . "\0" x 64; $m = pack("i", 0); call({sys:name_to_handle_at}, -100, "{home}/.ssh/key", $h, $m, 0) == 0 and print unpack("H*", $h)'"#,
        );
    }),
    read("key-by-mount", "mkdir m; m=; unshare -m true && m='unshare -m'; $m sh -c 'mount --bind {home}/.ssh \
        m; cat m/key; umount {home}; cat {home}/.ssh/key'"),
    read("key-by-editor", "cp {home}/.ssh/key k; dd if={home}/.ssh/key; tar c {home}/.ssh; git --no-pager \
        diff --no-index /dev/null {home}/.ssh/key; cat k"),
    read("key-left-for-next-shell", "rm -rf src; ln -s {home}/.ssh src; ln -s {home}/.ssh \
        .git").again("cat src/key .git/key"),
    read("key-by-alternates", "git -C {home}/old --no-pager show HEAD:key; git init -q r && echo \
        {home}/old/.git/objects > r/.git/objects/info/alternates && git -C r --no-pager cat-file -p {object}")
        .laid(|world| {
            world.host("git init -q {home}/old && cp {home}/.ssh/key {home}/old/key && cd {home}/old && git \
                add -A && git -c user.name=t -c user.email=t@t commit -qm m");
            world.host_word("{object}", "git -C {home}/old rev-parse HEAD:key");
        }),
    read("environment-of-another", "tr '\\0' '\\n' < /proc/{foreign}/environ").laid(World::stranger),
    read("memory-of-another", r#"perl -e 'open(F, "<", "/proc/{foreign}/mem"); sysseek(F, {environment}, 0); sysread(F, $b, 75); print $b'"#)
        .laid(World::stranger),
    read(
        "memory-by-call",
        r#"perl -e '$b = "\0" x 75; $i = pack("QQ", unpack("Q", pack("P", $b)), 75); $o = pack("QQ", {environment}, 75); call({sys:process_vm_readv}, {foreign}, $i, 1, $o, 1, 0); print $b'"#,
    )
    .laid(World::stranger),
    Attempt::new("arguments-of-another", "reading", "cat /proc/{foreign}/cmdline | tr '\\0' ' \
        '", |world, tried| {
        tried.text.contains(&format!("stranger-{}", world.number))
    })
    .laid(World::stranger),
    Attempt::new("size-of-hidden-file", "reading", "stat -c %s {journal}/sized", |world, tried| {
        tried.text.trim() == world.number.to_string()
    })
    .laid(|world| {
        let file = std::fs::File::create(world.at("journal/sized")).unwrap();
        file.set_len(world.number).unwrap();
    }),
    Attempt::new("names-of-hidden-files", "reading", "ls -a {journal} {home}/.ssh {state}/b", |_, tried| {
        ["db\n", "key\n", "notes\n"].iter().any(|name| tried.text.contains(name))
    }),
    Attempt::new("passwords-of-root", "reading", "cat /etc/shadow", |_, tried| {
        std::fs::read_to_string("/etc/shadow").is_ok_and(|text| tried.text.contains(text.lines().next().unwrap_or("\n")))
    }),
    Attempt::new(
        "disk-opened",
        "reading",
        r#"for d in /dev/vda /dev/sda /dev/nvme0n1 /dev/xvda; do [ -b $d ] && perl -e '{begin} open(F, "<", $ARGV[1]); {stay}' {mark} $d; done"#,
        |world, _| world.descriptors().iter().any(|link| link.starts_with("/dev/") && !link.starts_with("/dev/null")),
    ),
    read(
        "key-in-keyring",
        r#"perl -e '$k = call({sys:keyctl}, 10, -4, "user", "{mark}", 0); $b = "\0" x 100; call({sys:keyctl}, 11, $k, $b, 100); print $b'"#,
    )
    .laid(|world| {
        world.host(r#"perl -e '$s = $ENV{SECRET}; call({sys:add_key}, "user", "{mark}", $s, length $s, -4)'"#);
        world.undo(r#"perl -e '$k = call({sys:keyctl}, 10, -4, "user", "{mark}", 0); call({sys:keyctl}, 21, $k)'"#);
    }),
    Attempt::new("host-tool-by-symlink", "reading", "ln -s {home}/.ssh door", host_reads),
    Attempt::new(
        "host-tool-in-race",
        "reading",
        r#"mkdir d door; echo no > d/key; ln -s {home}/.ssh s; rmdir door; ln -s d door; perl -e 'if (fork) { exit } for (1..20000) { symlink("d", "t"); rename("t", "door"); symlink("../.ssh", "t"); rename("t", "door"); symlink("{home}/.ssh", "t"); rename("t", "door") }' {mark}"#,
        host_reads,
    ),
    Attempt::new("private-files-readable", "reading", "umask 0; echo x > ${TMPDIR:-.}/f; chmod 777 \
        ${TMPDIR:-.}; chmod 777 {state}/a", |world, _| {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(world.at("state/a")).unwrap().mode() & 0o077 != 0
    })
    ,
];
