// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The trail of a run as a file: appended to while it trains, read and checked afterwards.
#include "common/error.hpp"
#include "common/text_layout.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/trail.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace lockstep {

// TrailFile: goes on where the file that is there fits the run, and keeps it aside where not.

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

/// Finds the place in the existing file at which the run goes on. @throws DataError  it cannot
Found look_into(Env& env, const std::string& path, const TrailHead& head, std::int64_t step,
                const std::optional<TrailPosition>& expected) {
  const Trail trail = read_trail(env, path, step);  // later ones are cut off
  const std::int64_t records = trail.records_up_to(step);
  if (const auto reason = why_not_this(trail, head, records, expected))
    throw DataError(fmt::format("{} {}", path, *reason));
  return {trail.position(records), trail.end_of(records)};
}

}  // namespace

void cut_trail(Env& env, const std::string& run_dir, std::int64_t step) {
  const std::string path = run_dir + "/" + kTrailFile;
  if (!is_file(env, path)) return;
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
  std::optional<Found> found;
  read_patiently(env, [&] { make_own(env, path); });
  if (is_file(env, path) && read_patiently(env, [&] { return env.size(path); }) > 0) {
    try {
      found = look_into(env, path, head_, step, expected);
    } catch (const DataError& error) {
      const std::string aside = free_name(env, path + kDamagedSuffix, "-");
      env.rename(path, aside);
      say(fmt::format("{}; kept as {}, and a new trail begins with step {}", error.what(), aside, step + 1));
    }
  } else if (expected) {
    say(fmt::format("{} is missing: a new trail begins with step {}", path, step + 1));
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

void TrailFile::write(std::span<const TrailRecord> records) {
  std::vector<std::byte> bytes;
  for (const TrailRecord& record : records) {
    const auto more = write_trail_record(head_, record, position_);
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  file_->append(bytes);
}

// Heads are parsed only when their seal is good; records are compared one by one.

namespace {

constexpr std::size_t kFixedHeadBytes = 40;

Sha256Digest digest_at(std::span<const std::byte> bytes, std::size_t offset) {
  Sha256Digest digest;
  std::ranges::copy(bytes.subspan(offset, digest.size()), digest.begin());
  return digest;
}

std::vector<CheckpointParameter> read_tensors(TrailBytesReader& in, std::uint32_t count) {
  std::vector<CheckpointParameter> tensors;
  for (; count > 0; --count) {
    const std::uint64_t elements = in.u64();
    tensors.push_back({in.text(), {elements}});
  }
  return tensors;
}

}  // namespace

Trail::Trail(std::vector<std::byte> bytes, const std::string& file) : bytes_(std::move(bytes)) {
  read_head(file);
  records_ = static_cast<std::int64_t>((bytes_.size() - head_bytes_) / record_bytes_);
  check_chain();
}

void Trail::read_head(const std::string& file) {
  TrailBytesReader in(bytes_, file);
  const bool is_trail = bytes_.size() >= kTrailMagic.size() &&
                        std::memcmp(bytes_.data(), kTrailMagic.data(), kTrailMagic.size()) == 0;
  if (!is_trail)
    throw DataError(fmt::format("{}: is not a trail of a run, or its first bytes are damaged", file));
  in.raw(kTrailMagic.size());
  const std::uint32_t version = in.u32();
  head_bytes_ = in.u32();
  const bool fits = head_bytes_ >= kFixedHeadBytes + sizeof(Sha256Digest) &&
                    head_bytes_ <= std::min(bytes_.size(), kMaxTrailHeadBytes);
  const std::size_t sealed = head_bytes_ - sizeof(Sha256Digest);
  if (!fits || sha256(std::span(bytes_).first(sealed)) != digest_at(bytes_, sealed))
    throw DataError(fmt::format("{}: its head is damaged or cut off", file));
  if (version != kTrailVersion)
    throw ConfigError(
        fmt::format("{}: format version {}, this program reads version {}; use the release that wrote it",
                    file, version, kTrailVersion));
  record_bytes_ = in.u32();
  const std::uint32_t trained = in.u32(), kept = in.u32(), buffers = in.u32(), facts = in.u32();
  in.u32();
  head_.trained = read_tensors(in, trained);
  head_.kept = read_tensors(in, kept);
  for (std::uint32_t i = 0; i < buffers; ++i) head_.buffers.push_back(in.text());
  for (std::uint32_t i = 0; i < facts; ++i) {
    const std::string name = in.text();
    head_.facts[name] = in.text();
  }
  if (in.left() < sizeof(Sha256Digest) || record_bytes_ != head_.record_bytes())
    throw DataError(fmt::format("{}: its head does not fit its records", file));
}

std::span<const std::byte> Trail::bytes_of(std::int64_t record) const {
  return std::span(bytes_).subspan(end_of(record), record_bytes_);
}

std::int64_t Trail::step(std::int64_t i) const {
  const TrailDamage* damage = damage_of(i);
  return damage != nullptr ? damage->step : stored_step(i);
}

const TrailDamage* Trail::damage_of(std::int64_t record) const {
  const auto found = std::ranges::lower_bound(damage_, record, {}, &TrailDamage::record);
  return found != damage_.end() && found->record == record ? &*found : nullptr;
}

std::int64_t Trail::stored_step(std::int64_t i) const {
  std::int64_t step = 0;
  std::memcpy(&step, bytes_of(i).data(), sizeof step);
  return step;
}

TrailRecord Trail::record(std::int64_t i) const {
  const auto bytes = bytes_of(i);
  TrailRecord record;
  record.step = step(i);
  std::memcpy(&record.arithmetic, bytes.data() + 8, sizeof record.arithmetic);
  std::memcpy(&record.apart, bytes.data() + 16, sizeof record.apart);
  record.fingerprints.resize(head_.slots());
  std::memcpy(record.fingerprints.data(), bytes.data() + kTrailRecordFacts,
              record.fingerprints.size() * sizeof(std::uint64_t));
  return record;
}

TrailPosition Trail::position(std::int64_t records) const {
  return {records, digest_at(bytes_, end_of(records) - sizeof(Sha256Digest))};
}

/// Continues the chain after a damaged record from both values: the recorded and the computed one. Whichever
/// of them was hit, the next record is good.
void Trail::check_chain() {
  std::vector<Sha256Digest> before = {position(0).chain};
  std::int64_t last_step = 0;
  for (std::int64_t i = 0; i < records_; ++i) {
    const auto body = bytes_of(i).first(record_bytes_ - sizeof(Sha256Digest));
    const Sha256Digest stored = position(i + 1).chain;
    const Sha256Digest computed = chain_trail(before.front(), body);
    const bool is_next = computed == stored || chain_trail(before.back(), body) == stored;
    const bool good = is_next && stored_step(i) > last_step && stored_step(i) <= kMostTrailSteps;
    if (!good) damage_.push_back({i, last_step + 1, end_of(i)});
    last_step = good ? stored_step(i) : last_step + 1;
    before = good ? std::vector{stored} : std::vector{stored, computed};
  }
}

std::int64_t Trail::records_up_to(std::int64_t step) const {
  std::int64_t low = 0, high = records_;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    const bool up_to = this->step(middle) <= step;
    (up_to ? low : high) = up_to ? middle + 1 : middle;
  }
  return low;
}

std::optional<TrailRecord> Trail::find(std::int64_t step) const {
  const std::int64_t i = records_up_to(step) - 1;
  if (i < 0 || this->step(i) != step || is_damaged(i)) return std::nullopt;
  return record(i);
}

Trail read_trail(Env& env, const std::string& path, std::int64_t most_records) {
  const auto first = [&](std::uint64_t bytes) {
    return read_patiently(env, [&] { return env.read_first(path, bytes); });
  };
  std::uint32_t head_bytes = kFixedHeadBytes;
  if (const auto start = first(kFixedHeadBytes); start.size() == kFixedHeadBytes)
    std::memcpy(&head_bytes, start.data() + kTrailHeadBytesAt, sizeof head_bytes);
  const Trail head(first(std::min<std::uint64_t>(head_bytes, kMaxTrailHeadBytes)), path);
  const auto records = static_cast<std::uint64_t>(std::max<std::int64_t>(most_records, 0));
  const std::uint64_t most = (UINT64_MAX - head.head_bytes()) / head.head().record_bytes();
  return Trail(first(head.end_of(static_cast<std::int64_t>(std::min(records, most)))), path);
}

}  // namespace lockstep
