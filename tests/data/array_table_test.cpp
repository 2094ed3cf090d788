// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Tables of numpy's arrays: headers, elements and labels of every type, and archives of them.
#include "common/error.hpp"
#include "data/tables/readers.hpp"
#include "tests/data/table_fixture.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/test_settings.hpp"

namespace lockstep::table_test {
namespace {

using test::Bytes;
using test::bytes_of;
using namespace std::string_literals;

TEST_F(TableTest, ArraysThatLieAreRefused) {
  const auto parse = [](const Bytes& bytes) { NpyRows(std::make_unique<MemorySource>(bytes, "x.npy")); };
  const std::vector<float> four(4);
  EXPECT_NO_THROW(parse(npy("<f4", "2, 2", four)));
  EXPECT_NO_THROW(parse(npy("=f4", "2, 2", four)));
  const std::vector<std::uint8_t> bytes(16);
  EXPECT_NO_THROW(parse(npy(">u1", "16,", bytes))) << "a byte has no order";
  expect_error<DataError>([&] { parse(npy(">u2", "8,", bytes)); }, {"little-endian"});
  const auto refused = [&](const char* shape, const char* part) {
    expect_error<DataError>([&] { parse(npy("|u1", shape, bytes)); }, {"x.npy: ", part});
  };
  refused("2, 9", "its header promises 18 bytes, and 16 follow it; save the array again");
  refused("2, 7", "its header promises 14 bytes, and 16 follow it");
  refused("2147483647,", "its header promises 2147483647 bytes, and 16 follow it");
  refused("2147483648,", "2147483648 rows of 1 numbers are more than 2147483647 and 16777216");
  refused("1, 16777216", "its header promises 16777216 bytes, and 16 follow it");
  refused("1, 16777217", "1 rows of 16777217 numbers are more than 2147483647 and 16777216");
  refused("4611686018427387904, 4", "rows of 4 numbers are more than");
  refused("4, 0", "an array of shape (4, 0) has no rows");
  refused("", "an array of shape () has no rows");
  for (const char* shape : {"-1, 4", "2; 8"})
    refused(shape, "its header is not that of an array of numbers with 1 to 4 dimensions, at '");
  expect_error<DataError>([&] { parse(npy(">f4", "2, 2", four)); }, {"little-endian"});
  expect_error<DataError>([&] { parse(npy("<f4", "2, 2", four, "True")); }, {"ascontiguousarray"});
  expect_error<DataError>([&] { parse(npy("|O", "2, 2", four)); }, {"'|O'"});
}

TEST_F(TableTest, HeadersOfArraysAreReadAsPythonWritesThem) {
  const auto size_of = [](const Bytes& bytes) {
    return NpyRows(std::make_unique<MemorySource>(bytes, "x.npy")).size();
  };
  const auto refused = [&](const Bytes& bytes, const char* part) {
    expect_error<DataError>([&] { size_of(bytes); }, {"x.npy: ", part});
  };
  const std::string good = "{\"descr\": \"|u1\", 'fortran_order': False, 'shape': (4, )}";
  for (const std::uint8_t version : {1, 2, 3})
    EXPECT_EQ(size_of(with_header(good + "wxyz", version, good.size())), 4);
  const std::string turned = "{'descr': '|u1', 'shape': (4,), 'fortran_order': False}";
  EXPECT_EQ(size_of(with_header(turned + "wxyz", 1, turned.size())), 4);
  for (const std::uint8_t version : {0, 4})
    refused(with_header(good + "wxyz", version, good.size()), "is not a NumPy array");
  for (const std::string head :
       {"{'shape': (4,), 'fortran_order': False}", "{'descr': '|u1', 'shape': (4,), 'kind':}",
        "{'descr': '|u1', 'shape': (4}", "{'descr': '|u1', 'shape': (4,)} x", "{'descr' '|u1'}",
        "{'fortran_order': 0}", "{'shape': (4", "{descr: 1}", "['descr']"})
    refused(with_header(head, 1, head.size()),
            "its header is not that of an array of numbers with 1 to 4 dimensions");
  refused(with_header("{'': 1}", 1, 7), "of an array of numbers with 1 to 4 dimensions, at ' 1}'; save");
  const std::string shown(40, 'x');
  refused(with_header("{" + shown + "x}", 1, 43), (", at '" + shown + "'; save").c_str());
  refused(with_header("{'descr': ''}", 1, 13), "elements of type ''");
  refused(bytes_of("\x93NUMPY\1"), "ends before byte 8");
  refused(bytes_of("\x93NUMPX\1\1\1"), "is not a NumPy array");
  refused(with_header("", 2, 65'536), "ends before byte 65548");
  refused(with_header("", 2, 65'537), "a header of 65537 bytes");
}

/// Labels of an array as text, "-" for one that is none.
template <typename T>
std::vector<std::string> labels_in_array(const std::string& descr, const std::string& shape,
                                         const std::vector<T>& elements) {
  const Bytes bytes = npy(descr, shape, elements);
  NpyRows rows(std::make_unique<MemorySource>(bytes, "y.npy"));
  std::vector<std::string> labels;
  for (std::int64_t i = 0; i < rows.size(); ++i)
    if (std::string& label = labels.emplace_back(); !rows.next_label(label)) label = "-";
  return labels;
}
using Labels = std::vector<std::string>;

TEST_F(TableTest, LabelsOfFloatsAreWholeNumbersThatFloatsCanCount) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(labels_in_array<double>("<f8", "8,",
                                    {3, -2, 9007199254740992, 9007199254740994, 0.5, kInfinity, -kInfinity,
                                     std::numeric_limits<double>::quiet_NaN()}),
            (Labels{"3", "-2", "9007199254740992", "-", "-", "-", "-", "-"}));
  EXPECT_EQ(labels_in_array<float>("<f4", "2,", {7, std::numeric_limits<float>::infinity()}),
            (Labels{"7", "-"}));
}

TEST_F(TableTest, ArraysOfEveryTypeAreRead) {
  EXPECT_EQ(labels_in_array<std::int8_t>("|i1", "2,", {-1, 127}), (Labels{"-1", "127"}));
  EXPECT_EQ(labels_in_array<std::int16_t>("<i2", "2,", {-300, 300}), (Labels{"-300", "300"}));
  EXPECT_EQ(labels_in_array<std::int32_t>("<i4", "1,", {-70000}), (Labels{"-70000"}));
  EXPECT_EQ(labels_in_array<std::int64_t>("<i8", "1,", {-5'000'000'000}), (Labels{"-5000000000"}));
  EXPECT_EQ(labels_in_array<std::uint8_t>("|u1", "1,", {255}), (Labels{"255"}));
  EXPECT_EQ(labels_in_array<std::uint16_t>("<u2", "1,", {65535}), (Labels{"65535"}));
  EXPECT_EQ(labels_in_array<std::uint32_t>("<u4", "1,", {4294967295}), (Labels{"4294967295"}));
  EXPECT_EQ(labels_in_array<std::uint64_t>("<u8", "1,", {UINT64_MAX}), (Labels{"18446744073709551615"}));
  EXPECT_EQ(labels_in_array<std::uint8_t>("|b1", "2,", {0, 2}), (Labels{"0", "1"}));
  EXPECT_EQ(labels_in_array<char>("|S3", "2,", {'a', 'b', '\0', '\0', 'x', 'x'}), (Labels{"ab", "-"}));
  EXPECT_EQ(labels_in_array<char32_t>("<U3", "2,", {U'é', U'€', U'😀', U'a', U'\0', U'b'}),
            (Labels{"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "a"}));
  for (const char* descr : {"<i3", "|i16", "<f2", "<f16", "|b2", "|S0", "|S4097", "<U4097", "<c8"})
    expect_error<DataError>([&] { labels_in_array<char>(descr, "1,", {'1'}); },
                            {"y.npy: elements of type", descr});
  EXPECT_EQ(labels_in_array<char>("|S1", "1, 1, 1, 1", {'a'}), (Labels{"a"}));
  EXPECT_EQ(labels_in_array<char>("|S4096", "1,", std::vector<char>(4096, 'a')),
            (Labels{std::string(4096, 'a')}));
  EXPECT_EQ(labels_in_array<char32_t>("<U4", "1,", {0x7F, 0x80, 0x800, 0x10000}),
            (Labels{"\x7F\xC2\x80\xE0\xA0\x80\xF0\x90\x80\x80"}));
  std::vector<std::int64_t> many(70'000);  // more than is read at once
  std::iota(many.begin(), many.end(), 0);
  EXPECT_EQ(labels_in_array("<i8", "70000,", many).back(), "69999");
  expect_error<DataError>([] { labels_in_array<char>("|S1", "1, 1, 1, 1, 1", {'a'}); },
                          {"1 to 4 dimensions"});
}

/// Bytes in memory, and the most of them that were asked for at once.
struct WatchedSource final : public ByteSource {
  explicit WatchedSource(const Bytes& all) : bytes(all, "x.npy") {}
  std::size_t read(std::span<std::uint8_t> out) override {
    most = std::max(most, out.size());
    return bytes.read(out);
  }
  std::uint64_t remaining_at_most() const override { return bytes.remaining_at_most(); }
  std::uint64_t offset() const override { return bytes.offset(); }
  const std::string& name() const override { return bytes.name(); }

  MemorySource bytes;
  std::size_t most = 0;
};

TEST_F(TableTest, ArraysAreReadInPiecesOrInRowsThatAreLarger) {
  std::vector<float> numbers(210'000);
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  for (const auto& [shape, width, most] :
       {std::tuple{"210000, 1", 1, 262'144}, {"3, 70000", 70'000, 280'000}}) {
    const Bytes file = npy("<f4", shape, numbers);
    auto source = std::make_unique<WatchedSource>(file);
    const WatchedSource& watched = *source;
    NpyRows rows(std::move(source));
    std::vector<float> row(static_cast<std::size_t>(width));
    for (std::int64_t i = 1; i <= rows.size(); ++i) {
      ASSERT_EQ(rows.next(row), -1);
      ASSERT_EQ(row.back(), static_cast<float>(i * width - 1));
    }
    EXPECT_EQ(watched.most, static_cast<std::size_t>(most));
  }
}

TEST_F(TableTest, AnArrayThatIsCutWhileItIsReadIsRefused) {
  write("y.npy", npy<std::uint8_t>("|u1", "4,", {1, 2, 3, 4}));
  NpyRows rows(std::make_unique<FileSource>(path("y.npy")));
  const auto left = std::filesystem::file_size(path("y.npy")) - 1;
  std::filesystem::resize_file(path("y.npy"), left);
  std::string label;
  expect_error<DataError>([&] { rows.next_label(label); }, {fmt::format("y.npy: ends at byte {};", left)});
}

TEST_F(TableTest, OptionsOfTextAreNotForArrays) {
  const auto refused = [&](TableOptions options, const char* part) {
    options.from = path("x.npy");
    expect_error<UsageError>([&] { open_table(options); }, {part});
  };
  for (const TableOptions& options : {TableOptions{.drop = {"1"}},
                                      {.header = TableHeader::kYes},
                                      {.separator = ";"},
                                      {.one_hot = {"1"}},
                                      {.missing = MissingCells::kMean}})
    refused(options, "x.npy: --drop, --separator, --header, --missing and --one-hot are for text");
  refused({}, "x.npy: holds the features; say where the labels are: --label LABELS.npy");
  write("x.npy", npy<float>("<f4", "3, 1", {1, 2, 3}));
  write("y.npy", npy<std::int64_t>("<i8", "3,", {0, 0, 0}));
  options_.table.label = path("y.npy");
  expect_error<DataError>([&] { convert("x.npy", "set"); },
                          {"x.npy: the label of all 3 rows is '0': one class"});
  EXPECT_EQ(open_table({.from = path("x.npy"), .has_labels = false})->shape(), (ImageShape{1, 1, 1}));
}

TEST_F(TableTest, DamagedRowsOfArraysAreLeftOutWithTheirLabels) {
  write("x.npy", npy<float>("<f4", "5, 1", {1, std::numeric_limits<float>::infinity(), 3, 4, 5}));
  write("y.npy", npy<std::int64_t>("<i8", "5,", {0, 9, 0, 1, 1}));
  options_.table.label = path("y.npy");
  const TableConversion done = convert("x.npy", "set", true);
  EXPECT_EQ(done.damaged, 1);
  EXPECT_EQ(done.class_names, (Labels{"0", "1"}));
  const TrainTestData data = load_dataset({.set = "table", .root = path("set"), .mean = {0}, .std = {1}});
  for (const Dataset* half : {&data.train, &data.test})
    for (std::size_t i = 0; i < half->labels.size(); ++i)
      EXPECT_EQ(half->labels[i], half->features.data()[i] > 3 ? 1 : 0) << half->features.data()[i];
}

TEST_F(TableTest, ArchivesOfNumpyAreRead) {
  for (const char* name : {"stored", "deflated"}) {
    Bytes bytes =
        bytes_of(test::text_in(test::source_path("tests/fuzz/corpus/tables/npz-"s + name)).substr(1));
    const auto read = [&] {
      write("t.npz", bytes);
      const NpzArchive archive(path("t.npz"));
      EXPECT_EQ(archive.names(), (std::vector<std::string>{"x", "y"}));
      NpyRows x(archive.open("x")), y(archive.open("y"));
      std::vector<float> row(2);
      EXPECT_EQ(x.next(row), -1);
      EXPECT_EQ(row, (std::vector<float>{1, 2}));
      x.next(row);
      EXPECT_EQ(x.next(row), 1);  // NaN
      std::string label;
      EXPECT_TRUE(y.next_label(label) && y.next_label(label));
      EXPECT_EQ(label, "1");
      y.next_label(label);
    };
    read();
    const Bytes magic = bytes_of("NUMPY");
    const auto number = std::search(bytes.begin(), bytes.end(), magic.begin(), magic.end());
    if (number == bytes.end()) continue;  // it is deflated
    *(number + 128) ^= 1;
    expect_error<DataError>(read, {"t.npz:x: damaged", "CRC"});
  }
}

}  // namespace
}  // namespace lockstep::table_test
