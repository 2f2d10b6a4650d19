//! What is in no process's own memory, or is used when no command runs: files in memory, socket buffers,
//! watchers for files, and what background jobs store. Real attempts with small limits, where no control
//! group counts for us.

use std::path::Path;

use convoke_sandbox::{Access, Ending, LayerSet, Limits};

use super::{Inside, World, in_both_sets};
use crate::{sleepers, unique_seconds, until};

in_both_sets! {
    files_in_memory_count
    full_sockets_count
    watchers_for_files_are_few
    background_jobs_are_held_to_all_of_this_too
    background_jobs_cannot_fill_the_disk_after_their_command
    moderate_use_is_nothing_to_end_a_command_for
}

const LIMITS: Limits = Limits { memory: 256 << 20, processes: 40, file_size: 64 << 20, open_files: 4096 };

/// Half a gibibyte in files without a name, a megabyte at a time, none of it mapped.
const FILES: &str = "perl -e 'my $name = \"x\"; for (1..32) { my $fd = syscall(319, $name, 0); open(my $h, \
    \"+>&=\", $fd) or die; push @all, $h; syswrite($h, \"a\" x (1 << 20)) for 1..16; select(undef, undef, \
    undef, 0.02) } print \"kept\\n\"; sleep 60'";

/// Pairs of sockets, each written to until it takes no more: 200 kilobytes at least.
const SOCKETS: &str = "perl -MSocket -MIO::Handle -e 'for (1..1500) { socketpair(my $a, my $b, AF_UNIX, \
    SOCK_STREAM, 0) or die $!; push @all, $a, $b; for my $s ($a, $b) { $s->blocking(0); 1 while defined \
    syswrite($s, \"a\" x 65536) } } print \"kept\\n\"; sleep 60'";

const WATCHERS: &str = "perl -e 'for (1..100) { my $fd = syscall(294, 0); last if $fd < 0; $n++ } \
    print \"kept $n\\n\"; sleep 60'";

async fn inside(world: &World, set: LayerSet, limits: Limits) -> Inside {
    let mut policy = world.policy(Access::Workspace, "a");
    policy.limits = limits;
    world.shell(set, policy).await
}

async fn is_ended(set: LayerSet, command: &str, limit: &str) {
    let world = World::new();
    let mut inside = inside(&world, set, LIMITS).await;
    let finished = inside.run(command).await;
    let ended = matches!(&finished.ending, Ending::LimitPassed { what } if what.contains(limit));
    assert!(ended, "{command}: {finished:?}");
    inside.check("echo on", "on\n").await;
}

async fn files_in_memory_count(set: LayerSet) {
    is_ended(set, FILES, "memory").await;
}

async fn full_sockets_count(set: LayerSet) {
    is_ended(set, SOCKETS, "memory").await;
}

async fn watchers_for_files_are_few(set: LayerSet) {
    is_ended(set, WATCHERS, "inotify").await;
}

async fn background_jobs_are_held_to_all_of_this_too(set: LayerSet) {
    for job in [FILES, WATCHERS] {
        let world = World::new();
        let mut inside = inside(&world, set, LIMITS).await;
        let seconds = unique_seconds();
        inside.check(&format!("sleep {seconds} & {job} >/dev/null & echo begun"), "begun\n").await;
        until("the jobs are ended", || sleepers(&seconds) == 0).await;
        inside.check("echo on", "on\n").await;
    }
}

/// Bytes of the files in a directory.
fn stored(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|about| about.len()).sum()
}

async fn background_jobs_cannot_fill_the_disk_after_their_command(set: LayerSet) {
    let world = World::new();
    let limits = Limits { file_size: 1 << 20, ..LIMITS };
    let mut inside = inside(&world, set, limits).await;
    let seconds = unique_seconds();
    let job = "(for i in {1..100}; do head -c 1000000 /dev/zero > $TMPDIR/f$i; done)";
    inside.check(&format!("sleep {seconds} & {job} & echo begun"), "begun\n").await;
    let private = world.at("state/a/tmp");
    until("the job has stored more than it may", || stored(&private) > 8 << 20).await;
    until("the jobs are ended", || sleepers(&seconds) == 0).await;
}

async fn moderate_use_is_nothing_to_end_a_command_for(set: LayerSet) {
    let world = World::new();
    let mut inside = inside(&world, set, LIMITS).await;
    let files = FILES.replace("1..32", "1..8").replace("sleep 60", "select(undef, undef, undef, 0.5)");
    inside.check(&files, "kept\n").await;
    let sockets =
        SOCKETS.replace("1..1500", "1..100").replace("sleep 60", "select(undef, undef, undef, 0.5)");
    inside.check(&sockets, "kept\n").await;
    let watchers =
        WATCHERS.replace("1..100", "1..20").replace("sleep 60", "select(undef, undef, undef, 0.5)");
    inside.check(&watchers, "kept 20\n").await;
}
