// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Lists of samples to leave out, and samples that a set has more than once.
#include "data/sets/leave_out.hpp"

#include "common/env.hpp"
#include "common/error.hpp"
#include "data/dataset.hpp"
#include "data/normalisation.hpp"
#include "data/set_fingerprints.hpp"
#include "data/sets/duplicates.hpp"
#include "data/sets/set_loading.hpp"
#include "data/sets/shards.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::leave_out_test {
namespace {

using Places = std::vector<std::int32_t>;

std::shared_ptr<const LeaveOutList> list_of(const std::string& text) {
  return std::make_shared<const LeaveOutList>(parse_leave_out(text, "out.txt"));
}

/// 20 training and 5 test images of 4 x 3.
class LeaveOutTest : public test::DirectoryTest {
 protected:
  LeaveOutTest() { test::write_image_set(directory_.path()); }
  TrainTestData load(const std::string& list, DatasetOptions options = {}) const {
    options.set = "idx";
    options.root = directory_.path().string();
    if (!list.empty()) options.leave_out = list_of(list);
    return load_dataset(options);
  }
  void expect_refused(const std::string& list, std::initializer_list<std::string_view> parts) const {
    expect_error<DatasetOptionError>([&] { load(list); }, parts);
  }
};

TEST(LeaveOutListTest, OrderCommentsAndSpacesDoNotCount) {
  const LeaveOutList list = parse_leave_out("# wrong labels\n\n 12 # a dog\r\na b#1.png\n3\n", "out.txt");
  ASSERT_EQ(list.entries.size(), 3U);
  EXPECT_EQ(list.entries[0].text, "12");
  EXPECT_EQ(list.entries[0].line, 3U);
  EXPECT_EQ(list.entries[1].text, "a b#1.png");
  EXPECT_EQ(list.sha256, parse_leave_out("3\n12\na b#1.png", "other.txt").sha256);
  EXPECT_NE(list.sha256, parse_leave_out("3\n12", "out.txt").sha256);
  const std::string sorted = "12\n3\na b#1.png\n";
  EXPECT_EQ(list.sha256, hex(sha256(std::as_bytes(std::span(sorted)))));
}

TEST(LeaveOutListTest, NamesMayHoldTheSignOfComments) {
  std::vector<std::string> texts;
  for (const auto& entry :
       parse_leave_out("#1/0.png\n7#b/3.png\n8\t# 9\n#\n## 1\n#\t2\n12 #3\na # b\n", "out.txt").entries)
    texts.push_back(entry.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"#1/0.png", "7#b/3.png", "8", "12", "a # b"}));
}

TEST_F(LeaveOutTest, ListIsReadFromItsFile) {
  const std::string file = path("out.txt");
  write_text("out.txt", "3\n12\n");
  EXPECT_EQ(read_leave_out(file).contents(), parse_leave_out("12\n3", file).contents());
  EXPECT_EQ(read_leave_out(file).file, file);
  std::filesystem::resize_file(file, 268435457);
  expect_error<DataError>([&] { read_leave_out(file); },
                          {"out.txt: 268435457 bytes are too many for a list of samples; at most 268435456"});
}

TEST(LeaveOutListTest, MistakesAreNamedWithFileAndLine) {
  expect_error<DataError>([] { parse_leave_out("1\n2\n1\n", "out.txt"); },
                          {"out.txt: line 3: '1' is on line 1 already"});
  expect_error<DataError>([] { parse_leave_out("1\n\xff\n", "out.txt"); },
                          {"out.txt: line 2: is not printable"});
  expect_error<DataError>([] { parse_leave_out("# none\n", "out.txt"); }, {"out.txt: names no samples"});
}

TEST_F(LeaveOutTest, TheOthersAreTrainedOnAndTheFilesKeepTheirFingerprints) {
  const TrainTestData whole = load(""), part = load("7\n0\n19\n");
  Places expected;
  for (std::int32_t i = 0; i < 20; ++i)
    if (i != 0 && i != 7 && i != 19) expected.push_back(i);
  EXPECT_EQ(part.train.places, expected);
  EXPECT_EQ(part.train.labels[0], whole.train.labels[1]);
  EXPECT_EQ(part.left_out, 3);
  EXPECT_EQ(part.train_in_file(), 20);
  EXPECT_EQ(fingerprints_of(part).train, fingerprint_of(whole.train));
  EXPECT_EQ(part.normalisation, measure(part.train));
  EXPECT_EQ(part.test.size(), 5);
}

/// Two runs, one with a list: the validation samples are the same but for those that it names.
TEST_F(LeaveOutTest, NoneIsHeldOutAndTheOthersStayInTheirPart) {
  const Places before = load("", {.validation = {.samples = 6}}).validation.places;
  const std::string list = std::to_string(before[2]) + "\n";
  const TrainTestData data = load(list, {.train_samples = 10, .validation = {.samples = 6}});
  const Places& after = data.validation.places;
  EXPECT_EQ(after.size(), 6U);
  EXPECT_EQ(data.train.size(), 10);
  for (const std::int32_t place : before)
    EXPECT_EQ(std::ranges::binary_search(after, place), place != before[2]) << place;
  for (const std::int32_t place : data.train.places)
    EXPECT_FALSE(place == before[2] || std::ranges::binary_search(after, place)) << place;
  expect_error<DatasetOptionError>([&] { load(list, {.train_samples = 14, .validation = {.samples = 6}}); },
                                   {"train_samples: 14 are more than there are: 13 training samples"});
}

TEST_F(LeaveOutTest, SamplesThatThereAreNotAreRefused) {
  expect_refused("3\n20\n", {"leave_out: out.txt: line 2: '20' is not a place", "0 to 19"});
  expect_refused("99999999999999999999\n", {"line 1", "is not a place"});
  expect_refused("3\n4\n03\n", {"line 3: sample 3 is on line 1 already"});
  expect_refused("cat/1.png\n", {"line 1: 'cat/1.png' is a name, and the samples of this set have none"});
  expect_refused("#3\n", {"line 1: '#3' is a name", "write its place, from 0; a comment begins with '# '"});
  std::string all;
  for (int i = 0; i < 20; ++i) all += std::to_string(i) + "\n";
  expect_refused(all, {"names all of 20 training samples"});
}

/// Grey images of 2 x 1, with names.
class NamedSetTest : public test::DirectoryTest {
 protected:
  struct Sample {
    SetHalf half;
    std::array<std::uint8_t, 2> pixels;
    std::uint32_t label;
    const char* name;
  };
  TrainTestData load(const std::vector<Sample>& samples, DatasetOptions options = {}) const {
    ShardWriter writer(Env::posix(), directory_.path().string(), {1, 1, 2}, {"cat", "dog"},
                       {.replace = true});
    for (const auto& [half, pixels, label, name] : samples) writer.add(half, pixels, label, name);
    writer.publish();
    options.set = "shards";
    options.root = directory_.path().string();
    return load_dataset(options);
  }
};

using enum SetHalf;

TEST_F(NamedSetTest, PicturesAreLeftOutByTheirNames) {
  const std::vector<Sample> samples = {{kTrain, {1, 2}, 0, "cat/1.png"},
                                       {kTrain, {3, 4}, 1, "dog/1.png"},
                                       {kTrain, {5, 6}, 0, "cat/1.png"},
                                       {kTest, {7, 8}, 0, "cat/9.png"}};
  EXPECT_EQ(load(samples, {.leave_out = list_of("dog/1.png\n0")}).train.places, Places{2});
  for (const auto& [list, part] :
       {std::pair{"cat/9.png", "'cat/9.png' is not a picture of the training half, which has 'cat/1.png'"},
        {"cat/1.png", "'cat/1.png' is the name of 2 samples"},
        {"1\ndog/1.png", "line 2: sample 1 is on line 1 already"}})
    expect_error<DatasetOptionError>([&, list = list] { load(samples, {.leave_out = list_of(list)}); },
                                     {part});
}

TEST_F(NamedSetTest, ADamagedListOfNamesIsNamedWhereNamesCount) {
  load({{kTrain, {1, 2}, 0, "a.png"}, {kTrain, {3, 4}, 1, "b.png"}, {kTest, {5, 6}, 0, "c.png"}});
  write_text("train-names.jsonl", "\"a.png\"\n7\n");
  DatasetOptions options{.set = "shards", .root = directory_.path().string()};
  const auto is_told = [](const auto& call) {
    expect_error<DataError>(call, {"train-names.jsonl: line 2 is not a name; "});
  };
  is_told([&] { write_in_shards(Env::posix(), options, path("copy").string(), {}); });
  EXPECT_FALSE(std::filesystem::exists(path("copy/shards.index")));
  options.leave_out = list_of("a.png");
  is_told([&] { load_dataset(options); });
  options.leave_out = list_of("0");
  EXPECT_EQ(load_dataset(options).train.places, Places{1});
}

TEST_F(NamedSetTest, EqualSamplesOfTwoHalvesOrLabelsAreCounted) {
  const std::vector<Sample> samples = {
      {kTrain, {1, 2}, 0, "a.png"},     {kTrain, {3, 4}, 1, "b.png"}, {kTrain, {3, 4}, 1, "b2.png"},
      {kTrain, {2, 1}, 0, "c.png"},     {kTrain, {2, 1}, 1, "d.png"}, {kTrain, {2, 1}, 1, "d2.png"},
      {kTest, {3, 4}, 1, "e.png"},      {kTest, {1, 2}, 1, "f.png"},  {kTest, {9, 9}, 1, "g.png"},
      {kTest, {9, 9}, 0, "h.png"},      {kTest, {0, 0}, 0, "i.png"},  {kValidation, {3, 4}, 1, "v.png"},
      {kValidation, {0, 0}, 0, "w.png"}};
  const Duplicates found = find_duplicates(load(samples, {.validation = {.is_files = true}}));
  EXPECT_EQ(found.test, 3);
  EXPECT_EQ(found.validation, 1);
  EXPECT_EQ(found.under_two_labels, 3);
  const auto has = [](const std::vector<std::string>& examples, const std::string& example) {
    return std::ranges::find(examples, example) != examples.end();
  };
  EXPECT_TRUE(has(found.of_parts, "test[0] (e.png) is train[1] (b.png)"));
  EXPECT_TRUE(has(found.of_parts, "validation[0] (v.png) is train[1] (b.png)"));
  EXPECT_TRUE(has(found.of_labels, "train[4] (d.png) is train[3] (c.png), labelled 'dog' and 'cat'"));
  EXPECT_TRUE(has(found.of_labels, "test[3] (h.png) is test[2] (g.png), labelled 'cat' and 'dog'"));
}

TEST_F(NamedSetTest, PlacesAreThoseInTheFilesAndWhatIsLeftOutIsNoDuplicate) {
  const std::vector<Sample> samples = {{kTrain, {1, 2}, 0, "a.png"},
                                       {kTrain, {3, 4}, 1, "b.png"},
                                       {kTrain, {5, 6}, 1, "c.png"},
                                       {kTest, {3, 4}, 1, "e.png"}};
  EXPECT_EQ(find_duplicates(load(samples, {.leave_out = list_of("0")})).of_parts,
            (std::vector<std::string>{"test[0] (e.png) is train[1] (b.png)"}));
  EXPECT_TRUE(find_duplicates(load(samples, {.leave_out = list_of("b.png")})).of_parts.empty());
}

/// Two features a sample.
Dataset features_of(const std::vector<float>& numbers, const std::vector<std::int32_t>& labels) {
  Dataset set{
      .shape = {2, 1, 1}, .classes = 3, .labels = labels, .features = AlignedBuffer<float>(numbers.size())};
  std::ranges::copy(numbers, set.features.data());
  return set;
}

TEST(DuplicatesTest, FeaturesAreComparedAndTheFirstExamplesAreTold) {
  TrainTestData data;
  data.class_names = {"a", "b", "c"};
  data.train = features_of({1, 2, 1, 3}, {0, 1});
  data.test = features_of({1, 3, 1, 3, 1, 3, 1, 3}, {1, 1, 1, 1});
  Duplicates found = find_duplicates(data);
  EXPECT_EQ(found.test, 4);
  EXPECT_EQ(found.of_parts,
            (std::vector<std::string>{"test[0] is train[1]", "test[1] is train[1]", "test[2] is train[1]"}));
  EXPECT_EQ(found.under_two_labels, 0);
  data.test = features_of({5, 6}, {0});
  data.validation = features_of({5, 6}, {0});
  found = find_duplicates(data);
  EXPECT_EQ(found.of_parts, std::vector<std::string>{"test[0] is validation[0]"});
  EXPECT_EQ(found.test, 1);
  EXPECT_EQ(found.validation, 0);
  data.test = features_of({4, 4}, {0});
  data.validation = features_of({1, 3}, {1});
  data.validation.places = {5};
  EXPECT_EQ(find_duplicates(data).of_parts, std::vector<std::string>{"train[5] is train[1]"}) << "held out";
  data.validation.labels = {0};
  for (Dataset* half : {&data.train, &data.test, &data.validation})
    half->label_sets = {1, 0, 1, /**/ 0, 1, 0};
  EXPECT_EQ(find_duplicates(data).of_labels,
            std::vector<std::string>{"train[5] is train[1], labelled 'a, c' and 'b'"});
}

}  // namespace
}  // namespace lockstep::leave_out_test
