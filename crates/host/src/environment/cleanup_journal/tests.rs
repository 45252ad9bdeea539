//! What is undone, and what is left alone.

use super::*;

#[test]
fn a_live_process_has_a_start_time_and_a_dead_one_none() {
    assert!(start_ticks(std::process::id()).is_some());
    assert_eq!(start_ticks(u32::MAX), None);
}

fn journal(changes: Vec<Change>) -> Journal {
    Journal {
        path: "/nonexistent/journal".into(),
        file: tempfile::tempfile().unwrap(),
        changes,
        is_of_this_boot: true,
    }
}

fn directory(path: &Path, made: Option<Identity>) -> Change {
    Change::Directory {
        path: path.to_owned(),
        made,
    }
}

#[test]
fn putting_back_twice_is_no_error() {
    let base = tempfile::tempdir().unwrap();
    let work = base.path().join("work");
    fs::create_dir_all(work.join("deep")).unwrap();
    let made = identity(&work).unwrap().0;
    let gone = Instance {
        pid: u32::MAX,
        start_ticks: 0,
    };
    let group = Change::ControlGroup {
        path: base.path().join("group"),
        made: Some(made),
    };
    let journal = journal(vec![
        directory(&work, None),
        directory(&work, Some(made)),
        Change::LoopImage(work.join("image")),
        Change::MountPoint(work.join("mount")),
        Change::SwapFile(work.join("swap")),
        group,
        Change::Process(gone),
    ]);
    for _ in 0..2 {
        journal.close().unwrap();
        assert!(!work.exists());
    }
}

#[test]
fn only_what_the_run_made_is_removed() {
    let base = tempfile::tempdir().unwrap();
    let [made, other] = ["made", "other"].map(|name| base.path().join(name));
    for path in [&made, &other] {
        fs::create_dir(path).unwrap();
        fs::write(path.join("file"), "kept").unwrap();
    }
    let [of_made, of_other] = [&made, &other].map(|path| identity(path).unwrap().0);
    // One that was about to be made, one that another has replaced, one reached through `..`.
    let around = base.path().join("made/../other");
    for change in [
        directory(&other, None),
        directory(&other, Some(of_made)),
        directory(&around, Some(of_other)),
    ] {
        let error = journal(vec![change]).close().unwrap_err();
        assert!(error.contains("look at it"), "{error}");
    }
    let link = base.path().join("link");
    std::os::unix::fs::symlink(&other, &link).unwrap();
    let of_link = identity(&link).unwrap().0;
    for made in [of_link, of_other] {
        let error = journal(vec![directory(&link, Some(made))]).close();
        assert!(error.is_err(), "{error:?}");
    }
    assert!(other.join("file").exists());
    journal(vec![directory(&made, Some(of_made))])
        .close()
        .unwrap();
    assert!(!made.exists());
}

#[test]
fn what_lies_in_no_directory_of_the_run_is_left_alone() {
    let base = tempfile::tempdir().unwrap();
    let made = identity(base.path()).unwrap().0;
    let journal = journal(vec![directory(base.path(), Some(made))]);
    assert!(journal.is_inside(&base.path().join("swap")));
    assert!(!journal.is_inside(&base.path().join("../swap")));
    assert!(!journal.is_inside(Path::new("/swap")));
}

#[test]
fn a_journal_is_of_this_boot_and_namespace_or_is_left_alone() {
    let here = Origin {
        machine_id: "m".into(),
        ..Origin::here()
    };
    let state = |change: &dyn Fn(&mut Origin)| {
        let mut origin = here.clone();
        change(&mut origin);
        origin.state(&here)
    };
    assert_eq!(state(&|_| {}), State::Lives);
    assert_eq!(state(&|one| one.process.start_ticks += 1), State::Gone);
    assert_eq!(state(&|one| one.pid_namespace += 1), State::OtherNamespace);
    assert_eq!(state(&|one| one.boot_id = "b".into()), State::Rebooted);
    let elsewhere: [&dyn Fn(&mut Origin); 2] =
        [&|one| one.host = "h".into(), &|one| one.machine_id.clear()];
    for change in elsewhere {
        let state = state(&|one| {
            one.boot_id = "b".into();
            change(one);
        });
        assert_eq!(state, State::OtherMachine);
    }
}
