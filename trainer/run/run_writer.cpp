// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Lines and records that cannot be written now are kept, and may be no error of the run.
#include "trainer/run/run_writer.hpp"

#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/output.hpp"
#include "common/printable.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <utility>

namespace lockstep {

MetricsWriter::MetricsWriter(Env& env, const std::string& path) : file_(path) {
  const auto bytes = read_patiently(env, [&] { return env.read(path); });
  lines_ = std::ranges::count(bytes, std::byte{'\n'});
  hash_.update(bytes);
}

void MetricsWriter::write(const nlohmann::ordered_json& event) {
  const std::string line = json_text(event) + "\n";
  ++lines_;
  hash_.update(std::as_bytes(std::span(line)));
  file_.append(line);  // keeps what it cannot write now
}

KeepPolicy keep_policy(const Job& job) {
  return {.last = job.run.keep.last, .every_steps = job.run.keep.every_steps, .best = job.run.keep.best};
}

RunWriter::RunWriter(Env& env, const Job& job, std::unique_ptr<RunLock> lock, std::int64_t step,
                     std::function<void()> after_first_save)
    : env_(env),
      job_(job),
      path_(job.run.dir),
      lock_(std::move(lock)),
      metrics_(env, path_ + "/metrics.jsonl"),
      log_(path_ + "/log/rank-0.log"),
      best_(best_accuracy(env, path_)),
      after_first_save_(std::move(after_first_save)),
      checkpointer_(
          env, path_, keep_policy(job), [this] { sync_before_save(); },
          [this] {
            if (!after_first_save_) return;
            after_first_save_();  // if it throws, the next save calls it again
            after_first_save_ = {};
          }) {
  if (job.run.tensorboard) board_.emplace(env, path_, step);
  note({.state = "running", .step = step});
}

/// Syncs these files before the checkpoint that describes them is written.
void RunWriter::sync_before_save() {
  lock_->require_same_directory();
  metrics_.sync();
  if (trail_) trail_->sync();
  if (ranks_) ranks_->sync();
}

void RunWriter::save(CheckpointState state) {
  try {
    checkpointer_.finish();
  } catch (const IoError& error) {
    if (job_.run.on_save_error != OnSaveError::kContinue) throw;
    print_error(fmt::format(
        "a checkpoint was not saved, going on without it (run.on_save_error: continue): {}", error.what()));
  }
  if (const JudgedAccuracy now = judged_accuracy(state.facts); would_be_best(now)) best_ = now;
  if (trail_) state.facts.trail = {trail_->position().records, hex(trail_->position().chain)};
  state.facts.metrics = metrics_.position();
  checkpointer_.save(std::move(state));
}

void RunWriter::finish() {
  checkpointer_.finish();
  lock_->require_same_directory();  // it may have gone while the checkpoint was written
}

std::string RunWriter::note_doubt(const CheckpointDoubt& doubt) {
  try {
    checkpointer_.finish();
  } catch (const Error& error) {
    print_error(error.what());
  }
  try {
    const auto all = list_checkpoints(env_, path_);
    const std::string way = way_to_go_on(job_);
    if (all.empty()) return "Nothing was saved before: the same command begins anew";
    if (all.front().step <= doubt.sure_step)
      return fmt::format("{} goes on from the checkpoint of step {}",
                         job_.run.takes_newest() ? "The same command" : way, all.front().step);
    lock_->require_same_directory();
    write_doubt(env_, path_, doubt);
    const auto sure = sure_checkpoints(env_, path_);
    return fmt::format("Checkpoints after step {} may be affected: {}", doubt.sure_step,
                       sure.empty()
                           ? fmt::format("no other is left, and {} refuses to go on; begin anew with "
                                         "run.resume=never",
                                         way)
                           : fmt::format("{} goes on from that of step {}", way, sure.front().step));
  } catch (const Error& error) {
    return fmt::format("Do not resume from a checkpoint after step {}; this could not be recorded: {}",
                       doubt.sure_step, error.what());
  }
}

/// To metrics or trail, which keep what they cannot write now.
void RunWriter::append(auto& file, const auto& what) {
  const bool all_was_written = file.is_complete();
  try {
    file.write(what);
  } catch (const IoError& error) {
    if (job_.run.on_save_error != OnSaveError::kContinue) throw;
    if (!all_was_written) return;  // has been said
    print_error(fmt::format("{}; kept in memory for later (run.on_save_error: continue)", error.what()));
  }
}

namespace {

/// Time by the clock that people set.
struct WallClock {
  std::time_t second;
  std::int64_t milliseconds;  ///< beyond it
};

WallClock wall_clock() {
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto second = std::chrono::floor<std::chrono::seconds>(now);
  return {std::chrono::system_clock::to_time_t(second), (now - second).count()};
}

}  // namespace

/// With the moment at which it is written down.
nlohmann::ordered_json RunWriter::line_of(nlohmann::ordered_json event) {
  const WallClock now = wall_clock();
  event["time"] = fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(now.second), now.milliseconds);
  if (board_) board_->add_line(event);
  return event;
}

void RunWriter::write(const nlohmann::ordered_json& event) {
  append(metrics_, line_of(event));
}

/// So that the next start writes the page of this end if the run is killed before. It writes only one that is missing.
void RunWriter::remove_page_of_earlier_end() {
  const std::string page = path_ + "/report.html";
  try {
    lock_->require_same_directory();
    if (job_.run.report && is_file(env_, page)) env_.remove_file(page);
  } catch (const IoError&) {  // NOLINT(bugprone-empty-catch): the new page may take its place all the same
  }
}

void RunWriter::run_finished(const FinishedRun& run) {
  remove_page_of_earlier_end();
  metrics_.write(line_of(end_event(run)));
  metrics_.sync();
  lock_->require_same_directory();
  note({.state = "ended", .step = run.state.step});
}

void RunWriter::open_trail(TrailHead head, const RankStretch& ranks,
                           const std::optional<CheckpointPosition>& expected) {
  const std::int64_t step = ranks.from - 1;
  if (!keeps_trail(job_)) {
    cut_rank_file(env_, path_, ranks.from);
    return cut_trail(env_, path_, step);
  }
  std::optional<TrailPosition> position;
  if (expected) position = {expected->count, digest_of_hex(expected->sha256)};
  trail_ = std::make_unique<TrailFile>(env_, path_, std::move(head), step, position, print_error);
  ranks_ = std::make_unique<RankFile>(env_, path_, ranks);
}

void RunWriter::write_trail(std::span<const TrailRecord> records, std::span<const RankSums> of_ranks) {
  if (trail_) append(*trail_, records);
  if (ranks_ && !of_ranks.empty()) append(*ranks_, of_ranks);
}

void RunWriter::log(const std::string& line) {
  const WallClock now = wall_clock();
  try {
    log_.append(fmt::format("[{:%F %T}.{:03}] {}\n", fmt::localtime(now.second), now.milliseconds,
                            printable_line(line)));
  } catch (const IoError& error) {
    if (!std::exchange(log_failed_, true))
      print_error(fmt::format("warning: {}; the run goes on without it", error.what()));
  }
}

void RunWriter::note(const RunStatusNote& status) {
  try {
    lock_->require_same_directory();
    write_status(env_, path_, status);
  } catch (const IoError& error) {
    print_error(fmt::format("warning: {}", error.what()));
  }
}

}  // namespace lockstep
