//! Tables about names.

pub const DIRECTORIES: &str = "
    mkdir d 0755 -> ok
    lstat d -> type=dir mode=0755 uid=0 gid=0
    mkdir d 0755 -> EEXIST
    mkdir d/e 0700 -> ok
    lstat d/e -> type=dir mode=0700
    mkdir m1 0151 -> ok
    lstat m1 -> mode=0151
    mkdir m2 0345 -> ok
    lstat m2 -> mode=0345
    mkdir m3 0000 -> ok
    lstat m3 -> mode=0000
    mkdir m4 1755 -> ok
    lstat m4 -> mode=1755
    mkdir none/d 0755 -> ENOENT
    create f 0644 -> ok
    mkdir f 0755 -> EEXIST
    mkdir f/d 0755 -> ENOTDIR
    symlink d s -> ok
    mkdir s 0755 -> EEXIST
    mkdir s/through 0755 -> ok
    lstat d/through -> type=dir
    symlink nowhere dangling -> ok
    mkdir dangling 0755 -> EEXIST
    mknod p fifo 0644 -> ok
    mkdir p 0755 -> EEXIST
    symlink loop loop -> ok
    mkdir loop/d 0755 -> ELOOP
    rmdir none -> ENOENT
    rmdir f -> ENOTDIR
    rmdir f/x -> ENOTDIR
    rmdir s -> ENOTDIR
    rmdir loop/d -> ELOOP
    rmdir d -> ENOTEMPTY
    rmdir d/. -> EINVAL
    rmdir d/e/.. -> ENOTEMPTY
    rmdir d/e -> ok
    lstat d/e -> ENOENT
    rmdir d/e -> ENOENT
    rmdir d -> ENOTEMPTY
    rmdir d/through -> ok
    rmdir d -> ok
    lstat d -> ENOENT
    rmdir m1 -> ok
    rmdir p -> ENOTDIR
    65534:65534 | mkdir d 0755 -> EACCES
    chmod . 0777 -> ok
    65534:65533 | mkdir d 0755 -> ok
    lstat d -> uid=65534 gid=65533 mode=0755
    65533:65533 | rmdir d/x -> ENOENT
    65533:65533 | mkdir d/x 0755 -> EACCES
    65534:65534 | mkdir d/x 0755 -> ok
    65533:65533 | rmdir d/x -> EACCES
    65534:65534 | rmdir d/x -> ok
    chmod d 0000 -> ok
    65534:65534 | mkdir d/x 0755 -> EACCES
    65534:65534 | rmdir d/x -> EACCES
    65533:65533 | rmdir d -> ok
    list . -> entries=8
";

pub const OPEN: &str = "
    open f RDONLY -> ENOENT
    open f WRONLY -> ENOENT
    open f CREAT,WRONLY 0755 -> ok
    lstat f -> type=file mode=0755 uid=0 gid=0 size=0 nlink=1
    open f CREAT,EXCL,WRONLY 0644 -> EEXIST
    open f CREAT,EXCL,RDONLY 0644 -> EEXIST
    open f CREAT,WRONLY 0600 -> ok
    lstat f -> mode=0755
    open g CREAT,WRONLY 0151 -> ok
    lstat g -> mode=0151
    open h CREAT,RDONLY 0400 -> ok
    lstat h -> mode=0400
    open none/f CREAT,WRONLY 0644 -> ENOENT
    open f/g CREAT,WRONLY 0644 -> ENOTDIR
    open f/g RDONLY -> ENOTDIR
    open f DIRECTORY,RDONLY -> ENOTDIR
    mkdir d 0755 -> ok
    open d RDONLY -> ok
    open d DIRECTORY,RDONLY -> ok
    open d WRONLY -> EISDIR
    open d RDWR -> EISDIR
    open d RDONLY,TRUNC -> EISDIR
    open d CREAT,WRONLY 0644 -> EISDIR
    open d CREAT,EXCL,WRONLY 0644 -> EEXIST
    symlink f s -> ok
    open s RDONLY -> ok
    open s NOFOLLOW,RDONLY -> ELOOP
    open s NOFOLLOW,WRONLY -> ELOOP
    open s CREAT,EXCL,WRONLY 0644 -> EEXIST
    symlink new dangling -> ok
    open dangling RDONLY -> ENOENT
    open dangling CREAT,EXCL,WRONLY 0644 -> EEXIST
    open dangling CREAT,WRONLY 0640 -> ok
    lstat new -> type=file mode=0640
    symlink loop loop -> ok
    open loop RDONLY -> ELOOP
    open loop/f RDONLY -> ELOOP
    mknod p fifo 0644 -> ok
    open p WRONLY,NONBLOCK -> ENXIO
    open p RDONLY,NONBLOCK -> ok
    mknod k socket 0644 -> ok
    open k RDONLY -> ENXIO
    append f hello -> ok
    read f -> content=hello
    lstat f -> size=5
    append f ,world -> ok
    read f -> content=hello,world
    open f WRONLY -> ok
    lstat f -> size=11
    open f WRONLY,TRUNC -> ok
    lstat f -> size=0
    append f again -> ok
    open f RDWR,TRUNC -> ok
    lstat f -> size=0
    append f again -> ok
    open f CREAT,TRUNC,WRONLY 0600 -> ok
    lstat f -> size=0 mode=0755
    chmod . 0777 -> ok
    65534:65533 | open u CREAT,EXCL,WRONLY 0640 -> ok
    lstat u -> uid=65534 gid=65533 mode=0640
    65534:65533 | open u CREAT,WRONLY 0640 -> ok
    65533:65534 | open u RDONLY -> EACCES
    65533:65533 | open u RDONLY -> ok
    65533:65533 | open u WRONLY -> EACCES
    65532:1,65533 | open u RDONLY -> ok
    65534:65533 | open v CREAT,RDONLY 0000 -> ok
    65534:65533 | open v RDONLY -> EACCES
    65534:65533 | open w CREAT,RDWR 0444 -> ok
    65534:65533 | open w WRONLY -> EACCES
    65534:65533 | open w RDONLY,TRUNC -> EACCES
    open . DIRECTORY,RDONLY -> ok
";

pub const UNLINK: &str = "
    unlink f -> ENOENT
    create f 0644 -> ok
    unlink f -> ok
    lstat f -> ENOENT
    unlink f -> ENOENT
    mkdir d 0755 -> ok
    unlink d -> EISDIR
    unlink none/f -> ENOENT
    create f 0644 -> ok
    unlink f/g -> ENOTDIR
    symlink f s -> ok
    unlink s -> ok
    lstat f -> type=file
    symlink nowhere s -> ok
    unlink s -> ok
    lstat s -> ENOENT
    mknod p fifo 0644 -> ok
    unlink p -> ok
    lstat p -> ENOENT
    mknod k socket 0644 -> ok
    unlink k -> ok
    mknod c char 0644 -> ok
    unlink c -> ok
    mknod b block 0644 -> ok
    unlink b -> ok
    link f g -> ok
    lstat f -> nlink=2
    unlink f -> ok
    lstat g -> nlink=1
    unlink g -> ok
    symlink loop loop -> ok
    unlink loop/f -> ELOOP
    unlink loop -> ok
    create d/f 0644 -> ok
    65534:65534 | unlink d/f -> EACCES
    chmod d 0777 -> ok
    65534:65534 | unlink d/f -> ok
    create d/f 0644 -> ok
    chmod d 0666 -> ok
    65534:65534 | unlink d/f -> EACCES
    chmod d 0555 -> ok
    65534:65534 | unlink d/f -> EACCES
    unlink d/f -> ok
    rmdir d -> ok
    list . -> entries=0
";

pub const LINK: &str = "
    link f g -> ENOENT
    create f 0640 -> ok
    link f g -> ok
    lstat f -> nlink=2 mode=0640 type=file
    lstat g -> nlink=2 mode=0640 type=file
    link f g -> EEXIST
    link f f -> EEXIST
    append g data -> ok
    read f -> content=data
    chmod g 0600 -> ok
    lstat f -> mode=0600
    chown f 1 2 -> ok
    lstat g -> uid=1 gid=2
    link g h -> ok
    lstat f -> nlink=3
    unlink f -> ok
    lstat g -> nlink=2
    read h -> content=data
    truncate h 1 -> ok
    read g -> content=d
    mkdir d 0755 -> ok
    link d e -> EPERM
    link g d -> EEXIST
    link g d/g -> ok
    lstat d/g -> nlink=3
    unlink d/g -> ok
    link g none/g -> ENOENT
    link none/g x -> ENOENT
    link g/x y -> ENOTDIR
    link g h/x -> ENOTDIR
    symlink g s -> ok
    link s t -> ok
    lstat t -> type=symlink nlink=2
    readlink t -> target=g
    symlink nowhere dangling -> ok
    link g dangling -> EEXIST
    mknod p fifo 0644 -> ok
    link p q -> ok
    lstat q -> type=fifo nlink=2
    symlink loop loop -> ok
    link loop/x y -> ELOOP
    link g loop/x -> ELOOP
    chmod . 0755 -> ok
    chmod g 0666 -> ok
    65534:65534 | link g mine -> EACCES
    mkdir open 0777 -> ok
    chmod open 0777 -> ok
    65534:65534 | create open/own 0644 -> ok
    65534:65534 | link open/own open/own2 -> ok
    lstat open/own -> nlink=2
    65534:65534 | link open/own mine -> EACCES
    chmod open 0555 -> ok
    65534:65534 | link open/own open/own3 -> EACCES
    chmod open 0666 -> ok
    65534:65534 | link open/own x -> EACCES
";

pub const SYMLINK: &str = "
    symlink f s -> ok
    lstat s -> type=symlink size=1 mode=0777 uid=0
    readlink s -> target=f
    stat s -> ENOENT
    create f 0644 -> ok
    stat s -> type=file
    symlink g s -> EEXIST
    readlink s -> target=f
    symlink x f -> EEXIST
    mkdir d 0755 -> ok
    symlink x d -> EEXIST
    symlink x none/s -> ENOENT
    symlink x f/s -> ENOTDIR
    symlink ../f d/up -> ok
    stat d/up -> type=file
    readlink d/up -> target=../f
    symlink @/f absolute -> ok
    stat absolute -> type=file
    readlink f -> EINVAL
    readlink d -> EINVAL
    readlink none -> ENOENT
    symlink loop2 loop1 -> ok
    symlink loop1 loop2 -> ok
    stat loop1 -> ELOOP
    lstat loop1 -> type=symlink
    symlink x loop1/x -> ELOOP
    lchown s 5 6 -> ok
    lstat s -> uid=5 gid=6
    lstat f -> uid=0 gid=0
    append s text -> ok
    read f -> content=text
    chmod s 0600 -> ok
    lstat f -> mode=0600
    unlink f -> ok
    stat s -> ENOENT
    chmod s 0600 -> ENOENT
    chmod . 0777 -> ok
    65534:65533 | symlink there mine -> ok
    lstat mine -> uid=65534 gid=65533
    chmod . 0755 -> ok
    65534:65534 | symlink there other -> EACCES
";

pub const RENAME: &str = "
    rename f g -> ENOENT
    create f 0644 -> ok
    append f one -> ok
    rename f g -> ok
    lstat f -> ENOENT
    read g -> content=one
    rename g g -> ok
    read g -> content=one
    create h 0600 -> ok
    append h two -> ok
    rename g h -> ok
    read h -> content=one
    lstat h -> mode=0644 nlink=1
    lstat g -> ENOENT
    link h i -> ok
    rename h i -> ok
    lstat h -> nlink=2
    lstat i -> nlink=2
    unlink i -> ok
    mkdir d 0755 -> ok
    rename h d -> EISDIR
    rename d h -> ENOTDIR
    rename h d/h -> ok
    read d/h -> content=one
    mkdir e 0711 -> ok
    rename e d/e -> ok
    lstat d/e -> type=dir mode=0711
    rename d d/e/d -> EINVAL
    rename d d/d -> EINVAL
    mkdir empty 0755 -> ok
    mkdir full 0755 -> ok
    create full/f 0644 -> ok
    rename empty full -> ENOTEMPTY
    rename full empty -> ok
    lstat full -> ENOENT
    lstat empty/f -> type=file
    rename empty/f none/f -> ENOENT
    rename none/f x -> ENOENT
    rename d/h/x y -> ENOTDIR
    rename empty/f d/h/x -> ENOTDIR
    rename d/. x -> EBUSY
    rename d/.. x -> EBUSY
    rename d/h d/e/h -> ok
    read d/e/h -> content=one
    rename d z -> ok
    read z/e/h -> content=one
    list z -> entries=1
    rename z/e/h back -> ok
    read back -> content=one
    symlink back s -> ok
    rename s t -> ok
    readlink t -> target=back
    lstat back -> type=file
    symlink nowhere dangling -> ok
    rename back dangling -> ok
    lstat dangling -> type=file
    read dangling -> content=one
    rename dangling t -> ok
    read t -> content=one
    mknod p fifo 0644 -> ok
    rename p q -> ok
    lstat q -> type=fifo
    rename q t -> ok
    lstat t -> type=fifo
    symlink loop loop -> ok
    rename loop/x y -> ELOOP
    rename t loop/y -> ELOOP
    rename t . -> EBUSY
    65534:65534 | rename t u -> EACCES
    mkdir w1 0777 -> ok
    chmod w1 0777 -> ok
    mkdir w2 0755 -> ok
    65534:65534 | create w1/f 0644 -> ok
    65534:65534 | rename w1/f w2/f -> EACCES
    65534:65534 | rename w1/f w1/g -> ok
    chmod w2 0777 -> ok
    65534:65534 | rename w1/g w2/g -> ok
    lstat w2/g -> uid=65534
    chmod w1 0555 -> ok
    65534:65534 | rename w2/g w1/g -> EACCES
    65533:65533 | rename w2/g w2/h -> ok
";

pub const RENAME_FLAGS: &str = "
    create f 0644 -> ok
    append f one -> ok
    create g 0600 -> ok
    append g two -> ok
    rename-noreplace f g -> EEXIST
    read f -> content=one
    read g -> content=two
    rename-noreplace f h -> ok
    read h -> content=one
    lstat f -> ENOENT
    rename-exchange h g -> ok
    read h -> content=two
    read g -> content=one
    lstat h -> mode=0600
    lstat g -> mode=0644
    rename-exchange h none -> ENOENT
    mkdir d 0755 -> ok
    create d/in 0644 -> ok
    rename-exchange d g -> ok
    lstat d -> type=file
    lstat g/in -> type=file
    read d -> content=one
    rename-exchange g/in d -> ok
    read g/in -> content=one
    rename-noreplace g/in d -> EEXIST
    rename-both h d -> EINVAL
    symlink x s -> ok
    rename-exchange s h -> ok
    readlink h -> target=x
    read s -> content=two
";
