// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// TrailFile: goes on where the file that is there fits the run, and keeps it aside where not.
#include "trainer/trail/trail_file.hpp"

#include "common/error.hpp"
#include "common/text/text_layout.hpp"
#include "trainer/trail/trail_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

/// Why a run cannot go on with a trail; nothing if it can.
std::optional<std::string> why_not_this(const Trail& trail, const TrailHead& head, std::int64_t records,
                                        const std::optional<TrailPosition>& expected) {
  if (const auto differing = differences(trail.head(), head); !differing.empty())
    return fmt::format("is of another run: {}", fmt::join(differing, ", "));
  const auto& damage = trail.damage();
  if (!damage.empty() && damage.front().record < records)
    return fmt::format("is damaged at step {}", damage.front().step);
  if (expected && trail.position(records) != *expected)
    return fmt::format("is not that of the checkpoint: {} up to it, where it says {}",
                       counted(records, "record"), with_thousands(expected->records));
  return std::nullopt;
}

struct Found {
  TrailPosition position;
  std::uint64_t bytes = 0;
};

/// Where the run goes on in the file that is there; nothing, and `why`, if it cannot.
std::optional<Found> look_into(Env& env, const std::string& path, const TrailHead& head, std::int64_t step,
                               const std::optional<TrailPosition>& expected, std::string& why) {
  try {
    const Trail trail = read_trail(env, path, step);  // later ones are cut off
    const std::int64_t records = trail.records_up_to(step);
    const auto reason = why_not_this(trail, head, records, expected);
    if (!reason) return Found{trail.position(records), trail.end_of(records)};
    why = fmt::format("{} {}", path, *reason);
  } catch (const DataError& error) {
    why = error.what();
  }
  return std::nullopt;
}

/// What stands under the name, by a file system that may be away for a moment.
EntryKind kind_of(Env& env, const std::string& path) {
  return read_patiently(env, [&] { return env.entry(path).kind; });
}

std::string free_damaged_name(Env& env, const std::string& path) {
  std::string name = path + ".damaged";
  for (int number = 2; env.entry(name).kind != EntryKind::kNothing; ++number)
    name = fmt::format("{}.damaged-{}", path, number);
  return name;
}

}  // namespace

void cut_trail(Env& env, const std::string& run_dir, std::int64_t step) {
  const std::string path = run_dir + "/" + kTrailFile;
  if (kind_of(env, path) != EntryKind::kFile) return;
  std::uint64_t end = 0;
  try {
    const Trail trail = read_trail(env, path, step);
    end = trail.end_of(trail.records_up_to(step));
  } catch (const DataError&) {
    return;
  } catch (const ConfigError&) {
    return;
  }
  read_patiently(env, [&] { make_own(env, path); });
  AppendFile(path, end).sync();
}

TrailFile::TrailFile(Env& env, const std::string& run_dir, TrailHead head, std::int64_t step,
                     const std::optional<TrailPosition>& expected,
                     const std::function<void(const std::string&)>& say)
    : head_(std::move(head)) {
  const std::string path = run_dir + "/" + kTrailFile;
  std::string why;
  std::optional<Found> found;
  read_patiently(env, [&] { make_own(env, path); });
  if (kind_of(env, path) == EntryKind::kFile && read_patiently(env, [&] { return env.size(path); }) > 0) {
    found = look_into(env, path, head_, step, expected, why);
    if (!found) {
      const std::string aside = free_damaged_name(env, path);
      env.rename(path, aside);
      say(fmt::format("{}; kept as {}, and a new trail begins with step {}", why, aside, step + 1));
    }
  } else if (expected) {
    say(fmt::format("{} is gone: a new trail begins with step {}", path, step + 1));
  }
  file_ = std::make_unique<AppendFile>(path, found ? found->bytes : 0);
  env.sync_directory(run_dir);
  if (found) {
    position_ = found->position;
    return;
  }
  const auto bytes = write_trail_head(head_);
  position_ = trail_start(bytes);
  file_->append(bytes);
}

void TrailFile::append(std::span<const TrailRecord> records) {
  std::vector<std::byte> bytes;
  for (const TrailRecord& record : records) {
    const auto more = write_trail_record(head_, record, position_);
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  file_->append(bytes);
}

}  // namespace lockstep
