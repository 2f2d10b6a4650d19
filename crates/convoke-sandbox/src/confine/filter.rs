//! Which system calls a confined process may not make. A list of refusals, because what programs need cannot
//! be listed: everything that reaches out of the sandbox, widens it, or is known as a way to attack the
//! kernel.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

/// Numbers that the libc crate does not name on every architecture; new calls have one number everywhere.
const OPEN_TREE_ATTR: i64 = 467;
const FCHMODAT2: i64 = 452;

/// Set-user-id and set-group-id.
const SET_ID: [u64; 2] = [0o4000, 0o2000];

/// TIOCSTI and TIOCLINUX, by which input is put into a terminal.
const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541c];

/// Refused whatever their arguments.
const REFUSED: &[i64] = &[
    // Requests that no filter sees.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    // The kernel's own insides.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    // Files past every path.
    libc::SYS_open_by_handle_at,
    // The machine.
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_nfsservctl,
];

/// Refused on this architecture alone.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] =
    &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt, libc::SYS_uselib, libc::SYS_ustat];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

/// Which sockets may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// None but connected pairs.
    None,
    /// Those of the internet protocols, and questions about the network's interfaces.
    Internet,
}

/// Whose queues, semaphores and shared memory can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ipc {
    /// Those of a namespace of the sandbox's own.
    Own,
    /// Those of the machine, for which there are no file rules.
    Shared,
}

/// What processes of one user share without any file.
const SHARED: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// The filters, in the order in which they are to be laid on.
pub(crate) fn filters(sockets: Sockets, ipc: Ipc) -> Result<Vec<BpfProgram>, String> {
    let refusals = refusals(sockets, ipc).map_err(|error| format!("the filter is not valid: {error}"))?;
    // Programs fall back to older calls whose arguments can be looked at.
    let absent = BTreeMap::from([(libc::SYS_clone3, Vec::new()), (libc::SYS_openat2, Vec::new())]);
    let mut filters = vec![foreign_numbers()];
    filters.extend(compiled([(absent, libc::ENOSYS), (refusals, libc::EPERM)])?);
    Ok(filters)
}

/// One filter for each list of calls, with the error by which it refuses them.
fn compiled(lists: [(BTreeMap<i64, Vec<SeccompRule>>, i32); 2]) -> Result<Vec<BpfProgram>, String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)
        .map_err(|error| format!("no filter for this machine: {error}"))?;
    let compile = |(rules, error): (_, i32)| {
        let filter =
            SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(error as u32), arch);
        filter.and_then(BpfProgram::try_from).map_err(|error| format!("the filter is not valid: {error}"))
    };
    lists.into_iter().map(compile).collect()
}

/// The filters of a program that the host starts: it makes no socket, and no process either unless it needs
/// some.
pub(crate) fn program_filters(children: bool) -> Result<Vec<BpfProgram>, String> {
    let rules = program_refusals(children).map_err(|error| format!("the filter is not valid: {error}"))?;
    let absent = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let mut filters = vec![foreign_numbers()];
    filters.extend(compiled([(absent, libc::ENOSYS), (rules, libc::EPERM)])?);
    Ok(filters)
}

fn program_refusals(children: bool) -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let refused = [libc::SYS_socket, libc::SYS_socketpair, libc::SYS_io_uring_setup, libc::SYS_ptrace];
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = refused.map(|number| (number, Vec::new())).into();
    if !children {
        // Threads are no processes: they cannot become another program.
        rules.insert(libc::SYS_clone, vec![rule(&[(0, Op::MaskedEq(libc::CLONE_THREAD as u64), 0)])?]);
        #[cfg(target_arch = "x86_64")]
        rules.extend([libc::SYS_fork, libc::SYS_vfork].map(|number| (number, Vec::new())));
    }
    Ok(rules)
}

/// The second set of numbers that x86 kernels may know for the same calls, which no rule by number would
/// catch.
fn foreign_numbers() -> BpfProgram {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_SET: u16 = 0x45;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const REFUSE: u32 = 0x0005_0000;
    let step = |code, jt, k| sock_filter { code, jt, jf: 0, k };
    vec![
        step(LOAD_NUMBER, 0, 0),
        step(JUMP_IF_SET, 1, 0x4000_0000),
        step(RETURN, 0, ALLOW),
        step(RETURN, 0, REFUSE | libc::ENOSYS as u32),
    ]
}

fn refusals(
    sockets: Sockets,
    ipc: Ipc,
) -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().chain(REFUSED_HERE).map(|&number| (number, Vec::new())).collect();
    if ipc == Ipc::Shared {
        rules.extend(SHARED.iter().map(|&number| (number, Vec::new())));
    }
    // The limits of another process: where others can be seen, they could be starved.
    rules.insert(libc::SYS_prlimit64, vec![rule(&[(0, Op::Ne, 0)])?]);
    match sockets {
        Sockets::None => drop(rules.insert(libc::SYS_socket, Vec::new())),
        Sockets::Internet => {
            let families = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
            let others: Vec<_> = families.iter().map(|&family| (0, Op::Ne, family as u64)).collect();
            let netlink = [(0, Op::Eq, libc::AF_NETLINK as u64), (2, Op::Ne, libc::NETLINK_ROUTE as u64)];
            rules.insert(libc::SYS_socket, vec![rule(&others)?, rule(&netlink)?]);
        }
    }
    // A pair of datagram sockets can be pointed at any other, and so is no pair; the kernel makes the same of
    // a raw one. The kind is in the lowest four bits.
    let pairs = [libc::SOCK_DGRAM, libc::SOCK_RAW].map(|kind| rule(&[(1, Op::MaskedEq(0xf), kind as u64)]));
    rules.insert(libc::SYS_socketpair, pairs.into_iter().collect::<Result<_, _>>()?);
    let new_namespace = [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ];
    rules.insert(libc::SYS_clone, each(&new_namespace.map(|flag| flag as u32 as u64), 0, &[])?);
    let typed = TERMINAL_INPUT.map(|request| rule(&[(1, Op::Eq, request)]));
    rules.insert(libc::SYS_ioctl, typed.into_iter().collect::<Result<_, _>>()?);
    // Harmless ones are plain Linux, its question, no randomisation (debuggers), and 32 bit names.
    let harmless = [0, 0xffff_ffff, 0x0004_0000, 8].map(|value| (0, Op::Ne, value));
    rules.insert(libc::SYS_personality, vec![rule(&harmless)?]);
    for (number, argument) in [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2)] {
        rules.insert(number, each(&SET_ID, argument, &[])?);
    }
    rules.insert(libc::SYS_openat, making(3, 2)?);
    rules.insert(libc::SYS_mknodat, devices(2)?);
    #[cfg(target_arch = "x86_64")]
    {
        rules.insert(libc::SYS_chmod, each(&SET_ID, 1, &[])?);
        rules.insert(libc::SYS_creat, each(&SET_ID, 1, &[])?);
        rules.insert(libc::SYS_open, making(2, 1)?);
        rules.insert(libc::SYS_mknod, devices(1)?);
    }
    Ok(rules)
}

/// A rule of conditions (argument, comparison, value) that must all be met.
pub(super) fn rule(conditions: &[(u8, Op, u64)]) -> Result<SeccompRule, seccompiler::BackendError> {
    let one = |(argument, op, value): &(u8, Op, u64)| {
        SeccompCondition::new(*argument, Length::Dword, op.clone(), *value)
    };
    SeccompRule::new(conditions.iter().map(one).collect::<Result<_, _>>()?)
}

/// One rule for each of these bits in an argument, together with conditions that all of them have.
fn each(
    bits: &[u64],
    argument: u8,
    also: &[(u8, Op, u64)],
) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let one = |&bit: &u64| {
        let mut conditions = vec![(argument, Op::MaskedEq(bit), bit)];
        conditions.extend_from_slice(also);
        rule(&conditions)
    };
    bits.iter().map(one).collect()
}

/// Opening counts only where it makes a file: elsewhere the mode is whatever the register happens to hold.
fn making(mode: u8, flags: u8) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let mut rules = Vec::new();
    for flag in [libc::O_CREAT as u64, (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64] {
        rules.extend(each(&SET_ID, mode, &[(flags, Op::MaskedEq(flag), flag)])?);
    }
    Ok(rules)
}

/// Devices, and plain files with the bits that `chmod` may not set.
fn devices(mode: u8) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let kind = u64::from(libc::S_IFMT);
    let mut rules = each(&SET_ID, mode, &[])?;
    for device in [libc::S_IFCHR, libc::S_IFBLK] {
        rules.push(rule(&[(mode, Op::MaskedEq(kind), u64::from(device))])?);
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_filter_compiles_and_is_short_enough_for_the_kernel() {
        for (sockets, ipc) in [(Sockets::None, Ipc::Shared), (Sockets::Internet, Ipc::Own)] {
            let filters = filters(sockets, ipc).unwrap();
            assert_eq!(filters.len(), 3);
            assert!(filters.iter().all(|filter| filter.len() < 4096));
        }
    }

    #[test]
    fn what_the_helper_itself_needs_is_not_refused() {
        let rules = refusals(Sockets::None, Ipc::Shared).unwrap();
        let needed = [libc::SYS_kill, libc::SYS_pidfd_open, libc::SYS_pidfd_send_signal, libc::SYS_signalfd4];
        for number in needed.into_iter().chain([libc::SYS_memfd_create, libc::SYS_execve]) {
            assert!(!rules.contains_key(&number), "{number}");
        }
    }
}
