# shellcheck shell=bash
# fetch.sh: distribution kernels, through apt, from the mirror that apt uses here.  Sourced by boot.
#
# apt works in a directory of its own (KA_MATRIX_DIR/kernels), so that the machine's lists and packages stay as they
# are; signatures are verified as always.  A kernel is fetched once, and again when the suite has a newer one.

# private_apt DIR SUITE PROGRAM ARGUMENT...
private_apt() {
	local dir=$1 suite=$2 program=$3
	shift 3
	"$program" -qq -o Dir::State="$dir/state" -o Dir::State::status="$dir/status" -o Dir::Cache="$dir/cache" \
		-o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts="$dir/cache" -o Dir::Etc::preferences=- \
		-o Dir::Etc::preferencesparts="$dir/cache" -o APT::Default-Release="$suite" -o APT::Sandbox::User=root \
		-o APT::Install-Recommends=false -o Acquire::Languages=none -o Acquire::Check-Valid-Until=false "$@"
}

# dependencies_of DIR SUITE PACKAGE PATTERN: the names that match
dependencies_of() {
	private_apt "$1" "$2" apt-cache depends "$3" | awk -v pattern="$4" '$1 == "Depends:" && $2 ~ pattern { print $2 }'
}

# fetch_kernel SUITE MIRROR: sets kernel_tree, a directory with boot/ and lib/modules/, and kernel_package.
# The cloud flavour: the same memory management in a third of the size.
fetch_kernel() {
	local suite=$1 mirror=$2 dir=$kernel_cache/$1 package keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	local -a packages
	mkdir -p "$dir"/{state/lists/partial,cache/archives/partial}
	touch "$dir/status"
	say "deb [signed-by=$keyring] $mirror $suite main" >"$dir/sources.list"
	# what the suite offers is asked once in six hours
	if [[ ! -f $dir/asked || -n $(find "$dir/asked" -mmin +360) ]]; then
		private_apt "$dir" "$suite" apt-get update
		touch "$dir/asked"
	fi
	kernel_package=$(dependencies_of "$dir" "$suite" linux-image-cloud-amd64 '^linux-image-[0-9].*-amd64$' | head -1)
	[[ -n $kernel_package ]] || { say "$suite has no kernel for amd64 at $mirror"; return 1; }
	kernel_tree=$dir/$kernel_package
	[[ ! -f $kernel_tree/complete ]] || return 0
	# newer kernels come in several packages
	mapfile -t packages < <(say "$kernel_package"; dependencies_of "$dir" "$suite" "$kernel_package" '^linux-(binary|modules)-')
	rm -rf "$dir"/linux-image-* "$dir"/cache/archives/*.deb
	mkdir -p "$kernel_tree"
	(cd "$dir/cache/archives" && private_apt "$dir" "$suite" apt-get download "${packages[@]}")
	for package in "$dir"/cache/archives/*.deb; do
		dpkg-deb -x "$package" "$kernel_tree"
		rm "$package"
	done
	[[ -e $kernel_tree/lib ]] || ln -s usr/lib "$kernel_tree/lib"
	touch "$kernel_tree/complete"
}

# make_initramfs TREE OUTPUT SCRATCH INIT: INIT, a shell, and the modules that the disks need
make_initramfs() {
	local tree=$1 output=$2 dir=$3 module file release=
	release=$(basename "$tree"/lib/modules/*)
	rm -rf "$dir"
	mkdir -p "$dir/bin" "$dir/boot" "$dir/lib/modules/$release"
	cp "$(command -v busybox)" "$dir/bin/busybox"
	install -m 755 "$4" "$dir/init"
	if [[ -d $tree/boot ]]; then find "$tree/boot" -name "config-*" -exec cp {} "$dir/boot/" \;; fi # newer packages have none
	[[ -f $tree/lib/modules/$release/modules.dep ]] || depmod -b "$tree" "$release"
	for module in virtio_pci virtio_blk crc32c_generic crc32c ext4 xfs; do
		modprobe -d "$tree" -S "$release" --show-depends "$module" 2>&1 || true # built in, or gone from newer kernels
	done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' >"$dir/modules"
	while read -r file; do
		cp "$file" "$dir/lib/modules/"
	done <"$dir/modules"
	rmdir "$dir/lib/modules/$release"
	find "$dir/lib/modules" -name '*.xz' -exec xz -d {} +
	find "$dir/lib/modules" -name '*.zst' -exec zstd -q --rm -d {} +
	sed -i 's,.*/,,; s/\.\(xz\|zst\)$//' "$dir/modules"
	(cd "$dir" && find . | cpio --quiet -o -H newc | gzip -1) >"$output"
}
