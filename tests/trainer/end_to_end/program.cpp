// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/trainer/end_to_end/program.hpp"

#include "common/json_text.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

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
  // A session directory of its own: one that Open MPI is still removing cannot be made by the next at the same time.
  const auto line = "OMPI_MCA_orte_tmpdir_base=" + scratch.path() + " timeout -k 5 " +
                    std::to_string(seconds) + " sh " + scratch.path("command") + " > " + scratch.path("out") +
                    " 2> " + scratch.path("err") + " < /dev/null";
  const int status = std::system(line.c_str());
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .out = read_text(scratch.path("out")),
          .err = read_text(scratch.path("err"))};
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

TemporaryDirectory::TemporaryDirectory() {
  std::string pattern = std::filesystem::temp_directory_path() / "lockstep-test-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed for " + pattern);
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryDirectory::path(const std::string& name) const {
  return name.empty() ? path_ : path_ / name;
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
  for (const char* key : {"world", "hosts", "threads", "device", "backend", "buckets", "strategy", "stages",
                          "placement", "pipelines", "pipeline_schedule", "pipeline", "samples_per_second",
                          "seconds", "train_seconds", "setup_seconds", "time", "version", "data_origin"}) {
    event.erase(key);
  }
}

std::vector<nlohmann::json> comparable_metrics(const std::string& run_directory) {
  auto events = read_metrics(run_directory);
  std::erase_if(events, [](const nlohmann::json& event) { return event.value("event", "") == "straggler"; });
  for (auto& event : events) forget_times_and_ranks(event);
  return events;
}

}  // namespace lockstep::testing
