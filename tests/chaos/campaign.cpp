// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/campaign.hpp"

#include "tests/chaos/fault_campaign.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::chaos {

namespace {

/// Lives that are disturbed and go on, against a run that never was.
class RestartCampaign final : public FaultCampaign {
 public:
  RestartCampaign(const Options& options, const Disturbance& disturbance)
      : FaultCampaign(options, disturbance.name),
        disturbance_(disturbance),
        job_(options.program, scratch_.path(), disturbance.epochs, disturbance.normalises) {}

 private:
  void prepare() override {
    for (const auto& [title, labels] : disturbance_.sections) tally_.section(title, labels);
    tally_.section("runs", {kResumes, kOtherRanks, kRunsCompared});
    const auto directories = scratch_.make("reference");
    const std::string last_line = train_undisturbed(job_, directories);
    world_.emplace(World{.job = job_,
                         .reference = Result(directories.run(), job_.steps()),
                         .reference_hash = last_line,
                         .disturbance = disturbance_,
                         .tally = tally_,
                         .rounds = rounds_,
                         .tell = {}});
    if (options_.verbose) world_->tell = [this](const std::string& story) { tell(story); };
  }
  void live(std::int64_t /*number*/, const LifeDirectories& directories, Dice& dice,
            std::string& story) override {
    RestartedRun(*world_, directories, dice, story).run();
  }

  const Disturbance& disturbance_;
  ChaosJob job_;
  std::optional<World> world_;
};

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

int run_campaign(const Options& options, const Disturbance& disturbance) {
  return RestartCampaign(options, disturbance).run();
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

}  // namespace lockstep::chaos
