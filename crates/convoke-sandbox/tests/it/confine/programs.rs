//! What programs meet besides files: the network, each other, their limits, and their end.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use convoke_sandbox::{Access, Ending, LayerSet, Limits, Network, OutputSpec, Policy, RunCommand};

use super::{World, holds, in_both_sets};
use crate::{sleepers, unique_seconds, until};

in_both_sets! {
    the_network_is_off_unless_it_is_on
    jobs_directories_and_variables_stay
    ordinary_programs_run
    a_cargo_project_is_built_and_tested_offline_with_the_toolchain_of_a_hidden_home
    commands_inherit_nothing_and_cannot_look_at_the_helper
    bombs_end_at_their_limits
    nothing_lives_on_after_the_shell
}

async fn the_network_is_off_unless_it_is_on(set: LayerSet) {
    let world = World::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    let mut inside = world.shell(set, world.policy(Access::Workspace, "a")).await;
    inside.refused(&format!("({connect}) 2>/dev/null")).await;
    inside.refused("python3 -c 'import socket; socket.socket(socket.AF_UNIX)' 2>/dev/null").await;
    inside.refused("(exec 3<>/dev/udp/1.1.1.1/53 && echo x >&3) 2>/dev/null").await;
    if set == LayerSet::Namespaces {
        let own = "import socket as s; l = s.create_server((\"127.0.0.1\", 0)); c = \
            s.create_connection(l.getsockname()); print(\"met\")";
        inside.check(&format!("python3 -c '{own}'"), "met\n").await;
    }
    drop(inside);
    let mut open =
        world.shell(set, Policy { network: Network::On, ..world.policy(Access::Workspace, "a") }).await;
    open.check(&format!("({connect}) && echo met"), "met\n").await;
    open.refused("python3 -c 'import socket; socket.socket(socket.AF_UNIX)' 2>/dev/null").await;
}

async fn jobs_directories_and_variables_stay(set: LayerSet) {
    let world = World::new();
    let mut inside = world.shell(set, world.policy(Access::Workspace, "a")).await;
    let seconds = unique_seconds();
    inside
        .check(
            &format!("cd src; export A=1; b=2; f() {{ echo f; }}; sleep {seconds} & echo started"),
            "started\n",
        )
        .await;
    inside
        .check(
            "pwd; echo $A $b $GIVEN; f; jobs -rp | wc -l",
            &format!("{}/src\n1 2 yes\nf\n1\n", inside.shell.tree().display()),
        )
        .await;
    let command = RunCommand {
        command: "sleep 1000".to_owned(),
        deadline: Duration::from_millis(300),
        output: OutputSpec::new(inside.full.clone()),
    };
    let finished = inside.shell.run(command, std::future::pending()).await.unwrap();
    assert_eq!((finished.ending, finished.shell_replaced), (Ending::DeadlinePassed, None));
    inside.check("kill %1; echo $b", "2\n").await;
}

async fn ordinary_programs_run(set: LayerSet) {
    let world = World::new();
    let mut inside = world.shell(set, world.policy(Access::ReadOnly, "a")).await;
    inside
        .check(
            "python3 -c 'import tempfile, subprocess, threading; t = threading.Thread(target=print, \
             args=(1,)); t.start(); t.join(); print(subprocess.check_output([\"echo\", \
             \"2\"]).decode().strip())'",
            "1\n2\n",
        )
        .await;
    inside
        .check(
            "git init -q x 2>/dev/null && cd x && echo a > a && git add a && git -c user.name=t -c \
        user.email=t@t commit -qm m && git log --format=%s && cd ..",
            "m\n",
        )
        .await;
    inside
        .check(
            "seq 1 1000 | sort -rn | head -1; tar c src | tar t | head -1; find . -name main | head -1",
            "1000\nsrc/\n./src/main\n",
        )
        .await;
    inside
        .check(
            "cat /proc/self/comm; id -u; cat <(echo sub)",
            &format!(
                "cat\n{}sub\n",
                String::from_utf8(Command::new("id").arg("-u").output().unwrap().stdout).unwrap()
            ),
        )
        .await;
}

async fn commands_inherit_nothing_and_cannot_look_at_the_helper(set: LayerSet) {
    let world = World::new();
    let mut inside = world.shell(set, world.policy(Access::Workspace, "a")).await;
    inside.check("ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 ").await;
    inside
        .check(
            "echo out > /dev/stdout; echo err > /dev/stderr; echo null > /dev/null; cat < /dev/null",
            "out\nerr\n",
        )
        .await;
    inside.refused("cat /proc/$PPID/environ").await;
    inside.refused("readlink /proc/$PPID/fd/0").await;
    inside.refused("ls /proc/$PPID/root/").await;
    inside
        .check(
            "grep -E '^(CapEff|CapPrm|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t' | tr '\\n' ' '",
            "CapPrm:0000000000000000 CapEff:0000000000000000 NoNewPrivs:1 Seccomp:2 ",
        )
        .await;
    let pair = "import socket as s; a, b = s.socketpair(s.AF_UNIX, s.SOCK_STREAM); a.send(b\"x\"); \
        print(b.recv(1).decode())";
    inside.check(&format!("python3 -c '{pair}'"), "x\n").await;
    inside.refused(&format!("python3 -c '{}' 2>/dev/null", pair.replace("STREAM", "DGRAM"))).await;
    for refused in
        ["unshare -U true", "mount -t tmpfs x /tmp", "chmod u+s src", "mknod d c 1 3", "chroot / true"]
    {
        inside.refused(refused).await;
    }
}

async fn bombs_end_at_their_limits(set: LayerSet) {
    let world = World::new();
    let limits = Limits { memory: 300 << 20, processes: 40, file_size: 4 << 20, open_files: 300 };
    let mut inside = world.shell(set, Policy { limits, ..world.policy(Access::ReadOnly, "a") }).await;
    inside
        .check(
            "{ head -c 8M /dev/zero > big || :; } 2>/dev/null; stat -c %s big; ulimit -n",
            "4194304\n300\n",
        )
        .await;
    let since = Instant::now();
    let forks = inside.run("f() { f | f & }; f; sleep 100").await;
    assert!(
        matches!(&forks.ending, Ending::LimitPassed { what } if what.contains("40 processes")),
        "{forks:?}"
    );
    // Each process stays below what one may have, all together do not.
    let memory = inside
        .run(
            "for i in 1 2 3 4 5; do python3 -c 'x = bytearray(90 << 20); import time; time.sleep(100)' & \
            done; wait",
        )
        .await;
    assert!(matches!(&memory.ending, Ending::LimitPassed { what } if what.contains("memory")), "{memory:?}");
    inside.refused("python3 -c 'x = bytearray(1 << 30)' 2>/dev/null").await;
    let disk = inside.run("i=0; while :; do head -c 1M /dev/zero > f$i; i=$((i+1)); sleep 0.01; done").await;
    assert!(
        matches!(&disk.ending, Ending::LimitPassed { what } if what.contains("private files")),
        "{disk:?}"
    );
    println!("four bombs ended in {:?} ({set:?})", since.elapsed());
    inside.check("rm -f f*; echo on", "on\n").await;
}

async fn nothing_lives_on_after_the_shell(set: LayerSet) {
    let world = World::new();
    let mut inside = world.shell(set, world.policy(Access::ReadOnly, "a")).await;
    let seconds = unique_seconds();
    inside
        .run(&format!(
            "sleep {seconds} & setsid sleep {seconds} & (setsid bash -c 'sleep {seconds} & wait' \
        &); nohup sleep {seconds} >/dev/null 2>&1 & sleep 0.1"
        ))
        .await;
    until("all sleep", || sleepers(&seconds) == 4).await;
    let pid = inside.shell.helper_pid().unwrap().to_string();
    let held = *inside.shell.hold() == convoke_sandbox::ProcessHold::PidNamespace;
    if held {
        // Even of a helper that is killed.
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    } else {
        inside.shell.stop().await.unwrap();
    }
    until("all are gone", || sleepers(&seconds) == 0).await;
}

#[tokio::test]
async fn listed_hosts_are_reached_through_the_proxy_and_others_are_not() {
    if !holds(LayerSet::Namespaces).await {
        return;
    }
    let world = World::new();
    let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = server.local_addr().unwrap().port();
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        loop {
            let (mut client, _) = server.accept().await.unwrap();
            let mut head = [0; 4096];
            let _ = client.read(&mut head).await;
            let _ = client
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello")
                .await;
        }
    });
    let network = Network::Hosts(vec![format!("127.0.0.1:{port}")]);
    let mut inside =
        world.shell(LayerSet::Namespaces, Policy { network, ..world.policy(Access::ReadOnly, "a") }).await;
    let fetch = |to: &str| {
        format!(
            "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://{to}/\").read().decode())' \
                2>&1 | tail -1"
        )
    };
    inside.check(&fetch(&format!("127.0.0.1:{port}")), "hello\n").await;
    let finished = inside.run(&fetch("127.0.0.1:9")).await;
    assert!(finished.output.text.contains("403"), "{finished:?}");
    assert!(
        inside.shell.state().set.is_empty(),
        "the proxy's port is not carried over: {:?}",
        inside.shell.state()
    );
}

async fn a_cargo_project_is_built_and_tested_offline_with_the_toolchain_of_a_hidden_home(set: LayerSet) {
    let (Some(cargo), Some(home)) = (std::env::var_os("CARGO"), std::env::var_os("HOME")) else {
        println!("not run: these tests were not started by cargo");
        return;
    };
    let tools = PathBuf::from(cargo).parent().unwrap().to_owned();
    let home = PathBuf::from(home);
    let world = World::new();
    let project = world.at("home/project");
    std::fs::write(project.join("Cargo.toml"), "[package]\nname = \"small\"\nedition = \"2021\"\n").unwrap();
    std::fs::write(project.join("src/lib.rs"), "#[test]\nfn holds() { assert_eq!(1 + 1, 2) }\n").unwrap();
    let mut policy = world.policy(Access::ReadOnly, "a");
    // Where they are if they are not in the home directory that these tests were given.
    let place = |name: &str, usual: &str| std::env::var_os(name).map_or(home.join(usual), PathBuf::from);
    policy.caches.extend([place("CARGO_HOME", ".cargo"), place("RUSTUP_HOME", ".rustup")]);
    policy.hidden.push(home);
    let mut inside = world.shell(set, policy).await;
    let finished =
        inside.run(&format!("PATH={}:$PATH; cargo test --offline -q --lib 2>&1", tools.display())).await;
    assert_eq!(finished.ending, Ending::Exited(0), "{finished:?}");
    assert!(finished.output.text.contains("1 passed"), "{finished:?}");
    assert!(!project.join("target").exists() && !project.join("Cargo.lock").exists());
}
