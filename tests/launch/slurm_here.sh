# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# A real Slurm on this one machine, for tests: munged, slurmctld and slurmd with files, sockets and ports of their own.
# To be sourced. Needs root and Debian's slurm-wlm; nothing of it survives stop_slurm.

# why_no_slurm: says what is missing, or nothing.
why_no_slurm() {
  local tool
  for tool in munged slurmctld slurmd srun sbatch scancel scontrol mpirun; do
    command -v "$tool" >/dev/null || { echo "$tool is not installed (apt-get install slurm-wlm munge)"; return; }
  done
  [ "$(id -u)" -eq 0 ] || echo "needs root to start slurmd"
}

# start_slurm DIRECTORY: daemons of the calling shell, whose SLURM_CONF is set to them. Fails if they do not come up.
# $slurm_settings: more lines of slurm.conf.
start_slurm() {
  local host port
  # Two ports below those that the system deals out, from 32768 on.
  slurm_folder=$(realpath "$1") host=$(hostname -s) port=$((20000 + $$ % 6000 * 2))
  mkdir -p "$slurm_folder/state" "$slurm_folder/spool"
  chmod 0755 "$slurm_folder"
  dd if=/dev/urandom of="$slurm_folder/munge.key" bs=64 count=16 status=none
  chmod 0600 "$slurm_folder/munge.key"
  cat >"$slurm_folder/slurm.conf" <<END
ClusterName=lockstep
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$slurm_folder/munge.socket,cred_expire=5
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
StateSaveLocation=$slurm_folder/state
SlurmdSpoolDir=$slurm_folder/spool
SlurmctldPidFile=$slurm_folder/slurmctld.pid
SlurmdPidFile=$slurm_folder/slurmd.pid
SlurmctldLogFile=$slurm_folder/slurmctld.log
SlurmdLogFile=$slurm_folder/slurmd.log
ReturnToService=2
MpiDefault=none
NodeName=$host NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE State=UP
${slurm_settings:-}
END
  export SLURM_CONF=$slurm_folder/slurm.conf
  munged --force --foreground --key-file="$slurm_folder/munge.key" --socket="$slurm_folder/munge.socket" \
    --pid-file="$slurm_folder/munged.pid" --log-file="$slurm_folder/munged.log" --seed-file="$slurm_folder/munge.seed" \
    >"$slurm_folder/munged.out" 2>&1 &
  slurm_daemons=($!)
  for _ in {1..100}; do [ -S "$slurm_folder/munge.socket" ] && break; sleep 0.05; done
  slurmctld -D -c >"$slurm_folder/slurmctld.out" 2>&1 &
  slurm_daemons+=($!)
  slurmd -D -N "$host" >"$slurm_folder/slurmd.out" 2>&1 &
  slurm_daemons+=($!)
  for _ in {1..200}; do
    case $(sinfo -h -o %t 2>/dev/null) in idle* | dr*) return 0 ;; esac
    sleep 0.1
  done
  echo "Slurm did not come up: $(tail -n 3 "$slurm_folder"/slurm*.log "$slurm_folder"/*.out 2>&1)"
  return 1
}

# stop_slurm: ends all jobs and all daemons.
stop_slurm() {
  [ -n "${slurm_daemons[*]-}" ] || return 0
  scancel --user="$(id -un)" 2>/dev/null
  for _ in {1..100}; do [ -n "$(squeue -h 2>/dev/null)" ] || break; sleep 0.1; done
  kill "${slurm_daemons[@]}" 2>/dev/null
  wait "${slurm_daemons[@]}" 2>/dev/null
  slurm_daemons=()
}
