// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/child_process.hpp"

#include "tests/chaos/campaign.hpp"
#include "tests/support/prelude.hpp"

#include <cctype>
#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shared_mutex>

namespace lockstep::chaos {
namespace {

constexpr std::chrono::milliseconds kPoll{2};

struct ProcessFacts {
  pid_t pid = 0;
  std::string name;
  char state = '?';
  pid_t parent = 0, session = 0;
};

/// /proc/PID/stat is "PID (NAME) STATE PPID PGRP SESSION ..."; NAME may hold anything but ends with ')'.
std::optional<ProcessFacts> facts_of(const std::filesystem::path& directory) {
  std::ifstream file(directory / "stat");
  std::string stat;
  std::getline(file, stat);
  const auto open = stat.find('(');
  const auto close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return std::nullopt;
  ProcessFacts facts;
  facts.pid = static_cast<pid_t>(std::stol(stat));
  facts.name = stat.substr(open + 1, close - open - 1);
  pid_t group = 0;
  std::istringstream(stat.substr(close + 1)) >> facts.state >> facts.parent >> group >> facts.session;
  return facts;
}

std::vector<ProcessFacts> all_processes() {
  std::vector<ProcessFacts> all;
  std::error_code gone;  // a process may end between listing and looking
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    if (std::isdigit(static_cast<unsigned char>(entry.path().filename().string()[0])) == 0) continue;
    if (const auto facts = facts_of(entry.path())) all.push_back(*facts);
  }
  return all;
}

std::vector<ProcessFacts> session_members(pid_t session) {
  auto members = all_processes();
  std::erase_if(members, [&](const ProcessFacts& facts) { return facts.session != session; });
  return members;
}

std::shared_mutex& starts() {
  static std::shared_mutex mutex;
  return mutex;
}

bool is_dead(const ProcessFacts& facts) {
  return facts.state == 'Z' || facts.state == 'X';
}

/// The settings of posix_spawn, freed at the end.
struct SpawnSettings {
  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};

  SpawnSettings(const std::string& out_path, const std::string& err_path) {
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out_path.c_str(), kWrite, 0644);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, err_path.c_str(), kWrite, 0644);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
};

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, const Environment& environment,
                           const std::string& out_path, const std::string& err_path) {
  // A shell without job control leaves SIGINT ignored, nohup SIGHUP.
  std::vector<std::string> words = {"env", "--default-signal=INT,HUP"};
  words.insert(words.end(), environment.begin(), environment.end());
  words.insert(words.end(), command.begin(), command.end());
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const SpawnSettings settings(out_path, err_path);
  const std::shared_lock start(starts());
  const int error =
      posix_spawnp(&pid_, words[0].c_str(), &settings.files, &settings.attributes, arguments.data(), environ);
  if (error != 0) throw std::system_error(error, std::generic_category(), command[0] + ": cannot be started");
}

ChildProcess::~ChildProcess() {
  clear_away();
}

std::optional<int> ChildProcess::exit_code() {
  int status = 0;
  if (!exit_code_ && waitpid(pid_, &status, WNOHANG) == pid_) {
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return exit_code_;
}

std::optional<int> ChildProcess::wait(std::chrono::milliseconds limit) {
  Patience patience(limit);
  while (!exit_code() && !patience.is_exhausted()) std::this_thread::sleep_for(kPoll);
  return exit_code();
}

std::vector<pid_t> ChildProcess::members(const std::string& name) const {
  std::vector<pid_t> found;
  for (const auto& facts : session_members(pid_)) {
    if (facts.name == name && !is_dead(facts)) found.push_back(facts.pid);
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool ChildProcess::wait_until_gone(std::chrono::milliseconds limit) {
  Patience patience(limit);
  while (true) {
    const auto left = session_members(pid_);
    if (left.empty()) return true;
    for (const auto& facts : left) {  // the dead wait to be reaped, by us if their parent is gone
      if (is_dead(facts) && facts.pid != pid_) waitpid(facts.pid, nullptr, WNOHANG);
    }
    exit_code();
    if (patience.is_exhausted()) return false;
    std::this_thread::sleep_for(kPoll);
  }
}

void ChildProcess::clear_away() {
  do {
    for (const auto& facts : session_members(pid_)) {
      if (!is_dead(facts)) kill(facts.pid, SIGKILL);
    }
  } while (!wait_until_gone(std::chrono::milliseconds(50)));
}

void ChildProcess::start_no_more() {
  starts().lock();
}

bool is_alive(pid_t process) {
  const auto facts = facts_of(fmt::format("/proc/{}", process));
  return facts && !is_dead(*facts);
}

std::vector<pid_t> descendants() {
  const auto all = all_processes();
  std::vector<pid_t> found;
  for (std::size_t looked = 0; looked <= found.size(); ++looked) {
    const pid_t parent = looked == 0 ? getpid() : found[looked - 1];
    for (const ProcessFacts& facts : all) {
      if (facts.parent == parent) found.push_back(facts.pid);
    }
  }
  return found;
}

void adopt_orphans() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

}  // namespace lockstep::chaos
