#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# The release build is hardened: read from the ELF files of the program and of its plugins.
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
skip_without readelf
build=$(dirname "${LOCKSTEP_PROGRAM:-$repo/build/release/lockstep}")
if ! grep -qx 'CMAKE_BUILD_TYPE:STRING=Release' "$build/CMakeCache.txt" || grep -qx 'LOCKSTEP_SANITIZE:BOOL=ON' "$build/CMakeCache.txt"; then
  skip "$build is not a release build"
fi

# binaries: the program and the plugins that this build has, one a line.
binaries() {
  local plugin
  echo "$build/lockstep"
  for plugin in "$build"/lockstep_{nccl,vendor}.so; do [ ! -e "$plugin" ] || echo "$plugin"; done
}

# expect_in_each WHAT OPTION...: readelf's output about every binary contains it.
expect_in_each() {
  local what=$1 file
  shift
  while read -r file; do expect_contains "$file: $(readelf -W "$@" "$file")" "$what"; done < <(binaries)
}

Program_can_be_put_at_any_address() {
  expect_contains "$(readelf -Wh "$build/lockstep")" "DYN (Position-Independent Executable file)"
  expect_contains "$(readelf -Wd "$build/lockstep")" "PIE"
}

Nothing_that_the_loader_fills_in_can_be_written_afterwards() {
  expect_in_each GNU_RELRO -l
  expect_in_each NOW -d
}

Stacks_are_guarded() { expect_in_each __stack_chk_fail --dyn-syms; }

Buffers_are_checked() { expect_contains "$(readelf -W --dyn-syms "$build/lockstep")" _chk@GLIBC; }

Stack_cannot_be_run() {
  local file
  while read -r file; do expect_contains "$(readelf -Wl "$file" | grep GNU_STACK)" ' RW  '; done < <(binaries)
}

run_tests "$@"
