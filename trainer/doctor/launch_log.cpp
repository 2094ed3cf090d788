// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Words of each message that do not change from version to version.
#include "trainer/doctor/launch_log.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>

namespace lockstep {
namespace {

struct Message {
  const char* id;
  std::initializer_list<std::string_view> words;  ///< any of them
  const char* what;
  const char* fix;
};

const std::array kMessages{
    Message{"not-enough-slots",
            {"There are not enough slots available", "not enough slots available in the system"},
            "more ranks than slots",
            "mpirun --oversubscribe, fewer ranks, or more slots= in the hostfile; launch/run does so in "
            "containers"},
    Message{
        "ssh-login",
        {"Permission denied (publickey", "Host key verification failed", "password:"},
        "ssh to another host asks for something",
        "ssh-keygen && ssh-copy-id HOST; 'ssh -o BatchMode=yes HOST true' must work silently from the first "
        "host"},
    Message{
        "host-name",
        {"Could not resolve hostname", "Name or service not known", "Temporary failure in name resolution"},
        "the name of a host is not known here",
        "correct the hostfile, or add the host to DNS or /etc/hosts"},
    Message{"no-orted",
            {"orted: command not found", "orted: not found", "execute  orted", "execute orted",
             "orted: No such file"},
            "a host has no Open MPI where ssh finds programs",
            "install the same Open MPI there, or mpirun --prefix DIRECTORY-OF-OPEN-MPI"},
    Message{"host-unreachable",
            {"No route to host", "Connection timed out", "Connection refused"},
            "a host cannot be reached",
            "is it up, and does 'ssh HOST true' work? otherwise take it out of the hostfile"},
    Message{"no-daemons",
            {"unable to reliably start one or more daemons", "unexpectedly failed to start"},
            "mpirun could not start its daemon on another host",
            "lockstep doctor --hostfile FILE tries every host and says which, and why"},
    Message{
        "ports",
        {"process failed to connect back", "unable to complete a connection", "TCP connection request",
         "Unable to connect to the peer", "unable to reach each other"},
        "ranks or daemons cannot connect to each other: closed ports, or the wrong network",
        "mpirun --mca btl_tcp_if_include NET --mca oob_tcp_if_include NET; open TCP between the hosts, or "
        "bind to ports that are open (--mca btl_tcp_port_min_v4, oob_tcp_dynamic_ipv4_ports)"},
    Message{"process-vm-readv",
            {"Read -1, expected"},
            "ranks may not read each other's memory (process_vm_readv)",
            "export OMPI_MCA_btl_vader_single_copy_mechanism=none"},
    Message{"root",
            {"mpirun has detected an attempt to run as root", "prun has detected an attempt to run as root"},
            "Open MPI does not run as root unless told to",
            "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; launch/run does"},
    Message{"other-mpi",
            {"OMPI was not built with SLURM's PMI support", "PMIX ERROR: UNPACK", "PMIX ERROR: ERROR in file",
             "PMI2_Init failed", "but MPI on"},
            "the launcher outside and the MPI inside (of a container, or of the build) do not speak to each "
            "other",
            "use the same MPI on both sides: build against the host's, or run mpirun inside the container"},
    Message{
        "killed",
        {"on signal 9 (Killed)", "oom-kill event", "Out Of Memory", "Exited with exit code 137"},
        "a rank was killed: by hand, or by the kernel for want of memory",
        "lockstep doctor says whether this container or job has killed for memory; raise its limit, or start "
        "fewer ranks a host"},
    Message{"shm",
            {"there is not enough space for", "shared-memory backing file"},
            "shared memory is used up",
            "start the container with --shm-size=1g, or --ipc=host"},
    Message{"peer-lost",
            {"for the other ranks in", "lockstep: verdict: "},
            "ranks waited in vain for another one",
            "read the verdict above, or the message of the rank that failed first; the same command again "
            "goes on"}};

}  // namespace

std::vector<LogFinding> read_launch_log(std::string_view text) {
  std::vector<LogFinding> findings;
  for (const Message& message : kMessages) {
    const bool is_there = std::ranges::any_of(
        message.words, [&](std::string_view words) { return text.find(words) != text.npos; });
    if (is_there) findings.push_back({{message.what, message.fix}, message.id});
  }
  return findings;
}

}  // namespace lockstep
