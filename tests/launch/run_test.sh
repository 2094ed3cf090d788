#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# launch/run: the command it makes, with a stand-in for mpirun; and real ranks that are killed. Needs $LOCKSTEP_PROGRAM.
# shellcheck disable=SC2016,SC2154,SC2317  # the stand-ins expand their own variables; functions are called by launch/run and see its own
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
program=${LOCKSTEP_PROGRAM:-$repo/build/release/lockstep}

# make_world CORES: an mpirun that writes down how it was called and ends as the file "codes" says, one line a start. No pause of
# launch/run is long, and no tool that looks at the machine is silent.
make_world() {
  stand_in mpirun '[ "$1" != --version ] || { echo "mpirun (Open MPI) 4.1.4" >&2; exit; }
    echo "$*" >>calls; echo run >"$LOCKSTEP_RUN_FILE"; echo "${LOCKSTEP_LOST_HOSTS:-}" >>lost; [[ $* != *--hostfile* ]] || cat "$(sed "s/.*--hostfile \([^ ]*\).*/\1/" <<<"$*")" >>hostfiles
    code=$(head -n 1 codes); sed -i 1d codes; [ ! -f words ] || cat words >&2; exit "${code:-0}"'
  stand_in nproc "echo $1"
  stand_in lscpu 'printf "%s\n" "# Core" 0 1'
  stand_in hostname '[ "$1" != -I ] || echo grumble >&2; PATH=${PATH#*:} exec hostname "$@"'
  stand_in nvidia-smi '[ "$*" = -L ] || exit 2; echo grumble >&2; for ((i = 0; i < ${GPUS:-0}; ++i)); do echo "GPU $i: NVIDIA H100 (UUID: GPU-$i)"; done'
  touch codes
  write_job 10
  sleep() { command sleep 0.02; }
  export -f sleep
  export PROGRAM=$program
  unset OMPI_MCA_btl_tcp_if_include CUDA_VISIBLE_DEVICES
}

Mpirun_may_open_as_many_files_as_the_system_allows() {
  local hard wanted
  make_world 8
  stand_in mpirun 'ulimit -S -n >limit; exit 0'
  while read -r hard wanted; do
    if ! (ulimit -S -n 300 && ulimit -H -n "$hard") 2>/dev/null; then return; fi
    (ulimit -S -n 300 && ulimit -H -n "$hard" && "$repo/launch/run" -np 2 train job.yaml >/dev/null 2>&1)
    expect_equal "$(cat limit)" "$wanted"
  done <<<$'1500 1500\n40000 40000\n65537 65536'
}

Run_prints_the_command_that_it_runs() {
  make_world 8
  expect_says 0 "launch/run: mpirun -np 4 --bind-to core" "$repo/launch/run" -np 4 train job.yaml "run.dir=my run"
  expect_contains "$output" 'train job.yaml run.dir=my\ run'
  expect_contains "$(cat calls)" "-np 4 --bind-to core"
  OMPI_MCA_btl_vader_single_copy_mechanism=none expect_exit 0 "$repo/launch/run" --dry-run -np 4 train job.yaml
  expect_equal "${output#??:??:?? }" "launch/run: mpirun -np 4 --bind-to core $(printf %q "$program") train job.yaml "
  expect_equal "$(wc -l <calls)" 1
}

Run_takes_the_program_of_its_tree_or_of_its_installation() {
  make_world 8
  unset PROGRAM
  mkdir -p tree/launch usr/bin usr/share/lockstep/launch
  cp "$repo"/launch/{run,lib.sh} tree/launch/ && cp "$repo"/launch/{run,lib.sh} usr/share/lockstep/launch/
  ln -s ../share/lockstep/launch/run usr/bin/lockstep-run
  stand_in tree/build/release/lockstep : && stand_in usr/bin/lockstep :
  expect_says 0 " $PWD/tree/build/release/lockstep devices" tree/launch/run --dry-run devices
  expect_says 0 " $PWD/usr/bin/lockstep devices" usr/bin/lockstep-run --dry-run devices
  expect_says 0 "PROGRAM is the binary" usr/bin/lockstep-run -h
}

Run_binds_as_cores_threads_and_gpus_allow() {
  make_world 8
  expect_says 0 "mpirun -np 8 --bind-to core" "$repo/launch/run" --dry-run train job.yaml
  expect_says 0 "mpirun -np 4 --map-by slot:PE=2 --bind-to core" "$repo/launch/run" --dry-run train job.yaml parallel.threads=2
  expect_says 0 "mpirun -np 1 --map-by slot:PE=8 --bind-to core" "$repo/launch/run" --dry-run train job.yaml parallel.threads=8
  expect_says 0 "mpirun -np 1 --bind-to none --oversubscribe" "$repo/launch/run" --dry-run train job.yaml parallel.threads=9
  expect_says 0 "--bind-to none --oversubscribe --mca mpi_yield_when_idle 1 " "$repo/launch/run" --dry-run -np 9 train job.yaml
  GPUS=4 expect_says 0 "mpirun -np 4 --bind-to numa" "$repo/launch/run" --dry-run train job.yaml
  GPUS=1 expect_says 0 "mpirun -np 1 --bind-to numa" "$repo/launch/run" --dry-run train job.yaml
  expect_says 0 "mpirun -np 8 --bind-to core" "$repo/launch/run" --dry-run eval run
}

Run_starts_a_rank_for_each_gpu_that_is_visible() {
  local row
  make_world 8
  for row in "2 --bind-to numa|3,0" "1 --bind-to numa|2,4,0" "2 --bind-to numa|GPU-2,GPU-3" "1 --bind-to numa|MIG-7" "1 --bind-to numa|1,-1,2" \
    "8 --bind-to core|" "8 --bind-to core|-1" "8 --bind-to core|NoDevFiles"; do
    GPUS=4 CUDA_VISIBLE_DEVICES=${row#*|} expect_says 0 "mpirun -np ${row%|*}" "$repo/launch/run" --dry-run train job.yaml
  done
  CUDA_VISIBLE_DEVICES=GPU-0 expect_says 0 "mpirun -np 8 --bind-to core" "$repo/launch/run" --dry-run train job.yaml
}

# Two threads a core, of which mpirun makes one slot.
Run_counts_cores_and_not_their_threads() {
  make_world 8
  stand_in lscpu '[ "$*" != -p=CORE ] || printf "%s\n" "# Core" 0 1 2 3 0 1 2 3'
  expect_says 0 "mpirun -np 4 --bind-to core" "$repo/launch/run" --dry-run train job.yaml
  expect_says 0 "mpirun -np 2 --map-by slot:PE=2 --bind-to core" "$repo/launch/run" --dry-run train job.yaml parallel.threads=2
  expect_says 0 "mpirun -np 5 --bind-to none --oversubscribe" "$repo/launch/run" --dry-run -np 5 train job.yaml
  stand_in nproc 'echo "${OMP_NUM_THREADS:-${OMP_THREAD_LIMIT:-8}}"'
  OMP_NUM_THREADS=1 expect_says 0 "mpirun -np 4 --bind-to core" "$repo/launch/run" --dry-run train job.yaml
  OMP_THREAD_LIMIT=1 expect_says 0 "mpirun -np 4 --bind-to core" "$repo/launch/run" --dry-run train job.yaml
  stand_in nproc 'echo 1'
  expect_says 0 "mpirun -np 1 --bind-to core" "$repo/launch/run" --dry-run train job.yaml
  stand_in nproc 'echo 8'
  stand_in lscpu 'exit 1'
  expect_says 0 "mpirun -np 8 --bind-to core" "$repo/launch/run" --dry-run train job.yaml
}

Run_takes_ranks_and_hosts_from_a_hostfile() {
  make_world 8
  printf '# a comment\nlocalhost slots=2\n\n' >hosts
  expect_says 0 "mpirun -np 2 --hostfile hosts --bind-to core" "$repo/launch/run" --dry-run --hostfile hosts train job.yaml
  expect_exit 66 "$repo/launch/run" --hostfile nosuch train job.yaml
}

# As a batch system lists them: mpirun takes no slots=N of a host twice.
Run_takes_a_host_that_has_a_line_for_each_slot() {
  make_world 2
  stand_in getent ''
  printf 'localhost\nlocalhost\nlocalhost\n' >hosts
  printf '71\n0\n' >codes
  expect_says 0 "mpirun -np 3 --hostfile hosts --bind-to none" "$repo/launch/run" --restarts 1 --hostfile hosts train job.yaml
  expect_contains "$output" "hosts that answer: localhost; 3 of 3 ranks"
  expect_equal "$(tail -n 1 hostfiles)" "localhost slots=3"
}

Run_binds_by_the_ranks_of_this_host_or_of_the_first() {
  make_world 8
  stand_in getent ''
  printf '%s.example slots=2\nnodeb slots=9\n' "$(hostname -s)" >hosts
  expect_says 0 "mpirun -np 11 --hostfile hosts --bind-to core" "$repo/launch/run" --dry-run --hostfile hosts train job.yaml
  printf 'nodea slots=9\nnodeb slots=2\n' >hosts
  expect_says 0 "mpirun -np 11 --hostfile hosts --bind-to none" "$repo/launch/run" --dry-run --hostfile hosts train job.yaml
  expect_says 0 "mpirun -np 8 --hostfile hosts --bind-to core" "$repo/launch/run" --dry-run --hostfile hosts -np 8 train job.yaml
}

Run_copies_between_ranks_of_a_container_without_the_kernel() {
  make_world 8
  KUBERNETES_SERVICE_HOST=10.0.0.1 OMPI_MCA_btl_vader_single_copy_mechanism='' expect_exit 0 "$repo/launch/run" --dry-run -np 2 train job.yaml
  expect_contains "$output" "--bind-to core --mca btl_vader_single_copy_mechanism none "
  KUBERNETES_SERVICE_HOST=10.0.0.1 OMPI_MCA_btl_vader_single_copy_mechanism=cma expect_exit 0 "$repo/launch/run" --dry-run -np 2 train job.yaml
  expect_lacks "$output" btl_vader_single_copy_mechanism
}

Run_starts_mpich_with_its_own_hostfile() {
  make_world 8
  stand_in mpirun 'if [ "$1" = --version ]; then echo "HYDRA build details:"; exit; fi; echo "$1 $2 $3" >calls; cat "$4" >hostfiles'
  printf 'localhost slots=2\n' >hosts
  expect_exit 0 "$repo/launch/run" --hostfile hosts train job.yaml
  expect_equal "$(cat calls hostfiles)" $'-np 2 -f\nlocalhost:2'
  expect_says 0 "mpirun -np 4 $program train job.yaml" "$repo/launch/run" --dry-run -np 4 train job.yaml
}

Run_restarts_after_a_lost_rank_and_tells_the_story() {
  make_world 8
  export TMPDIR=$PWD
  sleep() { [ "$BASHPID" != $$ ] || echo "$1" >>pauses; command sleep 0.02; }
  timeout() { command timeout "$@"; echo "$? $*" >>waits; }
  export -f sleep timeout
  printf '71\n137\n0\n' >codes
  expect_exit 0 "$repo/launch/run" -np 2 --restarts 2 train job.yaml
  expect_equal "$(wc -l <calls)" 3
  expect_contains "$output" "a rank was lost (exit code 71): restart 1 of 2, from the newest checkpoint"
  expect_contains "$output" "a rank was lost (exit code 137): restart 2 of 2"
  expect_equal "$(xargs <pauses)" "1 1"
  expect_equal "$(sed 's/pid=[0-9]*/pid=N/' waits | sort -u)" "0 5 tail -s 0.02 --pid=N -f /dev/null"
  expect_equal "$(echo tmp.*)" "tmp.*"
  printf '71\n71\n' >codes
  expect_exit 71 "$repo/launch/run" -np 2 --restarts 1 train job.yaml
  expect_equal "$(wc -l <calls)" 5
  printf '128\n75\n' >codes
  expect_exit 75 "$repo/launch/run" -np 2 --restarts 2 train job.yaml
  expect_equal "$(wc -l <calls)" 7
}

# Its mpiexec ends with 9 for a rank that was killed; Open MPI's never does.
Run_knows_a_killed_rank_by_the_exit_code_of_mpich() {
  local code
  make_world 8
  for code in 4 9 63; do
    printf '%s\n0\n' "$code" >codes
    expect_exit "$code" "$repo/launch/run" -np 2 --restarts 1 train job.yaml
  done
  sed -i 's/Open MPI/HYDRA build details/' bin/mpirun
  for code in 4 9 63; do
    printf '%s\n0\n' "$code" >codes
    expect_says 0 "a rank was lost (exit code $code): restart 1 of 1" "$repo/launch/run" -np 2 --restarts 1 train job.yaml
  done
  for code in 1 2 3 64; do
    printf '%s\n0\n' "$code" >codes
    expect_exit "$code" "$repo/launch/run" -np 2 --restarts 1 train job.yaml
  done
}

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

Run_starts_no_job_that_the_program_refuses() {
  make_world 8
  expect_exit 2 "$repo/launch/run" -np 2 train job.yaml train.epoch=3
  expect_equal "$output" "$("$program" validate job.yaml train.epoch=3 2>&1)"
  expect_equal "$("$repo/launch/run" -np 2 train job.yaml train.epoch=3 2>/dev/null)" ""
  expect_says 66 nosuch.yaml "$repo/launch/run" -np 2 train nosuch.yaml
  echo "localhost slots=2" >hosts
  expect_says 66 nosuch.yaml "$repo/launch/run" --hostfile hosts train nosuch.yaml
  expect_no_file calls
  echo "nodeb slots=2" >hosts
  stand_in getent ''
  expect_exit 0 "$repo/launch/run" --hostfile hosts train only-on-nodeb.yaml
  expect_file calls
  rm calls && stand_in program '[ "$1" != validate ] || exit 66' # the data are missing, and the run may have begun
  PROGRAM=$PWD/bin/program expect_exit 0 "$repo/launch/run" -np 2 train job.yaml
  expect_file calls
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

# make_network: nodeb is behind eth1, in 10.9.0.0/24 of its two networks; nodec behind lo.
make_network() {
  stand_in getent '[ "$1" = ahostsv4 ] && case $2 in nodeb) echo "10.9.0.2 STREAM nodeb";; nodec) echo "127.0.0.9 STREAM nodec";; esac'
  stand_in ip 'case "$*" in
      "-4 route get 10.9.0.2") echo "10.9.0.2 dev eth1 src 10.9.0.1 uid 0";;
      "-4 route get 127.0.0.9") echo "local 127.0.0.9 dev lo src 127.0.0.1 uid 0";;
      "-4 route show dev eth1 scope link") printf "%s\n" "10.1.0.0/16 metric 1000" "10.9.0.0/24 proto kernel src 10.9.0.1";;
      "-4 route show dev eth1 scope link src 10.9.0.1") echo "10.9.0.0/24 proto kernel";;
      "-4 route show dev lo scope link"*) echo "127.0.0.0/8 proto kernel src 127.0.0.1";;
      *) echo grumble >&2; exit 1;;
    esac'
}

Run_takes_the_network_in_which_it_reaches_the_first_other_host() {
  local host
  make_world 8
  make_network
  printf 'localhost slots=2\nnodeb slots=2\nnodec slots=2\n' >hosts
  expect_exit 0 "$repo/launch/run" --dry-run --hostfile hosts train job.yaml
  expect_contains "$output" "--mca btl_tcp_if_include 10.9.0.0/24 --mca oob_tcp_if_include 10.9.0.0/24 "
  OMPI_MCA_btl_tcp_if_include=eth7 expect_exit 0 "$repo/launch/run" --dry-run --hostfile hosts train job.yaml
  expect_lacks "$output" "if_include"
  for host in nodec nosuch localhost; do
    echo "$host slots=2" >hosts
    expect_exit 0 "$repo/launch/run" --dry-run --hostfile hosts train job.yaml
    expect_lacks "$output" "if_include"
    expect_lacks "$output" grumble
  done
}

# lose_hosts KEY=VALUE...: six ranks on three hosts; then nodea answers, nodeb does not, and nodec lets the agent wait.
lose_hosts() {
  make_world 8
  stand_in getent ''
  stand_in agent 'case $1 in nodea | noded) ;; nodeb) echo grumble; echo grumble >&2; exit 255 ;; *) exec sleep 60 ;; esac'
  timeout() { echo "$1" >>limits; command timeout "$([[ $* == *nodec* ]] && echo 0.5 || echo 30)" "${@:2}"; }
  export -f timeout
  export OMPI_MCA_plm_rsh_agent=$PWD/bin/agent
  printf '71\n0\n' >codes
  [ -e hosts ] || printf '%s slots=2\n' nodea nodeb nodec >hosts
  expect_exit 0 "$repo/launch/run" --hostfile hosts --restarts 1 train job.yaml "$@"
  expect_equal "$(wc -l <calls)" 2
  expect_lacks "$output" grumble
  expect_lacks "$output" "No such file"
  grep -qx 10 limits || fail "a dead host is waited for: $(cat limits)"
}

Run_goes_on_with_fewer_ranks_on_the_hosts_that_answer() {
  lose_hosts
  expect_contains "$output" "hosts that answer: nodea; 2 of 6 ranks"
  expect_contains "$(tail -n 1 calls)" "-np 2 "
  expect_contains "$(tail -n 1 calls)" "--bind-to core"
  expect_lacks "$(head -n 1 calls)" LOCKSTEP_LOST_HOSTS
  expect_contains "$(tail -n 1 calls)" " -x LOCKSTEP_LOST_HOSTS "
  expect_equal "$(tail -n 1 lost)" "nodeb nodec"
}

# Ranks, the lock and status.json have the name.
Run_knows_a_host_by_the_name_that_the_resolver_has_for_its_address() {
  find_wrong_numbers '"nodeb.example"'
  stand_in getent '[ "$*" != "hosts 198.51.100.7" ] || echo "198.51.100.7       nodeb.cluster nodex"'
  printf '%s slots=2\n' nodea 198.51.100.7 >hosts
  expect_says 0 "without 198.51.100.7, where numbers were wrong" "$repo/launch/run" --restarts 1 --hostfile hosts train job.yaml
  expect_contains "$output" "hosts that answer: nodea; 2 of 4 ranks"
  printf '71\n0\n' >codes
  stand_in agent '[ "$1" != 198.51.100.7 ]'
  expect_says 0 "hosts that answer: nodea; 2 of 4 ranks" "$repo/launch/run" --restarts 1 --hostfile hosts train job.yaml
  expect_equal "$(tail -n 1 lost)" "198.51.100.7 198.51.100.7 nodeb.cluster nodex"
}

# Ports, keys and other options of ssh come in these two.
Run_asks_hosts_with_the_agent_and_arguments_that_mpirun_takes() {
  make_world 8
  stand_in getent ''
  stand_in agent 'echo "$*" >>asked'
  printf '71\n0\n' >codes
  echo 'nodea slots=2' >hosts
  export OMPI_MCA_plm_rsh_agent="$PWD/bin/agent -p 2222 : rsh" OMPI_MCA_plm_rsh_args='-o BatchMode=yes'
  expect_says 0 "hosts that answer: nodea; 2 of 2 ranks" "$repo/launch/run" --hostfile hosts --restarts 1 train job.yaml
  expect_equal "$(cat asked)" "-p 2222 -o BatchMode=yes nodea true"
}

Run_ends_where_no_host_answers_any_more() {
  make_world 8
  stand_in getent ''
  stand_in agent 'exit 255'
  echo 71 >codes
  echo 'nodeb slots=2' >hosts
  OMPI_MCA_plm_rsh_agent=$PWD/bin/agent expect_says 71 "no host of hosts answers" "$repo/launch/run" --hostfile hosts --restarts 1 train job.yaml
}

# find_wrong_numbers HOSTS: on three hosts that answer; the run's status.json names these.
find_wrong_numbers() {
  make_world 8
  stand_in getent ''
  stand_in agent ''
  mkdir run && printf '{\n "version": 1,\n "state": "failed",\n "step": 17,\n "exclude_hosts": [%s]\n}\n' "$1" >run/status.json
  export OMPI_MCA_plm_rsh_agent=$PWD/bin/agent
  printf '72\n0\n' >codes
  printf '%s slots=2\n' nodea nodeb nodec >hosts
}

Run_leaves_out_a_host_whose_numbers_are_wrong() {
  find_wrong_numbers $'\n  "nodeb.example"\n '
  expect_says 0 "without nodeb, where numbers were wrong" "$repo/launch/run" --hostfile hosts --restarts 1 train job.yaml
  expect_contains "$output" "hosts that answer: nodea nodec; 4 of 6 ranks"
  rm -r run && find_wrong_numbers '"nodeb"' && printf '71\n0\n' >codes
  expect_says 0 "hosts that answer: nodea nodeb nodec; 6 of 6 ranks" "$repo/launch/run" --hostfile hosts --restarts 1 train job.yaml
}

Run_leaves_out_this_host_under_the_name_that_the_hostfile_has() {
  find_wrong_numbers "\"$(hostname)\""
  printf 'nodea slots=2\nlocalhost slots=1\n127.0.0.1 slots=1\n' >hosts
  expect_says 0 "without 127.0.0.1 localhost, where numbers were wrong" "$repo/launch/run" --hostfile hosts --restarts 1 train job.yaml
  expect_contains "$output" "hosts that answer: nodea; 2 of 4 ranks"
  rm -r run && find_wrong_numbers '"nodex"'
  printf 'nodea slots=2\nlocalhost slots=2\n' >hosts
  expect_exit 72 "$repo/launch/run" --hostfile hosts --restarts 1 train job.yaml
}

Run_does_not_go_on_after_wrong_numbers_of_a_host_that_cannot_be_told() {
  local names
  for names in '' '"nodex"' '"nodea", "nodex"' '"nodea", "nodeb", "nodec"'; do
    rm -rf run calls
    find_wrong_numbers "$names"
    expect_exit 72 "$repo/launch/run" --hostfile hosts --restarts 3 train job.yaml
    expect_equal "$(wc -l <calls)" 1
  done
}

Run_knows_this_host_by_its_addresses() {
  make_world 8
  stand_in getent ''
  stand_in hostname 'if [ "$1" = -I ]; then echo grumble >&2; echo "10.9.0.1 fd00::1 "; else echo nodea; fi'
  stand_in agent 'echo "$1" >>asked; exit 255'
  printf '%s slots=1\n' 127.0.0.1 10.9.0.1 ::1 nodea.example 10.9.0.11 >hosts
  printf '71\n0\n' >codes
  OMPI_MCA_plm_rsh_agent=$PWD/bin/agent expect_says 0 "hosts that answer: 127.0.0.1 10.9.0.1 ::1 nodea.example; 4 of 5 ranks" \
    "$repo/launch/run" --hostfile hosts --restarts 1 train job.yaml
  expect_equal "$(cat asked)" 10.9.0.11
  expect_lacks "$output" grumble
}

Run_keeps_the_ranks_of_a_job_that_needs_their_number() {
  local key
  for key in parallel.strategy=pipeline data.per_rank_batch=11; do
    rm -f calls
    lose_hosts "$key"
    expect_contains "$output" "hosts that answer: nodea; 6 of 6 ranks"
    expect_contains "$(tail -n 1 calls)" "-np 6 "
    expect_contains "$(head -n 1 calls)" "--bind-to core"
    expect_contains "$(tail -n 1 calls)" "--bind-to none --oversubscribe"
    expect_equal "$(tail -n 1 hostfiles)" "nodea slots=6"
  done
}

Run_goes_on_with_hogwild_on_one_host() {
  printf 'nodea slots=1\nnodeb slots=4\nnoded slots=3\n' >hosts
  lose_hosts parallel.strategy=hogwild parallel.determinism=off
  expect_contains "$output" "hosts that answer: noded; 8 of 8 ranks"
  expect_equal "$(tail -n 1 hostfiles)" "noded slots=8"
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

Run_asks_tcp_for_dead_hosts_when_ranks_have_given_up() {
  make_world 8
  stand_in mpirun '[ "$1" = --version ] || env | grep -E "keepalive|sigkill" | sort >asked'
  expect_exit 0 "$repo/launch/run" -np 2 train job.yaml parallel.timeout_seconds=7.5
  expect_equal "$(xargs <asked)" "OMPI_MCA_odls_base_sigkill_timeout=2 OMPI_MCA_oob_tcp_keepalive_intvl=10 OMPI_MCA_oob_tcp_keepalive_probes=3 OMPI_MCA_oob_tcp_keepalive_time=8"
  stand_in program '[ "$1" != validate ] || echo "timeout=$TIMEOUT"'
  for TIMEOUT in 1 999999999 x; do
    TIMEOUT=$TIMEOUT PROGRAM=$PWD/bin/program expect_exit 0 "$repo/launch/run" -np 2 train job.yaml
    expect_equal "$(sed -n 's/.*keepalive_time=//p' asked)" "${TIMEOUT/x/300}"
  done
  export OMPI_MCA_odls_base_sigkill_timeout=5 OMPI_MCA_oob_tcp_keepalive_{intvl,probes,time}=4
  expect_exit 0 "$repo/launch/run" -np 2 train job.yaml
  expect_equal "$(cut -d = -f 2 <asked | xargs)" "5 4 4 4"
}

Run_takes_the_loopback_where_no_route_leads_anywhere() {
  [ -r /proc/net/route ] || skip "this kernel tells of no routes"
  make_world 8
  stand_in tail '[ "$*" = "-n +2 /proc/net/route" ] || PATH=${PATH#*:} exec tail "$@"'
  stand_in mpirun '[ "$1" = --version ] || echo "$OMPI_MCA_oob_tcp_if_include" >interface'
  unset OMPI_MCA_oob_tcp_if_{include,exclude}
  expect_exit 0 "$repo/launch/run" -np 2 train job.yaml
  expect_equal "$(cat interface)" lo
}

# Its watcher is then killed before it has traps of its own.
Run_keeps_its_files_where_mpirun_ends_at_once() {
  make_world 8
  stand_in mpirun '[ "$1" = --version ] || exit 71; echo "mpirun (Open MPI) 4.1.4"'
  echo 'localhost slots=1' >hosts
  for _ in {1..8}; do
    expect_exit 71 "$repo/launch/run" --hostfile hosts --restarts 2 eval run
    expect_lacks "$output" "No such file"
    expect_contains "$output" "restart 2 of 2"
  done
}

Run_restarts_nothing_that_would_end_the_same_way() {
  local code
  make_world 8
  for code in 1 2 65 66 69 70 72 74 75 127; do
    rm -f calls
    echo "$code" >codes
    expect_exit "$code" "$repo/launch/run" -np 2 --restarts 3 train job.yaml
    expect_equal "$(wc -l <calls)" 1
  done
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

Run_refuses_a_wrong_command_line() {
  local threads
  make_world 8
  expect_says 2 "'--nosuch' is not an option (try --help)" "$repo/launch/run" --nosuch train job.yaml
  expect_exit 2 "$repo/launch/run" -np 0 train job.yaml
  expect_says 2 "-np '100001' is not a whole number from 1 to 100000" "$repo/launch/run" -np 100001 train job.yaml
  expect_says 2 "-np needs a value (try --help)" "$repo/launch/run" -np
  expect_says 2 "--hostfile needs a value (try --help)" "$repo/launch/run" --hostfile -x train job.yaml
  expect_says 2 "parallel.threads '1025' is not a whole number from 1 to 1024" "$repo/launch/run" --dry-run eval run parallel.threads=1025
  expect_says 2 "parallel.threads '0' is not" "$repo/launch/run" --dry-run eval run parallel.threads=0
  for threads in 1 1024; do expect_exit 0 "$repo/launch/run" --dry-run -np 1 eval run "parallel.threads=$threads"; done
  expect_exit 2 "$repo/launch/run" --restarts x train job.yaml
  expect_says 2 "leave run.resume out" "$repo/launch/run" --restarts 1 train job.yaml run.resume=never
  expect_exit 0 "$repo/launch/run" --restarts 0 --dry-run train job.yaml run.resume=never
  expect_exit 0 "$repo/launch/run" --restarts 1 --dry-run train job.yaml run.resume=auto
  expect_exit 2 "$repo/launch/run" --timeout 0 train job.yaml
  expect_says 2 "which command of lockstep? for instance: launch/run -np 2 train launch/jobs/mnist.yaml" "$repo/launch/run" -np 2
  MPIRUN=nowhere expect_exit 69 "$repo/launch/run" -np 2 train job.yaml
  PROGRAM=/nowhere expect_says 69 "no /nowhere: run launch/build first, or set PROGRAM" "$repo/launch/run" -np 2 train job.yaml
  TMPDIR=/nowhere expect_says 74 "cannot write to /nowhere" "$repo/launch/run" -np 2 train job.yaml
  expect_says 0 "mpirun -np 100000 " "$repo/launch/run" -n 100000 --restarts 0 --timeout 1 --dry-run train job.yaml
  expect_says 0 "mpirun -np 3 " "$repo/launch/run" --np 3 --dry-run train job.yaml
  expect_says 0 "--dry-run         only print the command" "$repo/launch/run" --help
}

Mpirun_trains_to_the_weights_of_one_process() {
  skip_without mpirun
  [ -x "$program" ] || skip "no $program: launch/build release makes it"
  mpi_settings
  write_job 10
  expect_says 0 "3 ranks on 1 host" mpirun -np 3 "$program" train job.yaml train.max_steps=20
  expect_equal "$(tail -n 1 <<<"$output")" "$("$program" train job.yaml run.dir=alone train.max_steps=20 | tail -n 1)"
}

# Texts that the shell would carry out in its arithmetic, and that ssh would take for an option.
Run_executes_nothing_that_a_hostfile_holds() {
  local line
  make_world 8
  stand_in agent 'echo "$*" >>asked'
  export OMPI_MCA_plm_rsh_agent=$PWD/bin/agent
  for line in 'localhost slots=BASH_VERSINFO[$(touch${IFS}executed)0]' 'localhost slots=1e3' 'localhost slots=' 'localhost slots=0' \
    'localhost slots=99999999999999999999' 'localhost slots = 2' '-oProxyCommand=touch${IFS}executed slots=2' \
    '../x slots=2' 'a;touch slots=2' 'x[$(touch)0] slots=2' '$(touch)' '# nothing'; do
    printf 'nodea slots=1\n%s\n' "$line" >hosts
    [ "$line" != '# nothing' ] || echo "$line" >hosts
    expect_says 2 "lockstep: hosts: " "$repo/launch/run" --dry-run --hostfile hosts train job.yaml
    expect_exit 2 "$repo/launch/run" --restarts 2 --hostfile hosts train job.yaml
  done
  expect_no_file executed
  expect_no_file asked
  expect_no_file calls
}

Run_executes_nothing_that_stands_in_its_words() {
  local word
  make_world 8
  for word in 'a[$(touch executed)0]' 'job[$(touch executed)0]' 1e3 08 -1 '' 99999999999999999999 '2 2'; do
    expect_exit 2 "$repo/launch/run" -np "$word" train job.yaml
    expect_exit 2 "$repo/launch/run" --timeout "$word" train job.yaml
    expect_exit 2 "$repo/launch/run" --restarts "$word" train job.yaml
    expect_exit 2 "$repo/launch/run" --hostfile "-$word" train job.yaml
    expect_exit 2 "$repo/launch/run" --dry-run eval run "parallel.threads=$word"
    expect_exit 2 "$repo/launch/run" --dry-run train job.yaml "parallel.threads=$word"
  done
  expect_no_file executed
  expect_no_file calls
}

# a_rank: the process of some rank of the run, by its launcher's environment.
# shellcheck disable=SC2046  # one word each
a_rank() { grep -lzs "^OMPI_COMM_WORLD_RANK=1" $(grep -lzsx "PWD=$PWD" /proc/[0-9]*/environ) 2>/dev/null | head -n 1 | cut -d / -f 3; }

Run_goes_on_after_a_killed_rank_to_the_same_weights() {
  skip_without mpirun
  export PROGRAM=$program
  write_job 10
  "$repo/launch/run" -np 2 --restarts 2 train job.yaml train.max_steps=200 >said 2>&1 &
  wait_for 40 grep -qs '"step":20,' run/metrics.jsonl
  kill -KILL "$(a_rank)"
  wait $! || fail "exit code $?: $(cat said)"
  expect_contains "$(cat said)" "restart 1 of 2"
  expect_contains "$(cat said)" "going on from step"
  expect_equal "$(tail -n 1 said)" "$("$program" train job.yaml run.dir=calm train.max_steps=200 | tail -n 1)"
}

run_tests "$@"
