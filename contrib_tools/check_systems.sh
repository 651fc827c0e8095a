# shellcheck shell=bash disable=SC2154
# check_systems.sh: the root directories of other releases that check runs its steps in.  Sourced by check, never run;
# uses its variables matrix_directory, work, and its functions inside and target_major.

# What a root directory is made of: when it changes, a kept one gets what is missing.
system_signature() { packages_for build server test probe | cksum; }

# make_system SUITE: a complete one is kept, and brought up to date when the packages changed; others wait meanwhile
make_system() {
	local suite=$1 root=$matrix_directory/$1
	local complete=$root/.pg_kernel_advisor-complete
	mkdir -p "$matrix_directory"
	exec 7>"$matrix_directory/$suite.lock"
	flock 7
	if [[ -f $complete && $(<"$complete") == "$(system_signature)" ]]; then
		say "kept from an earlier run: $root"
		return
	fi
	if [[ ! -f $complete ]]; then bootstrap "$suite" "$root"; fi
	inside "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
		KA_WORK="$work" KA_TARGET="$suite" PG_MAJOR="$(target_major "$suite")" \
		bash "$work/source/contrib_tools/check" --inside system
	system_signature >"$complete"
}

# bootstrap SUITE ROOT: the bare release, anew
bootstrap() {
	local suite=$1 root=$2 mirror
	mirror=$(debian_mirror)
	[[ -n $mirror ]] || { say "apt uses no Debian mirror here: name one in KA_MATRIX_MIRROR"; return 1; }
	[[ -z $(findmnt -rno TARGET | grep -F "$root/" || true) ]] || { say "something is mounted below $root"; return 1; }
	rm -rf --one-file-system "$root"
	debootstrap --variant=minbase "$suite" "$root" "$mirror"
	cp /etc/resolv.conf /etc/hosts "$root/etc/"
	apt-config dump Acquire | grep -E '^Acquire::(https?::|Languages)' >"$root/etc/apt/apt.conf.d/90host" || true
	# a mirror that lags behind its own expiry date is good enough for tests; signatures are still verified
	say 'Acquire::Check-Valid-Until "false";' >>"$root/etc/apt/apt.conf.d/90host"
	say force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io"
}
