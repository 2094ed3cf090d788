// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/moment.hpp"

#include "tests/chaos/attempt.hpp"
#include "tests/chaos/campaign.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

#include <fmt/ranges.h>

namespace lockstep::chaos {

namespace {

using std::chrono::microseconds;

constexpr std::chrono::minutes kPatienceWithoutProgress{2};

/// Asks `happened` again and again. False if the process ended first.
bool poll(const std::function<bool()>& happened, microseconds pause, ChildProcess& process,
          const std::string& run_dir) {
  Patience patience(kPatienceWithoutProgress);
  std::int64_t step = last_logged_step(run_dir);
  while (!happened()) {
    if (process.exit_code()) return false;
    if (patience.is_exhausted()) {
      const std::int64_t before = std::exchange(step, last_logged_step(run_dir));
      if (step == before) throw Violation("no progress for two minutes: it hangs");
      patience = Patience(kPatienceWithoutProgress);
    }
    std::this_thread::sleep_for(pause);
  }
  return true;
}

}  // namespace

std::string KillTime::describe() const {
  const double milliseconds = std::chrono::duration<double, std::milli>(delay).count();
  if (kind == Kind::kStartUp) return fmt::format("{:.1f} ms after the start", milliseconds);
  return fmt::format("{:.1f} ms after {} step {}", milliseconds,
                     kind == Kind::kSave ? "a save seen after" : "logging", step);
}

KillTime random_moment(Dice& dice, std::int64_t first_step) {
  const auto choice = dice.between(1, 100);
  if (choice <= 25) return {KillTime::Kind::kStartUp, 0, microseconds(dice.between(0, 700'000))};
  if (choice <= 60) {
    const auto step = first_step + dice.between(1, 30);
    return {KillTime::Kind::kSave, step, microseconds(dice.between(0, 3'000))};
  }
  const auto step = first_step + dice.between(1, 60);
  return {KillTime::Kind::kStep, step, microseconds(dice.between(0, 15'000))};
}

bool await(const KillTime& moment, ChildProcess& process, const std::string& run_dir) {
  if (moment.kind != KillTime::Kind::kStartUp) {
    const auto logged = [&] { return last_logged_step(run_dir) >= moment.step; };
    if (!poll(logged, microseconds(1000), process, run_dir)) return false;
  }
  if (moment.kind == KillTime::Kind::kSave &&
      !poll([&] { return is_saving(run_dir); }, microseconds(200), process, run_dir)) {
    return false;
  }
  std::this_thread::sleep_for(moment.delay);
  return !process.exit_code();
}

namespace {

/// The names in RUN/checkpoints; those that come and go meanwhile may be missing.
std::vector<std::string> checkpoint_names(const std::string& run_dir) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(run_dir + "/checkpoints", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  return names;
}

/// The step of the last complete line that has one.
std::int64_t last_step_in(std::string_view text) {
  constexpr std::string_view kKey = "\"step\":";
  const auto complete = text.substr(0, text.rfind('\n') + 1);
  const auto at = complete.rfind(kKey);
  return at == std::string_view::npos ? 0 : std::strtoll(complete.data() + at + kKey.size(), nullptr, 10);
}

}  // namespace

RunFacts look_at(const std::string& run_dir) {
  RunFacts facts;
  for (const auto& name : checkpoint_names(run_dir)) {
    if (name.starts_with("step-")) {
      facts.newest_checkpoint = std::max<std::int64_t>(facts.newest_checkpoint, std::stoll(name.substr(5)));
    }
    facts.saving = facts.saving || name.starts_with(".tmp-step-");
    facts.pruning = facts.pruning || name.starts_with(".tmp-removed-");
  }
  facts.metrics = testing::read_text(run_dir + "/metrics.jsonl");
  facts.last_logged = last_step_in(facts.metrics);
  return facts;
}

std::int64_t last_logged_step(const std::string& run_dir) {
  constexpr std::streamoff kTail = 1000;  // longer than any two lines
  std::ifstream file(run_dir + "/metrics.jsonl", std::ios::binary | std::ios::ate);
  if (!file) return 0;
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(size - kTail, 0));
  std::string tail(static_cast<std::size_t>(std::min(size, kTail)), '\0');
  file.read(tail.data(), static_cast<std::streamsize>(tail.size()));
  return last_step_in(tail);
}

bool is_saving(const std::string& run_dir) {
  const auto names = checkpoint_names(run_dir);
  return std::any_of(names.begin(), names.end(),
                     [](const auto& name) { return name.starts_with(".tmp-step-"); });
}

namespace {

void compare_bytes(const std::string& name, const std::string& mine, const std::string& reference,
                   std::vector<std::string>* differences) {
  if (mine == reference) return;
  const auto [here, there] = std::mismatch(mine.begin(), mine.end(), reference.begin(), reference.end());
  differences->push_back(fmt::format("{}: first differs at byte {} ({} bytes, reference {})", name,
                                     here - mine.begin(), mine.size(), reference.size()));
}

void compare_metrics(const std::vector<nlohmann::json>& mine, const std::vector<nlohmann::json>& reference,
                     std::vector<std::string>* differences) {
  if (mine == reference) return;
  const auto [here, there] = std::mismatch(mine.begin(), mine.end(), reference.begin(), reference.end());
  differences->push_back(fmt::format("metrics.jsonl: first differs in line {}: {}, reference {}",
                                     here - mine.begin() + 1, here == mine.end() ? "(none)" : here->dump(),
                                     there == reference.end() ? "(none)" : there->dump()));
}

/// Lines of which a start has said that some of them were changed: it kept them aside.
std::vector<nlohmann::json> lines_kept_aside(const std::string& run_dir) {
  std::vector<nlohmann::json> lines;
  for (const auto& entry : std::filesystem::directory_iterator(run_dir)) {
    if (!entry.path().filename().string().starts_with("metrics.jsonl.damaged")) continue;
    std::istringstream text(testing::read_text(entry.path().string()));
    for (std::string line; std::getline(text, line);) {
      auto event = nlohmann::json::parse(line, nullptr, false);
      if (!event.is_object()) continue;
      testing::forget_times_and_ranks(event);
      lines.push_back(std::move(event));
    }
  }
  return lines;
}

/// After a loss lines may be missing, and one may tell of it. No other is new, or in another place, but those
/// that were said to be changed.
void require_part(const std::vector<nlohmann::json>& mine, const std::vector<nlohmann::json>& reference,
                  const std::vector<nlohmann::json>& kept_aside, std::vector<std::string>* differences) {
  auto at = reference.begin();
  for (const auto& line : mine) {
    if (line.value("event", "") == "lost") continue;
    const bool is_known = std::find(reference.begin(), reference.end(), line) != reference.end();
    if (!is_known && std::find(kept_aside.begin(), kept_aside.end(), line) != kept_aside.end()) continue;
    at = std::find(at, reference.end(), line);
    if (at == reference.end())
      return differences->push_back("metrics.jsonl: not in the reference: " + line.dump());
    ++at;
  }
}

std::string require_bytes(const std::string& path) {
  auto bytes = testing::read_text(path);
  if (bytes.empty()) throw Violation(path + ": missing or empty after a finished run");
  return bytes;
}

}  // namespace

Result::Result(const std::string& run_dir, std::int64_t steps, WholeRecords whole) {
  const auto directory = run_dir + "/checkpoints";
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    checkpoints_.push_back(entry.path().filename());
  }
  std::sort(checkpoints_.begin(), checkpoints_.end());
  const auto last = fmt::format("{}/step-{:08}", directory, steps);
  weights_ = require_bytes(last + "/model.safetensors");
  optimizer_ = require_bytes(last + "/optimizer.safetensors");
  // A run that had ended before its trail was damaged writes none again.
  const std::string trail = run_dir + "/trail.bin";
  trail_ = whole.trail ? require_bytes(trail) : testing::read_text(trail);
  try {
    metrics_ = testing::comparable_metrics(run_dir);
    kept_aside_ = lines_kept_aside(run_dir);
  } catch (const nlohmann::json::exception& error) {
    throw Violation(fmt::format("{}/metrics.jsonl: {}", run_dir, error.what()));
  }
}

std::vector<std::string> Result::differences_from(const Result& reference, WholeRecords whole) const {
  std::vector<std::string> differences;
  compare_bytes("model.safetensors", weights_, reference.weights_, &differences);
  compare_bytes("optimizer.safetensors", optimizer_, reference.optimizer_, &differences);
  if (whole.trail) compare_bytes("trail.bin", trail_, reference.trail_, &differences);
  if (whole.metrics) {
    compare_metrics(metrics_, reference.metrics_, &differences);
  } else {
    require_part(metrics_, reference.metrics_, kept_aside_, &differences);
  }
  return differences;
}

}  // namespace lockstep::chaos
