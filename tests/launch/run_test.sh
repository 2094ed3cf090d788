#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# launch/run: the command that it makes, with a stand-in for mpirun, and what it refuses; and a real mpirun. Needs $LOCKSTEP_PROGRAM.
# shellcheck disable=SC2016,SC2154,SC2317  # the stand-ins expand their own variables; functions are called by launch/run and see its own
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
# shellcheck source-path=SCRIPTDIR source=run_world.sh
source "$(dirname "${BASH_SOURCE[0]}")/run_world.sh"

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

# It has named one GPU by then.
Run_waits_a_minute_for_an_nvidia_smi_that_hangs() {
  make_world 8
  stand_in nvidia-smi 'echo "GPU 0: NVIDIA H100 (UUID: GPU-0)"; exec sleep 60'
  # shellcheck disable=SC2162  # its options are the caller's
  read() { builtin read "${@/#60/0.3}"; }
  export -f read
  expect_says 0 "mpirun -np 8 --bind-to core" timeout 30 "$repo/launch/run" --dry-run train job.yaml
  expect_equal "$(grep -o 'launch/run: nvidia-smi .*' <<<"$output")" \
    "launch/run: nvidia-smi -L has not answered in 60 s, as with a broken driver: this host is taken for one without GPUs"
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

# A host that the resolver does not know is no reason to say so: mpirun does.
Run_waits_five_seconds_for_a_resolver_that_hangs() {
  make_world 8
  echo 'nodeb slots=2' >hosts
  stand_in getent 'exec sleep 60'
  timeout() { echo "$*" >>limits; command timeout 0.3 "${@:2}"; }
  export -f timeout
  expect_exit 0 command timeout 30 "$repo/launch/run" --dry-run --hostfile hosts train job.yaml
  expect_contains "$output" "mpirun -np 2 --hostfile hosts --bind-to core"
  expect_equal "$(cat limits)" "5 getent ahostsv4 nodeb"
  expect_contains "$output" "launch/run: getent ahostsv4 nodeb has not answered in 5 s: mpirun chooses the network, if"
  expect_lacks "$output" "--mca btl_tcp_if_include"
  unset -f timeout
  stand_in getent 'exit 2'
  expect_exit 0 "$repo/launch/run" --dry-run --hostfile hosts train job.yaml
  expect_lacks "$output" getent
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
  MPIRUN=nowhere expect_says 69 "no nowhere: install Open MPI (Debian's openmpi-bin), load" "$repo/launch/run" -np 2 train job.yaml
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

run_tests "$@"
