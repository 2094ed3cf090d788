// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/trainer/end_to_end/program.hpp"

#include "common/json_text.hpp"
#include "common/text_layout.hpp"
#include "tests/support/prelude.hpp"

#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep::testing {

namespace {

std::string program() {
  const char* path = std::getenv("LOCKSTEP_PROGRAM");
  if (path == nullptr) throw std::runtime_error("LOCKSTEP_PROGRAM is not set; run through ctest");
  return path;
}

}  // namespace

std::string Outcome::last_line() const {
  const auto end = out.find_last_not_of("\r\n");
  if (end == std::string::npos) return "";
  const auto begin = out.find_last_of("\r\n", end);
  return out.substr(begin == std::string::npos ? 0 : begin + 1,
                    end - (begin == std::string::npos ? -1 : static_cast<long>(begin)));
}

Outcome run_shell(const std::string& command, int seconds) {
  const TemporaryDirectory scratch;
  write_text(scratch.path("command"), command + "\n");
  // A session directory of its own. One that Open MPI is still removing cannot be made by the next at the same time.
  const auto line = "OMPI_MCA_orte_tmpdir_base=" + scratch.path() + " timeout -k 5 " +
                    std::to_string(seconds) + " sh " + scratch.path("command") + " > " + scratch.path("out") +
                    " 2> " + scratch.path("err") + " < /dev/null";
  const int status = std::system(line.c_str());
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .out = read_text(scratch.path("out")),
          .err = read_text(scratch.path("err")),
          .command = command};
}

Outcome lockstep(const std::string& arguments) {
  return run_shell(program() + " " + arguments);
}

std::string mpirun_command(int ranks, const std::string& arguments) {
  return "mpirun --bind-to none -np " + std::to_string(ranks) + " " + program() + " " + arguments;
}

Outcome lockstep_on_ranks(int ranks, const std::string& arguments) {
  return run_shell(mpirun_command(ranks, arguments));
}

Outcome run_and_strike(const std::string& command, const std::string& run_dir, const std::string& blow) {
  return run_shell(command + " & run=$!\nfor i in $(seq 1200); do grep -qs '\"step\":3' " + run_dir +
                   "/metrics.jsonl && break; sleep 0.05; done\n" + blow + "\nwait $run");
}

std::string process_of_rank(int rank) {
  return "$(for p in $(pgrep -P $run); do tr '\\0' '\\n' < /proc/$p/environ | grep -qx "
         "OMPI_COMM_WORLD_RANK=" +
         std::to_string(rank) + " && echo $p; done)";
}

std::string read_faults(const std::string& path, int at, int count, int error) {
  return fmt::format("READ_FAULTS_PATH={} READ_FAULTS_AT={} READ_FAULTS_COUNT={} READ_FAULTS_ERRNO={} ", path,
                     at, count, error);
}

void expect_says(const Outcome& outcome, int exit_code, const std::vector<std::string>& words,
                 const char* file, int line) {
  const std::string told = outcome.command + "\n" + outcome.everything();
  if (outcome.exit_code != exit_code)
    ADD_FAILURE_AT(file, line) << "exit code " << outcome.exit_code << ", expected " << exit_code << "\n"
                               << told;
  const std::string& text = exit_code <= 1 ? outcome.out : outcome.err;
  for (const std::string& each : words)
    if (text.find(each) == text.npos) ADD_FAILURE_AT(file, line) << "'" << each << "' is not in\n" << told;
}

Outcome succeed(const std::string& arguments, const char* file, int line) {
  return ended_well(lockstep(arguments), file, line);
}

Outcome ended_well(Outcome outcome, const char* file, int line) {
  expect_says(outcome, 0, {}, file, line);
  return outcome;
}

nlohmann::json answer_of(const std::string& arguments, const char* file, int line) {
  return parse_json(succeed(arguments + " --json", file, line).out);
}

std::string write_small_job(const TemporaryDirectory& directory) {
  auto path = directory.path("job.yaml");
  write_text(path,
             "model: net\n"
             "data: {set: synthetic, train_samples: 1100, test_samples: 333, global_batch: 512}\n"
             "train: {epochs: 2, seed: 7, optimizer: {kind: sgd, lr: 0.05, momentum: 0.5}}\n"
             "parallel: {device: cpu, grain: 32}\n"
             "run: {dir: " +
                 directory.path("run") + ", checkpoint_every_steps: 2, log_every_steps: 1}\n");
  return path;
}

std::string write_branched_model(const TemporaryDirectory& directory) {
  auto path = directory.path("branched.yaml");
  write_text(
      path,
      "layers:\n  - conv2d: {out: 4, kernel: 5, stride: 3}\n  - tanh\n  - relu: {name: a}\n  - dropout: 0.3\n"
      "  - conv2d: {out: 4, kernel: 3, padding: 1}\n  - gelu\n  - add: a\n  - relu\n  - add: tanh1\n"
      "  - sigmoid\n  - max_pool: 2\n  - gelu: {approximate: tanh}\n  - global_avg_pool\n"
      "  - linear: classes\n");
  return path;
}

std::string read_text(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream stream(path, std::ios::binary);
  stream << text;
  if (!stream.flush()) throw std::runtime_error("cannot write " + path);
}

std::vector<nlohmann::json> read_metrics(const std::string& run_directory) {
  std::istringstream lines(read_text(run_directory + "/metrics.jsonl"));
  std::vector<nlohmann::json> events;
  for (std::string line; std::getline(lines, line);) events.push_back(parse_json(line));
  return events;
}

TrainedRun train_job(const std::string& job, const std::string& directory, int ranks) {
  const std::string arguments = "train " + job + " run.dir=" + directory;
  const Outcome outcome = ranks == 0 ? lockstep(arguments) : lockstep_on_ranks(ranks, arguments);
  EXPECT_EQ(outcome.exit_code, 0) << arguments << "\n" << outcome.everything();
  EXPECT_EQ(outcome.last_line().substr(0, 15), "weights sha256 ") << arguments << "\n"
                                                                  << outcome.everything();
  return {outcome.last_line(), comparable_metrics(directory), directory};
}

void expect_same(const TrainedRun& run, const TrainedRun& reference, const std::string& label) {
  EXPECT_EQ(run.last_line, reference.last_line) << label;
  EXPECT_EQ(run.metrics, reference.metrics) << label;
}

void forget_times_and_ranks(nlohmann::json& event) {
  for (const char* key : {"world",
                          "hosts",
                          "threads",
                          "device",
                          "backend",
                          "buckets",
                          "strategy",
                          "stages",
                          "placement",
                          "pipelines",
                          "pipeline_schedule",
                          "pipeline",
                          "samples_per_second",
                          "seconds",
                          "from_step",
                          "train_seconds",
                          "setup_seconds",
                          "time",
                          "host",
                          "command",
                          "version",
                          "data_origin",
                          "epoch_seconds",
                          "step_seconds_p50",
                          "step_seconds_p90",
                          "step_seconds_p99",
                          "resident_bytes",
                          "peak_resident_bytes",
                          "device_bytes",
                          "peak_device_bytes",
                          "exposed_seconds",
                          "rank_skew",
                          "slowest_rank",
                          "rank_busy_seconds",
                          "rank_exposed_seconds",
                          "gradient_norm"}) {  // the last one: a GPU has none
    event.erase(key);
  }
}

std::vector<nlohmann::json> comparable_metrics(const std::string& run_directory) {
  auto events = read_metrics(run_directory);
  for (auto& event : events) forget_times_and_ranks(event);
  return events;
}

Outcome JobTest::train(const std::string& run, const std::string& overrides,
                       const std::string& launcher) const {
  return run_shell(launcher + " " + program() + " train " + path("job.yaml") + " run.dir=" + path(run) + " " +
                   overrides);
}

std::vector<nlohmann::json> JobTest::metrics_of(const std::string& run, const std::string& overrides,
                                                const std::string& launcher) const {
  ended_well(train(run, overrides, launcher));
  return comparable_metrics(path(run));
}

int JobTest::train_in_parts(const std::string& run, const std::string& overrides, double seconds) const {
  for (int starts = 1;; ++starts) {
    const Outcome outcome = train(run, fmt::format("{} run.max_seconds={}", overrides, seconds));
    if (outcome.exit_code == 75 && starts < 50) continue;
    ended_well(outcome);
    return starts;
  }
}

namespace {

using Clock = std::chrono::steady_clock;

struct winsize window_of(int columns) {
  return {.ws_row = 40, .ws_col = static_cast<unsigned short>(columns), .ws_xpixel = 0, .ws_ypixel = 0};
}

/// Appends what comes within so long; false when the program has closed its side.
bool read_some(int fd, std::string& bytes, int milliseconds = 100) {
  pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
  if (poll(&ready, 1, milliseconds) <= 0) return true;
  std::array<char, 4096> buffer{};
  const ssize_t got = read(fd, buffer.data(), buffer.size());
  if (got > 0) bytes.append(buffer.data(), static_cast<std::size_t>(got));
  return got > 0;
}

int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TerminalOutput run_in_terminal(const TerminalRun& run, const std::string& command, int seconds) {
  const std::string line =
      "exec env -u COLUMNS -u NO_COLOR -u LC_ALL -u LC_CTYPE -u LANG " + run.environment + " " + command;
  struct winsize window = window_of(run.columns);
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &window);
  if (child < 0) throw std::runtime_error("forkpty failed");
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    _exit(127);
  }
  TerminalOutput output;
  const auto deadline = Clock::now() + std::chrono::seconds(seconds);
  std::size_t resized_at = std::string::npos;
  bool stopped = run.stop_at.empty();
  while (read_some(terminal, output.bytes)) {
    if (Clock::now() > deadline) kill(child, SIGKILL);
    const bool resized = resized_at != std::string::npos;
    if (!resized && run.columns_later > 0 && output.bytes.find(run.resize_at) != std::string::npos) {
      window = window_of(run.columns_later);
      ioctl(terminal, TIOCSWINSZ, &window);
      // Bytes that are not read yet were written for the old width.
      for (std::size_t seen = 0; seen != output.bytes.size();) {
        seen = output.bytes.size();
        read_some(terminal, output.bytes, 0);
      }
      resized_at = output.bytes.size();
    } else if (resized && !stopped && output.bytes.find(run.stop_at, resized_at) != std::string::npos) {
      stopped = write(terminal, "\003", 1) == 1;
    }
  }
  if (resized_at != std::string::npos) output.after_resize = output.bytes.substr(resized_at);
  output.exit_code = wait_for(child);
  close(terminal);
  return output;
}

Screen screen_of(const std::string& bytes) {
  Screen screen{.lines = {""}};
  std::string written;  // since the last carriage return
  const auto settle = [&] {
    screen.widest = std::max(screen.widest, display_width(written));
    std::string& line = screen.lines.back();
    line = written + (written.size() < line.size() ? line.substr(written.size()) : "");
  };
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    if (bytes[at] == '\r') {
      settle();
      written.clear();
    } else if (bytes[at] == '\n') {
      settle();
      written.clear();
      screen.lines.emplace_back();
    } else if (bytes.compare(at, 3, "\033[J") == 0) {
      screen.lines.back() = written;
      at += 2;
    } else if (bytes[at] == '\033') {
      throw std::runtime_error("a stray escape sequence: " + bytes.substr(at + 1, 8));
    } else {
      written += bytes[at];
    }
  }
  settle();
  return screen;
}

}  // namespace lockstep::testing
