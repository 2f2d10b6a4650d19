//! The walls of a process that only computes: which system calls are left to it, and file rules that allow
//! nothing. Here what is allowed can be listed, so the list is of that, and everything else kills the
//! process.

use std::collections::BTreeMap;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetError, Scope,
};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpOp as Op, SeccompFilter, SeccompRule, TargetArch,
};

use super::filter::rule;

/// Allowed whatever their arguments: giving memory back, signals of its own, and ending.
const ALLOWED: &[i64] = &[
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Answered as if the kernel did not have them, instead of ending the process: an engine asks for the time as
/// it starts, where the kernel's fast path for that is missing, the C library for processors when it is asked
/// about a stack, and both can do without.
#[cfg(target_arch = "x86_64")]
const ABSENT: &[i64] =
    &[libc::SYS_clock_gettime, libc::SYS_gettimeofday, libc::SYS_time, libc::SYS_sched_getaffinity];
#[cfg(not(target_arch = "x86_64"))]
const ABSENT: &[i64] = &[libc::SYS_clock_gettime, libc::SYS_gettimeofday, libc::SYS_sched_getaffinity];

/// Leaves this process, with all its threads, nothing but computing. It cannot be undone.
pub(crate) fn allow_computing() -> Result<(), String> {
    for filter in filters(std::process::id())? {
        seccompiler::apply_filter_all_threads(&filter)
            .map_err(|error| format!("calls cannot be filtered: {error}"))?;
    }
    Ok(())
}

/// File, network and scope rules without any exception. Kernels without Landlock do nothing: the filter
/// forbids the same.
pub(crate) fn rule_everything_out() -> Result<(), RulesetError> {
    const KNOWN: ABI = ABI::V6;
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?;
    ruleset.create()?.restrict_self().map(drop)
}

/// The filters, in the order in which they are to be laid on: after the last, no more can be.
fn filters(process: u32) -> Result<Vec<BpfProgram>, String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)
        .map_err(|error| format!("no filter for this machine: {error}"))?;
    let absent = ABSENT.iter().map(|&number| (number, Vec::new())).collect();
    let absent =
        SeccompFilter::new(absent, SeccompAction::Allow, SeccompAction::Errno(libc::ENOSYS as u32), arch);
    let allowed = allowed(process).map_err(|error| format!("the filter is not valid: {error}"))?;
    let alone = SeccompFilter::new(allowed, SeccompAction::KillProcess, SeccompAction::Allow, arch);
    let compile = |filter: Result<SeccompFilter, BackendError>| filter.and_then(BpfProgram::try_from);
    [absent, alone]
        .into_iter()
        .map(|filter| compile(filter).map_err(|error| format!("the filter is not valid: {error}")))
        .collect()
}

fn allowed(process: u32) -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        ALLOWED.iter().chain(ABSENT).map(|&number| (number, Vec::new())).collect();
    // All bits but these must be clear, or have exactly this value.
    let but = |bits: i32, value: i32| (Op::MaskedEq(u64::from(!(bits as u32))), value as u64);
    rules.insert(libc::SYS_read, vec![rule(&[(0, Op::Eq, 0)])?]);
    // Descriptor 2 can only be read, so that what a dying program tries to write there is refused and it dies
    // as it means to.
    rules.insert(libc::SYS_write, vec![rule(&[(0, Op::Eq, 1)])?, rule(&[(0, Op::Eq, 2)])?]);
    // Private memory of its own, that nothing grows into, and that no code is run from.
    let (no_code, none) = but(libc::PROT_READ | libc::PROT_WRITE, 0);
    let (own, anonymous) =
        but(libc::MAP_NORESERVE | libc::MAP_STACK, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    rules.insert(libc::SYS_mmap, vec![rule(&[(2, no_code.clone(), none), (3, own, anonymous)])?]);
    rules.insert(libc::SYS_mprotect, vec![rule(&[(2, no_code, none)])?]);
    let (may_move, none) = but(libc::MREMAP_MAYMOVE, 0);
    rules.insert(libc::SYS_mremap, vec![rule(&[(3, may_move, none)])?]);
    let given_back = [libc::MADV_DONTNEED, libc::MADV_FREE].map(|advice| rule(&[(2, Op::Eq, advice as u64)]));
    rules.insert(libc::SYS_madvise, given_back.into_iter().collect::<Result<_, _>>()?);
    let plain =
        [libc::FUTEX_WAIT, libc::FUTEX_WAKE, libc::FUTEX_WAIT_BITSET, libc::FUTEX_WAKE_BITSET].map(|kind| {
            let (op, kind) = but(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME, kind);
            rule(&[(1, op, kind)])
        });
    rules.insert(libc::SYS_futex, plain.into_iter().collect::<Result<_, _>>()?);
    // Giving up is a signal to oneself.
    let to_itself = [(0, Op::Eq, u64::from(process)), (2, Op::Eq, libc::SIGABRT as u64)];
    rules.insert(libc::SYS_tgkill, vec![rule(&to_itself)?]);
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_compile_and_the_list_is_short() {
        let filters = filters(1).unwrap();
        assert!(filters.len() == 2 && filters.iter().all(|filter| filter.len() < 512));
        assert!(allowed(1).unwrap().len() < 24);
    }

    #[test]
    fn nothing_that_reaches_out_is_on_the_list() {
        let allowed = allowed(1).unwrap();
        let reaching =
            [libc::SYS_openat, libc::SYS_socket, libc::SYS_clone, libc::SYS_clone3, libc::SYS_execve];
        let more = [libc::SYS_kill, libc::SYS_getrandom, libc::SYS_ioctl, libc::SYS_prctl, libc::SYS_seccomp];
        for number in reaching.into_iter().chain(more) {
            assert!(!allowed.contains_key(&number), "{number}");
        }
    }
}
