#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Every command of README.md and docs/*.md, in order, as written, in a fresh copy of what git holds, page after page. Only the
# data are small: a made-up MNIST of a few hundred images in LOCKSTEP_DATA, with which the same commands take seconds.
#
# A comment on the line before a block says what is special about it, and readers do not see it:
#   <!-- not run: WHY -->   needs a GPU, a cluster, a network or minutes: each line is only checked, see check_line
#   <!-- output -->         not commands: what a program prints, a folder, a synopsis
#   <!-- file: NAME -->     is written to NAME, for the commands that follow
# Blocks of a language are no commands either: networks and jobs in yaml are validated, others left alone.
# shellcheck disable=SC2016  # backticks of the pages
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
program=${LOCKSTEP_PROGRAM:-$repo/build/release/lockstep}

# fresh_clone: the files that git tracks, in ., with this build's program at the place where the build puts it.
fresh_clone() {
  git -C "$repo" ls-files -z 2>/dev/null | tar -C "$repo" --null --verbatim-files-from -T - -cf - 2>/dev/null | tar xf -
  [ -f README.md ] || skip "$repo is no git clone"
  mkdir -p build/release && ln -s "$program" build/release/lockstep
}

byte() { printf '%b' "\\x$(printf %x "$1")"; }

# idx NAME COUNT: COUNT images of noise and labels, as MNIST names them.
idx() {
  local i
  { printf '\0\0\10\3\0\0' && byte $(($2 / 256)) && byte $(($2 % 256)) && printf '\0\0\0\34\0\0\0\34'; head -c $(($2 * 784)) /dev/urandom; } >"$1-images-idx3-ubyte"
  { printf '\0\0\10\1\0\0' && byte $(($2 / 256)) && byte $(($2 % 256)); for ((i = 0; i < $2; ++i)); do byte $((i % 10)); done; } >"$1-labels-idx1-ubyte"
}

small_mnist() {
  mkdir -p "$PWD/small/mnist"
  (cd small/mnist && idx train 520 && idx t10k 100)
  export LOCKSTEP_DATA=$PWD/small
}

# blocks PAGE: one line for each fenced block: its mark, its language (or -), the lines of its first and last line of text.
blocks() {
  awk '/^ *```/ { if (inside) { print mark "\t" (language == "" ? "-" : language) "\t" first "\t" NR - 1; inside = 0; mark = "" }
         else { inside = 1; language = $0; sub(/^ *```/, "", language); first = NR + 1 }
         next }
       !inside { mark = /^<!-- (not run: .+|output|file: [^ ]+) -->$/ ? $0 : "" }' "$1"
}

# has_option HELP OPTION
has_option() { grep -qE -- "(^|[ ,])$2([ ,=]|\$)" <<<"$1"; }

# check_line LINE: a command that cannot run here is at least one that could: the shell parses it, its first words exist,
# and each of our commands and its options stand in its --help.
check_line() {
  local words word help command=''
  bash -n <<<"$1" || fail "the shell cannot parse: $1"
  read -ra words <<<"${1%%#*}"
  for ((i = 0; i < ${#words[@]}; ++i)); do
    word=${words[i]}
    case $word in
      launch/* | tests/*) [ -e "$word" ] || fail "no $word, in: $1" ;;
      build/release/kernel_table) return ;;  # what follows are programs, not commands
      *build/release/lockstep)
        command=${words[i + 1]}
        help=$(build/release/lockstep "$command" --help) || fail "no command '$command', in: $1"
        ;;
      --*) [ -z "$command" ] || has_option "$help" "$word" || fail "no option $word of $command, in: $1" ;;
    esac
  done
}

# run_block TEXT WHERE: as one paste into a shell.
run_block() {
  local code=0
  printf '%s\n' "$1" >block.sh
  timeout 120 bash -eo pipefail block.sh >block.log 2>&1 </dev/null || code=$?
  [ "$code" -eq 0 ] || fail "$2 ended with exit code $code: $(cat block.sh) -- it said: $(tail -n 15 block.log)"
}

# validate_yaml TEXT WHERE: a network has layers, a job has a model.
validate_yaml() {
  printf '%s\n' "$1" >page.yaml
  if grep -q '^layers:' page.yaml; then
    expect_exit 0 build/release/lockstep validate launch/jobs/mnist.yaml model=./page.yaml
  elif grep -q '^model:' page.yaml; then
    expect_exit 0 build/release/lockstep validate page.yaml
  else
    fail "$2: neither a network nor a job: mark it as output"
  fi
}

try_block() {
  local page=$1 mark=$2 language=$3 text line
  text=$(sed -n "$4,$5p" "$page")
  case $mark in
    '<!-- output'*) return ;;
    '<!-- file: '*) line=${mark#<!-- file: } && printf '%s\n' "$text" >"${line% -->}" ;;
    '<!-- not run: '*)
      while read -r line; do [ -z "$line" ] || check_line "$line"; done <<<"$text"
      return
      ;;
  esac
  case $language in
    -) run_block "$text" "$page:$4" ;;
    yaml) validate_yaml "$text" "$page:$4" ;;
  esac
}

# try_page PAGE: block after block, each in a shell of its own.
try_page() {
  local mark language first last count=0
  while IFS=$'\t' read -r mark language first last; do
    try_block "$1" "$mark" "$language" "$first" "$last"
    count=$((count + 1))
  done < <(blocks "$1" | sed 's/^\t/-\t/')
  [ "$count" -eq "$(($(grep -cE '^ *```' "$1") / 2))" ] || fail "$1: $count blocks were found, of $(grep -cE '^ *```' "$1") fences"
}

mpi_settings() {
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
}

All_commands_of_the_readme_run_in_order_as_written() {
  skip_without git mpirun
  fresh_clone && small_mnist && mpi_settings
  try_page README.md
}

All_commands_of_the_pages_run_in_order_as_written() {
  skip_without git mpirun python3
  fresh_clone && small_mnist && mpi_settings
  for page in docs/*.md; do try_page "$page"; done
}

The_check_of_a_line_finds_what_does_not_exist() {
  fresh_clone
  (check_line 'build/release/lockstep eval runs/mnist --device cpu') || fail "a good line was refused"
  for bad in 'launch/nosuch --help' 'build/release/lockstep trian job.yaml' 'mpirun -np 2 build/release/lockstep eval x --nosuch' 'if then'; do
    expect_failed_check check_line "$bad"
  done
}

Hashes_in_the_readme_are_published_ones() {
  local hash found=0
  while read -r hash; do
    grep -q " $hash " "$repo/launch/jobs/hashes.txt" || fail "$hash is not in launch/jobs/hashes.txt"
    found=$((found + 1))
  done < <(grep -oE '[0-9a-f]{64}' "$repo/README.md")
  [ "$found" -gt 0 ] || fail "the README shows no hash"
}

Links_between_pages_lead_somewhere() {
  local page target
  for page in "$repo"/README.md "$repo"/docs/*.md; do
    while read -r target; do
      [ -e "$(dirname "$page")/$target" ] || fail "$page links to $target, which is not there"
    done < <(grep -oE '\]\([^)#]+' "$page" | sed 's/^](//' | grep -v '^https\?:')
  done
}

# spans PAGE...: what stands between `backticks` on the pages, outside of blocks, as "PAGE<tab>TEXT".
spans() {
  awk '/^ *```/ { fenced = !fenced; next }
       !fenced { while (match($0, /`[^`]+`/)) { print FILENAME "\t" substr($0, RSTART + 1, RLENGTH - 2); $0 = substr($0, RSTART + RLENGTH) } }' "$@" | sort -u
}

# named_in_vain PAGE...: files and folders of ours that the pages name and that are not there. NAME stands for one that is to be added.
named_in_vain() {
  local page name rooms='common|kernels|models|data|comm|simulation|trainer|launch|tests|docs'
  while IFS=$'\t' read -r page name; do
    case $name in
      *NAME*) ;;
      */*) [ -e "$repo/$name" ] || echo "$page names $name" ;;
      *) [ -n "$(find "$repo" -path "$repo/build" -prune -o -name "$name" -print -quit)" ] || echo "$page names $name" ;;
    esac
  done < <(spans "$@" | grep -P "\t(($rooms)/[A-Za-z0-9_./-]+|[a-z0-9_]+\.(cpp|hpp|cu|cuh|sh|cmake|inc|py))\$")
}

# unknown_names PAGE...: types and functions that the pages name and no source knows.
unknown_names() {
  local page name word
  while IFS=$'\t' read -r page name; do
    word=${name%%::*} && word=${word%()}
    grep -rqwF --include='*.?pp' --include='*.cu' --include='*.cuh' -- "$word" "$repo"/{common,kernels,models,data,comm,trainer} || echo "$page names $name"
  done < <(spans "$@" | grep -P '\t([A-Z][a-z]+([A-Z][a-z0-9]+)+(::[a-z_]+(\(\))?)?|[a-z_]+\(\))$')
}

Pages_name_only_files_and_folders_that_are_there() {
  expect_equal "$(named_in_vain "$repo"/README.md "$repo"/docs/*.md)" ""
}

The_page_on_extending_names_only_types_and_functions_that_are_there() {
  expect_equal "$(unknown_names "$repo/docs/extending.md")" ""
}

What_is_not_there_is_found() {
  printf '%s\n' 'As `trainer/nosuch/file.hpp`, `no_such_file.cpp`, `NoSuchType::x()`, and `no_such_function()` say, see `README.md`, `comm/NAME`.' '```' '`trainer/fenced`' '```' >page.md
  expect_equal "$(named_in_vain page.md)" "page.md names no_such_file.cpp"$'\n'"page.md names trainer/nosuch/file.hpp"
  expect_equal "$(unknown_names page.md)" "page.md names NoSuchType::x()"$'\n'"page.md names no_such_function()"
}

run_tests "$@"
