// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Columns as wide as their longest entry.
#include "common/json_text.hpp"
#include "common/machine.hpp"
#include "common/text_layout.hpp"
#include "trainer/tools/doctor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <initializer_list>

namespace lockstep {

namespace {

using nlohmann::ordered_json;

std::string place(const RankView& view) {
  if (!view.device.uuid.empty()) return view.device.uuid;
  return plural(view.cores.size(), "core") + " " + ranges_text(view.cores);
}

std::string versions(const RankView& view) {
  std::string text;
  for (const auto& [name, version] : view.versions)
    if (name == "MPI" || name == "lockstep")
      text += fmt::format("{}{}", text.empty() ? "" : ", ", name == "MPI" ? version : name + " " + version);
  return text;
}

/// One rank's share of an all-reduce crosses the wire twice, less its own part.
std::string probe_line(const Diagnosis& diagnosis) {
  if (diagnosis.all_reduce.empty()) return "";
  const LatencyPoint &first = diagnosis.all_reduce.front(), &last = diagnosis.all_reduce.back();
  const auto ranks = static_cast<double>(diagnosis.ranks.size());
  const double bus = 2 * (ranks - 1) / ranks * static_cast<double>(last.bytes) / last.seconds;
  return fmt::format("all-reduce: {:.0f} us for {}, {:.2f} GB/s bus bandwidth for {}\n", first.seconds * 1e6,
                     format_memory(first.bytes), bus / 1e9, format_memory(last.bytes));
}

/// Settings of rank 0; --json has all others that differ.
std::string settings_lines(const Diagnosis& diagnosis) {
  std::string text;
  for (const auto& [name, value] : diagnosis.ranks.front().settings)
    text += fmt::format("  {}={}\n", name, value);
  return text.empty() ? "" : "set in the environment:\n" + text;
}

std::string mark(bool good, bool unicode) {
  return unicode ? good ? "\u2713" : "\u2717" : good ? "ok" : "!!";
}

std::string finding_lines(const Finding& finding, bool unicode) {
  return fmt::format("{} {}\n{}   fix: {}\n", mark(false, unicode), finding.what, unicode ? "" : " ",
                     finding.fix);
}

/// "not checked, because missing here: srun, GPUs"; nothing if every check had something to look at.
std::string left_out_line(const Diagnosis& diagnosis) {
  std::vector<std::string> missing;
  for (const CheckResult& result : diagnosis.results)
    if (!result.missing.empty() && std::ranges::find(missing, result.missing) == missing.end())
      missing.push_back(result.missing);
  return missing.empty() ? ""
                         : fmt::format("not checked, because missing here: {}\n", fmt::join(missing, ", "));
}

std::string check_lines(const Diagnosis& diagnosis, bool unicode) {
  std::string text;
  std::size_t findings = 0;
  for (const CheckResult& result : diagnosis.results) {
    if (result.findings.empty() && result.missing.empty())
      text += fmt::format("{} {}\n", mark(true, unicode), result.healthy);
    for (const Finding& finding : result.findings) text += finding_lines(finding, unicode);
    findings += result.findings.size();
  }
  return text + left_out_line(diagnosis) +
         (findings == 0 ? "all is well\n" : counted(findings, "finding") + "\n");
}

ordered_json json_of(const Finding& finding) {
  return {{"what", finding.what}, {"fix", finding.fix}};
}

}  // namespace

std::string to_text(const Diagnosis& diagnosis, bool unicode) {
  TableRows rows = {{"rank", "host", "local", "device", "place", "memory", "versions"}};
  for (const RankView& view : diagnosis.ranks)
    rows.push_back({std::to_string(view.rank), view.host, std::to_string(view.local_rank),
                    view.device.description, place(view), format_memory(view.free_bytes) + " free",
                    versions(view)});
  return align_columns(rows) + "\n" + probe_line(diagnosis) + settings_lines(diagnosis) +
         check_lines(diagnosis, unicode);
}

ordered_json to_json(const Diagnosis& diagnosis) {
  const auto check = [](const CheckResult& result) -> ordered_json {
    return {{"id", result.id},
            {"ok", result.findings.empty()},
            {"applies", result.missing.empty()},
            {"findings", json_list(result.findings, json_of)}};
  };
  const auto point = [](const LatencyPoint& p) -> ordered_json {
    return {{"bytes", p.bytes}, {"seconds", p.seconds}};
  };
  return {{"format", kDoctorFormat},
          {"ok", diagnosis.healthy()},
          {"ranks", nlohmann::json(diagnosis.ranks)},
          {"checks", json_list(diagnosis.results, check)},
          {"all_reduce", json_list(diagnosis.all_reduce, point)}};
}

std::string to_text(const std::vector<LogFinding>& findings, bool unicode) {
  std::string text;
  for (const LogFinding& f : findings) text += finding_lines(f, unicode);
  return text.empty() ? "no known cause\n" : text;
}

ordered_json to_json(const std::vector<LogFinding>& findings) {
  const auto check = [](const LogFinding& f) -> ordered_json {
    return {{"id", f.id}, {"ok", false}, {"findings", ordered_json::array({json_of(f)})}};
  };
  return {{"format", kDoctorFormat}, {"ok", findings.empty()}, {"checks", json_list(findings, check)}};
}

// Words of each message that do not change from version to version.

namespace {

struct Message {
  const char* id;
  std::initializer_list<std::string_view> words;  ///< any of them
  const char* what;
  const char* fix;
};

const std::array kMessages{
    Message{
        "not-enough-slots",
        {"There are not enough slots available", "not enough slots available in the system"},
        "more ranks than slots",
        "mpirun --oversubscribe, fewer ranks, or more slots= in the hostfile; a core is one slot, however "
        "many threads it has"},
    Message{"open-files",
            {"limit on number of pipes a process can open was reached", "Too many open files"},
            "mpirun, or a rank, may not open so many files: mpirun needs four for each rank that it starts",
            "raise the limit before mpirun: ulimit -S -n \"$(ulimit -H -n)\"; launch/run does so"},
    Message{"ssh-login",
            {"Permission denied (publickey", "Host key verification failed", "password:"},
            "ssh to another host asks for something",
            "ssh-keygen && ssh-copy-id HOST; 'ssh -o BatchMode=yes HOST true' must work silently from the "
            "first host"},
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
            "ssh's own line names the host; 'ssh -o BatchMode=yes HOST true' must work silently, and then "
            "'mpirun --host HOST hostname'"},
    Message{"ports",
            {"process failed to connect back", "unable to complete a connection", "TCP connection request",
             "Unable to connect to the peer", "unable to reach each other", "but cannot reach each other"},
            "ranks or daemons cannot connect to each other: closed ports, or the wrong network",
            "mpirun --mca btl_tcp_if_include NET --mca oob_tcp_if_include NET; open TCP between the hosts, "
            "or bind to ports that are open (--mca btl_tcp_port_min_v4, oob_tcp_dynamic_ipv4_ports)"},
    Message{"process-vm-readv",
            {"Read -1, expected"},
            "ranks may not read each other's memory (process_vm_readv)",
            "export OMPI_MCA_btl_vader_single_copy_mechanism=none"},
    Message{"root",
            {"mpirun has detected an attempt to run as root", "prun has detected an attempt to run as root"},
            "Open MPI does not run as root unless told to",
            "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; launch/run does"},
    Message{"other-mpi",
            {"OMPI was not built with SLURM's PMI support", "PMIX ERROR: UNPACK", "PMI2_Init failed",
             "but MPI on"},
            "the launcher outside and the MPI inside (of a container, or of the build) do not speak to each "
            "other",
            "use the same MPI on both sides: build against the host's, or run mpirun inside the container"},
    Message{"killed",
            {"on signal 9 (Killed)", "oom-kill event", "Out Of Memory", "Exited with exit code 137"},
            "a rank was killed: by hand, or by the kernel because memory ran out",
            "lockstep doctor says whether this container or job has killed for memory; raise its limit, or "
            "start fewer ranks a host"},
    Message{"shm",
            {"there is not enough space for", "shared-memory backing file"},
            "shared memory is used up",
            "start the container with --shm-size=1g, or --ipc=host"},
    Message{"tmpdir",
            {"PMIX ERROR: OUT-OF-RESOURCE"},
            "the folder in which the launcher keeps its files is full",
            "make room in TMPDIR (/tmp unless it is set), or export TMPDIR=FOLDER with another one, on every "
            "host"},
    Message{
        "mpi-start",
        {"MPI did not start", "Local abort before MPI_INIT"},
        "MPI did not start on a rank",
        "start again, for on a busy machine this happens; otherwise look for room in TMPDIR, for settings of "
        "Open MPI that are wrong (env | grep OMPI_MCA), and for another MPI than the program's"},
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
