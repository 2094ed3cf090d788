#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# launch/install-dependencies in a copy of its folder, with stand-ins for dpkg-query, apt-get, sudo and id.
# shellcheck disable=SC2016  # the stand-ins expand their own variables
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

# Two groups: "build" of cmake and ninja-build, "test" of clang. cmake is installed; apt-get installs for real, into a file.
make_world() {
  mkdir -p launch bin
  cp "$repo"/launch/{install-dependencies,lib.sh} launch/
  printf '%s\n' 'build cmake CMake' 'build ninja-build Ninja, a builder' 'test clang clang' >launch/packages.txt
  echo cmake >installed
  stand_in dpkg-query 'shift 3; for p; do grep -qx "$p" installed && echo "$p installed"; done; exit 1'
  stand_in apt-get 'echo "apt-get $*" >>calls; [ ! -f broken ] || { echo E: broken mirror; exit 100; }
    [[ " $* " == *" -s "* || " $* " != *" install "* ]] || for p; do echo "$p"; done >>installed'
  stand_in sudo '[ ! -f no-sudo ] || exit 1; [ "$1" = -n ] && shift; echo "sudo $*" >>calls; exec "$@"'
  stand_in id 'cat uid 2>/dev/null || echo 0'
  export PATH=$PWD/bin:$PATH
  unset LOCKSTEP_NO_INSTALL
  touch calls
}

Install_says_what_it_installs_before_it_does() {
  make_world
  expect_exit 0 launch/install-dependencies
  expect_contains "$output" "installing 1 of 2 by apt-get, with what they depend on: ninja-build"
  expect_contains "$(cat calls)" "install --no-install-recommends ninja-build"
  expect_lacks "$(cat calls)" "sudo"
}

Install_leaves_apt_alone_when_all_is_there() {
  make_world && echo ninja-build >>installed
  expect_exit 0 launch/install-dependencies build
  expect_contains "$output" "all 2 are installed"
  expect_equal "$(cat calls)" ""
}

Install_takes_several_groups() {
  make_world
  expect_exit 0 launch/install-dependencies build test
  expect_contains "$(cat installed)" clang
}

Install_goes_through_sudo_as_an_ordinary_user() {
  make_world && echo 1000 >uid
  expect_exit 0 launch/install-dependencies
  expect_contains "$(cat calls)" "sudo env DEBIAN_FRONTEND=noninteractive apt-get"
}

Install_without_the_right_to_names_the_command_for_an_administrator() {
  make_world && echo 1000 >uid && touch no-sudo
  expect_exit 69 launch/install-dependencies
  expect_contains "$output" "apt-get install --no-install-recommends ninja-build"
  expect_equal "$(cat calls)" ""
}

Install_shows_why_it_failed() {
  make_world && touch broken
  expect_exit 69 launch/install-dependencies
  expect_contains "$output" "E: broken mirror"
}

Install_on_another_system_names_what_is_needed_by_function() {
  make_world && rm bin/dpkg-query
  local tool
  for tool in bash dirname awk sort cat env; do ln -s "$(PATH=/usr/bin:/bin command -v $tool)" "bin/$tool"; done
  PATH=$PWD/bin expect_exit 69 launch/install-dependencies
  expect_contains "$output" "not a Debian system"
  expect_contains "$output" "Ninja, a builder"
}

Install_does_nothing_when_told_so() {
  make_world
  LOCKSTEP_NO_INSTALL=1 expect_exit 0 launch/install-dependencies
  expect_equal "$(cat calls)" ""
}

Install_refuses_a_group_that_does_not_exist() {
  make_world
  expect_exit 2 launch/install-dependencies tests
  expect_contains "$output" "groups: build test"
}

# Debian has jpeg62 where Ubuntu has jpeg8: no package has a release's number in its name. (CLI11's is its own.)
Packages_to_build_with_have_the_same_name_on_debian_and_ubuntu() {
  expect_equal "$("$repo/launch/install-dependencies" --list build | awk '$1 != "libcli11-dev" && $1 ~ /[a-z][0-9][0-9]|-[0-9]+(-|$)/ { print $1 }')" ""
}

Package_list_names_each_package_and_what_it_is_for() {
  expect_equal "$(awk '!/^#/ && (NF < 3 || $1 !~ /^(build(,library)?|test(,package)?|tidy|slurm|mpich|simgrid|arm|containers|fashion-mnist)$/)' "$repo/launch/packages.txt")" ""
}

run_tests "$@"
