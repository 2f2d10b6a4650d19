//! The kernel and the machine: its settings, its namespaces, its rarer calls. What would do harm without a
//! sandbox is stood in for by something harmless that needs the same right, such as opening for writing
//! without writing.

use super::attempt::{Attempt, Tried};
use super::world::World;

/// A descriptor that must not be had, by what `/proc` calls it.
const fn hold(name: &'static str, command: &'static str, escaped: fn(&World, &Tried<'_>) -> bool) -> Attempt {
    Attempt::new(name, "kernel", command, escaped)
}

/// Whether the attempt's processes are in more than one namespace of a kind; one of them was started plainly.
fn parted(world: &World, kind: &str) -> bool {
    let mut seen: Vec<_> = world
        .marked()
        .iter()
        .filter_map(|path| std::fs::read_link(path.join("ns").join(kind)).ok())
        .collect();
    seen.sort();
    seen.dedup();
    seen.len() > 1
}

fn file_is_number(world: &World, file: &str) -> bool {
    std::fs::read_to_string(file).is_ok_and(|text| text.trim() == world.number.to_string())
}

pub(super) const ALL: &[Attempt] = &[
    hold("sysctl", "echo {number} > /proc/sys/kernel/printk_ratelimit_burst", |world, _| {
        file_is_number(world, "/proc/sys/kernel/printk_ratelimit_burst")
    })
    .laid(|world| {
        let now = std::fs::read_to_string("/proc/sys/kernel/printk_ratelimit_burst").unwrap_or_default();
        world.undo(&format!("[ $(cat /proc/sys/kernel/printk_ratelimit_burst) != {{number}} ] || echo {} > \
            /proc/sys/kernel/printk_ratelimit_burst", now.trim()));
    }),
    hold("sysfs", "echo {number} > /sys/kernel/mm/ksm/sleep_millisecs", |world, _| {
        file_is_number(world, "/sys/kernel/mm/ksm/sleep_millisecs")
    })
    .laid(|world| {
        let now = std::fs::read_to_string("/sys/kernel/mm/ksm/sleep_millisecs").unwrap_or_default();
        world.undo(&format!("[ $(cat /sys/kernel/mm/ksm/sleep_millisecs) != {{number}} ] || echo {} > \
            /sys/kernel/mm/ksm/sleep_millisecs", now.trim()));
    }),
    hold("core-pattern", r#"perl -e '{begin} open(F, "+<", "/proc/sys/kernel/core_pattern"); {stay}' {mark}"#, |world, _| world.holds("core_pattern")),
    hold("module-loader", r#"perl -e '{begin} open(F, "+<", "/proc/sys/kernel/modprobe"); {stay}' {mark}"#, |world, _| world.holds("modprobe")),
    hold("magic-key", r#"perl -e '{begin} sysopen(F, "/proc/sysrq-trigger", 1); {stay}' {mark}"#, |world, _| world.holds("sysrq")),
    hold("kernel-log", r#"perl -e '{begin} sysopen(F, "/dev/kmsg", 1); {stay}' {mark}"#, |world, _| world.holds("kmsg")),
    hold("kernel-events", r#"perl -e '{begin} sysopen(F, "/sys/kernel/uevent_helper", 1) || sysopen(F, "/sys/module/kernel/parameters/panic", 1); {stay}' {mark}"#, |world, _| world.holds("/sys/")),
    hold("control-group-made", "for d in /sys/fs/cgroup /sys/fs/cgroup/pids /sys/fs/cgroup/memory; do mkdir \
        $d/{mark}; done", control_group)
        .laid(|world| world.undo("for d in /sys/fs/cgroup /sys/fs/cgroup/pids /sys/fs/cgroup/memory; do [ ! \
            -d $d/{mark} ] || rmdir $d/{mark}; done")),
    hold("control-group-release", r#"perl -e '{begin} sysopen(F, "/sys/fs/cgroup/memory/release_agent", 1) || sysopen(F, "/sys/fs/cgroup/cgroup.procs", 1) || sysopen(F, "/sys/fs/cgroup/pids/cgroup.procs", 1); {stay}' {mark}"#, |world, _| world.holds("/sys/fs/cgroup")),
    hold("user-namespace", r#"perl -e '{begin} {stay}' {mark}; perl -e '{begin} call({sys:unshare}, 0x10000000); {stay}' {mark}"#, |world, _| parted(world, "user")),
    hold("mount-namespace", r#"perl -e '{begin} {stay}' {mark}; perl -e '{begin} call({sys:unshare}, 0x20000); {stay}' {mark}"#, |world, _| parted(world, "mnt")),
    hold("namespace-by-clone", r#"perl -e '{begin} {stay}' {mark}; perl -e 'call({sys:clone}, 0x10000011, 0, 0, 0, 0); select(undef, undef, undef, 1000)' {mark} & sleep 0.1"#, |world, _| parted(world, "user")),
    hold("namespace-by-newer-clone", r#"perl -e '{begin} {stay}' {mark}; perl -e '$a = pack("Q8", 0x10000000, 0, 0, 0, 17, 0, 0, 0); call({sys:clone3}, $a, 64); select(undef, undef, undef, 1000)' {mark} & sleep 0.1"#, |world, _| parted(world, "user")),
    hold("enter-foreign-namespace", r#"perl -e '{begin} {stay}' {mark}; perl -e '{begin} open(F, "<", "/proc/{foreign}/ns/uts"); call({sys:unshare}, 0x4000000); call({sys:setns}, fileno(F), 0); {stay}' {mark}; unshare -u perl -e '{begin} {stay}' {mark}"#, |world, _| parted(world, "uts"))
        .laid(World::stranger),
    hold("chroot", r#"perl -e '{begin} chroot("src"); {stay}' {mark}"#, |world, _| {
        world.marked().iter().any(|path| std::fs::read_link(path.join("root")).is_ok_and(|root| root.ends_with("src")))
    }),
    hold("ring", r#"perl -e '{begin} $p = "\0" x 120; call({sys:io_uring_setup}, 4, $p); {stay}' {mark}"#, |world, _| world.holds("io_uring")),
    hold("bpf", r#"perl -e '{begin} $a = pack("IIII", 2, 4, 4, 1) . "\0" x 100; call({sys:bpf}, 0, $a, 72); {stay}' {mark}"#, |world, _| world.holds("bpf")),
    hold("performance-events", r#"perl -e '{begin} $a = pack("II", 1, 112) . "\0" x 32 . pack("Q", 0x61) . "\0" x 64; call({sys:perf_event_open}, $a, 0, -1, -1, 0); {stay}' {mark}"#, |world, _| world.holds("perf_event")),
    hold("page-faults", r#"perl -e '{begin} call({sys:userfaultfd}, 1); {stay}' {mark}"#, |world, _| world.holds("userfaultfd")),
    hold("file-events", r#"perl -e '{begin} call({sys:fanotify_init}, 0, 0); {stay}' {mark}"#, |world, _| world.holds("fanotify")),
    hold("personality", r#"perl -e '{begin} call({sys:personality}, 0x0400000); {stay}' {mark}"#, |world, _| {
        world.marked().iter().any(|path| std::fs::read_to_string(path.join("personality")).is_ok_and(|text| text.trim() == "00400000"))
    }),
    hold("other-numbers", r#"perl -e '{begin} {stay}' {mark}; perl -e '{begin} call(0x40000000 | {sys:unshare}, 0x10000000); {stay}' {mark}"#, |world, _| parted(world, "user")),
];

fn control_group(world: &World, _: &Tried<'_>) -> bool {
    ["", "pids/", "memory/"]
        .iter()
        .any(|part| std::path::Path::new("/sys/fs/cgroup").join(part).join(&world.mark).exists())
}
