//! The file tools, between the kernel's words and those of `convoke-files`.

use convoke_files::{Caps, Edit, Glob, Grep, Mode, Root, Sort};
use convoke_kernel::{FileCall, FileEdit, GlobCall, GrepCall, ToolResult};

/// Does what a call asks for, beside other work: files may be large and disks slow.
pub(crate) async fn perform(root: Root, call: FileCall) -> ToolResult {
    let work = move || {
        let caps = Caps::default();
        match call {
            FileCall::Edit(edit) => convoke_files::edit(&root, &edit_of(edit), &caps),
            FileCall::Glob(glob) => convoke_files::glob(&root, &glob_of(glob), &caps),
            FileCall::Grep(grep) => convoke_files::grep(&root, &grep_of(grep), &caps),
        }
        .map_or_else(|refused| ToolResult::refused(refused.to_string()), |done| ToolResult::done(done.text))
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| {
        ToolResult::interrupted("file error: the tool broke off; look before you repeat it.")
    })
}

fn edit_of(edit: FileEdit) -> Edit {
    match edit {
        FileEdit::View { path, range } => Edit::View { path, range },
        FileEdit::Create { path, text } => Edit::Create { path, text },
        FileEdit::Replace { path, old, new } => Edit::Replace { path, old, new },
        FileEdit::Insert { path, line, text } => Edit::Insert { path, line, text },
    }
}

fn glob_of(glob: GlobCall) -> Glob {
    Glob { pattern: glob.pattern, path: glob.path, all: glob.all, sort: Sort::default() }
}

fn grep_of(grep: GrepCall) -> Grep {
    Grep {
        pattern: grep.pattern,
        path: grep.path,
        glob: grep.glob,
        ignore_case: grep.ignore_case,
        fixed: false,
        multiline: false,
        context: usize::try_from(grep.context).unwrap_or(usize::MAX),
        mode: if grep.files_only { Mode::Files } else { Mode::Lines },
        all: grep.all,
        sort: Sort::default(),
    }
}
