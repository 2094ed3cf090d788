#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Every command of README.md and docs/*.md, in order, as written, in a fresh copy of what git holds, page after page. Only the
# data are small: a made-up MNIST of a few hundred images in LOCKSTEP_DATA, with which the same commands take seconds.
#
# A comment on the line before a block says what is special about it, and readers do not see it:
#   <!-- not run: WHY -->   needs a GPU, a cluster, a network or minutes: each line is only checked, see check_line of page_checks.sh
#   <!-- output -->         not commands: what a program prints, a folder, a synopsis
#   <!-- file: NAME -->     is written to NAME, for the commands that follow
# Blocks of a language are no commands either: networks and jobs in yaml are validated, Python is parsed, others left alone.
# Commands, keys and paths inside of a sentence are checked as those that cannot run here are.
# shellcheck disable=SC2016  # backticks of the pages
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
# shellcheck source-path=SCRIPTDIR source=page_checks.sh
source "$(dirname "${BASH_SOURCE[0]}")/page_checks.sh"
program=${LOCKSTEP_PROGRAM:-$repo/build/release/lockstep}

# fresh_clone: the files that git tracks, in ., with this build's program at the place where the build puts it.
fresh_clone() {
  git -C "$repo" ls-files -z 2>/dev/null | tar -C "$repo" --null --verbatim-files-from -T - -cf - 2>/dev/null | tar xf -
  [ -f README.md ] || skip "$repo is no git clone"
  mkdir -p build/release && ln -s "$program" build/release/lockstep
}

# only_looked_at: the same as links, for tests that run nothing.
only_looked_at() {
  ln -s "$repo"/{launch,tests,docs,README.md,hostfile.example} . && mkdir -p build/release && ln -s "$program" build/release/lockstep
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
    python) check_python "$text" "$page:$4" ;;
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
  while IFS=$'\t' read -r _ text; do check_python "$text" "$1"; done < <(spans "$1" | grep -P '\tsafetensors\.')
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

Commands_and_keys_in_the_sentences_of_the_pages_exist() {
  only_looked_at
  check_sentences README.md docs/*.md docs/reference/*.md
  while read -r line; do check_line "$line"; done < <(sed -nE 's/^# +((mpirun -|build\/|sbatch |launch\/).*)/\1/p' launch/jobs/*.yaml hostfile.example launch/slurm/train.sbatch)
}

The_check_of_a_line_finds_what_does_not_exist() {
  only_looked_at
  (check_line 'build/release/lockstep eval runs/mnist --device cpu') || fail "a good line was refused"
  (check_line 'sbatch --nodes=4 --ntasks-per-node=8 launch/slurm/train.sbatch launch/jobs/mnist.yaml data.global_batch=2048') || fail "a good job was refused"
  for bad in 'launch/nosuch --help' 'build/release/lockstep trian job.yaml' 'mpirun -np 2 build/release/lockstep eval x --nosuch' 'if then' \
    'lockstep bench stp JOB' 'tests/arithmetic/run --nosuch 3' 'lockstep train JOB.yaml train.epoch=3' 'lockstep train JOB.yaml parallel.backend=mpii' \
    'mpirun -np 16 build/release/lockstep train launch/jobs/mnist.yaml' 'srun --ntasks=9 lockstep train launch/jobs/mnist.yaml'; do
    expect_failed_check check_line "$bad"
  done
}

Hashes_on_the_pages_are_published_ones() {
  local hash found=0
  while read -r hash; do
    grep -q " $hash " "$repo/launch/jobs/hashes.txt" || fail "$hash is not in launch/jobs/hashes.txt"
    found=$((found + 1))
  done < <(grep -ohE '[0-9a-f]{64}' "$repo"/README.md "$repo"/docs/*.md)
  [ "$found" -gt 1 ] || fail "the pages show $found hashes"
}

# The table at the head of docs/results.md: a row for each job in launch/jobs, whose hash is published as that job's.
Every_shipped_job_has_a_row_of_results_and_a_published_hash() {
  local job row hash
  for job in "$repo"/launch/jobs/*.yaml; do
    job=$(basename "$job" .yaml)
    row=$(grep -F "| [$job](../launch/jobs/$job.yaml) |" "$repo/docs/results.md") || fail "docs/results.md has no row of $job"
    expect_equal "$job: $(wc -l <<<"$row") row" "$job: 1 row"
    hash=$(grep -oE '`[0-9a-f]{16}`' <<<"$row" | tr -d '`')
    case $job in
      kmnist | cifar10*) expect_contains "$row" "not measured" && expect_equal "$job: $hash" "$job: " ;;  # without their data
      hogwild-mnist) expect_contains "$row" "no two runs" && expect_equal "$job: $hash" "$job: " ;;
      fine-tune) expect_contains "$row" "none published" && expect_equal "$job: $hash" "$job: " ;;  # no computation from a seed
      *) grep -qE "^[0-9a-f]{64} [0-9]+ ${hash}[0-9a-f]{48} (.* )?$job\.yaml" "$repo/launch/jobs/hashes.txt" || fail "'$hash' of $job is not in launch/jobs/hashes.txt" ;;
    esac
  done
}

# Tables of `lockstep runs` on the pages: what has the published hash has that of its epochs.
Finished_runs_on_the_pages_have_the_hash_of_their_epochs() {
  local page epochs hash job batch found=0
  while read -r page job epochs hash; do
    batch=$("$program" validate "$repo/launch/jobs/$job.yaml" | awk '$1 == "global_batch:" { print $2 }')
    grep -qE "^[0-9a-f]{64} $((epochs * ((60000 + batch - 1) / batch))) $hash" "$repo/launch/jobs/hashes.txt" ||
      fail "$page: $hash is not what $job.yaml comes to in $epochs epochs"
    found=$((found + 1))
  done < <(awk '/^runs\// && $2 == "finished" && $NF == "yes" { split($3, epochs, "/"); sub("runs/", "", $1); print FILENAME, $1, epochs[1], $(NF - 1) }' "$repo"/README.md "$repo"/docs/*.md)
  [ "$found" -gt 0 ] || fail "no page shows a finished run"
}

# With the real data: a page is read after the main job has been trained.
Steps_and_runs_that_pages_name_are_there() {
  local job page name last
  job=$("$program" validate "$repo/launch/jobs/mnist.yaml")
  last=$(awk '$1 == "global_batch:" { batch = $2 } $1 == "epochs:" { epochs = $2 } END { printf "step-%08d\n", epochs * int((60000 + batch - 1) / batch) }' <<<"$job")
  for page in "$repo"/README.md "$repo"/docs/*.md; do
    while read -r name; do expect_equal "$page: $name" "$page: $last"; done < <(grep -ohE 'step-[0-9]{8}' "$page")
    while read -r name; do
      [ -e "$repo/launch/jobs/${name#runs/}.yaml" ] || grep -qhE "(run\.dir=|convert .*)$name( |\$)|file: ${name#runs/}\.yaml" "$repo"/README.md "$repo"/docs/*.md || fail "$page names $name, which no command makes"
    done < <(grep -ohE 'runs/[a-z][a-z-]*' "$page" | sed 's/-$//')
  done
}

Every_script_has_help_that_does_nothing_else() {
  local script said
  skip_without git python3
  while read -r script; do
    case $script in
      *_test.sh | *_test.py | launch/bundle-command) continue ;;  # ctest starts them; what a bundle's commands become
    esac
    grep -qE -e '--help|help_if_asked' "$repo/$script" || fail "$script knows no --help"
    said=$(cd "$repo" && timeout 20 "./$script" --help </dev/null 2>&1) || fail "$script --help ends with $?: $said"
    [ "${#said}" -gt 60 ] || fail "$script --help says little: $said"
  done < <(git -C "$repo" ls-files -s launch tests | awk '$1 == "100755" { print $4 }')
  expect_equal "$(ls -A)" ""
}

The_pages_have_the_exit_codes_of_the_help() {
  local help
  help=$("$program" --help | tr '\n' ' ' | sed 's/.*Exit codes: //')
  expect_equal "$(sed -n '/^## Exit codes/,/^##* [A-DF-Z]/s/^| \([0-9][0-9]*\) |.*/\1/p' "$repo/docs/what-happened.md" | xargs)" \
    "$(grep -oE '(^|, ?)[0-9]+ ' <<<"$help" | tr -dc '0-9\n' | grep -v '^128$' | xargs)"
  for command in diff prove; do
    [[ ! $("$program" "$command" --help | tr '\n' ' ') =~ "Exit code".*[\ \;]1[:\ ] ]] || expect_contains "${help%% 2 *}" "$command: "
  done
}

Versus_torch_refuses_another_folder_in_one_sentence() {
  mkdir -p empty odd
  for part in train t10k; do
    printf '\0\0\10\3\0\0\0\1\0\0\0\3\0\0\0\3' >"odd/$part-images-idx3-ubyte"
    printf '\0\0\10\1\0\0\0\1\0' >"odd/$part-labels-idx1-ubyte"
  done
  expect_says 66 "empty has no train-images-idx3-ubyte" "$repo/tests/bench/versus_torch" --data empty
  LOCKSTEP_DATA=$PWD XDG_CACHE_HOME=$PWD expect_says 66 "no mnist at hand: launch/get-data mnist, or --data DIR" "$repo/tests/bench/versus_torch"
  expect_exit 65 "$repo/tests/bench/versus_torch" --data odd
  expect_equal "$(wc -l <<<"$output")" 1
}

The_readme_is_two_screens_at_most() {
  local words
  words=$(wc -w <"$repo/README.md")
  [ "$words" -le 1000 ] || fail "README.md has $words words; 1,000 are enough: docs/ has room"
}

Links_between_pages_lead_somewhere() {
  local page target
  for page in "$repo"/README.md "$repo"/docs/*.md "$repo"/docs/reference/*.md; do
    while read -r target; do
      [ -e "$(dirname "$page")/$target" ] || fail "$page links to $target, which is not there"
    done < <(grep -oE '\]\([^)#]+' "$page" | sed 's/^](//' | grep -v '^https\?:')
  done
}

Pages_name_only_files_and_folders_that_are_there() {
  expect_equal "$(named_in_vain "$repo"/README.md "$repo"/docs/*.md "$repo"/docs/reference/*.md)" ""
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
