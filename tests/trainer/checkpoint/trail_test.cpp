// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The format of trails: round trip, every flipped bit located to its record, and files of a run under way.
#include "trainer/checkpoint/trail.hpp"

#include "common/error.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/small_disk.hpp"
#include "tests/support/temporary_directory.hpp"
#include "trainer/checkpoint/trail_format.hpp"

namespace lockstep {
namespace {

TrailHead small_head() {
  return {.trained = {{"conv1.weight", {12}}, {"conv1.bias", {3}}},
          .kept = {{"bn.running_mean", {3}}},
          .buffers = {"momentum"},
          .facts = {{"job.train.seed", "7"}, {"data.train_samples", "100"}}};
}

TrailRecord record_of(std::int64_t step) {
  TrailRecord record{.step = step, .arithmetic = 1, .apart = 77, .fingerprints = {}};
  for (std::size_t i = 0; i < small_head().slots(); ++i)
    record.fingerprints.push_back(static_cast<std::uint64_t>(step) * 1000 + i);
  return record;
}

std::vector<TrailRecord> records(std::int64_t first, std::int64_t last) {
  std::vector<TrailRecord> list;
  for (std::int64_t step = first; step <= last; ++step) list.push_back(record_of(step));
  return list;
}

std::vector<std::byte> bytes_of(const std::vector<TrailRecord>& list) {
  auto bytes = write_trail_head(small_head());
  TrailPosition position = trail_start(bytes);
  for (const TrailRecord& record : list) {
    const auto more = write_trail_record(small_head(), record, position);
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  return bytes;
}

std::vector<std::byte> trail_bytes(std::int64_t steps) {
  return bytes_of(records(1, steps));
}

TEST(TrailTest, RoundTrip) {
  const Trail trail(trail_bytes(5), "t");
  EXPECT_EQ(trail.head(), small_head());
  EXPECT_EQ(small_head().slots(), 2U * 3 + 1);
  ASSERT_EQ(trail.records(), 5);
  EXPECT_TRUE(trail.damage().empty());
  EXPECT_EQ(trail.find(4), record_of(4));
  EXPECT_FALSE(trail.find(6));
  EXPECT_EQ(trail.records_up_to(3), 3);
}

/// The hash is of bytes that a few lines of Python made by docs/trail-format.md.
TEST(TrailTest, BytesAreThoseOfTheirPage) {
  EXPECT_EQ(hex(sha256(trail_bytes(2))), "cb334233d4f73960af18bfd8ef8b9751fac1c6a078995c527f31cfaa1f40a223");
}

/// A head that has another number there, and is sealed.
std::vector<std::byte> head_with(std::size_t at, std::byte number) {
  auto bytes = write_trail_head(small_head());
  bytes[at] = number;
  const std::size_t seal = bytes.size() - sizeof(Sha256Digest);
  std::ranges::copy(sha256(std::span(bytes).first(seal)), bytes.begin() + static_cast<std::ptrdiff_t>(seal));
  return bytes;
}

TEST(TrailTest, AHeadOfAnotherVersionOrOfOtherRecordsIsRefused) {
  EXPECT_EQ(message_of<ConfigError>([] { Trail(head_with(8, std::byte{2}), "t"); }),
            "t: format version 2, this program reads version 1; use the release that wrote it");
  for (const int bytes : {0, 111, 113})
    EXPECT_EQ(message_of<DataError>([&] { Trail(head_with(16, static_cast<std::byte>(bytes)), "t"); }),
              "t: its head does not fit its records");
}

TEST(TrailBytesTest, AreReadToTheLastByteAndNoFurther) {
  std::vector<std::byte> bytes;
  TrailBytesWriter(bytes).u32(7);
  const std::string file = "t";
  TrailBytesReader reader(bytes, file);
  EXPECT_EQ(reader.u32(), 7U);
  EXPECT_EQ(reader.left(), 0U);
  EXPECT_TRUE(reader.raw(0).empty());
  EXPECT_THROW(reader.raw(1), DataError);
}

TEST(TrailTest, FlippedBitOfAnyByteIsOneDamagedRecordOrTheHead) {
  const auto good = trail_bytes(4);
  const Trail trail(good, "t");
  for (std::size_t byte = 0; byte < good.size(); ++byte) {
    auto bad = good;
    bad[byte] ^= std::byte{1} << (byte % 8);
    if (byte < trail.head_bytes()) {
      EXPECT_ANY_THROW(Trail(bad, "t")) << byte;
      continue;
    }
    const Trail hit(bad, "t");
    const auto step =
        static_cast<std::int64_t>((byte - trail.head_bytes()) / small_head().record_bytes()) + 1;
    ASSERT_EQ(hit.damage().size(), 1U) << byte;
    EXPECT_EQ(hit.damage().front().step, step) << byte;
    EXPECT_FALSE(hit.find(step)) << byte;
    EXPECT_EQ(hit.find(step == 4 ? 3 : 4), record_of(step == 4 ? 3 : 4)) << byte;
  }
}

TEST(TrailTest, RecordThatIsNotWholeIsCutOffAndAnyLengthIsReadOrRefused) {
  const auto whole = trail_bytes(3);
  const std::size_t head = Trail(whole, "t").head_bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    if (size < head) {
      EXPECT_THROW(Trail(cut, "t"), DataError) << size;
    } else {
      const Trail trail(cut, "t");
      EXPECT_EQ(trail.records(), static_cast<std::int64_t>((size - head) / small_head().record_bytes()));
      EXPECT_TRUE(trail.damage().empty());
    }
  }
}

TEST(TrailTest, RemovedRecordBreaksTheChain) {
  auto bytes = trail_bytes(4);
  const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(Trail(bytes, "t").end_of(1));
  bytes.erase(begin, begin + static_cast<std::ptrdiff_t>(small_head().record_bytes()));
  EXPECT_FALSE(Trail(bytes, "t").damage().empty());
}

/// Every checksum is right. A step as large as there is leaves none to come: the next record is damaged, whatever it says.
TEST(TrailTest, StepThatDoesNotComeAfterTheOneBeforeIsDamage) {
  std::vector<TrailRecord> list;
  for (const std::int64_t step : {std::int64_t{1}, std::int64_t{2}, std::int64_t{2}, INT64_MAX,
                                  std::int64_t{5}, INT64_MIN, std::int64_t{7}})
    list.push_back(record_of(step));
  const Trail trail(bytes_of(list), "t");
  std::vector<std::pair<std::int64_t, std::int64_t>> damage;
  for (const TrailDamage& one : trail.damage()) damage.emplace_back(one.record, one.step);
  EXPECT_EQ(damage, (std::vector<std::pair<std::int64_t, std::int64_t>>{{2, 3}, {3, 4}, {5, 6}}));
  EXPECT_EQ(trail.find(7)->step, 7);
}

TEST(TrailTest, DifferencesNameTheFactWithBothValues) {
  TrailHead other = small_head();
  other.facts["job.train.seed"] = "8";
  other.facts["job.younger"] = "1";
  EXPECT_EQ(differences(small_head(), other), std::vector<std::string>{"job.train.seed (7 there, 8 here)"});
  other.facts["job.train.seed"] = std::string(80, 'x');
  EXPECT_EQ(differences(small_head(), other),
            std::vector<std::string>{"job.train.seed (7 there, " + std::string(80, 'x') + " here)"});
  for (const auto& [text, told] : {std::pair{std::string(81, 'x'), "81"}, {std::string("a\nb"), "3"}}) {
    other.facts["job.train.seed"] = text;
    EXPECT_EQ(differences(other, small_head()),
              std::vector<std::string>{fmt::format("job.train.seed ({} bytes of text there, 7 here)", told)});
  }
  other = small_head();
  other.kept.clear();
  other.buffers.clear();
  EXPECT_EQ(differences(small_head(), other),
            (std::vector<std::string>{"kept tensors (bn.running_mean [3] there, none here)",
                                      "the optimiser's buffers (momentum there, none here)"}));
}

TEST(TrailTest, OfManyTensorsTheFirstThatDiffersIsNamed) {
  TrailHead here = small_head(), there = small_head();
  here.trained.push_back({"fc.weight", {2, 5}});
  EXPECT_EQ(differences(there, here), std::vector<std::string>{"tensors (none there, fc.weight [10] here)"});
  there.trained.push_back({"fc.weight", {10}});
  EXPECT_EQ(differences(there, here), std::vector<std::string>{}) << "a file knows numbers of elements";
  there.trained[1].shape = {4};
  EXPECT_EQ(differences(there, here),
            std::vector<std::string>{"tensors (conv1.bias [4] there, conv1.bias [3] here)"});
  there.trained.resize(2002, {"more", {1}});
  EXPECT_EQ(differences(there, here),
            std::vector<std::string>{"tensors (conv1.bias [4] there, conv1.bias [3] here, and 1,999 more)"});
}

/// A run's directory on the real disk.
class TrailFileTest : public ::testing::Test {
 protected:
  /// @returns where it stands in the end
  TrailPosition write(std::int64_t step, std::int64_t last,
                      const std::optional<TrailPosition>& expected = {}) {
    TrailFile file(Env::posix(), run_, small_head(), step, expected,
                   [this](const std::string& line) { said_ += line + "\n"; });
    file.write(records(step + 1, last));
    file.sync();
    return file.position();
  }
  std::vector<std::byte> bytes() const { return Env::posix().read(file_); }

  testing::TemporaryDirectory directory_;
  std::string run_ = directory_.path(), file_ = directory_.path(kTrailFile), said_;
};

TEST_F(TrailFileTest, GoesOnBehindTheCheckpointByteForByte) {
  const TrailPosition at_3 = write(0, 3);
  write(3, 9, at_3);
  write(3, 7, at_3);
  AppendFile(file_).append(std::string("half a record"));
  write(7, 8);
  EXPECT_EQ(bytes(), trail_bytes(8));
  EXPECT_EQ(said_, "");
  cut_trail(Env::posix(), run_, 4);
  EXPECT_EQ(bytes(), trail_bytes(4)) << "of a run that keeps none any more";
  replace_file(Env::posix(), file_, std::as_bytes(std::span("no trail")));
  EXPECT_NO_THROW(cut_trail(Env::posix(), run_, 4));
  EXPECT_EQ(bytes().size(), 9U) << "left alone";
}

/// Whatever fits. Nothing of a record stands in the file but whole ones, and what was kept follows when there is room.
TEST_F(TrailFileTest, FullDiskAtAnyByteLosesNothingAndLeavesNoHalf) {
  const auto whole = trail_bytes(6);
  const std::size_t head = Trail(whole, "t").head_bytes();
  for (std::size_t room = head; room < whole.size(); room += 5) {
    TrailFile file(Env::posix(), run_, small_head(), 0, {}, [](const std::string&) {});
    {
      const SmallDisk disk(room);
      for (std::int64_t step = 1; step <= 5; ++step) {
        try {
          file.write(records(step, step));
        } catch (const IoError& error) {
          EXPECT_NE(std::string(error.what()).find("trail.bin: cannot be written"), std::string::npos);
        }
      }
      const Trail left(bytes(), "t");
      EXPECT_EQ(bytes().size(), left.end_of(left.records())) << room;
      if (!file.is_complete()) {
        EXPECT_THROW(file.sync(), IoError) << room;
      }
    }
    file.write(records(6, 6));
    file.sync();
    ASSERT_EQ(bytes(), whole) << room;
  }
}

TEST_F(TrailFileTest, HeadThatDoesNotFitIsSaidAndTheNextStartWritesIt) {
  {
    const SmallDisk disk(100);
    EXPECT_THROW(write(0, 2), IoError);
  }
  write(0, 2);
  EXPECT_EQ(bytes(), trail_bytes(2));
  EXPECT_EQ(said_, "");
}

/// A file as large as the disk can name costs only the memory of the job's remaining records.
TEST_F(TrailFileTest, NoMoreIsReadThanTheJobHasSteps) {
  write(0, 9);
  std::filesystem::resize_file(file_, std::uintmax_t{1} << 40);
  const Trail trail = read_trail(Env::posix(), file_, 10);
  EXPECT_EQ(trail.records(), 10);
  ASSERT_EQ(trail.damage().size(), 1U);
  EXPECT_EQ(trail.damage().front().step, 10);
  write(4, 6);
  EXPECT_EQ(bytes(), trail_bytes(6));
  EXPECT_EQ(said_, "");
}

TEST_F(TrailFileTest, DamagedOneIsKeptAsideAndANewOneBegins) {
  const TrailPosition at_4 = write(0, 4);
  auto damaged = bytes();
  damaged[damaged.size() - small_head().record_bytes() - 50] ^= std::byte{1};
  replace_file(Env::posix(), file_, damaged);
  write(4, 6, at_4);
  EXPECT_EQ(said_,
            fmt::format("{0} is damaged at step 3; kept as {0}.damaged, and a new trail begins with step 5\n",
                        file_));
  EXPECT_EQ(Env::posix().read(run_ + "/trail.bin.damaged"), damaged);
  const Trail trail(bytes(), "t");
  EXPECT_EQ(trail.records(), 2);
  EXPECT_EQ(trail.find(5), record_of(5));
}

TEST_F(TrailFileTest, AnotherTrailThanTheCheckpointsIsNotGoneOnWith) {
  TrailPosition at_3 = write(0, 3);
  at_3.chain[0] ^= std::byte{1};
  write(3, 4, at_3);
  const std::string begins = ", and a new trail begins with step ";
  EXPECT_EQ(said_, file_ + " is not that of the checkpoint: 3 records up to it, where it says 3; kept as " +
                       file_ + ".damaged" + begins + "4\n");
  TrailHead other = small_head();
  other.facts["job.train.seed"] = "8";
  TrailFile(Env::posix(), run_, other, 4, {}, [&](const std::string& line) { said_ = line; });
  EXPECT_EQ(said_, file_ + " is of another run: job.train.seed (7 there, 8 here); kept as " + file_ +
                       ".damaged-2" + begins + "5");
  std::filesystem::remove(file_);
  said_.clear();
  write(3, 4, at_3);
  EXPECT_EQ(said_, file_ + " is missing: a new trail begins with step 4\n");
}

}  // namespace
}  // namespace lockstep
