//! A source that hangs: it contains another mount, whose serving process is stopped.

use std::fs;
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::process::Signal;

use crate::mounts::common::{LONG, Mounted, SETTINGS, Setting};

/// More calls than there are threads that wait for requests.
const HANGING: usize = 24;

/// Work that must not wait: on names, attributes and contents, also replaced ones.
fn work_elsewhere(mounted: &Mounted) {
    for round in 0..20_u8 {
        fs::write(mounted.path("plain"), vec![round; 100_000]).unwrap();
        mounted.assert_read("plain", [round; 100_000]);
        fs::rename(mounted.path("plain"), mounted.path("other")).unwrap();
        fs::create_dir(mounted.path("d")).unwrap();
        fs::rename(mounted.path("other"), mounted.path("d/plain")).unwrap();
        fs::rename(mounted.path("d"), mounted.path("e")).unwrap();
        fs::rename(mounted.path("e/plain"), mounted.path("plain")).unwrap();
        fs::remove_dir(mounted.path("e")).unwrap();
        assert!(fs::metadata(mounted.path("plain")).unwrap().is_file());
    }
}

#[test]
fn what_hangs_below_one_directory_keeps_nothing_elsewhere_waiting() {
    for setting in SETTINGS.iter().filter(|setting| setting.is_possible()) {
        let place = tempfile::tempdir().unwrap();
        let source = place.path().join("source");
        let far = place.path().join("far");
        fs::create_dir(&source).unwrap();
        fs::create_dir(&far).unwrap();
        for number in 0..HANGING {
            fs::write(far.join(number.to_string()), b"at last").unwrap();
        }
        // Its mount point is the directory `at` in the other's source.
        let inner = Mounted::existing(&far, &source, &Setting::new("none", "direct"));
        // With this setting, no name has to be looked up while the source hangs.
        let setting = Setting {
            lifetime_ms: 1_000_000,
            ..setting.clone()
        };
        let mounted = Mounted::existing(&source, place.path(), &setting);
        for number in 0..HANGING {
            fs::metadata(mounted.path(&format!("at/{number}"))).unwrap();
        }
        inner.signal(Signal::STOP);
        std::thread::scope(|scope| {
            let (sender, hung) = channel();
            for number in 0..HANGING {
                let (sender, mounted) = (sender.clone(), &mounted);
                scope.spawn(move || {
                    let content = fs::read(mounted.path(&format!("at/{number}")));
                    sender.send(content.unwrap()).unwrap();
                });
            }
            // Lets the reads reach the source. If they do not, the test covers less.
            std::thread::sleep(Duration::from_millis(200));
            let (done, is_done) = channel();
            let worker = &mounted;
            scope.spawn(move || {
                work_elsewhere(worker);
                done.send(()).unwrap();
            });
            let waited = is_done.recv_timeout(LONG);
            let still_hung = hung.try_recv().is_err();
            inner.signal(Signal::CONT);
            assert!(waited.is_ok(), "in {setting:?} others had to wait");
            assert!(still_hung, "nothing hung");
            for _ in 0..HANGING {
                assert_eq!(hung.recv().unwrap(), b"at last");
            }
        });
    }
}
