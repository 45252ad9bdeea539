# SPDX-License-Identifier: GPL-2.0
# Functions of the Makefile's steps. toll reads the lines that begin with `==>`,
# `prerequisite:`, `failed:` and `  | `.

# A shell waits for what it runs in the foreground before it obeys a signal, and does
# not pass it on; so long programs run in the background.
trap 'kill $(jobs -p) 2>/dev/null; wait; exit 1' TERM INT HUP

step() {
	echo "==> $*"
}

fail() {
	echo "failed: $*" >&2
	exit 1
}

# Something has to be installed or made room for first.
prerequisite() {
	echo "prerequisite: $*" >&2
	exit 1
}

# logged LOG COMMAND...: runs it with its output in the log, whose end a failure shows.
logged() {
	local log=$1 status=0
	shift
	echo "\$ $*" >>"$log"
	# What is for this project's make is not for the kernel's.
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL "$@" >>"$log" 2>&1 &
	wait $! || status=$?
	[ $status != 0 ] || return 0
	echo "failed: ${why-}$* failed (exit status: $status); see $log, which ends so:" >&2
	grep -v '^[[:space:]]*$' "$log" | tail -n 15 | sed 's/^/  | /' >&2
	exit 1
}

is_whole() {
	[ -e "$2" ] && echo "$1  $2" | sha256sum --check --status
}

# An unpacked source and a build tree, with some to spare.
check_room() {
	local needed_kib=$((3 << 20)) free_kib
	free_kib=$(df --output=avail -k "$1" | tail -n 1)
	[ "$free_kib" -ge $needed_kib ] || prerequisite "cannot build: $((free_kib >> 20)) GiB are" \
		"free in $1, and source and build tree take about $((needed_kib >> 20)) GiB; make room, or" \
		"set XDG_CACHE_HOME to a place with more"
}

# unpack_source DEB PACKAGE DIRECTORY
unpack_source() {
	dpkg-deb --fsys-tarfile "$1" | tar -xO "./usr/src/$2.tar.xz" | xz -dc -T0 |
		tar -x -C "$3" --strip-components=1 &
	wait $! || fail "cannot unpack $1; remove it to fetch it again"
}

# relocate DIRECTORY PLACE: makes headers usable below PLACE. Their Makefile names the
# place where they would be installed, and with an image of the kernel beside them a
# module's link would want another program, for type information that nothing reads.
relocate() {
	local release
	release=$(ls "$1/lib/modules")
	echo "$release" >"$1/kernel.release"
	sed -i "s|include /usr/src/|include $2/usr/src/|" "$1/usr/src/linux-headers-$release/Makefile"
	rm -f "$1/usr/src/linux-headers-$release/vmlinux"
	PATH=$PATH:/usr/sbin:/sbin depmod -b "$1" "$release"
}

# update_source LOG ORIGINAL TREE PATCH...: makes TREE what the patches make of ORIGINAL.
# They are applied to a copy of links, where each file that they write is a new one,
# and only files that differ are put into the tree: the others keep their times, so
# that make compiles what the change asks for.
update_source() {
	local log=$1 original=$2 tree=$3 new=$3.new patch file
	shift 3
	rm -rf "$new"
	cp -al "$original" "$new"
	for patch in "$@"; do
		step "applying ${patch##*/}"
		why="cannot apply $patch: " logged "$log" patch -d "$new" -p1 --forward --batch --no-backup-if-mismatch -i "$patch"
	done
	if [ ! -d "$tree" ]; then
		mv "$new" "$tree"
		return
	fi
	{
		find "$new" -type f -links 1 -printf '%P\n'
		find "$tree" -type f -links 1 -printf '%P\n'
		# What another commit added or removed.
		comm -3 <(cd "$new" && find . ! -type d -printf '%P\n' | sort) \
			<(cd "$tree" && find . ! -type d -printf '%P\n' | sort) | tr -d '\t'
	} | sort -u | while read -r file; do
		if [ ! -e "$new/$file" ] && [ ! -L "$new/$file" ]; then
			rm -f "$tree/$file"
		elif ! cmp -s "$new/$file" "$tree/$file"; then
			mkdir -p "$(dirname "$tree/$file")"
			cp -d --preserve=mode "$new/$file" "$tree/$file.partial"
			mv "$tree/$file.partial" "$tree/$file"
		fi
	done
	rm -rf "$new"
}

# check_out LOG REPOSITORY COMMIT DIRECTORY: makes DIRECTORY the commit's tree. The index is
# our own, so that nothing is written into the repository. Files get further links, which
# changes the times of their status; so git compares their size and time of change alone.
check_out() {
	export GIT_OPTIONAL_LOCKS=0 GIT_INDEX_FILE=$4.index
	step "checking out $3"
	mkdir -p "$4"
	rm -f "$4.index.lock"
	why="cannot check out $3 of $2: " logged "$1" git -c core.trustctime=false \
		-c core.checkStat=minimal -c core.hooksPath=/dev/null -c advice.updateSparsePath=false \
		--git-dir="$2" --work-tree="$4" read-tree --reset -u "$3"
}

# lay_image DIRECTORY RELEASE IMAGE [MODULES]: as a package of a kernel lays it.
lay_image() {
	local config=${3%/*}/config-$2
	rm -rf "$1"
	mkdir -p "$1/boot" "$1/lib/modules"
	cp "$3" "$1/boot/vmlinuz-$2"
	[ -e "$config" ] || config=${4:-/nowhere}/config
	[ -e "$config" ] || config=/dev/null
	cp "$config" "$1/boot/config-$2"
	[ $# = 3 ] || ln -s "$4" "$1/lib/modules/$2"
}

# known_options SOURCE [FRAGMENT...]: of unmet options, those that the source knows or a
# fragment of the user's asks for. Another version of Linux has others than our fragment.
known_options() {
	local source=$1 option
	shift
	while read -r line; do
		option=${line%%=*}
		option=${option#CONFIG_}
		if { [ $# -gt 0 ] && grep -q "CONFIG_$option\>" "$@"; } || grep -rqE --include='Kconfig*' \
			"^[[:space:]]*(menu)?config $option\$" "$source"; then
			echo "$line"
		fi
	done
}

# copy_boot_modules ROOT RELEASE DIRECTORY MODULE...: copies modules, uncompressed, each
# behind what it needs, and lists them in DIRECTORY/order. One that ends in a question
# mark may be missing.
copy_boot_modules() {
	local root=$1 release=$2 directory=$3 module lines path name
	shift 3
	rm -rf "$directory"
	mkdir "$directory"
	touch "$directory/order"
	# An image without modules has all that it needs built in, or does not boot.
	[ -e "$root/lib/modules/$release" ] || return 0
	for module in "$@"; do
		if ! lines=$(PATH=$PATH:/usr/sbin:/sbin modprobe -C /dev/null -d "$root" -S "$release" \
			--show-depends "${module%\?}" 2>/dev/null); then
			[[ $module == *\? ]] ||
				fail "cannot use Linux $release: the kernel has no $module, which a guest needs"
			continue
		fi
		while read -r what path; do
			[ "$what" = insmod ] || continue
			name=${path##*/}
			name=${name%%.ko*}
			name=${name//-/_}.ko
			[ ! -e "$directory/$name" ] || continue
			case $path in
			*.xz) xz -dc "$path" >"$directory/$name" ;;
			*) cp "$path" "$directory/$name" ;;
			esac
			echo "$name" >>"$directory/order"
		done <<<"$lines"
	done
}

json_list() {
	local separator=''
	for item in "$@"; do
		printf '%s"%s"' "$separator" "$item"
		separator=', '
	done
}
