// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// popen behind 'timeout', which also ends an ssh that asks for something.
#include "trainer/doctor/remote_command.hpp"

#include "common/error.hpp"
#include "common/host_name.hpp"

#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace lockstep {
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

}  // namespace lockstep
