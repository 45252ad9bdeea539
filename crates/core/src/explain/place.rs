//! Assigns a stack to a function or wait, to a group, and to the rest of its kind.

use toll_wire::Activity;

use crate::run::ProfiledFunction;

/// Name for the return from a system call. Timer samples at the instruction after the call count as
/// this return.
pub const SYSTEM_CALL_RETURN: &str = "return from a system call";

const SYSTEM_CALLS: &str = "system-call entry and exit";
const PAGE_FAULTS: &str = "page faults";

/// Names of a stack at each level, from the most to the least precise.
pub type Places = [Option<String>; 3];

/// Returns the places of a stack; `frames` has the innermost function first.
pub fn places(activity: Activity, frames: &[&ProfiledFunction]) -> Places {
    match activity {
        Activity::OnCpu => on_cpu(frames),
        Activity::OnCpuInPrograms => whole("programs, which could not be sampled"),
        Activity::OnCpuInKernel => whole("the kernel, which could not be sampled"),
        Activity::Blocked => wait(frames),
        Activity::WaitsForCpu => [None, None, None],
        Activity::StartAndEnd => whole("start and end of the process"),
    }
}

/// Returns the system call, fault or interrupt that a stack belongs to, or that the stack is in a
/// program; `None` if unknown.
pub fn entered_by(activity: Activity, frames: &[&ProfiledFunction]) -> Option<String> {
    let names = kernel_names(frames);
    match (activity, names.is_empty()) {
        (Activity::OnCpu, true) if !frames.is_empty() => Some("programs themselves".to_owned()),
        (Activity::OnCpu | Activity::Blocked, false) => context(&names),
        _ => None,
    }
}

fn whole(name: &str) -> Places {
    [Some(name.to_owned()), None, None]
}

fn on_cpu(frames: &[&ProfiledFunction]) -> Places {
    let Some(leaf) = frames.first() else {
        return whole("on a CPU, not sampled");
    };
    match &leaf.file {
        None => in_kernel(&kernel_names(frames)),
        Some(file) => {
            let name = leaf.name.as_ref();
            [
                name.map(|name| format!("{name} ({})", file_name(file))),
                Some(program(file)),
                Some("other user code".to_owned()),
            ]
        }
    }
}

fn in_kernel(names: &[&str]) -> Places {
    let context = context(names);
    let inside = names.iter().find(|name| !is_entry(name));
    // Entry code has many small parts without names of their own, so everything that user
    // code enters directly is taken together.
    let is_entry_code = inside.is_none() || names.len() == 1;
    let function = match (is_entry_code, context.as_deref()) {
        (true, Some(PAGE_FAULTS)) => "page-fault entry and exit".to_owned(),
        (true, Some(INTERRUPTS)) => "interrupt entry and exit".to_owned(),
        (true, _) => SYSTEM_CALLS.to_owned(),
        (false, Some(context)) => format!("{} ({context})", names[0]),
        (false, None) => names[0].to_owned(),
    };
    let group = context.map_or_else(
        || "kernel functions without a known caller".to_owned(),
        |context| format!("other functions of {context}"),
    );
    [
        Some(function),
        Some(group),
        Some("other kernel code".to_owned()),
    ]
}

fn wait(frames: &[&ProfiledFunction]) -> Places {
    let names = kernel_names(frames);
    let context = context(&names).map(|context| match context.as_str() {
        "futex" => "futex: a lock or condition".to_owned(),
        _ => context,
    });
    let place = names.iter().find(|name| !is_scheduler(name));
    let function = match (place, &context) {
        (Some(place), Some(context)) => format!("waits in {place} ({context})"),
        (Some(place), None) => format!("waits in {place}"),
        (None, _) => "waits".to_owned(),
    };
    let group = context.map(|context| format!("other waits of {context}"));
    [Some(function), group, Some("other waits".to_owned())]
}

/// Returns the names of the kernel's functions, from the innermost to the entry.
fn kernel_names<'a>(frames: &[&'a ProfiledFunction]) -> Vec<&'a str> {
    let in_kernel = frames.iter().take_while(|frame| frame.file.is_none());
    in_kernel
        .map(|frame| frame.name.as_deref().unwrap_or("unknown function"))
        .collect()
}

const INTERRUPTS: &str = "interrupts";

/// Returns why the kernel runs: the innermost system call, page fault or interrupt.
fn context(names: &[&str]) -> Option<String> {
    for (index, name) in names.iter().enumerate() {
        if name.contains("exc_page_fault") {
            return Some(PAGE_FAULTS.to_owned());
        }
        if name.starts_with("asm_") || *name == "irq_exit_rcu" {
            return Some(INTERRUPTS.to_owned());
        }
        if is_system_call_entry(name) {
            let call = names[..index].last();
            // For instance, a task switch on the way out of the kernel.
            if call.is_some_and(|name| is_entry(name)) {
                return Some(SYSTEM_CALLS.to_owned());
            }
            return Some(
                call.map_or(SYSTEM_CALLS, |name| system_call(name))
                    .to_owned(),
            );
        }
    }
    None
}

/// Returns the system call that a function serves. Functions that only jump to
/// another function are not on the stack.
fn system_call(name: &str) -> &str {
    let prefixes = [
        "__x64_sys_",
        "__arm64_sys_",
        "__se_sys_",
        "__do_sys_",
        "ksys_",
        "__sys_",
    ];
    let bare = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix));
    bare.unwrap_or(name)
}

fn is_system_call_entry(name: &str) -> bool {
    name.starts_with("entry_SYSCALL")
        || [
            "do_syscall_64",
            "x64_sys_call",
            "invoke_syscall",
            "el0_svc",
            "ret_from_fork_asm",
            SYSTEM_CALL_RETURN,
        ]
        .contains(&name)
}

/// Returns whether a function belongs to the way into the kernel or out of it.
fn is_entry(name: &str) -> bool {
    is_system_call_entry(name)
        || [
            "asm_",
            "entry_",
            "syscall_",
            "irqentry_",
            "exit_to_user_mode",
            "srso_",
        ]
        .iter()
        .any(|prefix| name.starts_with(prefix))
        || [
            "exc_page_fault",
            "error_entry",
            "error_return",
            "sync_regs",
            "fixup_bad_iret",
        ]
        .contains(&name)
}

/// Returns whether a function only gives up the CPU for another function that waits.
fn is_scheduler(name: &str) -> bool {
    [
        "schedule",
        "__schedule",
        "io_schedule",
        "preempt_schedule",
        "__cond_resched",
    ]
    .iter()
    .any(|prefix| name.starts_with(prefix))
}

fn file_name(file: &str) -> &str {
    match file {
        "" => "code outside any file",
        file => file,
    }
}

fn program(file: &str) -> String {
    if file.contains(".so") || file.is_empty() || file.starts_with('[') {
        file_name(file).to_owned()
    } else {
        format!("{file} itself")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str) -> ProfiledFunction {
        ProfiledFunction {
            name: Some(name.into()),
            file: None,
        }
    }

    fn user(name: Option<&str>, file: &str) -> ProfiledFunction {
        ProfiledFunction {
            name: name.map(str::to_owned),
            file: Some(file.into()),
        }
    }

    fn first(activity: Activity, names: &[&str]) -> String {
        let mut stack: Vec<ProfiledFunction> = names.iter().map(|name| kernel(name)).collect();
        stack.push(user(Some("read"), "libc.so.6"));
        let frames: Vec<&ProfiledFunction> = stack.iter().collect();
        places(activity, &frames)[0].clone().unwrap()
    }

    #[test]
    fn functions_of_the_kernel_name_what_they_run_for() {
        let on_cpu = |names: &[&str]| first(Activity::OnCpu, names);
        let entry = ["do_syscall_64", "entry_SYSCALL_64_after_hwframe"];
        let read = [&["vfs_read", "ksys_read"][..], &entry].concat();
        assert_eq!(on_cpu(&read), "vfs_read (read)");
        assert_eq!(on_cpu(&entry), "system-call entry and exit");
        assert_eq!(
            on_cpu(&["__x86_indirect_thunk_rax"]),
            "system-call entry and exit"
        );
        assert_eq!(on_cpu(&[SYSTEM_CALL_RETURN]), "system-call entry and exit");
        let switch = [
            &["finish_task_switch", "exit_to_user_mode_loop"][..],
            &entry,
        ]
        .concat();
        assert_eq!(
            on_cpu(&switch),
            "finish_task_switch (system-call entry and exit)"
        );
        let fault = [
            "clear_page_erms",
            "handle_mm_fault",
            "exc_page_fault",
            "asm_exc_page_fault",
        ];
        assert_eq!(on_cpu(&fault), "clear_page_erms (page faults)");
        assert_eq!(on_cpu(&fault[2..]), "page-fault entry and exit");
        let within = [&fault[..], &["_copy_to_iter", "ksys_read"], &entry].concat();
        assert_eq!(on_cpu(&within), "clear_page_erms (page faults)");
    }

    #[test]
    fn a_wait_is_named_by_the_function_that_waits() {
        let names = [
            "schedule",
            "futex_do_wait",
            "futex_wait",
            "__x64_sys_futex",
            "do_syscall_64",
        ];
        let wait = first(Activity::Blocked, &names);
        assert_eq!(wait, "waits in futex_do_wait (futex: a lock or condition)");
    }

    #[test]
    fn user_code_without_a_name_is_its_program_s() {
        let (named, bare) = (user(Some("spin"), "prog"), user(None, "dd"));
        let [function, group, _] = places(Activity::OnCpu, &[&named]);
        assert_eq!(function.unwrap(), "spin (prog)");
        assert_eq!(group.unwrap(), "prog itself");
        let [function, group, _] = places(Activity::OnCpu, &[&bare]);
        assert_eq!((function, group.unwrap().as_str()), (None, "dd itself"));
    }
}
