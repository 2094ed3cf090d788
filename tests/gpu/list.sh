# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# The tests that need a GPU, as a build folder has them. To be sourced.

# gpu_tests BUILD: one line for each test labelled gpu: its name, its number of ranks (0: not under mpirun), its program
# (not-built, if it is not there).
gpu_tests() {
  local list
  list=$(mktemp -d) # a folder of its own: in the build folder, even listing overwrites the log of a run under way
  echo "subdirs(\"$(realpath "$1")\")" >"$list/CTestTestfile.cmake"
  ctest --test-dir "$list" -N -V -L '^gpu$' | awk '
    / Test command: / {
      ranks = 0
      if (match($0, /"?-(n|np)"? "[0-9]+"/)) { ranks = substr($0, RSTART, RLENGTH); gsub(/[^0-9]/, "", ranks) }
      program = $0; sub(/.* Test command: /, "", program)
      if (match(program, /"[^"]*"$/)) program = substr(program, RSTART + 1, RLENGTH - 2)
      else gsub(/\\ /, " ", program)  # as ctest writes a space of a command without arguments
    }
    / Test +#[0-9]+: / { print $NF, ranks, (program == "" ? "not-built" : program); program = "" }'
  rm -rf "$list"
}

# golden_files PROGRAM...: the files with PyTorch's results that these tests read, one a line.
golden_files() { grep -ahoE 'tests/golden/[a-z_0-9]+\.safetensors' "$@" | sort -u; }
