//! Tables about permissions and owners. Users 65532 to 65534 are nobody else
//! here.

pub const CHMOD: &str = "
    chmod f 0644 -> ENOENT
    create f 0644 -> ok
    chmod f 0111 -> ok
    lstat f -> mode=0111
    chmod f 7777 -> ok
    lstat f -> mode=7777
    chmod f 4711 -> ok
    lstat f -> mode=4711
    chmod f 0000 -> ok
    lstat f -> mode=0000
    mkdir d 0755 -> ok
    chmod d 1755 -> ok
    lstat d -> mode=1755
    chmod d 2750 -> ok
    lstat d -> mode=2750
    chmod d 0755 -> ok
    chmod f/x 0644 -> ENOTDIR
    chmod none/x 0644 -> ENOENT
    symlink d s -> ok
    chmod s 0700 -> ok
    lstat d -> mode=0700
    lstat s -> type=symlink
    symlink loop loop -> ok
    chmod loop 0644 -> ELOOP
    chmod d 0755 -> ok
    65534:65534 | chmod f 0644 -> EPERM
    chown f 65534 65533 -> ok
    65534:65534 | chmod f 0642 -> ok
    lstat f -> mode=0642 uid=65534
    65533:65533 | chmod f 0777 -> EPERM
    65534:65533 | chmod f 2755 -> ok
    lstat f -> mode=2755
    65534:65532 | chmod f 2755 -> ok
    lstat f -> mode=0755
    65534:65532,65533 | chmod f 2755 -> ok
    lstat f -> mode=2755
    65534:65534 | chmod f 4755 -> ok
    lstat f -> mode=4755
    create d/g 0644 -> ok
    chown d/g 65534 65534 -> ok
    chmod d 0600 -> ok
    65534:65534 | chmod d/g 0600 -> EACCES
    chmod d 0711 -> ok
    65534:65534 | chmod d/g 0600 -> ok
    lstat d/g -> mode=0600
";

pub const CHOWN: &str = "
    chown f 1 1 -> ENOENT
    create f 0644 -> ok
    chown f 123 456 -> ok
    lstat f -> uid=123 gid=456
    chown f - 789 -> ok
    lstat f -> uid=123 gid=789
    chown f 321 - -> ok
    lstat f -> uid=321 gid=789
    chown f - - -> ok
    lstat f -> uid=321 gid=789
    chown f 4294967294 4294967294 -> ok
    lstat f -> uid=4294967294 gid=4294967294
    mkdir d 0755 -> ok
    chown d 5 6 -> ok
    lstat d -> uid=5 gid=6 mode=0755
    symlink d s -> ok
    chown s 7 8 -> ok
    lstat d -> uid=7 gid=8
    lstat s -> uid=0 gid=0
    lchown s 9 10 -> ok
    lstat s -> uid=9 gid=10
    lstat d -> uid=7 gid=8
    chown f/x 1 1 -> ENOTDIR
    chown none/x 1 1 -> ENOENT
    symlink loop loop -> ok
    chown loop 1 1 -> ELOOP
    chown f 65534 65533 -> ok
    65534:65533 | chown f 65533 65533 -> EPERM
    65534:65533 | chown f 65534 65533 -> ok
    65534:65533 | chown f - 65532 -> EPERM
    65534:65533,65532 | chown f - 65532 -> ok
    lstat f -> gid=65532
    65533:65533 | chown f 65533 - -> EPERM
    65533:65532 | chown f - 65532 -> EPERM
    chmod f 6755 -> ok
    lstat f -> mode=6755
    chown f 0 0 -> ok
    lstat f -> mode=0755 uid=0 gid=0
    chmod f 6755 -> ok
    chown f 65534 65534 -> ok
    chmod f 6711 -> ok
    65534:65534 | chown f - 65534 -> ok
    lstat f -> mode=0711
    chmod d 2755 -> ok
    chown d 11 12 -> ok
    lstat d -> mode=2755
";

pub const ACCESS: &str = "
    create f 0640 -> ok
    append f secret -> ok
    chown f 65534 65533 -> ok
    65534:65534 | read f -> content=secret
    65534:65534 | append f 1 -> ok
    65532:65533 | read f -> content=secret1
    65532:65533 | append f 2 -> EACCES
    65532:1,65533 | read f -> content=secret1
    65532:65532 | read f -> EACCES
    65532:65532 | access f 0 -> ok
    65532:65532 | access f 4 -> EACCES
    65532:65533 | access f 4 -> ok
    65532:65533 | access f 2 -> EACCES
    65534:65534 | access f 6 -> ok
    65534:65534 | access f 1 -> EACCES
    access f 6 -> ok
    access f 1 -> EACCES
    chmod f 0104 -> ok
    65534:65534 | access f 1 -> ok
    65534:65534 | read f -> EACCES
    65532:65533 | read f -> EACCES
    65532:65532 | read f -> content=secret1
    access f 7 -> ok
    mkdir d 0750 -> ok
    create d/g 0666 -> ok
    chmod d/g 0666 -> ok
    chown d 65534 65533 -> ok
    65532:65532 | read d/g -> EACCES
    65532:65532 | stat d/g -> EACCES
    65532:65532 | list d -> EACCES
    65532:65533 | list d -> entries=1
    65532:65533 | stat d/g -> type=file
    65532:65533 | create d/h 0644 -> EACCES
    65534:65534 | create d/h 0644 -> ok
    lstat d/h -> uid=65534 gid=65534
    chmod d 0711 -> ok
    65532:65532 | list d -> EACCES
    65532:65532 | append d/g x -> ok
    65532:65532 | read d/g -> content=x
    chmod d 0744 -> ok
    65532:65532 | list d -> entries=2
    65532:65532 | stat d/g -> EACCES
    65532:65532 | open d/g RDONLY -> EACCES
    65532:65532 | lstat d/none -> EACCES
    chmod d 0000 -> ok
    list d -> entries=2
    65534:65534 | list d -> EACCES
    read d/g -> content=x
";

pub const STICKY: &str = "
    mkdir t 1777 -> ok
    chmod t 1777 -> ok
    65534:65534 | create t/f 0666 -> ok
    65534:65534 | mkdir t/d 0777 -> ok
    65533:65533 | unlink t/f -> EPERM
    65533:65533 | rmdir t/d -> EPERM
    65533:65533 | rename t/f t/g -> EPERM
    65533:65533 | create t/own 0644 -> ok
    65533:65533 | rename t/own t/f -> EPERM
    65533:65533 | rename t/own t/own2 -> ok
    65534:65534 | rename t/f t/own2 -> EPERM
    65534:65534 | rename t/f t/g -> ok
    65534:65534 | unlink t/g -> ok
    65534:65534 | rmdir t/d -> ok
    unlink t/own2 -> ok
    chown t 65532 65532 -> ok
    65534:65534 | create t/f 0644 -> ok
    65532:65532 | unlink t/f -> ok
    65534:65534 | create t/f 0644 -> ok
    chmod t 0777 -> ok
    65533:65533 | unlink t/f -> ok
    list t -> entries=0
";

pub const SET_GROUP_ID: &str = "
    mkdir d 0777 -> ok
    chown d 0 65532 -> ok
    chmod d 2777 -> ok
    65534:65533 | create d/f 0644 -> ok
    lstat d/f -> uid=65534 gid=65532 mode=0644
    65534:65533 | mkdir d/e 0755 -> ok
    lstat d/e -> uid=65534 gid=65532 mode=2755
    65534:65533 | mkdir d/e/g 0700 -> ok
    lstat d/e/g -> gid=65532 mode=2700
    65534:65533 | symlink x d/s -> ok
    lstat d/s -> gid=65532
    65534:65533 | mknod d/p fifo 0644 -> ok
    lstat d/p -> gid=65532
    chmod d 0777 -> ok
    65534:65533 | create d/h 0644 -> ok
    lstat d/h -> gid=65533
    65534:65533 | create d/suid 4755 -> ok
    lstat d/suid -> mode=4755 uid=65534
    65534:65533 | create d/sgid 2755 -> ok
    lstat d/sgid -> mode=2755 gid=65533
";

pub const SET_USER_ID: &str = "
    create f 0666 -> ok
    chmod f 6777 -> ok
    append f x -> ok
    lstat f -> mode=6777
    65534:65534 | append f y -> ok
    lstat f -> mode=0777
    read f -> content=xy
    chmod f 4777 -> ok
    65534:65534 | truncate f 1 -> ok
    lstat f -> mode=0777
    chmod f 2777 -> ok
    65534:65534 | append f z -> ok
    lstat f -> mode=0777
    chmod f 2767 -> ok
    65534:65534 | read f -> content=xz
    lstat f -> mode=2767
";
