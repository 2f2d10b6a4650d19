//! Which system calls begin a write, and what their arguments say of it. Pure.

use std::ffi::{c_int, c_uint};

use crate::sys::Instruction;

/// A number that the libc crate does not name on every architecture.
const FCHMODAT2: i64 = 452;

/// The bits with which opening may write, make or empty a file.
const WRITING: u32 = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u32;

/// The kernel's name for the machine whose numbers these are.
const MACHINE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else if cfg!(target_arch = "riscv64") {
    Some(0xc000_00f3)
} else {
    None
};

/// From where a path leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    Directory,
    Descriptor(c_int),
}

/// A path as a call names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) from: From,
    /// Where in the memory of the caller it stands.
    pub(super) address: u64,
}

/// What a call is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Nothing that is anyone's to answer.
    Nothing,
    /// Open a file, as these flags say.
    Open(Named, c_int),
    /// Change something that is there; `follow` says whether a link at the end leads on.
    Change { name: Named, follow: bool },
    /// Change what a descriptor leads to.
    ChangeOpen(c_int),
    /// Make something that is not there.
    Make { name: Named, directory: bool },
    /// Take a directory, or something else, away.
    Remove { name: Named, directory: bool },
    /// Give something another name, as these flags say.
    Move { from: Named, to: Named, flags: c_uint },
}

/// Calls that are reported if they open for writing, and which argument says that.
#[cfg(target_arch = "x86_64")]
const OPENING: &[(i64, u32)] = &[(libc::SYS_openat, 2), (libc::SYS_open, 1)];
#[cfg(not(target_arch = "x86_64"))]
const OPENING: &[(i64, u32)] = &[(libc::SYS_openat, 2)];

/// Calls that are always reported.
const REPORTED: &[i64] = &[
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_mknodat,
    libc::SYS_truncate,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchmod,
    libc::SYS_fchownat,
    libc::SYS_fchown,
];

/// Older ones, which newer machines lack.
#[cfg(target_arch = "x86_64")]
const REPORTED_HERE: &[i64] = &[
    libc::SYS_creat,
    libc::SYS_mkdir,
    libc::SYS_unlink,
    libc::SYS_rmdir,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_mknod,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
];
#[cfg(target_arch = "aarch64")]
const REPORTED_HERE: &[i64] = &[libc::SYS_renameat];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const REPORTED_HERE: &[i64] = &[];

/// The filter that reports them. None on a machine whose numbers are not known.
pub(super) fn filter() -> Option<Vec<Instruction>> {
    const LOAD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const JUMP_IF_SET: u16 = 0x45;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const REPORT: u32 = 0x7fc0_0000;
    /// Where the kernel puts the number, the machine, and the lower half of the first argument.
    const NUMBER: u32 = 0;
    const ON: u32 = 4;
    const FIRST: u32 = 16;
    let step = |code, jt, jf, k| Instruction { code, jt, jf, k };
    let mut program = vec![
        step(LOAD, 0, 0, ON),
        // What makes calls by other numbers was refused before.
        step(JUMP_IF_EQUAL, 1, 0, MACHINE?),
        step(RETURN, 0, 0, ALLOW),
        step(LOAD, 0, 0, NUMBER),
    ];
    for &(number, argument) in OPENING {
        program.extend([
            step(JUMP_IF_EQUAL, 0, 4, u32::try_from(number).ok()?),
            step(LOAD, 0, 0, FIRST + 8 * argument),
            step(JUMP_IF_SET, 0, 1, WRITING),
            step(RETURN, 0, 0, REPORT),
            step(RETURN, 0, 0, ALLOW),
        ]);
    }
    for &number in REPORTED.iter().chain(REPORTED_HERE) {
        program.extend([step(JUMP_IF_EQUAL, 0, 1, u32::try_from(number).ok()?), step(RETURN, 0, 0, REPORT)]);
    }
    program.push(step(RETURN, 0, 0, ALLOW));
    Some(program)
}

/// What this call is about to do.
pub(super) fn act(number: i64, arguments: [u64; 6]) -> Act {
    let here = |index: usize| Named { from: From::Directory, address: arguments[index] };
    let at = |index: usize| {
        let directory = descriptor(arguments[index]);
        let from = if directory == libc::AT_FDCWD { From::Directory } else { From::Descriptor(directory) };
        Named { from, address: arguments[index + 1] }
    };
    let flags = |index: usize| arguments[index] as c_int;
    let unless = |index: usize| flags(index) & libc::AT_SYMLINK_NOFOLLOW == 0;
    let itself = |index: usize| flags(index) & libc::AT_EMPTY_PATH != 0;
    #[cfg(target_arch = "x86_64")]
    match number {
        libc::SYS_open => return Act::Open(here(0), flags(1)),
        libc::SYS_creat => return Act::Open(here(0), libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC),
        libc::SYS_mkdir => return Act::Make { name: here(0), directory: true },
        libc::SYS_unlink => return Act::Remove { name: here(0), directory: false },
        libc::SYS_rmdir => return Act::Remove { name: here(0), directory: true },
        libc::SYS_rename => return Act::Move { from: here(0), to: here(1), flags: 0 },
        libc::SYS_link | libc::SYS_symlink => return Act::Make { name: here(1), directory: false },
        libc::SYS_mknod => return Act::Make { name: here(0), directory: false },
        libc::SYS_chmod | libc::SYS_chown => return Act::Change { name: here(0), follow: true },
        libc::SYS_lchown => return Act::Change { name: here(0), follow: false },
        _ => {}
    }
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    if number == libc::SYS_renameat {
        return Act::Move { from: at(0), to: at(2), flags: 0 };
    }
    match number {
        libc::SYS_openat => Act::Open(at(0), flags(2)),
        libc::SYS_mkdirat => Act::Make { name: at(0), directory: true },
        libc::SYS_unlinkat => Act::Remove { name: at(0), directory: flags(2) & libc::AT_REMOVEDIR != 0 },
        libc::SYS_renameat2 => Act::Move { from: at(0), to: at(2), flags: flags(4) as c_uint },
        libc::SYS_linkat => Act::Make { name: at(2), directory: false },
        libc::SYS_symlinkat => Act::Make { name: at(1), directory: false },
        libc::SYS_mknodat => Act::Make { name: at(0), directory: false },
        libc::SYS_truncate => Act::Change { name: here(0), follow: true },
        libc::SYS_fchmod | libc::SYS_fchown => Act::ChangeOpen(descriptor(arguments[0])),
        FCHMODAT2 if itself(3) => Act::ChangeOpen(descriptor(arguments[0])),
        libc::SYS_fchownat if itself(4) => Act::ChangeOpen(descriptor(arguments[0])),
        libc::SYS_fchmodat => Act::Change { name: at(0), follow: true },
        FCHMODAT2 => Act::Change { name: at(0), follow: unless(3) },
        libc::SYS_fchownat => Act::Change { name: at(0), follow: unless(4) },
        _ => Act::Nothing,
    }
}

/// The kernel takes the lower half of the register.
fn descriptor(argument: u64) -> c_int {
    argument as u32 as c_int
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reported_call_means_something_and_the_filter_is_well_formed() {
        for &number in REPORTED.iter().chain(REPORTED_HERE) {
            assert_ne!(act(number, [0; 6]), Act::Nothing, "{number}");
        }
        assert_eq!(act(libc::SYS_read, [0; 6]), Act::Nothing);
        let program = filter().unwrap();
        for (at, step) in program.iter().enumerate().filter(|(_, step)| step.code & 0x07 == 0x05) {
            let furthest = at + 1 + usize::from(step.jt.max(step.jf));
            assert!(furthest < program.len(), "{at}");
        }
        assert_eq!(program.last().map(|step| step.code), Some(0x06));
    }

    #[test]
    fn a_path_leads_from_the_directory_or_from_a_descriptor() {
        let at = |directory: c_int| act(libc::SYS_mkdirat, [directory as u32 as u64, 7, 0o755, 0, 0, 0]);
        let made = |from| Act::Make { name: Named { from, address: 7 }, directory: true };
        assert_eq!(at(libc::AT_FDCWD), made(From::Directory));
        assert_eq!(at(5), made(From::Descriptor(5)));
        let moved = act(libc::SYS_renameat2, [3, 1, 4, 2, 0, 0]);
        let named = |descriptor, address| Named { from: From::Descriptor(descriptor), address };
        assert_eq!(moved, Act::Move { from: named(3, 1), to: named(4, 2), flags: 0 });
    }

    #[test]
    fn an_empty_path_stands_for_the_descriptor_itself() {
        let flags = libc::AT_EMPTY_PATH as u64;
        assert_eq!(act(libc::SYS_fchownat, [9, 1, 0, 0, flags, 0]), Act::ChangeOpen(9));
        assert_eq!(act(FCHMODAT2, [9, 1, 0, flags, 0, 0]), Act::ChangeOpen(9));
    }
}
