# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Checks of docs_test.sh that run nothing: commands, keys, Python and names on the pages. To be sourced, after
# harness.sh, with build/release/lockstep and the folders of the repository in the current one.
# shellcheck disable=SC2016,SC2154  # backticks of the pages; the harness sets repo

# blocks PAGE: one line for each fenced block: its mark, its language (or -), the lines of its first and last line of text.
blocks() {
  awk '/^ *```/ { if (inside) { print mark "\t" (language == "" ? "-" : language) "\t" first "\t" NR - 1; inside = 0; mark = "" }
         else { inside = 1; language = $0; sub(/^ *```/, "", language); first = NR + 1 }
         next }
       !inside { mark = /^<!-- (not run: .+|output|file: [^ ]+) -->$/ ? $0 : "" }' "$1"
}

# spans PAGE...: what stands between `backticks` on the pages, outside of blocks, as "PAGE<tab>TEXT".
spans() {
  awk '/^ *```/ { fenced = !fenced; next }
       !fenced { while (match($0, /`[^`]+`/)) { print FILENAME "\t" substr($0, RSTART + 1, RLENGTH - 2); $0 = substr($0, RSTART + RLENGTH) } }' "$@" | sort -u
}

# named_in_vain PAGE...: files and folders of ours that the pages name and that are not there. NAME stands for one that is to be added.
named_in_vain() {
  local page name rooms='common|kernels|models|data|comm|trainer|launch|tests|docs'
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

# has_option HELP OPTION
has_option() { grep -qE -- "(^|[ ,[(|])$2([] ,=|)]|\$)" <<<"$1"; }

# help_of COMMAND...: what its --help says on a wide page, asked once.
declare -A helps
help_of() {
  helps[$*]=${helps[$*]:-$(COLUMNS=10000 timeout 20 "$@" --help </dev/null 2>&1)} || return
  help=${helps[$*]}
}

# check_key WORD WHERE: "train.epochs=2" and "train.epochs: 2" name a key or a section of a job, and where that has choices, one.
check_key() {
  local key=${1%%[=:]*} value line
  help=${keys_help:=$(COLUMNS=10000 timeout 20 build/release/lockstep help keys </dev/null 2>&1)}
  line=$(grep -m 1 -E "^${key//./\\.}([. ]|\$)" <<<"$help") || fail "no key '$key', in: $2"
  value=$(sed -E "s/^[^=:]*(=|: ?)?//; s/'\$//" <<<"$1")
  [[ $line = "$key "* && $value =~ ^[a-z0-9_-]+$ && $line =~ \(one\ of\ ([^\)]*)\) ]] || return 0
  [[ ", ${BASH_REMATCH[1]}," = *", $value,"* ]] || fail "$key is one of ${BASH_REMATCH[1]}, not $value, in: $2"
}

# check_job RANKS WHERE JOB KEY=VALUE...: the job is valid, and every one of so many ranks has a grain to work on.
check_job() {
  local ranks=$1 where=$2 job
  shift 2
  job=$(build/release/lockstep validate "$@" 2>&1) || fail "$where: $job"
  awk -v ranks="$ranks" '$1 == "global_batch:" { batch = $2 } $1 == "grain:" { grain = $2 } $1 == "per_rank_batch:" { each = $2 }
    END { exit each == 0 && batch < (ranks - 1) * grain + 1 }' <<<"$job" ||
    fail "$1 has no work for $ranks ranks, in: $where"
}

# check_line LINE: a command that cannot run here is at least one that could: the shell parses it, its first words exist,
# each of our commands and scripts and its options stand in its --help, keys of a job are keys, and the job has work for
# all its ranks. Words in capitals stand for something.
check_line() {
  local words word help='' command='' ranks=1 nodes=1 job=()
  bash -n <<<"$1" || fail "the shell cannot parse: $1"
  read -ra words <<<"${1%%#*}"
  for ((i = 0; i < ${#words[@]}; ++i)); do
    word=${words[i]}
    case $word in
      -np | -n) ranks=${words[i + 1]} ;;
      --ntasks=*) ranks=${word#*=} ;;
      --nodes=*) nodes=${word#*=} ;;
      --ntasks-per-node=*) [[ $nodes,${word#*=} =~ ^[0-9]{1,6},[0-9]{1,6}$ ]] && ranks=$((nodes * ${word#*=})) ;;
      launch/jobs/*.yaml)
        [ -e "$word" ] || fail "no $word, in: $1"
        [[ $1 != *train* ]] || job=("$word")
        ;;
      launch/* | tests/*)
        [ -e "$word" ] || fail "no $word, in: $1"
        if [ -x "$word" ] && [ ! -d "$word" ] && [ "$i" -eq 0 ]; then command=$word && help_of "$word"; fi
        ;;
      build/release/kernel_table) return ;;  # programs follow, not commands
      lockstep | */lockstep)
        command=${words[i + 1]:-}
        [[ $command =~ ^[a-z]+$ ]] || { command='' && continue; }
        [[ $command != bench || ! ${words[i + 2]:-} =~ ^[a-z]+$ ]] || command="bench ${words[i + 2]}"
        # shellcheck disable=SC2086
        help_of build/release/lockstep $command
        grep -q "^Usage: lockstep $command " <<<"$help" || fail "no command '$command', in: $1"
        ;;
      --help) ;;
      burn | eval | train) # programs that launch/run starts have options of their own
        [ "$command" != launch/run ] || { command=$word && help_of build/release/lockstep "$word"; }
        ;;
      --*) [ -z "$command" ] || [ "$command" = launch/simulate ] || has_option "$help" "${word%%=*}" || fail "no option $word of $command, in: $1" ;;
      *[A-Z%]*) ;;
      data.*=* | train.*=* | parallel.*=* | run.*=* | \'data.*=* | \'train.*=* | \'parallel.*=* | \'run.*=*)
        check_key "${word#\'}" "$1"
        [ ${#job[@]} -eq 0 ] || [[ $word = *\'* ]] || job+=("$word")
        ;;
    esac
  done
  if [ ${#job[@]} -gt 0 ] && [[ $ranks =~ ^[0-9]+$ ]] && [ "$ranks" -gt 1 ]; then check_job "$ranks" "$1" "${job[@]}"; fi
}

# check_sentences PAGE...: commands and keys that stand in their sentences.
check_sentences() {
  local page text
  while IFS=$'\t' read -r page text; do
    text=${text//\\|/|}
    case $text in
      *'|'* | *...* | *'['* | *'{'*) ;;  # a choice, something left out, an optional part
      lockstep.* | lockstep_*) ;;
      lockstep\ * | *build/release/lockstep\ * | launch/*\ * | tests/*\ *) check_line "$text" ;;
      bench\ *) check_line "lockstep $text" ;;
      *)
        [[ $text =~ ^(data|train|parallel|run)\.[a-z_]+[a-z_.]*([=:].*)?$ && ! $text =~ \.(cpp|sbatch|md|bin)$ ]] || continue
        check_key "${text%% [a-z]*=*}" "$page: $text"
        ;;
    esac
  done < <(spans "$@" | sort -t $'\t' -u -k 2)
}

# check_python TEXT WHERE: Python parses it; where it has safetensors and PyTorch, what loads a checkpoint does so.
check_python() {
  local newest
  python3 -c 'import ast, sys; ast.parse(sys.stdin.read())' <<<"$1" || fail "$2: Python cannot parse: $1"
  [[ $1 = *load_file* && -d runs/mnist/checkpoints ]] || return 0
  if python3 -c 'import safetensors.torch' 2>/dev/null; then
    newest=$(printf '%s\n' runs/mnist/checkpoints/step-* | tail -n 1)
    python3 -c "import safetensors.torch"$'\n'"$(sed -E "s,runs/mnist/checkpoints/step-[0-9]+,$newest,g" <<<"$1")" || fail "$2: fails: $1"
  else
    echo "  $2: only parsed, this Python has no safetensors.torch"
  fi
}
