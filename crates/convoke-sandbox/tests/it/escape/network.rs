//! Reaching other processes: over the internet protocols, sockets of the machine, shared memory and queues.

use super::attempt::Attempt;
use super::world::World;

const fn reach(name: &'static str, command: &'static str) -> Attempt {
    Attempt::new(name, "network", command, |world, _| world.reached()).laid(|world| world.listen("127.0.0.1"))
}

const fn local(name: &'static str, command: &'static str) -> Attempt {
    Attempt::new(name, "network", command, |world, _| world.reached()).laid(World::listen_here)
}

/// A pair of sockets, one of which is then pointed at the host's own.
macro_rules! pair {
    ($kind:literal, $to:literal) => {
        concat!(
            r#"perl -e '$v = "\0" x 8; call({sys:socketpair}, 1, "#,
            $kind,
            r#", 0, $v) == 0 or exit 1; ($a) = unpack("ii", $v); open(S, "+<&=", $a); use Socket; send(S, "hello", 0, pack_sockaddr_un(""#,
            $to,
            r#"")); connect(S, pack_sockaddr_un(""#,
            $to,
            r#"")); send(S, "hello", 0)'"#
        )
    };
}

pub(super) const ALL: &[Attempt] = &[
    reach("tcp", "exec 9<>/dev/tcp/127.0.0.1/{tcp}"),
    reach("tcp-other-address", "exec 9<>/dev/tcp/127.0.0.2/{tcp}").laid(|world| world.listen("127.0.0.2")),
    reach("tcp-six", r#"perl -e 'use Socket qw(:all); socket(S, AF_INET6, SOCK_STREAM, 0); connect(S, pack_sockaddr_in6({tcp}, inet_pton(AF_INET6, "::1")))'"#)
        .laid(|world| world.listen("::1")),
    reach("tcp-without-connecting", r#"perl -e 'use Socket; socket(S, AF_INET, SOCK_STREAM, 0); send(S, "x", 0x20000000, pack_sockaddr_in({tcp}, inet_aton("127.0.0.1")))'"#),
    reach("tcp-many-paths", r#"perl -e 'use Socket; socket(S, AF_INET, SOCK_STREAM, 262); connect(S, pack_sockaddr_in({tcp}, inet_aton("127.0.0.1")))'"#),
    reach("sctp", r#"perl -e 'use Socket; socket(S, AF_INET, SOCK_STREAM, 132); connect(S, pack_sockaddr_in({tcp}, inet_aton("127.0.0.1")))'"#),
    reach("udp", "echo hello > /dev/udp/127.0.0.1/{udp}"),
    reach("udp-connected", r#"perl -e 'use Socket; socket(S, AF_INET, SOCK_DGRAM, 0); connect(S, pack_sockaddr_in({udp}, inet_aton("127.0.0.1"))); send(S, "x", 0)'"#),
    reach(
        "dns-question",
        r#"perl -e 'use Socket; socket(S, AF_INET, SOCK_DGRAM, 17); $q = pack("n6", 7, 256, 1, 0, 0, 0) . join("", map { chr(length) . $_ } "stolen", "example") . pack("Cnn", 0, 1, 1); send(S, $q, 0, pack_sockaddr_in({udp}, inet_aton("127.0.0.1")))'"#,
    ),
    reach("from-user-namespace", "unshare -Ur bash -c 'exec 9<>/dev/tcp/127.0.0.1/{tcp}' || unshare -n bash \
        -c 'exec 9<>/dev/tcp/127.0.0.1/{tcp}' || exec 9<>/dev/tcp/127.0.0.1/{tcp}"),
    reach("from-foreign-network", "nsenter -t {foreign} -n bash -c 'exec 9<>/dev/tcp/127.0.0.1/{tcp}'").laid(|world| {
        world.listen("127.0.0.1");
        world.stranger();
    }),
    local("unix-stream", r#"perl -e 'use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, pack_sockaddr_un("{elsewhere}/s"))'"#),
    local("unix-datagram", r#"perl -e 'use Socket; socket(S, AF_UNIX, SOCK_DGRAM, 0); send(S, "x", 0, pack_sockaddr_un("{elsewhere}/d"))'"#),
    local("unix-by-symlink", r#"ln -s {elsewhere}/s s; perl -e 'use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, pack_sockaddr_un("s"))'"#),
    local("abstract-stream", r#"perl -e 'use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, pack("S", 1) . "\0{mark}")'"#),
    local("abstract-datagram", r#"perl -e 'use Socket; socket(S, AF_UNIX, SOCK_DGRAM, 0); send(S, "x", 0, pack("S", 1) . "\0{mark}d")'"#),
    local("pair-of-datagrams", pair!("2", "{elsewhere}/d")),
    local("pair-of-raw", pair!("3", "{elsewhere}/d")),
    local("pair-of-raw-nonblocking", pair!("0x80803", "{elsewhere}/d")),
    local("pair-of-streams", pair!("1", "{elsewhere}/s")),
    local("pair-of-packets", pair!("5", "{elsewhere}/d")),
    Attempt::new("packet-socket", "network", r#"perl -e '{begin} socket(S, 17, 3, 0x0300); {stay}' {mark}"#, |world, _| world.holds("socket:")),
    Attempt::new("raw-socket", "network", r#"perl -e '{begin} socket(S, 2, 3, 1); {stay}' {mark}"#, |world, _| world.holds("socket:")),
    Attempt::new("virtual-machine-socket", "network", r#"perl -e '{begin} socket(S, 40, 1, 0); {stay}' {mark}"#, |world, _| world.holds("socket:")),
    Attempt::new("kernel-events-socket", "network", r#"perl -e '{begin} socket(S, 16, 3, 15); {stay}' {mark}"#, |world, _| world.holds("socket:")),
    Attempt::new("crypto-socket", "network", r#"perl -e '{begin} socket(S, 38, 5, 0); {stay}' {mark}"#, |world, _| world.holds("socket:")),
    Attempt::new("shared-memory-read", "network", r#"perl -e '$i = shmget({number}, 0, 0); shmread($i, $b, 0, 30); print $b'"#, |world, tried| world.told(&tried.text))
        .laid(shared_memory),
    Attempt::new("shared-memory-written", "network", r#"perl -e '$i = shmget({number}, 0, 0); shmwrite($i, "changed", 0, 7)'"#, |world, _| {
        world.host(r#"perl -e '$i = shmget({number}, 0, 0); shmread($i, $b, 0, 7); print $b'"#) == "changed"
    })
    .laid(shared_memory),
    Attempt::new("message-queue", "network", r#"perl -e '$i = msgget({number}, 0); msgrcv($i, $b, 64, 0, 04000); print $b'"#, |world, tried| world.told(&tried.text))
        .laid(|world| {
            world.host(r#"perl -e '$i = msgget({number}, 01600); msgsnd($i, pack("l! a*", 1, $ENV{SECRET}), 0)'"#);
            world.undo(r#"perl -e '$i = msgget({number}, 0); msgctl($i, 0, 0)'"#);
        }),
    Attempt::new("semaphore", "network", r#"perl -e '$i = semget({number}, 1, 0); semctl($i, 0, 16, 7)'"#, |world, _| {
        world.host(r#"perl -e '$i = semget({number}, 1, 0); print semctl($i, 0, 12, 0)'"#) == "7"
    })
    .laid(|world| {
        world.host(r#"perl -e 'semget({number}, 1, 01600)'"#);
        world.undo(r#"perl -e '$i = semget({number}, 1, 0); semctl($i, 0, 0, 0)'"#);
    }),
    Attempt::new(
        "named-queue",
        "network",
        r#"perl -e '$f = call({sys:mq_open}, "{mark}", 2, 0, 0); $b = "\0" x 8192; call({sys:mq_timedreceive}, $f, $b, 8192, 0, 0) > 0 and print $b' | tr -d '\0'"#,
        |world, tried| world.told(&tried.text),
    )
    .laid(|world| {
        world.host(r#"perl -e '$s = $ENV{SECRET}; $f = call({sys:mq_open}, "{mark}", 0102, 0600, 0); call({sys:mq_timedsend}, $f, $s, length $s, 0, 0)'"#);
        world.undo(r#"perl -e 'call({sys:mq_unlink}, "{mark}")'"#);
    }),
];

fn shared_memory(world: &mut World) {
    world.host(r#"perl -e '$i = shmget({number}, 64, 01600); shmwrite($i, $ENV{SECRET}, 0, 30)'"#);
    world.undo(r#"perl -e '$i = shmget({number}, 0, 0); shmctl($i, 0, 0)'"#);
}
