// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Nothing is computed here: what the files say, and whether they say it of one run.
#include "trainer/prove/survey.hpp"

#include "common/error.hpp"
#include "common/text/text_layout.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/config/resume_keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>

namespace lockstep {
namespace {

/// The trail's facts of one kind, without what their names begin with.
std::map<std::string, std::string> facts_of(const TrailHead& head, const std::string& kind) {
  std::map<std::string, std::string> facts;
  for (const auto& [name, value] : head.facts)
    if (name.starts_with(kind)) facts[name.substr(kind.size())] = value;
  return facts;
}

/// What two lists of keys say differently; a key that only one of them knows is younger than the other.
std::vector<std::string> differing(std::map<std::string, std::string> then,
                                   std::map<std::string, std::string> now) {
  std::erase_if(then, [&](const auto& entry) { return !now.contains(entry.first); });
  std::erase_if(now, [&](const auto& entry) { return !then.contains(entry.first); });
  return differing_keys(then, now);
}

class Surveyor {
 public:
  Surveyor(Env& env, const Job& job, const Trail& trail, Arithmetic arithmetic, const Question& question)
      : env_(env), job_(job), trail_(trail), arithmetic_(arithmetic), question_(question) {}

  Survey look(const std::string& why_no_beginning) {
    const auto checkpoints = oldest_first();
    ask(checkpoints.empty() ? 0 : checkpoints.back().step);
    if (is_of_another_job()) return std::move(survey_);
    judge_trail();
    if (why_no_beginning.empty()) starts_.push_back({});
    for (const CheckpointEntry& entry : checkpoints) judge(entry);
    survey_.intervals = plan_intervals(starts_, reachable(), survey_.verdict.asked);
    say_what_is_left(why_no_beginning);
    return std::move(survey_);
  }

 private:
  std::vector<CheckpointEntry> oldest_first() const {
    auto entries = list_checkpoints(env_, job_.run.dir);
    std::ranges::reverse(entries);
    return entries;
  }

  void ask(std::int64_t newest_checkpoint);
  void sample();
  bool is_of_another_job();
  void judge_trail();
  void judge(const CheckpointEntry& entry);
  void refute(std::int64_t step, const char* what, std::string text, std::string cause);
  std::vector<StepRange> recorded(const std::function<bool(const TrailRecord&)>& which) const;
  std::vector<StepRange> reachable() const;
  std::set<std::uint32_t> other_arithmetics() const;
  void say_what_is_left(const std::string& why_no_beginning);
  void leave_out(const std::vector<StepRange>& steps, const std::string& why);

  Env& env_;
  const Job& job_;
  const Trail& trail_;
  Arithmetic arithmetic_;
  const Question& question_;
  std::vector<StartPoint> starts_;
  Survey survey_;
};

void Surveyor::ask(std::int64_t newest_checkpoint) {
  const std::int64_t records = trail_.records();
  const std::int64_t last = std::max(newest_checkpoint, records > 0 ? trail_.step(records - 1) : 0);
  if (last == 0)
    throw MissingDataError(fmt::format("{}: no step of it is on disk: nothing to prove", job_.run.dir));
  StepRange steps = question_.steps;
  if (std::max(steps.first, steps.last) > last)
    throw UsageError(
        fmt::format("--steps: {} has {} step{}", job_.run.dir, with_thousands(last), last == 1 ? "" : "s"));
  if (steps.first == 0) steps.first = 1;
  if (steps.last == 0) steps.last = last;
  survey_.verdict.asked = {steps};
  if (question_.sample > 0 && question_.sample < steps.count()) sample();
}

/// Floyd's algorithm: every set of so many steps is as likely as any other.
void Surveyor::sample() {
  const StepRange all = survey_.verdict.asked.front();
  std::mt19937_64 random(question_.seed);
  std::set<std::int64_t> chosen;
  for (std::int64_t most = all.last - question_.sample + 1; most <= all.last; ++most) {
    const auto count = static_cast<std::uint64_t>(most - all.first + 1);
    const std::int64_t step = all.first + static_cast<std::int64_t>(random() % count);
    if (!chosen.insert(step).second) chosen.insert(most);
  }
  std::vector<StepRange> ranges;
  for (const std::int64_t step : chosen) ranges.push_back({step, step});
  survey_.verdict.asked = merged(std::move(ranges));
}

void Surveyor::refute(std::int64_t step, const char* what, std::string text, std::string cause) {
  Discrepancy finding;
  finding.step = step;
  finding.what = what;
  finding.text = std::move(text);
  finding.cause = std::move(cause);
  survey_.verdict.findings.push_back(std::move(finding));
}

bool Surveyor::is_of_another_job() {
  const auto differences = differing(facts_of(trail_.head(), "job."), determining_keys(job_));
  if (differences.empty()) return false;
  refute(survey_.verdict.asked.front().first, "job",
         fmt::format("job.yaml and trail.bin are not of one job: {}", fmt::join(differences, ", ")),
         "one of the two was changed, or is of another run");
  return true;
}

/// Damaged records that follow one another are one finding.
void Surveyor::judge_trail() {
  const auto& damage = trail_.damage();
  for (std::size_t i = 0; i < damage.size();) {
    std::size_t end = i + 1;
    while (end < damage.size() && damage[end].record == damage[end - 1].record + 1) ++end;
    const StepRange steps{damage[i].step, damage[end - 1].step};
    const auto& asked = survey_.verdict.asked;
    if (without({steps}, asked) != std::vector{steps}) {
      refute(steps.first, "trail",
             fmt::format(
                 "the trail is damaged: what trail.bin says of {} (from byte {} on) is not what was written",
                 describe(steps), damage[i].at),
             "a flipped bit in the file, or somebody changed it");
    }
    i = end;
  }
}

/// Whether a checkpoint is one of this run, and may be gone on from.
void Surveyor::judge(const CheckpointEntry& entry) {
  if (entry.step >= survey_.verdict.asked.back().last + 1) return;
  Manifest manifest;
  try {
    CheckpointState state = load_checkpoint(env_, entry.path);
    manifest.facts = std::move(state.facts);
  } catch (const DataError& error) {
    return refute(entry.step, "checkpoint", fmt::format("its checkpoint is damaged: {}", error.what()),
                  "a flipped bit in the file, or a file that was cut off");
  } catch (const MissingDataError&) {
    return;  // the run, which is under way, has pruned it
  }
  const CheckpointFacts& facts = manifest.facts;
  if (const auto differences = differing(facts.job, determining_keys(job_)); !differences.empty()) {
    return refute(entry.step, "checkpoint",
                  fmt::format("its checkpoint is of another job: {}", fmt::join(differences, ", ")),
                  "it was put there from another run");
  }
  const std::int64_t records = trail_.records_up_to(entry.step);
  // A trail that was lost or damaged when the run went on begins anew behind its checkpoint.
  const bool began_later = records == 0;
  if (facts.trail && !began_later) {
    const bool hit = records > 0 && trail_.is_damaged(records - 1);
    const TrailPosition position = trail_.position(records);
    if (!hit && (position.records != facts.trail->records || hex(position.chain) != facts.trail->sha256)) {
      return refute(
          entry.step, "trail",
          fmt::format(
              "its checkpoint says that the trail had {} records and the SHA-256 {}..., and it has {} "
              "and {}...",
              facts.trail->records, facts.trail->sha256.substr(0, 16), position.records,
              hex(position.chain).substr(0, 16)),
          "trail and checkpoint are not of one run, or the trail was written anew");
    }
  }
  survey_.bucket_sizes = facts.bucket_sizes;
  starts_.push_back({entry.step, entry.path});
}

std::vector<StepRange> Surveyor::recorded(const std::function<bool(const TrailRecord&)>& which) const {
  std::vector<StepRange> ranges;
  for (std::int64_t i = 0; i < trail_.records(); ++i) {
    const std::int64_t step = trail_.step(i);
    if (!trail_.is_damaged(i) && !which(trail_.record(i))) continue;
    if (!ranges.empty() && ranges.back().last + 1 == step) {
      ranges.back().last = step;
    } else {
      ranges.push_back({step, step});
    }
  }
  return ranges;
}

std::vector<StepRange> Surveyor::reachable() const {
  const auto here = static_cast<std::uint32_t>(arithmetic_);
  return recorded([&](const TrailRecord& record) { return record.arithmetic == here; });
}

/// Those in the trail that are not the one at hand.
std::set<std::uint32_t> Surveyor::other_arithmetics() const {
  std::set<std::uint32_t> numbers;
  for (std::int64_t i = 0; i < trail_.records(); ++i)
    if (!trail_.is_damaged(i)) numbers.insert(trail_.record(i).arithmetic);
  numbers.erase(static_cast<std::uint32_t>(arithmetic_));
  return numbers;
}

void Surveyor::leave_out(const std::vector<StepRange>& steps, const std::string& why) {
  for (const StepRange& range : steps) survey_.verdict.not_proved.push_back({range, why});
}

void Surveyor::say_what_is_left(const std::string& why_no_beginning) {
  std::vector<StepRange> covered;
  for (const Interval& interval : survey_.intervals) covered.push_back(interval.steps());
  auto left = without(survey_.verdict.asked, merged(covered));
  const auto with_trail = recorded([](const TrailRecord&) { return true; });
  leave_out(without(left, with_trail), "not in the trail");
  left = without(left, without(left, with_trail));
  for (const std::uint32_t number : other_arithmetics()) {
    const auto other = static_cast<Arithmetic>(number);
    const auto of_other = recorded([&](const TrailRecord& record) { return record.arithmetic == number; });
    const auto here = without(left, without(left, of_other));
    leave_out(here, fmt::format("computed with another arithmetic than this ({}, here {}): a proof takes {}",
                                describe(other), describe(arithmetic_), how_to_have(other)));
    survey_.verdict.lacks_arithmetic |= !here.empty();
    left = without(left, of_other);
  }
  leave_out(left, why_no_beginning.empty()
                      ? "there is no checkpoint to replay from"
                      : "there is no checkpoint to replay from, and the beginning is not at "
                        "hand: " +
                            why_no_beginning);
}

}  // namespace

Trail read_trail(Env& env, const std::string& run_dir) {
  const std::string path = run_dir + "/" + kTrailFile;
  if (!read_patiently(env, [&] { return env.exists(path); })) {
    if (!env.exists(run_dir + "/job.yaml"))
      throw MissingDataError(fmt::format("{}: is no run directory: it has no job.yaml", run_dir));
    throw MissingDataError(fmt::format(
        "{}: this run left no trail: it was made by a version before there were trails, with "
        "run.trail=false, under parallel.determinism: off or as hogwild; only runs with one can be "
        "proved",
        run_dir));
  }
  return Trail(read_patiently(env, [&] { return env.read(path); }), path);
}

Survey survey_run(Env& env, const Job& job, const Trail& trail, Arithmetic arithmetic,
                  const std::string& why_no_beginning, const Question& question) {
  return Surveyor(env, job, trail, arithmetic, question).look(why_no_beginning);
}

}  // namespace lockstep
