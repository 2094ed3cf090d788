// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every host is asked on a thread of its own; for a host that does not answer, what ssh said is shown.
#include "common/error.hpp"
#include "common/machine.hpp"
#include "trainer/ranks/equal_ranks.hpp"
#include "trainer/run/rank_diagnosis.hpp"
#include "trainer/tools/doctor.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

namespace lockstep {
namespace {

constexpr int kAnswerSeconds = 4;

struct Answer {
  std::optional<RankView> view;
  Finding trouble;  ///< why there is none
};

std::string this_program() {
  std::error_code unreadable;
  return std::filesystem::read_symlink("/proc/self/exe", unreadable).string();
}

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of("\n\r ");
  if (end == std::string::npos) return "nothing";
  const std::size_t feed = text.find_last_of('\n', end);
  const std::size_t start = feed == std::string::npos ? 0 : feed + 1;
  return text.substr(start, end + 1 - start);
}

/// Nothing if it is none: a shell over there may say anything.
std::optional<RankView> view_in(const CommandOutput& output) {
  if (output.exit_code != 0) return std::nullopt;
  try {
    return rank_view_of(last_line(output.text));
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

/// What ssh, or the shell behind it, said in place of a view.
Finding trouble_of(const std::string& host, const CommandOutput& output) {
  const auto known = read_launch_log(output.text);
  if (!known.empty()) return {fmt::format("{}: {}", host, known.front().what), known.front().fix};
  if (output.exit_code == 127 || output.exit_code == 126)
    return {fmt::format("{}: there is no {}", host, this_program()),
            "the program must be at the same path on every host: share its disk, or copy it there"};
  if (output.exit_code == kTimedOut)
    return {fmt::format("{} does not answer", host),
            "is it up, and does 'ssh HOST true' work? otherwise take it "
            "out of the hostfile"};
  return {fmt::format("{}: the command failed ({}): {}", host, output.exit_code, last_line(output.text)),
          fmt::format("'ssh -o BatchMode=yes {} true' must work without a word", host)};
}

Answer ask(const ListedHost& host, int number, const std::string& mark) {
  const double before = now_seconds();
  const auto output =
      run_on_host(host.name, fmt::format("{} doctor --this-host --mark {}", quoted_for_shell(this_program()),
                                         quoted_for_shell(mark)));
  const double after = now_seconds();
  Answer answer;
  auto seen = view_in(output);
  if (!seen) {
    answer.trouble = trouble_of(host.name, output);
    return answer;
  }
  RankView& view = *seen;
  view.rank = number;
  view.local_size = host.slots;
  // What the way there and back took is no difference of clocks.
  const double late = view.clock_seconds - after, early = before - view.clock_seconds;
  view.clock_seconds = late > 0 ? late : early > 0 ? -early : 0;
  answer.view = std::move(seen);
  return answer;
}

CheckResult find_silent_hosts(const std::vector<Answer>& answers) {
  CheckResult result{"hosts", "every host answers, and has this program", {}};
  for (const Answer& answer : answers)
    if (!answer.view) result.findings.push_back(answer.trouble);
  return result;
}

CheckResult find_other_programs(Views views) {
  CheckResult result{"equal-ranks", "all hosts have the same program and Open MPI", {}};
  for (const RankView& view : views) {
    for (const char* what : {"program", "MPI"}) {
      const auto& mine = views.front().versions;
      if (mine.at(what) == view.versions.at(what)) continue;
      result.findings.push_back({fmt::format("{} of {} and {} differ: {} and {}", what, views.front().host,
                                             view.host, mine.at(what), view.versions.at(what)),
                                 "install the same build and the same Open MPI on all hosts"});
    }
    if (view.versions.at("orted") != "there" && views.size() > 1)
      result.findings.push_back(
          {fmt::format("{} has no orted where ssh finds programs", view.host),
           "install the same Open MPI there, or mpirun --prefix DIRECTORY-OF-OPEN-MPI"});
  }
  return result;
}

/// Each host waits on a port of its own; then all try all others.
CheckResult find_closed_ports(const std::vector<ListedHost>& hosts) {
  CheckResult result{"ports", "hosts connect to each other", {}};
  std::vector<std::unique_ptr<RunningCommand>> waiting;
  std::map<std::string, std::string> ports;
  for (const ListedHost& host : hosts) {
    waiting.push_back(start_on_host(
        host.name, fmt::format("{} doctor --answer {}", quoted_for_shell(this_program()), kAnswerSeconds)));
    ports[host.name] = waiting.back()->first_line();
  }
  std::vector<std::future<CommandOutput>> tried;
  for (const ListedHost& host : hosts) {
    std::string command = quoted_for_shell(this_program()) + " doctor";
    for (const ListedHost& other : hosts)
      if (other.name != host.name)
        command += fmt::format(" --reach {}:{}", quoted_for_shell(other.name), ports[other.name]);
    tried.push_back(start_async([name = host.name, command] { return run_on_host(name, command); }));
  }
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    std::istringstream lines(tried[i].get().text);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with(kNotReached)) continue;
      result.findings.push_back({fmt::format("{} cannot connect to {}", hosts[i].name,
                                             line.substr(std::string(kNotReached).size())),
                                 "open TCP between these hosts (firewall), or choose another network: mpirun "
                                 "--mca btl_tcp_if_include "
                                 "NET --mca oob_tcp_if_include NET"});
    }
  }
  return result;
}

}  // namespace

Diagnosis survey_hosts(const std::vector<ListedHost>& hosts, const Job& job) {
  Diagnosis diagnosis;
  const RunDirectoryMark mark(run_directory(job), "survey");
  std::vector<std::future<Answer>> asked;
  for (std::size_t i = 0; i < hosts.size(); ++i)
    asked.push_back(start_async(
        [host = hosts[i], i, path = mark.path()] { return ask(host, static_cast<int>(i), path); }));
  std::vector<Answer> answers;
  std::vector<ListedHost> living;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    answers.push_back(asked[i].get());
    if (!answers.back().view) continue;
    living.push_back(hosts[i]);
    diagnosis.ranks.push_back(*answers.back().view);
    diagnosis.ranks.back().threads = job.parallel.threads;
  }
  diagnosis.results.push_back(find_silent_hosts(answers));
  if (diagnosis.ranks.empty()) return diagnosis;
  diagnosis.ranks.front().disk_free_bytes = disk_free(run_directory(job));
  diagnosis.results.push_back(find_other_programs(diagnosis.ranks));
  if (living.size() > 1) diagnosis.results.push_back(find_closed_ports(living));
  for (CheckResult& result : run_checks(diagnosis.ranks, true))
    diagnosis.results.push_back(std::move(result));
  return diagnosis;
}

std::string view_of_this_host(const std::string& mark) {
  RankView view = look_around(Surroundings::real());
  view.launcher.clear();
  view.launched = 1;
  view.device.description = "-";
  view.disk_free_bytes = ~std::uint64_t{0};
  std::error_code ignored;
  view.sees_run_directory = mark.empty() || std::filesystem::exists(mark, ignored);
  view.clock_seconds = now_seconds();
  const auto search = run_here("command -v orted; mpirun --version 2>/dev/null | head -n 1");
  view.versions = {{"lockstep", LOCKSTEP_VERSION},
                   {"program", program_digest()},
                   {"orted", search.text.find("orted\n") != std::string::npos ? "there" : "missing"},
                   {"MPI", last_line(search.text)}};
  return to_message(view);
}

}  // namespace lockstep
