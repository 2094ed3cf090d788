# shellcheck shell=bash disable=SC2154
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Root directories of a Debian 12 that has nothing else: a debootstrap of bookworm, kept in $cache, below an overlay for each.
# To be sourced behind launch/lib.sh; by root, in a mount namespace of its own, with a folder $work. What is done there has
# ${environment[@]} and nothing else of ours, the current directory $folder, and ${enter[@]} in front of it.

check_machine() {
  [ "$(id -u)" -eq 0 ] || die 69 "only root can make root directories: run it as root, on a machine where that does no harm"
  command -v debootstrap >/dev/null || die 69 "debootstrap is not installed: launch/install-dependencies containers"
  unshare --mount true 2>/dev/null || die 69 "this container or kernel forbids mount namespaces"
}

# make_base: Debian 12 as its image has it, once.
make_base() {
  local mirror
  [ ! -e "$cache/debian-12/.ready" ] || return 0
  mirror=$(grep -rhE '^(URIs:|deb )' /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | grep -oE '(https?|file)://[^ ]+' | head -n 1) || true
  say "Debian 12, from ${mirror:-deb.debian.org}"
  rm -rf "$cache/debian-12" && mkdir -p "$cache"/{debian-12,ccache}
  logged container-base debootstrap --variant=minbase bookworm "$cache/debian-12" "${mirror:-http://deb.debian.org/debian}" || die 69 "debootstrap failed: is a Debian mirror reachable?"
  # Whatever this machine needs to reach a mirror.
  cp -L /etc/resolv.conf "$cache/debian-12/etc/" 2>/dev/null || true
  cp /etc/apt/apt.conf.d/* "$cache/debian-12/etc/apt/apt.conf.d/" 2>/dev/null || true
  touch "$cache/debian-12/.ready"
}

root_path() { echo "$work/$1/root"; }

# new_root NAME IMAGE: debian:12, or a stage.
new_root() {
  local below=$cache/debian-12 root
  root=$(root_path "$1")
  [ "$2" = debian:12 ] || below=$(root_path "$2")
  [ -d "$below" ] || die 70 "there is no image $2 here"
  mkdir -p "$work/$1"/{root,upper,overlay}
  mount -t overlay overlay -o "lowerdir=$below,upperdir=$work/$1/upper,workdir=$work/$1/overlay" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs -o size=1g tmpfs "$root/dev/shm" # docker run --shm-size=1g
  mkdir -p "$root/root/.cache/ccache"
  mount --bind "$cache/ccache" "$root/root/.cache/ccache"
}

# in_root NAME USER COMMAND...: in $folder, with ${environment[@]} and nothing else of ours, behind ${enter[@]}.
in_root() {
  local root=$1 as=$2 home=/root
  shift 2
  [ "$as" = root ] || home=/home/$as
  # shellcheck disable=SC2016  # the inner shell's
  "${enter[@]}" chroot --userspec="$as" "$(root_path "$root")" /usr/bin/env -i "${environment[@]}" "HOME=$home" /bin/sh -c 'cd "$0" && exec "$@"' "$folder" "$@"
}

# held WHAT COMMAND...: one row; what it said goes to $output.
held() {
  local what=$1 code=0
  shift
  output=$("$@" 2>&1 </dev/null) || code=$?
  if [ "$code" -eq 0 ]; then
    printf '    %-68s ok\n' "$what"
  else
    failed=$((failed + 1))
    printf '    %-68s FAILED (%s)\n%s\n' "$what" "$code" "$output"
  fi
}

clean_up() {
  local root
  for root in "$work"/*/root; do umount -R -l "$root" 2>/dev/null || true; done
  rm -rf --one-file-system "$work"
}
