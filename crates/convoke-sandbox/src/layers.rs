//! What the machine offers for confining, and which policies that can hold. Pure: the offers are found by
//! [`crate::probe`], and nothing is done here.

use serde::{Deserialize, Serialize};

use crate::policy::{Access, LayerSet, Network};

/// One means of confining: whether it works here, and how or why not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// Whether it was really had when it was tried.
    pub works: bool,
    /// Its version and form, or the reason why it cannot be had.
    pub detail: String,
}

impl Layer {
    /// It works, in this form.
    pub fn works(detail: impl Into<String>) -> Self {
        Self { works: true, detail: detail.into() }
    }

    /// It cannot be had, for this reason.
    pub fn missing(why: impl Into<String>) -> Self {
        Self { works: false, detail: why.into() }
    }
}

/// What the machine offers, as tried by [`crate::probe`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layers {
    /// Namespaces and mounts through bubblewrap.
    pub bubblewrap: Layer,
    /// Whether bubblewrap could mount a `/proc` of its own, and so have a pid namespace.
    pub own_proc: bool,
    /// Throwaway copies and private cache layers by overlay mounts.
    pub overlay: Layer,
    /// File rules of the kernel that a process lays upon itself.
    pub landlock: Layer,
    /// The version of Landlock; zero if there is none.
    pub landlock_abi: u32,
    /// System call filters.
    pub seccomp: Layer,
    /// Limits on memory or processes by control groups.
    pub cgroup: Layer,
    /// Whether they limit both, so that nothing is left to the helper's watch.
    pub cgroup_whole: bool,
    /// How surely everything dies with the helper.
    pub hold: Layer,
    /// Whether this runs as root.
    pub root: bool,
    /// Whether the kernel hides from the helper how deep its shell is in its calls.
    #[serde(default)]
    pub shell_hidden: bool,
    /// Why no bash runs where namespaces hold it; `None` if one does, or was not tried.
    #[serde(default)]
    pub bash_in_namespaces: Option<String>,
    /// Why no bash runs where Landlock alone holds it; `None` if one does, or was not tried.
    #[serde(default)]
    pub bash_in_landlock: Option<String>,
}

impl Layers {
    /// One line per layer, for the doctor: its name, whether it works, and how or why not.
    pub fn lines(&self) -> Vec<(String, bool, String)> {
        [
            ("bubblewrap", &self.bubblewrap),
            ("overlay", &self.overlay),
            ("landlock", &self.landlock),
            ("seccomp", &self.seccomp),
            ("cgroup", &self.cgroup),
            ("hold", &self.hold),
        ]
        .map(|(name, layer)| (name.to_owned(), layer.works, layer.detail.clone()))
        .into()
    }
}

/// How a policy is held on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enforcement {
    /// The means; `None` if nothing is confined.
    pub set: Option<LayerSet>,
    /// The layers in use, by name.
    pub layers: Vec<String>,
    /// What does not hold, one sentence each, beginning with a stable name and a colon.
    pub weaker: Vec<String>,
    /// Whether agents have processes of their own, all of which die with their helper: what the first shell
    /// is held to ([`crate::Promise`]).
    pub own_processes: bool,
}

/// Why a policy cannot be held here, and what a person can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("commands cannot be confined here: {why}; {remedy}")]
pub struct CannotHold {
    /// The reason.
    pub why: String,
    /// What to do next.
    pub remedy: String,
}

/// Decides by which layers a policy is held, the strongest first and none above `at_most`. It never falls
/// back to less than the policy asks for.
pub fn hold(
    layers: &Layers,
    access: Access,
    network: &Network,
    at_most: Option<LayerSet>,
) -> Result<Enforcement, CannotHold> {
    if access == Access::Off {
        let weaker =
            vec!["everything: commands run with all rights of the user who started this program".to_owned()];
        return Ok(Enforcement { set: None, layers: Vec::new(), weaker, own_processes: false });
    }
    if !cfg!(target_os = "linux") {
        return Err(cannot("this system is not Linux", "run in a Linux container, or say --sandbox off"));
    }
    for (name, layer) in [("Landlock", &layers.landlock), ("seccomp", &layers.seccomp)] {
        if !layer.works {
            return Err(cannot(
                format!("the kernel offers no {name} ({})", layer.detail),
                "use a kernel from 5.13 on that has Landlock and seccomp switched on, or say --sandbox off",
            ));
        }
    }
    let namespaces = at_most != Some(LayerSet::Landlock) && layers.bubblewrap.works;
    if let (Network::Hosts(_), false) = (network, namespaces) {
        let why = if at_most == Some(LayerSet::Landlock) {
            "a list of allowed hosts needs namespaces, which were ruled out".to_owned()
        } else {
            format!("a list of allowed hosts needs bubblewrap ({})", layers.bubblewrap.detail)
        };
        return Err(cannot(
            why,
            "install bubblewrap where namespaces are allowed, or choose the network wholly on or off",
        ));
    }
    let set = if namespaces { LayerSet::Namespaces } else { LayerSet::Landlock };
    let bash = if namespaces { &layers.bash_in_namespaces } else { &layers.bash_in_landlock };
    if let Some(why) = bash {
        return Err(cannot(
            format!("bash does not run in the sandbox ({why})"),
            "agents work with bash: see that it is installed and that you may execute it",
        ));
    }
    let mut used: Vec<String> = Vec::new();
    if namespaces {
        used.push("bubblewrap".to_owned());
    }
    used.extend([format!("landlock {}", layers.landlock_abi), "seccomp".to_owned(), "rlimits".to_owned()]);
    if layers.cgroup.works {
        used.push("cgroup".to_owned());
    }
    let weaker = weaker(layers, access, network, set).into_iter().map(str::to_owned).collect();
    let own_processes = if namespaces { layers.own_proc } else { layers.hold.works };
    Ok(Enforcement { set: Some(set), layers: used, weaker, own_processes })
}

fn weaker(layers: &Layers, access: Access, network: &Network, set: LayerSet) -> Vec<&'static str> {
    let mut weaker = Vec::new();
    if set == LayerSet::Landlock {
        if access == Access::Workspace {
            weaker.push("git-metadata: .git in the workspace can be written");
        }
        weaker.push(
            "attributes: mode, owner, times and extended attributes of the user's own files outside can be \
                changed",
        );
        weaker.push("listing: directories above hidden paths cannot be listed");
        weaker.push("names: whether a hidden file exists, its size and times can be found out");
        weaker.push("devices: /dev/shm, terminals and /tmp cannot be used; TMPDIR is private");
        if *network == Network::Off {
            weaker.push("loopback: programs cannot talk over the network among themselves either");
        }
        if access == Access::ReadOnly {
            weaker.push(
                "copy: the throwaway copy stands at another path than the workspace, without files that git \
                    ignores",
            );
        }
        weaker.push("caches: toolchain caches are read-only");
        if !layers.hold.works {
            weaker.push(
                "processes: other processes can be seen and slowed down, and background processes survive a \
                    kill -9 of the helper",
            );
        }
    } else {
        if !layers.own_proc {
            weaker.push(
                "processes: other processes can be seen and slowed down, and background processes survive a \
                    kill -9 of the helper",
            );
        }
        if !layers.overlay.works {
            weaker
                .push("overlay: the throwaway copy is made file by file, and toolchain caches are read-only");
        }
    }
    if layers.landlock_abi < 6 {
        match set {
            LayerSet::Landlock => {
                weaker.push("signals: other processes of the same user can be sent signals")
            }
            LayerSet::Namespaces if !layers.own_proc => {
                weaker.push("signals: other processes of the same user can be sent signals");
            }
            LayerSet::Namespaces => {}
        }
    }
    if layers.landlock_abi < 3 && set == LayerSet::Landlock {
        weaker.push("truncation: files outside that the user may write can be emptied");
    }
    if layers.shell_hidden {
        weaker.push("results: a hostile command can forge the exit codes of later ones");
    }
    if *network == Network::On {
        weaker.push("network: commands can talk to every host");
    }
    if !layers.cgroup_whole {
        weaker.push(
            "bursts: the limits on memory, processes and inotify instances can be passed for a tenth of a \
                second",
        );
    }
    if access == Access::Workspace {
        weaker.push("disk: many files in the workspace together can fill the disk; each alone is limited");
    }
    weaker
}

fn cannot(why: impl Into<String>, remedy: impl Into<String>) -> CannotHold {
    CannotHold { why: why.into(), remedy: remedy.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Layers {
        Layers {
            bubblewrap: Layer::works("0.8.0"),
            own_proc: true,
            overlay: Layer::works(""),
            landlock: Layer::works("7"),
            landlock_abi: 7,
            seccomp: Layer::works(""),
            cgroup: Layer::works(""),
            cgroup_whole: true,
            hold: Layer::works(""),
            root: false,
            shell_hidden: false,
            bash_in_namespaces: None,
            bash_in_landlock: None,
        }
    }

    fn check(
        layers: &Layers,
        network: &Network,
        at_most: Option<LayerSet>,
        expected: Result<LayerSet, &str>,
    ) {
        for access in [Access::ReadOnly, Access::Workspace] {
            match (hold(layers, access, network, at_most), expected) {
                (Ok(held), Ok(set)) => assert_eq!(held.set, Some(set)),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (held, expected) => panic!("{held:?} but expected {expected:?}"),
            }
        }
    }

    #[test]
    fn the_strongest_set_that_works_is_chosen_and_never_one_that_does_not() {
        let hosts = Network::Hosts(vec!["crates.io".to_owned()]);
        check(&all(), &Network::Off, None, Ok(LayerSet::Namespaces));
        check(&all(), &hosts, None, Ok(LayerSet::Namespaces));
        check(&all(), &Network::On, Some(LayerSet::Landlock), Ok(LayerSet::Landlock));
        check(&all(), &hosts, Some(LayerSet::Landlock), Err("ruled out"));
        let bare = Layers { bubblewrap: Layer::missing("not installed"), ..all() };
        check(&bare, &Network::Off, None, Ok(LayerSet::Landlock));
        check(&bare, &hosts, None, Err("install bubblewrap"));
        let old = Layers { landlock: Layer::missing("ENOSYS"), landlock_abi: 0, ..all() };
        check(&old, &Network::Off, None, Err("ENOSYS"));
        check(&Layers::default(), &Network::Off, None, Err("--sandbox off"));
        let broken = Layers { bash_in_namespaces: Some("Permission denied".to_owned()), ..all() };
        check(&broken, &Network::Off, None, Err("bash does not run in the sandbox (Permission denied)"));
        check(&broken, &Network::Off, Some(LayerSet::Landlock), Ok(LayerSet::Landlock));
    }

    #[test]
    fn off_is_held_everywhere_and_says_that_nothing_is() {
        let held = hold(&Layers::default(), Access::Off, &Network::Off, None).unwrap();
        assert_eq!((held.set, held.layers.len(), held.weaker.len()), (None, 0, 1));
    }

    #[test]
    fn what_is_weaker_is_named_and_the_full_set_has_little_to_name() {
        let names = |layers: &Layers, at_most| -> Vec<String> {
            let held = hold(layers, Access::ReadOnly, &Network::Off, at_most).unwrap();
            held.weaker.iter().map(|line| line.split(':').next().unwrap().to_owned()).collect()
        };
        assert!(names(&all(), None).is_empty());
        let fallback = names(&all(), Some(LayerSet::Landlock));
        assert!(
            fallback.contains(&"attributes".to_owned()) && fallback.contains(&"copy".to_owned()),
            "{fallback:?}"
        );
        let nested = Layers { own_proc: false, ..all() };
        assert_eq!(names(&nested, None), ["processes"]);
        let hidden = Layers { shell_hidden: true, ..all() };
        assert_eq!(names(&hidden, None), ["results"]);
    }
}
