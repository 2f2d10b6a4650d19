//! Which places are asked for by which calls.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use convoke_sandbox::{Ending, LayerSet};

use super::super::{World, in_both_sets};
use super::{Gate, traced};

in_both_sets! {
    each_way_to_write_asks_for_its_place_once
    reading_and_writing_elsewhere_asks_nothing
    what_is_granted_is_asked_again_by_the_next_command
    a_name_of_any_bytes_is_asked_for_as_it_is
    a_new_directory_is_asked_for_once_with_all_that_is_put_into_it
}

/// What stands in the directory of each case: files `f`, `g` and `d/a`, an empty directory `empty`, links
/// `l` to `f`, `dangling` to `nothing`, `ld` to `d`, and `out` to a file elsewhere.
const CASES: &[(&str, &[&str])] = &[
    ("echo a > new", &["new"]),
    ("echo a >> f", &["f"]),
    ("echo a > f; echo b >> f; cat f; echo c > f", &["f"]),
    ("(echo a > f); (echo b > f); bash -c 'echo c > f'", &["f"]),
    ("mkdir m", &["m/**"]),
    ("mkdir -p p/q/r && echo a > p/q/r/x", &["p/**"]),
    ("mkdir -p d empty/", &[]),
    ("mv f h", &["f + h"]),
    ("mv f g", &["f + g"]),
    ("mv f d/", &["f + d/f"]),
    ("mv d e", &["d/** + e/**"]),
    ("mv l h", &["l + h"]),
    ("ln f h", &["h"]),
    ("ln -s f h", &["h"]),
    ("rm f", &["f"]),
    ("rm l", &["l"]),
    ("rm -r d", &["d/a", "d"]),
    ("rmdir empty", &["empty"]),
    ("truncate -s 0 f", &["f"]),
    ("touch f", &["f"]),
    ("chmod +x f l d", &["f", "d"]),
    ("chmod -x .", &[""]),
    ("sed -i s/x/y/ f", &["sed*", "f"]),
    ("cp f h", &["h"]),
    ("cp -r d e", &["e/**"]),
    ("cp -a d/. empty", &["empty/a"]),
    ("tar cf t.tar d && mkdir x && tar xf t.tar -C x", &["t.tar", "x/**"]),
    ("mkfifo p", &["p"]),
    ("echo a > l", &["f"]),
    ("echo a > dangling", &["nothing"]),
    ("echo a > ld/a; echo b > ld/new", &["d/a", "d/new"]),
    ("cd d && echo a > ../f && cd .. && echo a > d/../g", &["f", "g"]),
    ("echo a > \"$PWD/f\" && echo b > \"$PWD//d/./a\"", &["f", "d/a"]),
    ("exec 8<f; echo a > /proc/self/fd/8; echo b > /dev/fd/8; exec 8<&-", &["f"]),
    ("exec 8<f; bash -c 'echo a | tee /proc/self/fd/8'; exec 8<&-", &["f"]),
    ("{ echo a | tee /dev/stderr; } 2> h", &["h"]),
    ("cd d; echo a > /proc/self/cwd/a", &["d/a"]),
    ("echo a > missing/x; mkdir missing/y; rm -f missing/z; mv missing/a b; chmod +x nothing; true", &[]),
    ("set -C; echo a > f; set +C; mkdir d; ln -s f g; rmdir ld; echo a > d; true", &[]),
    ("echo a > out; echo b > /dev/null; ls 2> /dev/null; exec 7>/dev/null; exec 7>&-", &[]),
    ("mkdir z && cd z && rmdir ../z && { echo a > x; cd ..; }", &["z/**"]),
    ("perl -e 'truncate(\"f\", 0) or die; chmod(0644, \"f\"); rename(\"g\", \"h\")'", &["f", "g + h"]),
    ("perl -e 'open my $f, \"<\", \"f\"; chmod(0600, $f); chown(-1, -1, $f)'", &["f"]),
    (
        "perl -e 'chown(-1, -1, \"g\"); link(\"g\", \"h\"); symlink(\"g\", \"i\"); unlink(\"h\")'",
        &["g", "h", "i"],
    ),
    ("perl -e 'mkdir \"m\"; rmdir \"m\"'", &["m/**"]),
    ("perl -MFcntl -e 'sysopen(my $f, \"d\", O_RDONLY); sysopen(my $g, \"f\", O_RDONLY | O_TRUNC)'", &["f"]),
];

/// Where there is a Python, what is hard to say otherwise: handles of directories, files without a name.
const IN_PYTHON: &[(&str, &[&str])] = &[
    (
        "d = os.open('d', os.O_RDONLY); os.open('a', os.O_WRONLY, dir_fd=d); os.mkdir('n', dir_fd=d)",
        &["d/a", "d/n/**"],
    ),
    (
        "d = os.open('d', os.O_RDONLY); os.rename('f', 'b', dst_dir_fd=d); os.unlink('b', dir_fd=d)",
        &["f + d/b"],
    ),
    ("os.write(os.open('.', os.O_TMPFILE | os.O_RDWR), b'x')", &[]),
    (
        "t = os.open('.', os.O_TMPFILE | os.O_RDWR); os.link(f'/proc/self/fd/{t}', 'h', follow_symlinks=True)",
        &["h"],
    ),
    ("f = os.open('f', os.O_RDWR); os.unlink('f'); os.open(f'/proc/self/fd/{f}', os.O_WRONLY)", &["f"]),
    ("os.open('f', os.O_PATH | os.O_RDWR)", &[]),
    ("[os.open('l', os.O_WRONLY | os.O_NOFOLLOW)]", &["l"]),
    ("import threading; t = threading.Thread(target=lambda: open('f', 'w')); t.start(); t.join()", &["f"]),
];

#[cfg(target_arch = "x86_64")]
const EXCHANGED: &[(&str, &[&str])] = &[
    ("perl -e 'my ($f, $g) = (\"f\", \"g\"); syscall(316, -100, $f, -100, $g, 2) == 0 or die'", &["f + g"]),
    (
        "perl -e 'my ($f, $g) = (\"d\", \"g\"); syscall(316, -100, $f, -100, $g, 2) == 0 or die'",
        &["d/** + g/**"],
    ),
    (
        "perl -e 'my $d = \"new\"; syscall(85, $d, 0644) > 0 or die; syscall(2, $d, 1, 0) > 0 or die'",
        &["new"],
    ),
];
#[cfg(not(target_arch = "x86_64"))]
const EXCHANGED: &[(&str, &[&str])] = &[];

fn fill(at: &Path, outside: &Path) {
    use std::os::unix::fs::symlink;
    for directory in ["d", "empty"] {
        std::fs::create_dir_all(at.join(directory)).unwrap();
    }
    for file in ["f", "g", "d/a"] {
        std::fs::write(at.join(file), "x\n").unwrap();
    }
    for (to, link) in [("f", "l"), ("nothing", "dangling"), ("d", "ld")] {
        symlink(to, at.join(link)).unwrap();
    }
    symlink(outside, at.join("out")).unwrap();
}

/// Names that programs make up are not the same each time.
fn known(asked: &str, directory: &str) -> String {
    let name = |word: &str| {
        let word = word.strip_prefix(directory).unwrap_or(word).trim_start_matches('/');
        let made_up = word.len() == 9 && word.starts_with("sed") && !word.contains('/');
        if made_up { "sed*".to_owned() } else { word.to_owned() }
    };
    asked.split(" + ").map(name).collect::<Vec<_>>().join(" + ")
}

async fn each_way_to_write_asks_for_its_place_once(set: LayerSet) {
    let world = World::new();
    let gate = Gate::new();
    let Some(mut inside) = traced(&world, set, &gate).await else { return };
    let python = Path::new("/usr/bin/python3").exists();
    let in_python = |(code, expected): &(&str, &'static [&str])| {
        (format!("/usr/bin/python3 -c \"import os; {code}\""), *expected)
    };
    let cases = CASES.iter().chain(EXCHANGED).map(|(command, expected)| ((*command).to_owned(), *expected));
    let cases: Vec<_> = cases.chain(IN_PYTHON.iter().filter(|_| python).map(in_python)).collect();
    let temporary = inside.run("echo \"$TMPDIR\"").await.output.text;
    let mut wrong = Vec::new();
    for (number, (command, expected)) in cases.iter().enumerate() {
        let directory = format!("case{number}");
        fill(&world.at("home/project").join(&directory), &Path::new(temporary.trim()).join("elsewhere"));
        inside.run(&format!("cd {}/{directory}", world.at("home/project").display())).await;
        gate.take();
        let finished = inside.run(&format!("({command})")).await;
        let asked: Vec<String> = gate.take().iter().map(|asked| known(asked, &directory)).collect();
        let expected: Vec<String> = expected.iter().map(|path| (*path).to_owned()).collect();
        if asked != expected || !matches!(finished.ending, Ending::Exited(_)) || !finished.held.is_empty() {
            wrong.push(format!("{command}\n  asked {asked:?}\n  not   {expected:?}\n  {finished:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{} ways to write", cases.len());
}

async fn reading_and_writing_elsewhere_asks_nothing(set: LayerSet) {
    let world = World::new();
    let gate = Gate::new();
    let Some(mut inside) = traced(&world, set, &gate).await else { return };
    for command in [
        "cat src/main; ls -laR . >/dev/null; grep -r code . | wc -l; cd src; pwd; cd ..; stat src >/dev/null",
        "echo a > \"$TMPDIR/x\"; mkdir \"$TMPDIR/d\"; mv \"$TMPDIR/x\" \"$TMPDIR/d/\"; rm -r \"$TMPDIR/d\"",
        "echo a > ~/x; cat < ~/x; rm ~/x; cat <<< text > /dev/null; cat <<TEXT\ntext\nTEXT",
        "echo a > /etc/x; echo a > /x; touch /usr/x; mkdir /usr/y; rm /etc/passwd; true",
        "x=$(echo a | sort); diff <(echo a) <(echo b); f=$(mktemp); rm \"$f\"",
        "sleep 0 & wait; export A=1; alias x=y; f() { :; }; f",
    ] {
        let finished = inside.run(command).await;
        assert_eq!(gate.take(), [""; 0], "{command}: {finished:?}");
        assert_eq!(finished.shell_replaced, None, "{command}: {finished:?}");
    }
}

async fn what_is_granted_is_asked_again_by_the_next_command(set: LayerSet) {
    let world = World::new();
    let gate = Gate::new();
    let Some(mut inside) = traced(&world, set, &gate).await else { return };
    for _ in 0..3 {
        inside.check("echo a > x; echo b > x; cat x", "b\n").await;
        assert_eq!(gate.take(), ["x"]);
    }
}

async fn a_name_of_any_bytes_is_asked_for_as_it_is(set: LayerSet) {
    let world = World::new();
    let gate = Gate::new();
    let Some(mut inside) = traced(&world, set, &gate).await else { return };
    inside.check("echo a > $'n\\xff\\n (deleted)'; exec 3>> $'n\\xff\\n (deleted)'", "").await;
    let asked = gate.asked.borrow().clone();
    let bytes = b"n\xff\n (deleted)";
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0][0].path.as_os_str().as_bytes(), bytes);
    let finished = inside.run(":").await;
    assert_eq!(finished.held[0].as_os_str().as_bytes(), bytes);
    // A path that is longer than any file's is the kernel's to refuse.
    gate.take();
    let long = "x/".repeat(3000);
    inside.run(&format!("echo a > {long}y")).await;
    inside.check("mkdir $(printf 'y%.0s' {1..200}) && cd y* && echo b > ../z", "").await;
    let asked = gate.take();
    assert!(asked.len() == 2 && asked[0].starts_with("yyy") && asked[1] == "z", "{asked:?}");
}

async fn a_new_directory_is_asked_for_once_with_all_that_is_put_into_it(set: LayerSet) {
    let world = World::new();
    let gate = Gate::new();
    let Some(mut inside) = traced(&world, set, &gate).await else { return };
    let install = "mkdir modules && cd modules && for p in {1..20}; do mkdir -p p$p/lib && \
                   for f in {1..10}; do echo $f > p$p/lib/$f; done; done; mv p1 q && rm -r p2 && cd .. && ls modules | wc -l";
    inside.check(install, "19\n").await;
    assert_eq!(gate.take(), ["modules/**"]);
    inside.check("mv modules elsewhere && echo a > elsewhere/q/new && echo b > modules", "").await;
    assert_eq!(gate.take(), ["modules/** + elsewhere/**"]);
}
