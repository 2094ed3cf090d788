# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Several hosts on this one machine, for tests: each has a network, a name and a /dev/shm of its own, and a cable to a switch.
# To be sourced. All of it lives in namespaces of this script, as root or as an ordinary user, and ends with it:
#
#   enter_world "$@"             first of all: starts the script again, inside; skips it where namespaces are forbidden
#   new_hosts nodea nodeb        10.77.0.1, .2; mpirun started on one of them reaches the others (OMPI_MCA_* are set)
#   on nodea COMMAND...          runs it there
#   cut_off nodeb, rejoin nodeb  pulls its cable, plugs it in again
#   kill_host nodeb              every process there dies at once, and the cable is pulled: a power failure
#                                (new_hosts with the same name puts another in its place)
#   slow_down nodeb MILLISECONDS [MBIT]   a longer cable, of no more than so many Mbit/s, from now on (tests/hosts/slow_link)
hosts_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
hosts_network=10.77.0.0/24

# enter_world ARGUMENTS...: those of the script, which goes on as process 1 of namespaces of its own.
enter_world() {
  [ -z "${LOCKSTEP_HOSTS_WORLD:-}" ] || { furnish_world; return; }
  local namespaces=(--mount --net --uts --pid --fork --kill-child --mount-proc)
  [ "$(id -u)" -eq 0 ] || namespaces+=(--user --map-root-user)
  local reason
  reason=$(why_no_hosts "${namespaces[@]}")
  [ -z "$reason" ] || { echo "skipped: $reason"; exit 77; }
  LOCKSTEP_HOSTS_WORLD=1 exec unshare "${namespaces[@]}" "$0" "$@"
}

# why_no_hosts UNSHARE-OPTIONS...: says what is missing, or nothing.
why_no_hosts() {
  local tool
  for tool in unshare nsenter ip mpirun; do
    command -v "$tool" >/dev/null || { echo "$tool is not installed"; return; }
  done
  unshare "$@" ip link add probe type veth peer name probe2 2>/dev/null ||
    echo "this container or kernel forbids network namespaces (run it with --privileged, or as a user on a machine that has user namespaces)"
}

furnish_world() {
  hosts_folder=$(mktemp -d)
  trap 'rm -rf "$hosts_folder"' EXIT
  mount --make-rprivate /
  echo '127.0.0.1 localhost' >"$hosts_folder/hosts"
  mount --bind "$hosts_folder/hosts" /etc/hosts
  ip link set lo up
  ip link add switch type bridge forward_delay 0
  ip link set switch up
  export LOCKSTEP_HOSTS_FOLDER=$hosts_folder TMPDIR=$hosts_folder  # Open MPI keeps files of its own there
  export OMPI_MCA_plm_rsh_agent=$hosts_here/agent OMPI_MCA_plm_rsh_no_tree_spawn=1
  export OMPI_MCA_oob_tcp_if_include=$hosts_network OMPI_MCA_btl_tcp_if_include=$hosts_network
}

new_hosts() {
  local name
  for name; do new_host "$name"; done
}

new_host() {
  local name=$1 number
  [ ! -f "$hosts_folder/$name" ] || drop_host "$name"
  number=$(wc -l <"$hosts_folder/hosts")
  echo "10.77.0.$number $name" >>"$hosts_folder/hosts"
  unshare --net --uts --mount sleep infinity >/dev/null 2>&1 &
  echo $! >"$hosts_folder/$name"
  until [ "$(readlink "/proc/$!/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ]; do sleep 0.01; done
  ip link add "to-$name" type veth peer name eth0 netns "$!"
  ip link set "to-$name" master switch up
  on "$name" sh -c "hostname $name && mount -t tmpfs -o size=1g tmpfs /dev/shm && ip link set lo up &&
    ip address add 10.77.0.$number/24 dev eth0 && ip link set eth0 up"
}

# on HOST COMMAND...: word for word. The root is the keeper's: ours may be a folder of the machine's (chroot).
on() {
  local host=$1
  shift
  nsenter --target "$(cat "$hosts_folder/$host")" --net --uts --mount --root --wd="$PWD" -- "$@"
}

cut_off() {
  touch "$hosts_folder/off-$1"  # for the agent
  ip link set "to-$1" down
}
rejoin() {
  rm -f "$hosts_folder/off-$1"
  ip link set "to-$1" up
}

# host_processes HOST: the numbers of all processes there.
host_processes() {
  local network process
  network=$(readlink "/proc/$(cat "$hosts_folder/$1")/ns/net") || return 0
  for process in /proc/[0-9]*; do
    [ "$(readlink "$process/ns/net" 2>/dev/null)" != "$network" ] || echo "${process#/proc/}"
  done
}

kill_host() {
  local keeper processes
  keeper=$(cat "$hosts_folder/$1")
  cut_off "$1"
  while processes=$(host_processes "$1" | grep -vx "$keeper"); do
    # shellcheck disable=SC2086  # one word each
    kill -KILL $processes 2>/dev/null
    sleep 0.02
  done
}

drop_host() {
  kill_host "$1"
  kill -KILL "$(cat "$hosts_folder/$1")"
  { wait "$(cat "$hosts_folder/$1")" || true; } 2>/dev/null  # or bash tells of its end
  local names  # the file must stay the one that is mounted on /etc/hosts
  names=$(sed "s/ $1\$/ gone/" "$hosts_folder/hosts") && echo "$names" >"$hosts_folder/hosts"
  ip link del "to-$1" 2>/dev/null  # sockets that wait for the dead keep a network for minutes
  rm -f "$hosts_folder/$1" "$hosts_folder/off-$1"
}

slow_down() {
  echo "$2 ${3:-0}" >"$hosts_folder/delay-$1"
  ! ip link show "slow-$1" >/dev/null 2>&1 || return 0
  "${LOCKSTEP_SLOW_LINK:?set it to the path of slow_link}" "$(cat "$hosts_folder/$1")" "slow-$1" "$hosts_folder/delay-$1" >"$hosts_folder/slow-$1.log" 2>&1 &
  until ip link show "slow-$1" >/dev/null 2>&1; do kill -0 $! || { cat "$hosts_folder/slow-$1.log"; return 1; }; sleep 0.01; done
  local address hardware
  address=$(on "$1" ip -br -4 address show dev eth0 | awk '{ print $3 }')
  hardware=$(on "$1" ip -br link show dev eth0 | awk '{ print $3 }')
  ip link set "to-$1" down
  on "$1" sh -c "ip address del $address dev eth0 && ip link set slow0 address $hardware && ip address add $address dev slow0 && ip link set slow0 up"
  ip link set "slow-$1" master switch up
}
