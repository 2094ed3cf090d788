// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Rounds: each check works for its share of a round, then all ranks agree whether there is time for another.
#include "trainer/burn/burn.hpp"

#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "trainer/burn/check.hpp"
#include "trainer/ranks/checks.hpp"
#include "trainer/run/stop_signal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace lockstep::burn {
namespace {

struct CheckEntry {
  std::string_view name;
  double share;  ///< fraction of a round
  std::unique_ptr<BurnCheck> (*make)(const BurnRank& rank);
};

constexpr std::array kEntries{CheckEntry{"jobs", 0.8, make_jobs}, CheckEntry{"links", 0.2, make_links}};

constexpr std::array<std::string_view, 3> kChecks{kEntries[0].name, kEntries[1].name, "speed"};

bool is_left_out(const BurnOptions& options, std::string_view check) {
  return std::ranges::find(options.without, check) != options.without.end();
}

/// How far the burn is: a bar on a terminal, a line every few seconds elsewhere, on rank 0.
class BurnProgress {
 public:
  BurnProgress(bool speaks, int level, double seconds)
      : speaks_(speaks),
        output_(output_terminal()),
        level_(level),
        seconds_(seconds),
        start_(Clock::now()),
        last_(start_) {
    if (speaks_ && output_.redraws) call_before_errors(wipe_bar);
  }
  ~BurnProgress() {
    if (speaks_ && output_.redraws) wipe_bar();
  }
  BurnProgress(const BurnProgress&) = delete;
  BurnProgress& operator=(const BurnProgress&) = delete;

  void draw(std::string_view check, int round) {
    constexpr double kPlainSeconds = 5;
    const double since = seconds_since(last_), passed = seconds_since(start_);
    if (!speaks_ ||
        since < (output_.redraws ? std::chrono::duration<double>(kBarInterval).count() : kPlainSeconds))
      return;
    last_ = Clock::now();
    const std::vector<Field> fields = {
        {"burn", 5},
        {fmt::format("level {}", level_), 1},
        {fmt::format("round {}", round + 1), 2},
        {std::string(check), 3},
        {fmt::format("{} left", format_duration(std::max(0.0, seconds_ - passed))), 4}};
    const int columns = output_columns();
    if (output_.redraws)
      return draw_bar(fit_with_bar(fields, std::min(passed / seconds_, 1.0), columns, output_.unicode),
                      output_, columns);
    write_out(fit(fields, page_columns()) + "\n");
  }

 private:
  bool speaks_;
  OutputTerminal output_;
  int level_;
  double seconds_;
  Clock::time_point start_, last_;
};

/// Its share of the cores that it may use: of ranks bound to the same cores each takes a part. Collective.
int threads_of(Communicator& comm, const BurnOptions& options) {
  const std::vector<int> cores = look_around(Surroundings::real()).cores;
  const std::string mine = fmt::format("{} {}", comm.host(), fmt::join(cores, ","));
  const auto all = gather_text(comm, mine);
  if (options.threads > 0) return options.threads;
  const auto sharers = std::ranges::count(all, mine);
  return std::max(1, static_cast<int>(static_cast<std::ptrdiff_t>(cores.size()) / sharers));
}

/// The rounds of one rank.
class Burn {
 public:
  Burn(Communicator& comm, const BurnOptions& options)
      : comm_(comm),
        options_(options),
        start_(Clock::now()),
        device_(choose_device(parallel_section(), comm)),
        progress_(options.shows_progress && comm.rank() == 0, options.level, options.seconds),
        rank_{comm, options_, device_, threads_of(comm, options),
              [this](std::string_view check) { progress_.draw(check, round_); }} {
    for (std::size_t i = 0; i < kEntries.size(); ++i)
      if (!is_left_out(options, kEntries[i].name)) checks_[i] = kEntries[i].make(rank_);
  }

  BurnReport to_the_end() {
    double longest = 0;
    do {
      const auto start = Clock::now();
      one_round();
      longest = std::max(longest, seconds_since(start));
      ++round_;
    } while (all_go_on(longest));
    return report();
  }

 private:
  ParallelSection parallel_section() const {
    ParallelSection parallel;
    parallel.device = options_.device;
    parallel.backend = options_.backend;
    return parallel;
  }

  void one_round() {
    const double left = options_.seconds - seconds_since(start_);
    const double seconds = std::max(0.0, std::min({left, options_.seconds / 4, 60.0}));
    for (std::size_t i = 0; i < checks_.size(); ++i)
      if (checks_[i] != nullptr)
        checks_[i]->work(Slice(seconds * kEntries[i].share / share_of_all()), round_);
  }
  double share_of_all() const {
    double all = 0;
    for (std::size_t i = 0; i < checks_.size(); ++i) all += checks_[i] != nullptr ? kEntries[i].share : 0;
    return all;
  }

  /// Rank 0 looks at the clock, any rank may have been told to stop.
  bool all_go_on(double longest_round) {
    const bool time_is_up = comm_.rank() == 0 && seconds_since(start_) + longest_round > options_.seconds;
    std::array<std::int64_t, 2> answers{time_is_up ? 1 : 0, stop_requested() ? 1 : 0};
    comm_.all_reduce(std::span<std::int64_t>(answers));
    stopped_ = answers[1] > 0;
    return answers[0] == 0 && !stopped_;
  }

  RankResult result_of_this_rank() const {
    RankResult result;
    result.rank = comm_.rank();
    result.host = comm_.host();
    result.device = device_.description;
    if (device_.gpu != nullptr) result.uuid = device_.gpu->device->properties().uuid;
    result.processor = model_of_processor("/");
    result.simd = cpu::simd_name();
    result.threads = rank_.threads;
    result.oversubscribed = comm_.oversubscribed();
    for (std::size_t i = 0; i < checks_.size(); ++i)
      if (checks_[i] != nullptr) add_report(*checks_[i], std::string(kEntries[i].name), result);
    return result;
  }

  /// What has neither done nor found anything was not tested.
  static void add_report(const BurnCheck& check, const std::string& name, RankResult& result) {
    const std::size_t findings = result.findings.size();
    check.report(result);
    if (result.exercised.contains(name) || result.findings.size() > findings) return;
    result.findings.push_back({Grade::kNotTested, name, "it was stopped before this was done",
                               "start it again, with a longer --time"});
  }

  /// Collective.
  BurnReport report() {
    const auto texts = gather_text(comm_, to_message(result_of_this_rank()));
    BurnReport report;
    if (comm_.rank() != 0) return report;
    for (const std::string& text : texts) report.ranks.push_back(result_of(text));
    compare_ranks(report.ranks, !is_left_out(options_, "speed"));
    report.level = options_.level;
    report.seconds = seconds_since(start_);
    report.rounds = round_;
    report.left_out = options_.without;
    report.library = comm_.library();
    if (device_.kind == "cuda") report.driver = cuda::platform().versions();
    if (stopped_)
      report.stopped_by = stop_signal() != 0 ? stop_signal_name(stop_signal()) : "a signal to another rank";
    name_what_is_not_exercised(report);
    return report;
  }

  void name_what_is_not_exercised(BurnReport& report) const {
    auto& missing = report.not_exercised;
    for (const std::string& check : options_.without) missing.push_back("--without " + check);
    const bool on_gpu = device_.kind == "cuda";
    if (!on_gpu)
      missing.emplace_back(device_.gpu == nullptr ? "a GPU: there is none, or --device cpu"
                                                  : "a GPU: it is emulated");
    if (on_gpu)
      missing.emplace_back("tensor cores (bf16, fp16, int8), and GPU to GPU but by the gradients of jobs");
    if (comm_.size() == 1) missing.emplace_back("links between ranks: there is one rank");
    if (count_hosts_of(report) == 1 && comm_.size() > 1)
      missing.emplace_back("the network between hosts: there is one host");
    if (comm_.size() == 1) missing.emplace_back("its speed beside others: there is one rank");
    if (comm_.size() == 2)
      missing.emplace_back("the speed of the one link: two ranks have no other to compare it with");
    missing.emplace_back("memory (memtester, gpu-burn and DCGM fill it), disks and file systems");
  }
  static std::size_t count_hosts_of(const BurnReport& report) {
    std::vector<std::string> hosts;
    for (const RankResult& result : report.ranks) hosts.push_back(result.host);
    std::ranges::sort(hosts);
    return static_cast<std::size_t>(std::unique(hosts.begin(), hosts.end()) - hosts.begin());
  }

  static std::string to_message(const RankResult& result);
  static RankResult result_of(const std::string& message);

  Communicator& comm_;
  const BurnOptions options_;
  Clock::time_point start_;
  DeviceChoice device_;
  int round_ = 0;
  bool stopped_ = false;
  BurnProgress progress_;
  BurnRank rank_;
  std::array<std::unique_ptr<BurnCheck>, kEntries.size()> checks_;
};

}  // namespace

NLOHMANN_JSON_SERIALIZE_ENUM(Grade, {{Grade::kPass, "PASS"},
                                     {Grade::kSlow, "SLOW"},
                                     {Grade::kNotTested, "NOT TESTED"},
                                     {Grade::kWrong, "WRONG"}})

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BurnFinding, grade, kind, what, fix)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LinkView, with, received, damaged, wrong_sums, seconds, bytes, latency)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankResult, rank, host, device, uuid, processor, simd, threads,
                                   oversubscribed, exercised, measures, findings, links, answers,
                                   wrong_sums_of_all, wrong_jobs_of_all)

namespace {

std::string Burn::to_message(const RankResult& result) {
  return nlohmann::json(result).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}
RankResult Burn::result_of(const std::string& message) {
  return nlohmann::json::parse(message).get<RankResult>();
}

}  // namespace

bool Slice::is_over() const {
  return stop_requested() || Clock::now() >= end_;
}

std::span<const std::string_view> checks() {
  return kChecks;
}

BurnReport run_burn(Communicator& comm, const BurnOptions& options) {
  agree(comm, [&] {
    if (!options.fault.kind.empty() && options.fault.rank >= comm.size())
      throw UsageError(
          fmt::format("--inject: there is no rank {}, only 0 to {}", options.fault.rank, comm.size() - 1));
  });
  return Burn(comm, options).to_the_end();
}

}  // namespace lockstep::burn
