//! Writing where nothing may be written: by every name a file has, by mounts, by links, by what the next
//! shell finds.

use std::os::unix::fs::MetadataExt;

use convoke_sandbox::Access;

use super::attempt::{Attempt, Tried};
use super::world::World;

const fn write(name: &'static str, command: &'static str) -> Attempt {
    // That something outside has changed is looked at for every attempt.
    Attempt::new(name, "writing", command, |_, tried| tried.touched)
}

const fn set_id(name: &'static str, command: &'static str) -> Attempt {
    Attempt::new(name, "writing", command, |world, _| {
        world.anywhere(|about| about.is_file() && about.mode() & 0o6000 != 0)
    })
}

fn tree_changed(world: &World, _: &Tried<'_>) -> bool {
    std::fs::read_to_string(world.at("home/project/src/main")).ok().as_deref() != Some("public\n")
}

/// A program of 64 bits that speaks to the kernel as one of 32 bits would: `chmod("s", 04755)`, then an end.
const OLD_CALL: &str = r#"cp /bin/true s; perl -e '
$path = 0x400000 + 64 + 56; $code = pack("C*", 0xb8,15,0,0,0, 0xbb) . pack("V", $path) . pack("C*", 0xb9,0xed,0x09,0,0, 0xcd,0x80, 0xb8,1,0,0,0, 0x31,0xdb, 0xcd,0x80);
$entry = $path + 8; $size = 64 + 56 + 8 + length $code;
print pack("C16 v v V Q Q Q V v v v v v v", 0x7f,0x45,0x4c,0x46,2,1,1,(0)x9, 2,62,1,$entry,64,0,0,64,56,1,0,0,0), pack("V V Q Q Q Q Q Q", 1,5,0,0x400000,0x400000,$size,$size,4096), "s\0\0\0\0\0\0\0", $code' > old; chmod +x old; ./old"#;

pub(super) const ALL: &[Attempt] = &[
    write("plain-file", "echo x > {elsewhere}/new"),
    write("append", "echo x >> {elsewhere}/file"),
    write("dot-dot", "echo x > ../../elsewhere/new; echo x > ../../../elsewhere/new"),
    write("truncate", "truncate -s 0 {elsewhere}/file"),
    write("remove", "rm -rf {elsewhere}/file {elsewhere}/dir"),
    write("make-directory", "mkdir {elsewhere}/new"),
    write("make-fifo", "mkfifo {elsewhere}/new"),
    write("symlink-to-file", "ln -s {elsewhere}/file l && echo x >> l"),
    write("symlink-to-directory", "ln -s {elsewhere} l && echo x > l/new"),
    write("symlink-made-outside", "ln -s /etc/passwd {elsewhere}/new"),
    write(
        "symlink-race",
        r#"mkdir in; perl -e 'for (1..500) { for $to ("in", "{elsewhere}") { symlink($to, "t"); rename("t", "l") } }' &
        while kill -0 $!; do echo x > l/new; done 2>/dev/null"#,
    ),
    write("hard-link", "ln {elsewhere}/file h && echo x >> h"),
    write("hard-link-made-before", "echo x >> linked; perl -e 'open(F, \"+<\", \"linked\"); print F \"y\"'")
        .laid(|world| {
            std::fs::hard_link(world.at("elsewhere/file"), world.at("home/project/linked")).unwrap()
        }),
    write(
        "hard-link-to-cache-made-before",
        "chmod u+w .venv/lib/x; echo x >> .venv/lib/x; truncate -s 0 .venv/lib/x",
    )
    .laid(|world| {
        std::fs::create_dir_all(world.at("home/project/.venv/lib")).unwrap();
        world.put("home/.cache/tool/x", "public\n");
        world.host("chmod 444 {home}/.cache/tool/x; ln {home}/.cache/tool/x .venv/lib/x");
    }),
    write("hard-link-from-cache", "ln {home}/.cache/tool/x h || ln ~/.cache/tool/x h; echo x >> h")
        .laid(|world| world.put("home/.cache/tool/x", "public\n")),
    write("proc-self-root", "echo x > /proc/self/root/{elsewhere}/new"),
    write(
        "proc-self-cwd",
        "cd src; echo x > /proc/self/cwd/../../../elsewhere/new; echo x > \
        /proc/self/cwd/../../../../elsewhere/new",
    ),
    write("proc-foreign-root", "echo x > /proc/{foreign}/root/{elsewhere}/new").laid(World::stranger),
    write("proc-foreign-cwd", "echo x > /proc/{foreign}/cwd/new").laid(World::stranger),
    write("proc-foreign-descriptor", "echo x >> /proc/{foreign}/fd/1").laid(World::stranger),
    write("proc-init-root", "echo x > /proc/1/root/{elsewhere}/new"),
    write("dev-fd", "exec 9<{elsewhere}; echo x > /dev/fd/9/new; echo x > /proc/self/fd/9/../file"),
    write(
        "bind-mount",
        "mkdir m; m=; unshare -m true && m='unshare -m'; $m sh -c 'mount --bind {elsewhere} \
        m && echo x > m/new'",
    ),
    write(
        "move-mount",
        "mkdir m n; m=; unshare -m true && m='unshare -m'; $m sh -c 'mount --bind {elsewhere} m && mount \
            --move m n && echo x > n/new'",
    ),
    write(
        "overlay-mount",
        "mkdir m w; m=; unshare -m true && m='unshare -m'; $m sh -c 'mount -t overlay o -o \
            lowerdir=src,upperdir={elsewhere}/dir,workdir={elsewhere} m; mount -t overlay o -o \
            lowerdir=src,upperdir={elsewhere}/dir,workdir=w m; echo x > m/new'",
    ),
    write(
        "remount",
        "m=; unshare -m true && m='unshare -m'; $m sh -c 'mount -o remount,rw,bind /; mount -o \
        remount,rw {elsewhere}; echo x > {elsewhere}/new'",
    ),
    write(
        "unmount",
        "m=; unshare -m true && m='unshare -m'; $m sh -c 'umount -l {elsewhere}; umount -l /; \
        umount -l {home}; echo x > {elsewhere}/new; echo x > {home}/new'",
    ),
    write(
        "mount-in-user-namespace",
        "mkdir m; unshare -Urm sh -c 'mount --bind {elsewhere} m && echo x > \
        m/new'",
    ),
    write(
        "mount-by-new-calls",
        r#"mkdir m; unshare -m true && unshare -m perl -e '$t = call({sys:open_tree}, -100, "{elsewhere}", 1); $t < 0 and exit; open(F, ">", "/proc/self/fd/$t/new"); print F "x"' || perl -e '$t = call({sys:open_tree}, -100, "{elsewhere}", 1); open(F, ">", "/proc/self/fd/$t/new"); print F "x"'"#,
    ),
    write("enter-host-mounts", "nsenter -t {foreign} -m sh -c 'echo x > {elsewhere}/new'")
        .laid(World::stranger),
    write(
        "chroot-and-back",
        r#"mkdir c; perl -e 'chroot("c"); chdir("..") for 1..60; chroot("."); open(F, ">", "{elsewhere}/new"); print F "x"'"#,
    ),
    write("rename-into", "mv src {elsewhere}/new"),
    write("rename-out-of", "mv {elsewhere}/dir ."),
    write("rename-parent", "mv {home} {home}2; mv {state} {state}2"),
    write("rename-workspace", "mv {project} {elsewhere}/new"),
    write(
        "exchange-workspace",
        r#"perl -e 'call({sys:renameat2}, -100, "{project}", -100, "{elsewhere}/dir", 2)'"#,
    ),
    write(
        "exchange-files",
        r#"echo x > mine; perl -e 'call({sys:renameat2}, -100, "mine", -100, "{elsewhere}/file", 2)'"#,
    ),
    write(
        "nameless-file-linked",
        r#"perl -e '$f = call({sys:openat}, -100, ".", 020200002, 0600); call({sys:linkat}, -100, "/proc/self/fd/$f", -100, "{elsewhere}/new", 0x400)'"#,
    ),
    write("times", "touch -d 2001-01-01 {elsewhere}/file"),
    write("mode", "chmod 777 {elsewhere}/file"),
    write("mode-by-handle", r#"perl -e 'open(F, "<", "{elsewhere}/file"); chmod 0777, *F'"#),
    write("owner", "chown 1:1 {elsewhere}/file"),
    write("extended-attribute", r#"perl -e 'call({sys:setxattr}, "{elsewhere}/file", "user.x", "y", 1, 0)'"#),
    write("rc-file", "echo 'touch {elsewhere}/new' >> {home}/.bashrc"),
    write("autostart", "mkdir -p {home}/.config/autostart && echo x > {home}/.config/autostart/x.desktop"),
    write("authorised-key", "echo x >> {home}/.ssh/authorized_keys"),
    write("cache-poisoned", "echo x > {home}/.cache/tool/tool"),
    write("own-configuration", "echo x >> {config}/config.toml"),
    write("journal-written", "echo x >> {journal}/db"),
    write("other-agent-written", "echo x > {state}/b/new"),
    write(
        "archive-with-parents",
        r#"mkdir -p a/b; echo x > a/n; tar cPf t.tar --transform 's,^a/n,{elsewhere}/new,' a/n; tar xPf t.tar"#,
    ),
    write(
        "program-in-memory",
        r##"perl -e '$^F = 99; $f = call({sys:memfd_create}, "m", 0); open(F, ">&=", $f); syswrite(F, "#!/bin/sh\necho x > {elsewhere}/new\n"); exec "/bin/sh", "/proc/self/fd/$f"'"##,
    ),
    write("link-left-for-next-shell", "rm -rf src; ln -s {elsewhere} src").again("echo x > src/new"),
    write("directory-left-for-next-shell", "cd {elsewhere}").again("echo x > new"),
    write("temporary-replaced", "t=${TMPDIR:-$PWD/t}; rm -rf $t; ln -s {elsewhere} $t")
        .again("echo x > ${TMPDIR:-t}/new; echo x > /tmp/{mark}/new"),
    write("home-replaced", "rm -rf ~/.cache; ln -s {elsewhere} ~/.cache")
        .again("mkdir -p ~/.cache/tool; echo x > ~/.cache/new"),
    write(
        "programs-planted-for-next-shell",
        "mkdir bin; for p in bwrap bash env perl git ls; do printf '#!/bin/sh\\necho x > {elsewhere}/new\\n' \
            > bin/$p; chmod +x bin/$p; done; export PATH=$PWD/bin:$PATH BASH_ENV=$PWD/bin/ls",
    )
    .again("ls; bash -c :"),
    Attempt::new("tree-itself", "writing", "echo x >> src/main; echo x >> {project}/src/main", tree_changed)
        .only(Access::ReadOnly),
    Attempt::new("tree-itself-removed", "writing", "rm -rf {project}/src src", tree_changed)
        .only(Access::ReadOnly),
    set_id("set-user-id", "cp /bin/true s && chmod 4755 s"),
    set_id("set-group-id", "cp /bin/true s && chmod 2755 s; perl -e 'chmod 02755, \"s\"'"),
    set_id("set-user-id-by-opening", r#"perl -e 'call({sys:openat}, -100, "s", 0102, 04755)'"#),
    set_id("set-user-id-by-node", r#"perl -e 'call({sys:mknodat}, -100, "s", 0104755, 0)'"#),
    set_id("set-user-id-by-old-call", OLD_CALL),
    Attempt::new("device-made", "writing", "mknod d b 7 0; mknod {elsewhere}/d c 1 3", |world, _| {
        // An overlay marks what was removed by devices of number zero.
        world.anywhere(|about| about.mode() & 0o170_000 & !0o100_000 == 0o020_000 && about.rdev() != 0)
    }),
];
