//! The file tools, between the kernel's words and those of `convoke-files`.

use convoke_files::{Caps, Edit, Glob, Grep, Mode, Root, Sort};
use convoke_kernel::{FileCall, FileEdit, FileWork, ToolResult};

/// Does what a call asks for, beside other work: files may be large and disks slow.
pub(crate) async fn perform(root: Root, call: FileCall) -> ToolResult {
    let work = move || {
        let caps = Caps::default();
        let path = call.path;
        match call.work {
            FileWork::Edit(edit) => convoke_files::edit(&root, &edit_of(path, edit), &caps),
            FileWork::Glob(call) => {
                let glob = Glob { pattern: call.pattern, path, all: call.all, sort: Sort::default() };
                convoke_files::glob(&root, &glob, &caps)
            }
            FileWork::Grep(call) => {
                let grep = Grep {
                    pattern: call.pattern,
                    path,
                    glob: call.glob,
                    ignore_case: call.ignore_case,
                    fixed: false,
                    multiline: false,
                    context: usize::try_from(call.context).unwrap_or(usize::MAX),
                    mode: if call.files_only { Mode::Files } else { Mode::Lines },
                    all: call.all,
                    sort: Sort::default(),
                };
                convoke_files::grep(&root, &grep, &caps)
            }
        }
        .map_or_else(|refused| ToolResult::refused(refused.to_string()), |done| ToolResult::done(done.text))
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| {
        ToolResult::interrupted("file error: the tool broke off; look before you repeat it.")
    })
}

fn edit_of(path: Option<String>, edit: FileEdit) -> Edit {
    // The editor's calls always name a path.
    let path = path.unwrap_or_default();
    match edit {
        FileEdit::View { range } => Edit::View { path, range },
        FileEdit::Create { text } => Edit::Create { path, text },
        FileEdit::Replace { old, new } => Edit::Replace { path, old, new },
        FileEdit::Insert { line, text } => Edit::Insert { path, line, text },
    }
}
