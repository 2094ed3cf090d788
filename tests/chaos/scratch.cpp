// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/scratch.hpp"

#include "tests/chaos/campaign.hpp"
#include "tests/chaos/child_process.hpp"
#include "tests/support/prelude.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep::chaos {

namespace {

constexpr const char* kKept = "kept";

/// The process is in the name: others may have to remove it.
std::string name_for(pid_t process) {
  return "lockstep-chaos-" + std::to_string(process) + "-";
}

std::string make_unique_directory(const std::filesystem::path& parent) {
  std::string path = parent / (name_for(getpid()) + "XXXXXX");
  if (mkdtemp(path.data()) != nullptr) return path;
  throw std::system_error(errno, std::generic_category(), path + ": cannot be created");
}

/// In memory where the system has a place for that.
std::filesystem::path memory_directory() {
  const char* memory = "/dev/shm";
  return access(memory, W_OK) == 0 ? std::filesystem::path(memory) : std::filesystem::temp_directory_path();
}

bool is_kept(const std::filesystem::path& directory) {
  std::error_code ignored;
  return std::filesystem::exists(directory / kKept, ignored);
}

}  // namespace

Scratch::Scratch()
    : files_(make_unique_directory(std::filesystem::temp_directory_path())),
      shared_memory_(make_unique_directory(memory_directory())) {}

Scratch::~Scratch() {
  std::error_code ignored;
  if (!is_kept(files_)) std::filesystem::remove_all(files_, ignored);
  std::filesystem::remove_all(shared_memory_, ignored);
}

void Scratch::keep() {
  std::ofstream(files_ + "/" + kKept) << "something went wrong here\n";
}

LifeDirectories Scratch::make(const std::string& name) const {
  LifeDirectories directories{files_ + "/" + name, shared_memory_ + "/" + name};
  std::filesystem::create_directories(directories.temporary());
  std::filesystem::create_directories(directories.shared_memory);
  return directories;
}

void Scratch::remove(const LifeDirectories& directories) const {
  std::error_code ignored;
  std::filesystem::remove_all(directories.home, ignored);
  std::filesystem::remove_all(directories.shared_memory, ignored);
}

std::vector<std::string> scratch_of(pid_t process) {
  std::error_code ignored;
  std::vector<std::string> found;
  for (const auto& parent : {std::filesystem::temp_directory_path(), memory_directory()}) {
    for (const auto& entry : std::filesystem::directory_iterator(parent, ignored)) {
      if (entry.path().filename().string().starts_with(name_for(process)) && !is_kept(entry.path()))
        found.push_back(entry.path());
    }
  }
  return found;
}

// Both are subreapers: who was started and lost its parent is a descendant still, and so is found.

namespace {

constexpr std::chrono::milliseconds kPollDeaths{5};
constexpr std::chrono::seconds kMostForDeaths{30};

/// Signals that ask for an end. Ignored ones, as nohup and shells leave them to their background, stay ignored.
std::vector<int> ending_signals() {
  std::vector<int> signals;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) signals.push_back(signal);
  }
  return signals;
}

void reap_the_dead() {
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

void clear_away_descendants() {
  Patience patience(kMostForDeaths);
  for (auto left = descendants(); !left.empty() && !patience.is_exhausted(); left = descendants()) {
    for (const pid_t pid : left) kill(pid, SIGKILL);
    std::this_thread::sleep_for(kPollDeaths);
    reap_the_dead();
  }
}

[[noreturn]] void end_by(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  std::raise(signal);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  _exit(128 + signal);
}

int ending_pipe = -1;

void on_ending(int signal) {
  const auto byte = static_cast<unsigned char>(signal);
  [[maybe_unused]] const ssize_t written = write(ending_pipe, &byte, 1);
}

/// In the campaign. What its workers say of runs that die now is no news; what they still write goes with the rest,
/// since they end when another program takes this one's place.
[[noreturn]] void end_campaign(int signal) {
  const auto scratch = scratch_of(getpid());
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  for (const int file : {STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, file);
  ChildProcess::start_no_more();
  clear_away_descendants();
  const std::string number = std::to_string(signal);
  std::vector<const char*> words = {"sh", "-c", "signal=$1; shift; rm -rf -- \"$@\"; kill -$signal $$", "sh",
                                    number.c_str()};
  for (const std::string& directory : scratch) words.push_back(directory.c_str());
  words.push_back(nullptr);
  execvp("sh", const_cast<char* const*>(words.data()));
  end_by(signal);
}

/// Handlers, since a blocked signal would be blocked in all that is started, too.
void end_when_told(const std::vector<int>& signals) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  ending_pipe = ends[1];
  std::thread([from = ends[0]] {
    unsigned char signal = 0;
    while (read(from, &signal, 1) != 1) {
    }
    end_campaign(signal);
  }).detach();
  struct sigaction action {};
  action.sa_handler = on_ending;
  action.sa_flags = SA_RESTART;
  for (const int signal : signals) sigaction(signal, &action, nullptr);
}

int campaign_process(pid_t guard, const std::vector<int>& signals, const std::function<int()>& campaign) {
  setpgid(0, 0);  // a group of its own: a signal to the guard's whole group leaves one of the two
  adopt_orphans();
  auto heard = signals;
  if (std::find(heard.begin(), heard.end(), SIGTERM) == heard.end()) heard.push_back(SIGTERM);
  end_when_told(heard);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != guard) return 1;
  return campaign();
}

int end_of(pid_t campaign) {
  int status = 0;
  while (waitpid(campaign, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  clear_away_descendants();
  std::error_code ignored;
  for (const std::string& directory : scratch_of(campaign)) std::filesystem::remove_all(directory, ignored);
  return 128 + WTERMSIG(status);
}

}  // namespace

int run_guarded(const std::function<int()>& campaign) {
  const auto signals = ending_signals();
  sigset_t heard, before;
  sigemptyset(&heard);
  for (const int signal : signals) sigaddset(&heard, signal);
  sigaddset(&heard, SIGCHLD);
  sigprocmask(SIG_BLOCK, &heard, &before);
  adopt_orphans();
  const pid_t guard = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    const int code = campaign_process(guard, signals, campaign);
    std::fflush(nullptr);
    _exit(code);
  }
  siginfo_t ended{};
  for (int signal = SIGCHLD; signal == SIGCHLD;) {
    // WNOWAIT: its status stays, for end_of().
    if (waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        ended.si_pid == pid)
      return end_of(pid);
    if (sigwait(&heard, &signal) != 0 || signal == SIGCHLD) continue;
    kill(pid, SIGKILL);
    end_of(pid);
    end_by(signal);
  }
  return 1;
}

}  // namespace lockstep::chaos
