// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The newest unfinished run with the same determining keys is gone on with; else the next free number.
#include "comm/agreement.hpp"
#include "comm/launcher.hpp"
#include "common/error.hpp"
#include "common/output_file.hpp"
#include "common/printable.hpp"
#include "trainer/checkpoint/metrics_reader.hpp"
#include "trainer/checkpoint/run_lock.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/run/run_directory.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep {
namespace {

constexpr const char* kFolder = "runs";
constexpr int kMostTries = 1000;  ///< to find a directory that no other run takes at the same moment
/// Largest number of a job's directory: those that are tried after it are numbers, too.
constexpr int kLargestNumber = std::numeric_limits<int>::max() - kMostTries - 1;

std::string path_of(const Job& job, int number) {
  return number == 1 ? fmt::format("{}/{}", kFolder, job.name)
                     : fmt::format("{}/{}-{}", kFolder, job.name, number);
}

/// 1 for "mnist", 7 for "mnist-7"; 0 for what is not a directory of this job.
int number_of(std::string_view entry, const Job& job) {
  if (!entry.starts_with(job.name)) return 0;
  entry.remove_prefix(job.name.size());
  if (entry.empty()) return 1;
  const auto number = parse_whole<int>(entry.substr(1));
  const bool is_number = number && *number >= 2 && *number <= kLargestNumber;
  return is_number && entry == fmt::format("-{}", *number) ? *number : 0;
}

/// Numbers of the job's directories that there are, newest first. One may be of another job, whose name is this one's
/// with a number.
std::vector<int> existing_runs(Env& env, const Job& job) {
  std::vector<int> numbers;
  if (!env.exists(kFolder)) return numbers;
  for (const std::string& entry : env.list(kFolder)) {
    const int number = number_of(entry, job);
    if (number == 0) continue;
    const std::string line = first_line_of_job(env, path_of(job, number));
    if (line.empty() || line == first_line_of_job(job)) numbers.push_back(number);
  }
  std::sort(numbers.rbegin(), numbers.rend());
  return numbers;
}

/// Made for a run that ended before it had written anything. A file is none, nor what this user may not look into.
bool is_empty_run(Env& env, const std::string& run_dir) {
  const auto is_of_start = [](const auto& entry) { return entry == "lock" || entry == "log"; };
  return or_if_unreadable([&] { return std::ranges::all_of(env.list(run_dir), is_of_start); }, false);
}

/// Reason why the job does not go on in this directory, as far as reading shows: "is finished". Nothing: it
/// may, also in one where no run has begun.
std::optional<std::string> why_not_go_on(Env& env, const std::string& run_dir, const Job& job) {
  const auto job_file = run_dir + "/job.yaml", metrics = run_dir + "/metrics.jsonl";
  if (!env.exists(job_file))
    return is_empty_run(env, run_dir) ? std::nullopt : std::optional("is not a run directory");
  if (recorded_end(env, metrics) && !lacks_page(env, run_dir, job)) return "is finished";
  try {
    const auto differences = differences_from_run(env, run_dir, job);
    if (differences.empty()) return std::nullopt;
    return fmt::format("differs in {}", fmt::join(differences, ", "));
  } catch (const ConfigError& error) {
    return fmt::format("has a job.yaml that cannot be read ({})", error.what());
  }
}

/// Nothing if the directory is open now and the job goes on in it.
std::optional<std::string> why_not_opened(const OpenRunDirectory& open, const std::string& path, bool wait) {
  try {
    open(path, wait);
    return std::nullopt;
  } catch (const RunInUseError&) {
    return "is in use by another job";
  } catch (const Error& error) {
    if (error.code() != ExitCode::kUsage && error.code() != ExitCode::kDataDamaged) throw;
    return fmt::format("cannot be resumed ({})", error.what());
  }
}

/// Looks twice: without its lock, so that runs which are none of our business are left alone, and with it.
std::optional<std::string> why_not_taken(Env& env, const Job& job, const OpenRunDirectory& open,
                                         const std::string& path, bool wait) {
  auto why = why_not_go_on(env, path, job);
  if (!why) why = why_not_opened(open, path, wait);
  return why ? why : why_not_go_on(env, path, job);
}

/// Opens the first directory from `number` on in which no run has begun. Another process may take one first.
std::string open_new(Env& env, const Job& job, const OpenRunDirectory& open, int number) {
  const int first = number;
  for (; number < first + kMostTries; ++number) {
    auto path = path_of(job, number);
    if (env.exists(path)) continue;
    try {
      open(path, false);
      if (!env.exists(path + "/job.yaml")) return path;
    } catch (const RunInUseError&) {
      // the next one, then
    }
  }
  throw IoError(fmt::format("{} to {}: another job holds each of them; give a run.dir", path_of(job, first),
                            path_of(job, number - 1)));
}

/// A line more: how a new run would begin with the weights of the one that is passed over.
std::string how_to_start_from(Env& env, const Job& job, const std::string& run_dir) {
  if (run_dir.empty() || !job.train.initial_weights.empty() || list_checkpoints(env, run_dir).empty())
    return "";
  return fmt::format("\nit starts anew; from the weights of {}: {}", run_dir,
                     shell_word("train.initial_weights=" + run_dir));
}

std::string line_for_new(const Job& job, const std::string& path, const std::string& newest,
                         const std::string& why) {
  if (job.run.starts_anew()) return fmt::format("run.resume is never; this run: {}", path);
  if (!job.run.takes_newest()) return fmt::format("run.resume is {}; this run: {}", job.run.resume, path);
  if (why.empty()) return fmt::format("this run: {} (the first of this job)", path);
  return fmt::format("{} {}; this run: {}", newest, why, path);
}

}  // namespace

std::string first_line_of_job(const Job& job) {
  return fmt::format("# job {}", quoted_text(job.name));
}

/// A read error is reported by the code that needs the file.
std::string first_line_of_job(Env& env, const std::string& run_dir) {
  const auto read = [&] {
    const std::string text(as_text(env.read(run_dir + "/job.yaml"))), line = text.substr(0, text.find('\n'));
    return line.starts_with("# job ") ? line : "";
  };
  return or_if_unreadable(read, "");
}

std::vector<std::string> differences_from_run(Env& env, const std::string& run_dir, const Job& job) {
  const std::string job_file = run_dir + "/job.yaml";
  Job then = parse_job(std::string(as_text(env.read(job_file))), job_file);
  if (then.data.leave_out_file == job.data.leave_out_file) then.data.leave_out = job.data.leave_out;
  return differing_keys(determining_keys(then), determining_keys(job));
}

bool lacks_page(Env& env, const std::string& run_dir, const Job& job) {
  return job.run.report && recorded_end(env, run_dir + "/metrics.jsonl") &&
         !env.exists(run_dir + "/report.html");
}

std::string choose_run_directory(Env& env, const Job& job, const OpenRunDirectory& open) {
  const auto runs = existing_runs(env, job);
  const std::string newest = runs.empty() ? "" : path_of(job, runs.front());
  std::string why_not_newest;
  if (job.run.takes_newest()) {
    for (const int number : runs) {
      const auto path = path_of(job, number);
      const auto why = why_not_taken(env, job, open, path, path == newest);
      if (!why) {
        const bool begun = env.exists(path + "/job.yaml");
        const auto newer = path == newest ? "" : fmt::format("{} {}; ", newest, why_not_newest);
        return fmt::format("{}{}: {}", newer, begun ? "going on with the unfinished run" : "this run", path);
      }
      if (path == newest) why_not_newest = *why;
    }
  }
  const auto path = open_new(env, job, open, runs.empty() ? 1 : runs.front() + 1);
  return line_for_new(job, path, newest, why_not_newest) +
         (job.run.takes_newest() ? how_to_start_from(env, job, newest) : "");
}

namespace {

/// Accepts an empty file, or one line by an earlier start; any other file is not the program's.
void require_line_at_most(Env& env, const std::string& file) {
  constexpr std::uint64_t kLongest = 8192;
  if (env.entry(file).kind != EntryKind::kFile) return;
  const auto bytes = env.read_first(file, kLongest);
  const std::string_view text = as_text(bytes);
  if (text.empty() || text.find('\n') == text.size() - 1) return;
  throw UsageError(fmt::format(
      "LOCKSTEP_RUN_FILE: {}: is there, and has other content than a run's line; name a new file", file));
}

}  // namespace

std::string tell_run_directory(Communicator& comm, const std::string& run_directory) {
  std::string told = gather_text(comm, comm.rank() == 0 ? run_directory : "").front();
  const char* file = std::getenv("LOCKSTEP_RUN_FILE");  // NOLINT(concurrency-mt-unsafe): it does not change
  const bool speaks_for_process = comm.rank() == this_launch().rank;  // ranks may be threads
  if (file == nullptr || *file == '\0' || !speaks_for_process) return told;
  require_line_at_most(Env::posix(), file);
  const std::string line = told + "\n";
  write_output_file(Env::posix(), file, std::as_bytes(std::span(line)), true);
  return told;
}

// Verdicts of earlier starts have numbers, in order and without a gap.

std::vector<std::string> verdict_files(Env& env, const std::string& run_directory) {
  std::vector<std::string> files;
  const auto numbered = [&] { return fmt::format("{}/log/verdict-{}.txt", run_directory, files.size() + 1); };
  while (env.entry(numbered()).kind == EntryKind::kFile) files.push_back(numbered());
  const std::string last = run_directory + "/" + kVerdictFile;
  if (env.entry(last).kind == EntryKind::kFile) files.push_back(last);
  return files;
}

void open_verdict(Communicator& comm, const std::string& run_directory) {
  std::string path;
  if (comm.rank() == 0) {
    Env& env = Env::posix();
    path = std::filesystem::absolute(run_directory) / kVerdictFile;
    require_own(env, path, EntryKind::kFile);
    if (env.exists(path))
      env.rename(path, fmt::format("{}/log/verdict-{}.txt", run_directory,
                                   verdict_files(env, run_directory).size()));
  }
  comm.activity().verdict_file.set(gather_text(comm, path).front());
}

}  // namespace lockstep
