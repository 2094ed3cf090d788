// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/campaign.hpp"

#include "tests/chaos/attempt.hpp"
#include "tests/chaos/scratch.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::chaos {

namespace {

class Campaign {
 public:
  Campaign(const Options& options, std::string name, const Disturbance& disturbance)
      : options_(options), name_(std::move(name)), disturbance_(disturbance), rounds_(options.rounds) {}

  int run();

 private:
  void run_reference(const ChaosJob& job);
  void live(World& world, std::int64_t number);
  void report(const std::string& what, const std::string& story, std::int64_t number);
  void show_progress();
  void tell(const std::string& story);

  const Options& options_;
  std::string name_;
  const Disturbance& disturbance_;
  Scratch scratch_;
  Tally tally_;
  Rounds rounds_;
  std::optional<Result> reference_;
  std::string reference_hash_;
  std::atomic<int> violations_{0};
  std::mutex output_;
  std::int64_t shown_tenths_ = 0;
};

void Campaign::run_reference(const ChaosJob& job) {
  const auto directories = scratch_.make("reference");
  reference_hash_ = train_undisturbed(job, directories);
  reference_.emplace(directories.run(), job.steps());
}

void Campaign::live(World& world, std::int64_t number) {
  const auto directories = scratch_.make(fmt::format("life-{}", number));
  RestartedRun life(world, directories, Dice(options_.seed, number));
  try {
    life.run();
    scratch_.remove(directories);
    show_progress();
  } catch (const std::exception& error) {
    report(error.what(), life.story(), number);
  }
}

void Campaign::report(const std::string& what, const std::string& story, std::int64_t number) {
  const std::lock_guard lock(output_);
  ++violations_;
  scratch_.keep();
  fmt::print(stderr,
             "chaos {}: VIOLATION in life {} of seed {}, about round {}, {}:\n{}\n"
             "  files: {}/life-{}\n  again: tests/chaos/run {} --seed {} --life {}\n",
             name_, number, options_.seed, rounds_.taken(), story, what, scratch_.path(), number, name_,
             options_.seed, number);
}

void Campaign::show_progress() {
  const std::lock_guard lock(output_);
  const auto tenths = rounds_.taken() * 10 / rounds_.total();
  if (tenths == shown_tenths_ || tenths == 10) return;
  shown_tenths_ = tenths;
  fmt::print("chaos {}: {} of {} rounds, {} runs compared\n", name_, rounds_.taken(), rounds_.total(),
             tally_.count(kRunsCompared));
  std::fflush(stdout);
}

void Campaign::tell(const std::string& story) {
  const std::lock_guard lock(output_);
  fmt::print("{}\n", story);
  std::fflush(stdout);
}

int Campaign::run() {
  const auto start = std::chrono::steady_clock::now();
  const ChaosJob job(options_.program, scratch_.path(), disturbance_.epochs(), disturbance_.normalises());
  disturbance_.open_sections(tally_);
  tally_.section("runs", {kResumes, kOtherRanks, kRunsCompared});
  run_reference(job);
  World world{job, *reference_, reference_hash_, disturbance_, tally_, rounds_, {}};
  if (options_.verbose) world.tell = [this](const std::string& story) { tell(story); };
  live_side_by_side(
      options_, [this] { return violations_ == 0 && !rounds_.finished(); },
      [&](std::int64_t number) { live(world, number); });
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  fmt::print("{}\nchaos {}: {} rounds with seed {} in {:.0f} s, {} mismatches\n", tally_.text(), name_,
             rounds_.taken(), options_.seed, elapsed.count(), violations_);
  return violations_ == 0 ? 0 : 1;
}

}  // namespace

void live_side_by_side(const Options& options, const std::function<bool()>& goes_on,
                       const std::function<void(std::int64_t)>& live) {
  if (options.only_life > 0) return live(options.only_life);
  std::atomic<std::int64_t> next{1};
  std::vector<std::thread> workers;
  for (int i = 0; i < options.jobs; ++i)
    workers.emplace_back([&] {
      while (goes_on()) live(next++);
    });
  for (auto& worker : workers) worker.join();
}

int run_campaign(const Options& options, const std::string& name, const Disturbance& disturbance) {
  return Campaign(options, name, disturbance).run();
}

void Tally::section(const std::string& title, const std::vector<std::string>& labels) {
  sections_.push_back({title, labels});
  for (const auto& label : labels) counts_.emplace(label, 0);
}

void Tally::add(const std::string& label) {
  const std::lock_guard lock(mutex_);
  const bool is_new = counts_.emplace(label, 0).second;
  if (is_new) sections_.push_back({"also seen", {label}});
  ++counts_[label];
}

void Tally::lost(std::int64_t steps) {
  const std::lock_guard lock(mutex_);
  lost_.push_back(steps);
}

std::int64_t Tally::count(const std::string& label) const {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(label);
  return found == counts_.end() ? 0 : found->second;
}

std::string Tally::text() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& section : sections_) {
    text += section.title + "\n";
    for (const auto& label : section.labels) text += fmt::format("  {:<58}{:>6}\n", label, counts_.at(label));
  }
  if (lost_.empty()) return text;
  const auto sum = std::accumulate(lost_.begin(), lost_.end(), std::int64_t{0});
  text += fmt::format("steps lost by a kill\n  mean {:.1f}, most {}\n",
                      static_cast<double>(sum) / static_cast<double>(lost_.size()),
                      *std::max_element(lost_.begin(), lost_.end()));
  return text;
}

bool Rounds::take() {
  const std::lock_guard lock(mutex_);
  if (taken_ == total_) return false;
  ++taken_;
  return true;
}

void Rounds::give_back() {
  const std::lock_guard lock(mutex_);
  --taken_;
}

bool Rounds::finished() const {
  return taken() == total_;
}

std::int64_t Rounds::taken() const {
  const std::lock_guard lock(mutex_);
  return taken_;
}

}  // namespace lockstep::chaos
