# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# A machine with stand-ins for mpirun and the tools that look at it, for tests of launch/run. To be sourced after harness.sh.
# shellcheck disable=SC2016,SC2154,SC2317  # the stand-ins expand their own variables; harness.sh sets repo; launch/run calls sleep
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
