//! What reaches further than the directory that is worked in, through the real binary: hooks that are run at
//! the person's next commit, files that are linked to a cache of all projects, and how both are told and
//! taken back.

use convoke_sim::{Script, calls, says};
use serde_json::json;

use crate::repo::{git, read, repository, write};
use crate::stage::Stage;
use crate::undo::run_id;

#[tokio::test]
async fn what_is_run_later_is_said_loudly_listed_and_taken_back() {
    let command = "printf '#!/bin/sh\\nsteal\\n' > .husky/_/pre-commit; echo steal > .envrc; chmod u+w \
        node_modules/x; echo steal >> node_modules/x; printf '[core]\\n\\tfsmonitor = steal\\n' >> \
        .git/config";
    let hook = json!({"command": "create", "path": ".husky/_/post-commit", "file_text": "steal\n"});
    for layers in ["best", "landlock"] {
        let replies = [
            calls("bash", json!({"command": command})),
            calls("str_replace_based_edit_tool", hook.clone()),
            says("Done."),
        ];
        let stage = Stage::with(Script::new().conversation("*", replies)).await;
        let dir =
            repository(&stage, &[(".gitignore", ".husky/_/\n.envrc\nnode_modules/\n"), ("a.txt", "a\n")]);
        git(&dir, &["config", "core.hooksPath", ".husky/_"]);
        write(&dir, ".husky/_/pre-commit", "#!/bin/sh\n");
        write(stage.home().as_path(), "cache/x", "shared\n");
        std::fs::create_dir(dir.join("node_modules")).unwrap();
        std::fs::hard_link(stage.home().join("cache/x"), dir.join("node_modules/x")).unwrap();
        let config = read(&dir, ".git/config");

        let seen = stage.run(&["--sandbox-layers", layers, "--output", "json", "edit", "it"]).await.exits(0);
        let told = stage.sim().requests().pop().unwrap().body["messages"].to_string();
        assert!(told.contains("which the file tools never write"), "{layers}: {told}");
        assert!(told.contains("1 is now a private copy"), "{layers}: {told}");
        assert_eq!(read(stage.home().as_path(), "cache/x"), "shared\n", "{layers}: other projects use it");
        assert!(
            seen.stderr.contains("warning: files with hard links to places outside of the tree"),
            "{}",
            seen.stderr
        );
        let loud = seen.stderr.lines().find(|line| line.contains("LOOK BEFORE YOU GO ON")).unwrap();
        assert!(loud.contains(".envrc (added)"), "{loud}");
        let weaker = layers == "landlock";
        assert_eq!(loud.contains(".git/config (modified"), weaker, "{loud}");
        assert_eq!(loud.contains(".husky/_/pre-commit (modified)"), weaker, "{loud}");
        assert_eq!(read(&dir, ".git/config") != config, weaker, "{layers}");
        assert_eq!(read(&dir, ".husky/_/pre-commit") != "#!/bin/sh\n", weaker, "{layers}");
        let report = seen.json();
        let envrc = json!({"path": ".envrc", "how": "added", "count": 1, "kept": true, "kind": "named"});
        assert!(report["runs_later"].as_array().unwrap().contains(&envrc), "{report}");
        assert!(report["undo"].as_str().unwrap().contains("sessions undo"), "{report}");

        let run = run_id(&seen);
        let shown = stage.run(&["runs", "diff", &run]).await.exits(0);
        assert!(
            shown.stderr.contains("LOOK BEFORE YOU GO ON") && shown.stderr.contains(".envrc (added)"),
            "{shown:?}"
        );
        let undone = stage.run(&["runs", "undo", &run]).await.exits(0);
        assert!(undone.stdout.contains("removed: .envrc"), "{undone:?}");
        assert!(!dir.join(".envrc").exists());
        assert_eq!(read(&dir, ".husky/_/pre-commit"), "#!/bin/sh\n", "{layers}");
    }
}
