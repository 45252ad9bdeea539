//! Tests which texts are addresses of another host.

use toll_mount::sftp::Address;

#[track_caller]
fn check(source: &str, user: Option<&str>, host: &str, directory: &str) {
    let address = Address::parse(source).unwrap();
    assert_eq!(address.user.as_deref(), user, "{source}");
    assert_eq!(
        (&*address.host, &*address.directory),
        (host, directory),
        "{source}"
    );
    assert!(Address::is_remote(source), "{source}");
}

#[test]
fn addresses_are_read_as_other_programs_read_them() {
    check("host:", None, "host", "");
    check("host:/srv/data", None, "host", "/srv/data");
    check("ann@host:dir/a:b", Some("ann"), "host", "dir/a:b");
    check("ann@corp@host:d", Some("ann@corp"), "host", "d");
    check("[::1]:/srv", None, "::1", "/srv");
    check("ann@[fe80::1%eth0]:", Some("ann"), "fe80::1%eth0", "");
    check("host:~/data", None, "host", "data");
    check("host:~", None, "host", "");
    check("host:a@b", None, "host", "a@b");
}

#[test]
fn what_is_no_address_or_would_be_an_option_of_ssh_is_refused() {
    let no_address = ["host", ":dir", "@host:dir", "[::1]", "a@:x", "host:~ann/x"];
    let options = [
        "-oProxyCommand=x:dir",
        "-l@host:dir",
        "ann@-host:dir",
        "[-x]:dir",
        "h\n:d",
    ];
    for source in no_address.iter().chain(&options) {
        assert!(Address::parse(source).is_err(), "{source}");
    }
}

#[test]
fn local_directories_are_none_of_another_host() {
    for source in ["/srv/a:b", "./a:b", "data", "..", "a/b@c:d"] {
        assert!(!Address::is_remote(source), "{source}");
    }
}

#[test]
fn an_address_is_written_as_it_was_read() {
    for source in ["host:", "ann@host:/srv", "ann@[::1]:dir"] {
        assert_eq!(Address::parse(source).unwrap().to_string(), source);
    }
}
