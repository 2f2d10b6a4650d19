//! How commands are to be confined, settled from the layers: which policy, which hosts they may talk to,
//! which layers. Whether that can be held is found out when a session begins and not for every command.

use convoke_kernel::{Network, Sandbox};
use convoke_sandbox::LayerSet;

use super::environment::Environment;
use super::layers::Layers;
use super::origin::Origin;
use super::value::Value;
use crate::args::ConfineArgs;
use crate::failure::Failure;

/// How commands are to be confined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// What commands may write.
    pub(crate) sandbox: Sandbox,
    /// Which hosts they may talk to.
    pub(crate) network: Network,
    /// The strongest layers that may be used; `None` takes the best that work.
    pub(crate) at_most: Option<LayerSet>,
    /// Whether a flag of this very command chose the policy.
    pub(crate) sandbox_by_flag: bool,
    /// Whether a flag of this very command chose the network.
    pub(crate) network_by_flag: bool,
}

/// The variables of the two keys that say the same thing in two ways.
const NETWORK: &str = "CONVOKE_NETWORK";
const NETWORK_ALLOW: &str = "CONVOKE_NETWORK_ALLOW";

/// One place may say one thing about the network.
pub(super) fn check_environment(env: &Environment) -> Result<(), Failure> {
    match (env.get(NETWORK), env.get(NETWORK_ALLOW)) {
        (Some(_), Some(_)) => Err(twice(NETWORK, NETWORK_ALLOW)),
        _ => Ok(()),
    }
}

/// Why two words about the network in one place are refused.
pub(super) fn twice(one: &str, other: &str) -> Failure {
    Failure::usage(format!("{one} and {other} both say whom commands may talk to"))
        .hint("keep one: the switch lets them reach every host or none, the list only these hosts")
}

/// Puts what the flags say over what is there.
pub(super) fn put_flags(layers: &mut Layers, args: &ConfineArgs) {
    if let Some(sandbox) = args.sandbox {
        layers.put("sandbox", Value::Sandbox(sandbox.into()), Origin::Flag("--sandbox"));
    }
    if args.network {
        layers.put("network", Value::Switch(true), Origin::Flag("--network"));
    }
    if !args.network_allow.is_empty() {
        layers.put("network_allow", Value::List(args.network_allow.clone()), Origin::Flag("--network-allow"));
    }
}

/// What the settled layers say about confinement.
pub(super) fn wanted(layers: &Layers, args: &ConfineArgs) -> Result<Wanted, Failure> {
    let sandbox = layers.sandbox("sandbox");
    let hosts = layers.list("network_allow");
    let network = match (sandbox, layers.is_on("network"), hosts.is_empty()) {
        (Sandbox::Off, _, false) if !args.network_allow.is_empty() => {
            return Err(Failure::usage(
                "--sandbox off holds nothing, so it cannot hold --network-allow either",
            )
            .hint("leave --network-allow out, or choose --sandbox workspace"));
        }
        // Nothing is held, whatever was configured.
        (Sandbox::Off, ..) | (_, true, _) => Network::On,
        (_, false, true) => Network::Off,
        (_, false, false) => Network::Hosts(hosts),
    };
    let by_flag = |key| matches!(layers.origin(key), Origin::Flag(_));
    Ok(Wanted {
        sandbox,
        network,
        at_most: args.sandbox_layers.and_then(Into::into),
        sandbox_by_flag: by_flag("sandbox"),
        network_by_flag: by_flag("network") || by_flag("network_allow"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::SandboxFlag;

    fn check(args: ConfineArgs, configured: &[&str], sandbox: Sandbox, network: Network) {
        let mut layers = Layers::builtin();
        let list = configured.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>();
        if !list.is_empty() {
            layers.put("network_allow", Value::List(list), Origin::Default);
        }
        put_flags(&mut layers, &args);
        let wanted = wanted(&layers, &args).unwrap();
        assert_eq!((wanted.sandbox, wanted.network), (sandbox, network), "{args:?}");
    }

    #[test]
    fn w80_commands_are_held_to_the_workspace_without_a_network_unless_somebody_says_otherwise() {
        let none = ConfineArgs::default;
        let hosts = |names: &[&str]| Network::Hosts(names.iter().map(|name| (*name).to_owned()).collect());
        check(none(), &[], Sandbox::Workspace, Network::Off);
        check(none(), &["crates.io"], Sandbox::Workspace, hosts(&["crates.io"]));
        check(ConfineArgs { network: true, ..none() }, &["crates.io"], Sandbox::Workspace, Network::On);
        let allow = ConfineArgs { network_allow: vec!["pypi.org".into()], ..none() };
        check(allow, &["crates.io"], Sandbox::Workspace, hosts(&["pypi.org"]));
        let narrow = ConfineArgs { sandbox: Some(SandboxFlag::ReadOnly), ..none() };
        check(narrow, &[], Sandbox::ReadOnly, Network::Off);
        let off = ConfineArgs { sandbox: Some(SandboxFlag::Off), ..none() };
        check(off, &["crates.io"], Sandbox::Off, Network::On);
    }

    #[test]
    fn a_list_of_hosts_that_nothing_would_hold_is_refused() {
        let args = ConfineArgs {
            sandbox: Some(SandboxFlag::Off),
            network_allow: vec!["crates.io".into()],
            ..ConfineArgs::default()
        };
        let mut layers = Layers::builtin();
        put_flags(&mut layers, &args);
        assert!(wanted(&layers, &args).unwrap_err().message.contains("--sandbox off holds nothing"));
    }
}
