// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Other hosts, as the doctor reaches them: commands there, open ports, and the lock of a run that a host of
/// yesterday holds.
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"
#include "common/printable.hpp"
#include "trainer/checkpoint/run_lock.hpp"
#include "trainer/tools/doctor.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>

namespace lockstep {

// popen behind 'timeout', which also ends an ssh that asks for something.

namespace {

/// A process of popen.
class Pipe final : public RunningCommand {
 public:
  explicit Pipe(const std::string& line) : file_(popen(("{ " + line + "\n} </dev/null 2>&1").c_str(), "re")) {
    if (file_ == nullptr) throw IoError(std::string("starting a shell: ") + std::strerror(errno));
  }
  ~Pipe() override {
    if (file_ != nullptr) pclose(file_);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  std::string first_line() override {
    std::array<char, 256> line{};
    if (std::fgets(line.data(), line.size(), file_) == nullptr) return "";
    std::string text = line.data();
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }

  CommandOutput finish() {
    CommandOutput output;
    std::array<char, 4096> bytes{};
    while (const std::size_t count = std::fread(bytes.data(), 1, bytes.size(), file_))
      output.text.append(bytes.data(), count);
    const int status = pclose(std::exchange(file_, nullptr));
    output.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return output;
  }

 private:
  std::FILE* file_;
};

std::string agent() {
  const char* named = std::getenv("OMPI_MCA_plm_rsh_agent");  // NOLINT(concurrency-mt-unsafe)
  return named != nullptr && *named != '\0'
             ? named
             : "ssh -o BatchMode=yes -o ConnectTimeout=5 -o StrictHostKeyChecking=yes";
}

std::string line_for(const std::string& host, const std::string& line) {
  const std::string bounded = "timeout 10 ";
  if (host == "localhost" || host == host_name()) return bounded + "sh -c " + quoted_for_shell(line);
  return bounded + agent() + " " + quoted_for_shell(host) + " " + quoted_for_shell(line);
}

}  // namespace

CommandOutput run_here(const std::string& line) {
  return Pipe("timeout 10 sh -c " + quoted_for_shell(line)).finish();
}

CommandOutput run_on_host(const std::string& host, const std::string& line) {
  return Pipe(line_for(host, line)).finish();
}

std::unique_ptr<RunningCommand> start_on_host(const std::string& host, const std::string& line) {
  return std::make_unique<Pipe>(line_for(host, line));
}

std::string quoted_for_shell(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// Boot id and start time, as the lock has them, against those of the host itself.

namespace {

/// What the other host says of a process.
struct RemoteProcess {
  std::string boot_id;
  std::uint64_t start_ticks = 0;  ///< 0: there is no such process
};

/// The lines are marked: a login shell may say more.
RemoteProcess process_in(const std::string& text) {
  RemoteProcess process;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (word == "lockstep-boot:") words >> process.boot_id;
    if (word == "lockstep-ticks:") words >> process.start_ticks;
  }
  return process;
}

/// The name of the process, in brackets, may hold anything: what stands behind the last one counts. One whose threads
/// have all ended is gone, although its parent has not asked how yet.
RemoteProcess ask_host(const LockOwner& owner, const std::string& place) {
  if (!is_host_name(owner.host))
    throw RunInUseError(
        fmt::format("{0}: its lock names {1}, which is no host's name, so that nothing can be "
                    "asked; once you know that no job uses it, delete {0}/lock",
                    place, quoted_text(owner.host)));
  const auto output = run_on_host(
      owner.host,
      fmt::format("echo lockstep-boot: $(cat /proc/sys/kernel/random/boot_id); echo lockstep-ticks: "
                  "$(sed \"s/.*) //; /^[ZX]\\( [^ ]*\\)\\{{16\\}} 1 /d\" /proc/{}/stat 2>/dev/null | cut -d "
                  "\" \" -f 20)",
                  owner.pid));
  RemoteProcess process = process_in(output.text);
  if (process.boot_id.empty()) {
    throw RunInUseError(
        fmt::format("{}: belongs to job {} (pid {} on {}, since {}), and {} cannot be asked whether that "
                    "still runs ('ssh {} "
                    "true' fails); once you know that it does not, delete {}/lock",
                    place, owner.job, owner.pid, owner.host, owner.started, owner.host, owner.host, place));
  }
  return process;
}

}  // namespace

std::string take_over_lock(const std::string& run_dir) {
  Env& env = Env::posix();
  const auto owner = lock_owner(env, run_dir);
  if (!owner) return fmt::format("{}: no job holds it", run_dir);
  const RemoteProcess process = ask_host(*owner, run_dir);
  const bool rebooted = process.boot_id != owner->boot_id;
  if (!rebooted && process.start_ticks == owner->start_ticks) {
    throw RunInUseError(fmt::format("{}: job {} still runs: pid {} on {}, since {}; stop it there", run_dir,
                                    owner->job, owner->pid, owner->host, owner->started));
  }
  release_lock_of(env, run_dir, *owner);
  return fmt::format("{}: freed; job {} is gone ({})", run_dir, owner->job,
                     rebooted ? fmt::format("{} was started again since", owner->host)
                              : fmt::format("no process {} on {}", owner->pid, owner->host));
}

// Non-blocking connects, all at once.

namespace {

constexpr int kPatienceMilliseconds = 2000;

/// A TCP socket that closes itself.
class Socket {
 public:
  Socket() : number_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    if (number_ < 0) throw IoError(std::string("a socket: ") + std::strerror(errno));
  }
  ~Socket() { close(number_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

/// @returns why not; empty: it is connected
std::string connect_to(const std::string& host, const std::string& port) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &wanted, &found)) return gai_strerror(error);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  const Socket socket;
  if (connect(socket.number(), found->ai_addr, found->ai_addrlen) == 0) return "";
  if (errno != EINPROGRESS) return std::strerror(errno);
  pollfd ready{socket.number(), POLLOUT, 0};
  if (poll(&ready, 1, kPatienceMilliseconds) == 0) return "no answer: a firewall, or no way there";
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? "" : std::strerror(error);
}

}  // namespace

void answer_on_a_port(int seconds) {
  const Socket socket;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  auto* general = reinterpret_cast<sockaddr*>(&address);
  if (bind(socket.number(), general, size) != 0 || listen(socket.number(), 64) != 0 ||
      getsockname(socket.number(), general, &size) != 0)
    throw IoError(std::string("a port of this host: ") + std::strerror(errno));
  print("{}\n", ntohs(address.sin_port));
  std::fflush(stdout);
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  while (Clock::now() < end) {
    pollfd ready{socket.number(), POLLIN, 0};
    if (poll(&ready, 1, 100) <= 0) continue;
    if (const int peer = accept(socket.number(), nullptr, nullptr); peer >= 0) close(peer);
  }
}

std::string try_to_reach(const std::vector<std::string>& targets) {
  std::string text;
  for (const std::string& target : targets) {
    const std::size_t colon = target.rfind(':');
    if (colon == std::string::npos) throw UsageError("--reach HOST:PORT");
    const std::string host = target.substr(0, colon);
    const std::string error = connect_to(host, target.substr(colon + 1));
    if (!error.empty()) text += fmt::format("{}{} ({})\n", kNotReached, host, error);
  }
  return text;
}

}  // namespace lockstep
