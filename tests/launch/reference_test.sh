#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Texts of the program about itself: help, the pages of docs/reference, shell completion.
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
program=${LOCKSTEP_PROGRAM:-$repo/build/release/lockstep}

completion=$repo/launch/completion/lockstep

lockstep() { "$program" "$@"; }

A_stale_page_is_told_with_the_command_that_mends_it() {
  mkdir -p tests launch docs && cp "$repo/tests/reference" tests && cp "$repo/launch/lib.sh" launch && cp -r "$repo/docs/reference" docs
  sed -i 's/### train.epochs/### train.epoch/' docs/reference/keys.md
  expect_says 1 "docs/reference/keys.md is stale: tests/reference --write makes it anew" env LOCKSTEP_PROGRAM="$program" tests/reference
  expect_exit 0 env LOCKSTEP_PROGRAM="$program" tests/reference --write
  expect_exit 0 env LOCKSTEP_PROGRAM="$program" tests/reference
}

Pages_are_what_the_program_prints_on_any_terminal() {
  COLUMNS=40 LC_ALL=C expect_exit 0 "$repo/tests/reference"
}

No_line_of_prose_on_the_pages_is_wider_than_the_others_are() {
  local long
  long=$(awk '/^(<!-- output|```)/ { block = !block && /output/ || block && !/^```$/ } !/^\|/ && !/^ / && length($0) > 130 { print FILENAME ": " $0 }' "$repo"/docs/reference/*.md | grep -v '`--' || true)
  expect_equal "$long" ""
}

# widest COMMAND...: the columns of its longest line.
widest() { "$@" | awk '{ if (length($0) > most) most = length($0) } END { print most }'; }

Help_in_a_pipe_has_80_columns_or_as_many_as_COLUMNS_says() {
  unset COLUMNS
  local columns
  [ "$(widest lockstep train --help)" -le 80 ] || fail "the help of train is wider than 80"
  for columns in 40 60 100 160; do
    [ "$(COLUMNS=$columns widest lockstep train --help)" -le "$columns" ] || fail "it is wider than COLUMNS=$columns"
  done
  [ "$(COLUMNS=160 widest lockstep help keys)" -gt 110 ] || fail "a wide page is not used"
}

Help_of_train_fits_a_screen_and_names_the_way_to_the_keys() {
  COLUMNS=80 expect_exit 0 lockstep train --help
  [ "$(wc -l <<<"$output")" -le 24 ] || fail "it has $(wc -l <<<"$output") lines"
  expect_contains "$output" "lockstep help keys"
  expect_contains "$output" "lockstep help train.optimizer.lr"
}

Help_tells_all_of_a_key_a_section_or_a_command() {
  expect_exit 0 lockstep help train.optimizer.lr
  for part in 'learning rate' 'a number above 0' 'adam: 0.001' 'learning_rate' 'train.optimizer.lr=0.1' 'another value gives others'; do expect_contains "$output" "$part"; done
  expect_equal "$(lockstep help learning_rate)" "$(lockstep help train.optimizer.lr)"
  expect_says 0 "vendor gives others than native" lockstep help parallel.kernels
  expect_says 0 "decides them with the ranks" lockstep help data.per_rank_batch
  expect_equal "$(lockstep train --help train.optimizer.lr)" "$(lockstep help train.optimizer.lr)"
  expect_says 0 "train.schedule.warmup_start" lockstep help train.schedule
  expect_lacks "$output" "train.seed"
  expect_equal "$(lockstep help bench step)" "$(lockstep bench step --help)"
  expect_equal "$(lockstep help)" "$(lockstep --help)"
  expect_says 2 "did you mean 'train.optimizer.lr'" lockstep help train.optimiser.lr
  expect_says 2 "did you mean 'train.optimizer.lr'" lockstep help train.lr
  expect_exit 2 lockstep help $'nosuch\e[31m'
  expect_lacks "$output" $'\e'
}

# On a page of any width: what excludes an option stands behind what it means, and does not run into it.
Options_and_what_they_mean_are_columns_of_help() {
  local command
  for command in report predict validate convert doctor 'bench step'; do
    # shellcheck disable=SC2086
    output=$(COLUMNS=200 lockstep $command --help)
    expect_lacks "$output" "Excludes:"
    expect_lacks "$output" "Needs:"
    expect_equal "$command: $(awk 'before != "" && substr($0, 1, 30) !~ /^ +$/ { print before } { before = /^  -/ && length > 30 && substr($0, 29, 2) != "  " ? $0 : "" }' <<<"$output")" "$command: "
  done
  output=$(COLUMNS=200 lockstep report --help)
  expect_contains "$output" "until no run goes on (not with --format, --output)"
  expect_contains "$(COLUMNS=200 lockstep convert --help)" "(needs --size)"
}

# typed SHELL-LINE: what bash would put in place of the word at its end, a line each, after what is said and asked of compopt.
typed() {
  bash -c 'compopt() { echo "compopt $*"; echo noise >&2; }; COMP_WORDBREAKS=${breaks_at-$COMP_WORDBREAKS}; source "$1"; shift; COMP_LINE=$1 COMP_POINT=${#1}; read -ra COMP_WORDS <<<"$1"
    [[ $1 != *" " ]] || COMP_WORDS+=(""); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _lockstep lockstep; printf "%s\n" "${COMPREPLY[@]}"' - "$completion.bash" "${asked-$program} ${1#lockstep }" 2>&1
}

expect_word() { grep -qxF -- "$2" <<<"$1" || fail "no word '$2' in: $(xargs <<<"$1")"; }

# some_runs: two in runs/, and a folder that is none.
some_runs() {
  mkdir -p runs/{mnist,other}/checkpoints runs/empty
}

Completion_knows_commands_options_and_their_choices() {
  expect_equal "$(typed 'lockstep tra')" "train"
  expect_equal "$(typed 'lockstep bench st')" "step"
  expect_lacks "$(typed 'lockstep ')" "complete"
  expect_equal "$(typed 'lockstep runs --so')" "--sort"
  expect_word "$(typed 'lockstep runs --sort ')" "accuracy"
  expect_equal "$(typed 'lockstep prove x --kernels v')" "vendor"
  expect_word "$(typed 'lockstep eval x --device ')" "emulated"
  expect_word "$(typed 'lockstep eval x --set ')" "fashion-mnist"
  expect_word "$(typed 'lockstep help train.sch')" "train.schedule.kind"
  expect_equal "$(typed 'lockstep train job model=resnet2')" "resnet20"  # an argument may be called as it is
}

Completion_knows_keys_and_their_values() {
  expect_equal "$(typed 'lockstep train job.yaml train.optimizer.l' | head -n 1)" "train.optimizer.lr="
  expect_equal "$(typed 'lockstep train job.yaml train.epochs=2 train.optimizer.kind=ad' | xargs)" "adam adamw"
  expect_equal "$(typed 'lockstep bench step job.yaml --steps 3 run.trail=' | xargs)" "true false"
  expect_equal "$(typed 'lockstep validate job.yaml parallel.device=' | xargs)" "auto cpu cuda emulated"
  expect_word "$(typed 'lockstep train job.yaml model=res')" "resnet20"
  mkdir -p here/it && expect_equal "$(typed 'lockstep train job.yaml data.root=here/')" $'compopt -o nospace\nhere/it/'
  expect_equal "$(typed 'lockstep train job.yaml data.root')" $'compopt -o nospace\ndata.root='
  expect_equal "$(breaks_at=' ' typed 'lockstep train job.yaml run.trail=' | xargs)" "run.trail=true run.trail=false"
}

Completion_knows_jobs_runs_and_files() {
  some_runs && touch mine.yaml picture.png
  expect_word "$(typed 'lockstep train ')" "mine.yaml"
  expect_word "$(typed 'lockstep train ')" "cifar10"
  touch mnt mn.txt mnist-mine.yml && mkdir mnemonics
  expect_equal "$(typed 'lockstep train mn' | sort | xargs)" "mnemonics/ mnist mnist-99 mnist-mine.yml"
  expect_equal "$(typed 'lockstep train mn.')" "mn.txt"
  touch mnist.yaml  # a file of that name: the job's own name would be refused
  expect_equal "$(typed 'lockstep train mnist' | sort | xargs)" "mnist-99 mnist-mine.yml mnist.yaml"
  expect_word "$(cd "$repo" && typed 'lockstep train launch/jobs/mn')" "launch/jobs/mnist.yaml"
  expect_word "$(typed 'lockstep eval ')" "runs/mnist@best"
  expect_word "$(typed 'lockstep eval runs/mn')" "runs/mnist@last"
  expect_word "$(typed 'lockstep predict --top 3 runs/mn')" "runs/mnist@last"
  expect_lacks "$(typed 'lockstep eval runs/')" "empty@"
  expect_equal "$(typed 'lockstep eval runs/mnist@' | sort | xargs)" "@best @last"
  expect_word "$(typed 'lockstep prove runs/ot')" "runs/other"
  expect_lacks "$(typed 'lockstep prove runs/ot')" "@"
  expect_word "$(typed 'lockstep predict runs/mnist pic')" "picture.png"
  expect_equal "$(typed 'lockstep train job.yaml train.initial_weights=runs/mnist@b')" "@best"
}

Completion_offers_folders_alone_where_no_file_will_do_and_quotes_names() {
  mkdir 'my runs' && touch a 'my runs/a picture'
  # shellcheck disable=SC2317  # by the script
  compgen() { printf '%s\n' a 'my runs'; } && export -f compgen
  expect_equal "$(typed 'lockstep runs ')" $'compopt -o nospace\nmy\\ runs/'
  unset -f compgen
  expect_equal "$(typed 'lockstep predict x my')" $'compopt -o nospace\nmy\\ runs/'
}

Completion_of_a_program_that_fails_says_nothing() {
  stand_in broken 'echo broken >&2; exit 1'
  expect_equal "$(asked=$PWD/bin/broken typed 'lockstep tra')" ""
}

# typed_into_bash LINE: what stands in the command line of a bash on a terminal once a Tab is typed behind it.
typed_into_bash() {
  python3 - "$program" "$1" <<'PYTHON'
import os, pty, select, sys, time
program, line = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    os.environ.update(TERM="dumb", PS1="", LC_ALL="C", INPUTRC="/dev/null", HISTFILE="", PATH=os.getcwd() + "/bin:" + os.environ["PATH"])
    os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
def read_until(text):
    said = b""
    end = time.time() + 20
    while text not in said and time.time() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            said += os.read(terminal, 65536)
    return said
os.write(terminal, b"lockstep() { printf '<%s>' \"$*\"; echo END-OF-IT; }; . ./script; echo READ\"\"Y\n")
read_until(b"READY")
os.write(terminal, line.encode() + b"\t\n")
print(read_until(b">END-OF-IT").decode(errors="replace").rpartition("<")[2].partition(">END")[0])
PYTHON
}

What_bash_puts_into_the_line_is_the_whole_word() {
  skip_without python3
  some_runs && mkdir bin && ln -s "$program" bin/lockstep && ln -s "$completion.bash" script
  expect_equal "$(typed_into_bash 'lockstep eval runs/mnist@b')" "eval runs/mnist@best"
  expect_equal "$(typed_into_bash 'lockstep train job.yaml train.optimizer.kind=adamw train.schedule.kind=exp')" \
    "train job.yaml train.optimizer.kind=adamw train.schedule.kind=exponential"
}

# As others test completion: words alone, of which one follows, and an alias of the program on PATH.
Completion_goes_by_the_words_where_there_is_no_line() {
  mkdir bin && ln -s "$program" bin/lockstep
  expect_equal "$(bash -c 'source "$1"; COMP_WORDS=(alias train job.yaml data.set=fashion later) COMP_CWORD=3
    _lockstep; printf "%s\n" "${COMPREPLY[@]}"' - "$completion.bash")" "fashion-mnist"
}

Completion_of_hostile_names_obeys_none_of_them() {
  mkdir -p "runs/a\$(touch oops)/checkpoints" $'runs/b\e[31m/checkpoints'
  expect_word "$(typed 'lockstep eval runs/a')" 'runs/a\$\(touch\ oops\)'
  expect_lacks "$(typed 'lockstep eval runs/')" $'\e'
  expect_no_file oops
  expect_exit 0 lockstep complete -- train -- --sort '' "$(head -c 3000 /dev/zero | tr '\0' x)"
}

The_script_for_zsh_offers_the_same() {
  skip_without zsh
  some_runs && ln -s "$completion.zsh" script
  expect_exit 0 zsh -n script
  cat >asked.zsh <<'ZSH'
compadd() { while [[ $1 != -- ]]; do shift; done; shift; print -l -- "$@" }
compset() { }
_files() { print FILES "$@" }
complete_it() { words=("$@") CURRENT=$# PREFIX=${@[-1]}; source script }
complete_it "$@"
ZSH
  expect_contains "$(zsh -f asked.zsh "$program" tra)" "train"
  expect_contains "$(zsh -f asked.zsh "$program" train job.yaml train.optimizer.kind=ad)" "train.optimizer.kind=adamw"
  expect_contains "$(zsh -f asked.zsh "$program" eval runs/m)" "runs/mnist@best"
  expect_contains "$(zsh -f asked.zsh "$program" train job.yaml data.root=)" "FILES"
}

The_script_for_fish_offers_the_same() {
  skip_without fish
  some_runs && touch picture.png && mkdir bin && ln -s "$program" bin/lockstep
  ln -s "$completion.fish" script
  expect_exit 0 fish --no-execute script
  in_fish() { fish --no-config -c "source script; complete -C '$1'"; }
  expect_contains "$(in_fish 'lockstep tra')" "train"
  expect_contains "$(in_fish 'lockstep train job.yaml train.optimizer.kind=ad')" "train.optimizer.kind=adamw"
  expect_contains "$(in_fish 'lockstep eval runs/m')" "runs/mnist@best"
  expect_contains "$(in_fish 'lockstep predict runs/mnist pic')" "picture.png"
}

run_tests "$@"
