#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# launch/run: a start that is told to stop, is out of time or hangs, with a stand-in for mpirun; and its words on how one ended.
# Needs $LOCKSTEP_PROGRAM.
# shellcheck disable=SC2016,SC2154,SC2317  # the stand-ins expand their own variables; functions are called by launch/run and see its own
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
# shellcheck source-path=SCRIPTDIR source=run_world.sh
source "$(dirname "${BASH_SOURCE[0]}")/run_world.sh"

# A sleep that outlives the script may not hold its outputs.
Run_ends_for_its_reader_when_mpirun_ends() {
  make_world 8
  sleep() { echo tick >>ticks; command sleep 40; }
  export -f sleep
  local begun=$SECONDS
  stand_in mpirun '[ "$1" != --version ] || exit 0; until [ -s ticks ]; do command sleep 0.02; done'
  "$repo/launch/run" --timeout 300 -np 2 train job.yaml 2>&1 | cat >/dev/null
  [ $((SECONDS - begun)) -lt 30 ] || fail "the reader of its output waited $((SECONDS - begun)) s"
}

# Banners of Open MPI 4.1 about ranks that ended.
write_banners() {
  local dashes
  dashes=$(printf -- '-%.0s' {1..74})
  cat >words <<END
lockstep: verdict: rank 1 died
$dashes
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
$dashes
$dashes
MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD
with errorcode 71.

NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.
$dashes
lockstep: between
$dashes
There are not enough slots available in the system to satisfy the 4
slots that were requested by the application.
$dashes
[node:123] 3 more processes have sent help message help-mpi-api.txt / mpi-abort
[node:123] Set MCA parameter "orte_base_help_aggregate" to 0 to see all help / error messages
$dashes
mpirun noticed that process rank 1 with PID 0 on node nodeb exited on signal 9 (Killed).
$dashes
lockstep: last
END
}

Run_leaves_out_what_mpirun_says_of_ranks_that_ended() {
  make_world 8
  write_banners
  echo 1 >codes
  expect_exit 1 "$repo/launch/run" -np 4 train job.yaml
  expect_lacks "$output" "MPI_ABORT"
  expect_lacks "$output" "Primary job"
  expect_lacks "$output" "NOTE:"
  expect_lacks "$output" "help message"
  expect_lacks "$output" "aggregate"
  expect_contains "$output" $'rank 1 died\nlockstep: between\n-----'
  expect_contains "$output" $'satisfy the 4\nslots that were requested by the application.\n-----'
  expect_contains "$output" $'---\nmpirun noticed that process rank 1 with PID 0 on node nodeb exited on signal 9 (Killed).\nlockstep: last\n'
  expect_contains "$output" "a rank was killed"
  printf '1\n0\n' >codes
  expect_equal "$("$repo/launch/run" -np 4 --restarts 1 train job.yaml 2>/dev/null)" ""
  printf '1\n0\n' >codes
  expect_says 0 "a rank was lost (exit code 1): restart 1 of 1" "$repo/launch/run" -np 4 --restarts 1 train job.yaml
}

Run_does_not_restart_when_it_was_told_to_stop() {
  make_world 8
  stand_in mpirun '[ "$1" != --version ] || exit 0
    trap "exit 71" USR1
    echo "$*" >>calls; [ "$(wc -l <calls)" -eq 1 ] || exit 71
    for i in {1..400}; do sleep 0.05; done'
  "$repo/launch/run" -np 2 --restarts 3 train job.yaml >said 2>&1 &
  wait_for 20 test -s calls
  kill -TERM $!
  wait $!
  expect_equal "$?" 71
  expect_equal "$(wc -l <calls)" 1
  expect_lacks "$(cat said)" "restart"
}

Run_does_not_restart_when_it_was_told_to_stop_between_two_starts() {
  make_world 8
  printf '71\n0\n' >codes
  sleep() { if [ -e calls ] && [ "$BASHPID" = $$ ]; then kill -TERM $$; fi; command sleep 0.02; }
  export -f sleep
  expect_exit 71 "$repo/launch/run" -np 2 --restarts 3 train job.yaml
  expect_equal "$(wc -l <calls)" 1
  expect_lacks "$output" "No such process"
}

Run_waits_for_no_hosts_when_it_was_told_to_stop() {
  make_world 8
  stand_in getent ''
  sleep() { [ "$BASHPID" != $$ ] || echo $$ >pid; command sleep 0.02; }
  export -f sleep
  stand_in agent 'kill -TERM "$(cat pid)"; exit 255'
  echo 71 >codes
  echo 'nodeb slots=2' >hosts
  OMPI_MCA_plm_rsh_agent=$PWD/bin/agent expect_exit 71 "$repo/launch/run" --hostfile hosts --restarts 1 train job.yaml
  expect_lacks "$output" "no host of"
  expect_equal "$(wc -l <calls)" 1
}

Run_starts_nothing_when_it_was_told_to_stop_before() {
  make_world 8
  stand_in program 'kill -TERM $PPID'
  PROGRAM=$PWD/bin/program expect_exit 143 "$repo/launch/run" -np 2 train job.yaml
  expect_no_file calls
}

# A save may take longer than a second, and a second signal would give it up.
Run_asks_the_ranks_once_to_save_at_its_timeout() {
  make_world 8
  stand_in mpirun '[ "$1" != --version ] || exit 0
    trap "echo told >>told" USR1
    : >listens
    until [ -s told ]; do command sleep 0.01; done
    first=$(wc -l <ticks)
    until [ "$(wc -l <ticks)" -ge $((first + 5)) ]; do command sleep 0.01; done
    exit 75'
  sleep() { until [ -e listens ]; do command sleep 0.01; done; echo tick >>ticks; SECONDS=$((SECONDS + 1)); command sleep 0.05; }
  export -f sleep
  expect_exit 75 command timeout 60 "$repo/launch/run" -np 2 --timeout 3 train job.yaml
  expect_equal "$(wc -l <told)" 1
}

# The clock goes on by 30 s between two starts, and else it stands still.
Run_counts_its_timeout_from_the_first_start() {
  make_world 8
  printf '71\n71\n' >codes
  sleep() {
    if [ "$BASHPID" = $$ ]; then unset SECONDS && pauses=$((${pauses:-0} + 1)) && SECONDS=$((began + 30 * pauses)); fi
    command sleep 0.02
  }
  export -f sleep
  expect_says 71 "no restart, for the 60 s of --timeout are over" "$repo/launch/run" -np 2 --timeout 60 --restarts 5 train job.yaml
  expect_equal "$(wc -l <calls)" 2
}

# step_clock SECONDS WORDS: an mpirun that does this. By the clock of launch/run it is so many seconds after it saw ranks, or began to
# look, at its first sleep, twice as many at its second one. A line of ticks, until mpirun is ended: how long it was to sleep, and
# which sleep it is; "later" waits for twenty of them.
step_clock() {
  make_world 8
  rm -f ticks bin/rank
  cp "$(type -P sleep)" bin/rank
  export PROGRAM=$PWD/bin/rank STEP=$1
  stand_in mpirun "[ \"\$1\" != --version ] || { echo 'mpirun (Open MPI) 4.1.4'; exit; }; $2"
  stand_in later 'for i in {1..500}; do [ ! -e ticks ] || [ "$(wc -l <ticks)" -lt 20 ] || exit 0; command sleep 0.02; done'
  sleep() {
    [ "${last:-0}" = "${was:-}" ] || { was=${last:-0} && looks=0; }
    looks=$((looks + 1))
    [ -e "$files/hung" ] || echo "$1 $looks" >>ticks
    unset SECONDS && SECONDS=$((was + STEP * looks))
    command sleep 0.02
  }
  export -f sleep
}

# hang SECONDS WORDS: the same, and then it does nothing.
hang() {
  step_clock "$1" "$2; exec tail -f /dev/null"
  expect_exit 71 command timeout 120 "$repo/launch/run" -np 2 train job.yaml
}

Run_ends_an_mpirun_whose_ranks_are_gone() {
  export SLURM_JOB_ID=7  # it has seen them
  hang 1 '"$PROGRAM" 0.5 & wait'
  expect_equal "$(tail -n 1 ticks)" "1 10"
}

Run_ends_an_mpirun_whose_ranks_do_not_come() {
  hang 299 :
  expect_equal "$(cat ticks)" $'1 1\n1 2'
  hang 300 :
  expect_equal "$(cat ticks)" "1 1"
  step_clock 300 '[ ! -e begun ] || exit 0; : >begun; exec tail -f /dev/null'
  expect_says 0 "restart 1 of 1" command timeout 120 "$repo/launch/run" -np 2 --restarts 1 train job.yaml
}

# Ranks below a daemon, as MPICH has one; a program that is a script; ranks that another launcher's daemons start.
Run_ends_no_mpirun_whose_ranks_it_may_not_see() {
  step_clock 30 'bash -c "\"\$PROGRAM\" 60 & later; kill \$!"'
  expect_exit 0 command timeout 120 "$repo/launch/run" -np 2 eval run
  step_clock 30 '"$PROGRAM"'
  stand_in rank later
  expect_exit 0 command timeout 120 "$repo/launch/run" -np 2 eval run
  step_clock 30 later
  stand_in mpirun '[ "$1" != --version ] || { echo "HYDRA build details:"; exit; }; later'
  expect_exit 0 command timeout 120 "$repo/launch/run" -np 2 eval run
  step_clock 30 later
  SLURM_JOB_ID=7 expect_exit 0 command timeout 120 "$repo/launch/run" -np 2 eval run
}

# As a build or an update does.
Run_ends_no_mpirun_whose_program_was_replaced() {
  step_clock 10 '"$PROGRAM" 60 & until [ "/proc/$!/exe" -ef "$PROGRAM" ]; do command sleep 0.01; done
    cp "$PROGRAM" new && mv new "$PROGRAM"; : >ticks; later; kill $!'
  expect_exit 0 command timeout 120 "$repo/launch/run" -np 2 eval run
}

# start_in_a_group: launch/run with an mpirun that ends when it is told so, unsaved but after USR1. "--default-signal": as the real one,
# which does not inherit that a signal is ignored.
start_in_a_group() {
  make_world 8
  rm -f listens && export TMPDIR=$PWD
  stand_in mpirun '[ "$1" != --version ] || exit 0
    exec env --default-signal=INT bash -c "trap \"echo ended >ended; exit 1\" INT TERM; trap \"echo saved; exit 75\" USR1; : >listens
      for i in {1..400}; do command sleep 0.05; done"'
  set -m
  "$repo/launch/run" -np 2 train job.yaml run.dir="$PWD/run" >said 2>&1 &
  set +m
  wait_for 20 test -e listens
}

# As Ctrl-C in a terminal does.
Run_saves_when_its_whole_group_is_signalled() {
  local signal
  for signal in INT TERM HUP; do
    start_in_a_group
    kill "-$signal" -- "-$!"
    wait $!
    expect_equal "$signal $?" "$signal 75"
    expect_contains "$(cat said)" saved
  done
}

Run_that_is_killed_leaves_no_mpirun() {
  start_in_a_group
  kill -KILL -- "-$!"
  wait_for 20 test -e ended
  is_gone() { ! pgrep -f "run.dir=$PWD/[r]un" >/dev/null; }
  wait_for 20 is_gone
}

Run_tells_of_a_killed_launcher_in_its_own_words_alone() {
  make_world 8
  stand_in mpirun 'kill -KILL $$'
  expect_exit 137 "$repo/launch/run" -np 2 train job.yaml
  expect_lacks "$output" "line "
  expect_lacks "$output" Killed
}

# A row: words of mpirun, its exit code, that of launch/run, and its words.
Run_knows_a_lost_daemon_an_mpi_that_did_not_start_and_missing_slots_by_their_words() {
  local words code wanted text
  make_world 8
  while IFS='|' read -r words code wanted text; do
    echo "$words" >words
    echo "$code" >codes
    expect_says "$wanted" "$text" "$repo/launch/run" -np 2 train job.yaml
  done <<'END'
ORTE has lost communication with a remote daemon.|205|71|lost communication
lockstep: rank 0 of 2 on nodea: MPI did not start; its message is above.|1|69|MPI did not start on a rank
There are not enough slots available in the system to satisfy the 4|1|1|more ranks than slots
There are not enough slots available in the system to satisfy the 4|1|1|fix: mpirun --oversubscribe
END
}

run_tests "$@"
