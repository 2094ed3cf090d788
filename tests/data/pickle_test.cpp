// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pickles as Python 2 and 3 write them, with numpy 1 and 2; and those that no reader should obey.
#include "data/sets/pickle.hpp"

#include "common/error.hpp"
#include "data/dataset.hpp"
#include "data/set_fingerprints.hpp"
#include "data/sets/cifar_set.hpp"
#include "data/sets/set_loading.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using test::Bytes;
using test::bytes_of;
using namespace std::string_literals;

constexpr auto le = test::little_endian_text;

/// SHORT_BINSTRING, as Python 2 has it.
std::string python2(const std::string& text) {
  return "U" + le(text.size(), 1) + text;
}

/// As Python 3 has it: SHORT_BINUNICODE.
std::string python3(const std::string& text) {
  return "\x8c" + le(text.size(), 1) + text;
}

void fails(const std::string& pickle, const char* part) {
  SCOPED_TRACE(part);
  const Bytes file = bytes_of(pickle);
  expect_error<DataError>([&] { Pickle(file, "p"); }, {"p: offset", part});
}

/// numpy's array in protocol 2: _reconstruct(ndarray, (0,), "b"), then its state.
/// @param is_fortran  0x88 is True
std::string array(const std::string& dims, const std::string& bytes, const std::string& type = "u1",
                  const std::string& order = "|", const std::string& is_fortran = "\x89") {
  const std::string none = "NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0t"s;
  return "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85"s + python2("b") + "\x87R(K\1" +
         dims + "cnumpy\ndtype\n" + python2(type) + "K\0K\1\x87R(K\3"s + python2(order) + none + "b" +
         is_fortran + "T" + le(bytes.size(), 4) + bytes + "tb";
}

TEST(PickleTest, PlainDataOfAllProtocolsAreRead) {
  const Bytes text =
      bytes_of("(dp0\nS'a\\'\\n\\xff'\np1\n(lp2\nI01\naI-7\naL12345678901L\nasVn\xe9\\u00e9\np3\ng2\ns.");
  const Pickle first(text, "p");
  EXPECT_EQ(first.numbers_at("a'\n\xff"), (std::vector<std::int64_t>{1, -7, 12345678901}));
  EXPECT_EQ(first.numbers_at("n\xc3\xa9\xc3\xa9"), first.numbers_at("a'\n\xff"));
  const Bytes binary = bytes_of("\x80\4\x95" + le(99, 8) + "}\x94(" + python3("a") + "\x94]\x94(K\5M\1\2" +
                                "J\xfe\xff\xff\xff\x8a\2\0\xff\x88\x89"s + "eC\1b(" + python3("x") + "\x8d" +
                                le(1, 8) + "yX" + le(2, 4) + "\xc3\xa9lh\1h\2u.");
  const Pickle second(binary, "p");
  EXPECT_EQ(second.numbers_at("a"), (std::vector<std::int64_t>{5, 513, -2, -256, 1, 0}));
  EXPECT_EQ(second.texts_at("b"), (std::vector<std::string>{"x", "y", "\xc3\xa9"}));
  expect_error<DataError>([&] { second.texts_at("a"); }, {"p: holds no list of texts under 'a'"});
  expect_error<DataError>([&] { second.numbers_at("b"); }, {"p: holds no list of whole numbers under 'b'"});
}

TEST(PickleTest, PlainDataAreReadUpToTheirLimits) {
  const Bytes numbers = bytes_of("}" + python2("k") + "(\x8a\x08" + le(std::uint64_t{1} << 40, 8) +
                                 "\x8a\0K\5r"s + le(300, 4) + "j" + le(300, 4) + "ls.");
  EXPECT_EQ(Pickle(numbers, "p").numbers_at("k"),
            (std::vector<std::int64_t>{std::int64_t{1} << 40, 0, 5, 5}));
  const Bytes texts = bytes_of("(S'k'\n(S\"it's\"\nS''\nV\\u0080\nld.");
  EXPECT_EQ(Pickle(texts, "p").texts_at("k"), (std::vector<std::string>{"it's", "", "\xc2\x80"}));
  const Bytes twice = bytes_of("}(" + python2("k") + "K\1" + python2("k") + "(K\2lu.");
  EXPECT_EQ(Pickle(twice, "p").numbers_at("k"), std::vector<std::int64_t>{2});  // the later one counts
}

TEST(PickleTest, ArraysAreThoseOfNumpy) {
  const Bytes file = bytes_of("\x80\2}(" + python2("m") + array("K\2K\3\x86", "abcdef") + python2("i") +
                              array("K\2\x85", "\1\0\xff\xff"s, "i2") + "u.");
  const Pickle pickle(file, "p");
  EXPECT_EQ(pickle.at("m").text, "abcdef");
  EXPECT_EQ(pickle.at("m").dims, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(pickle.numbers_at("i"), (std::vector<std::int64_t>{1, -1}));
  expect_error<DataError>([&] { pickle.numbers_at("m"); }, {"holds no list of whole numbers under 'm'"});
  const Bytes unsigned_ones = bytes_of("}" + python2("k") + array("K\1\x85", "\xff\xff", "u2", "<") + "s.");
  EXPECT_EQ(Pickle(unsigned_ones, "p").numbers_at("k"), std::vector<std::int64_t>{65535});
  const Bytes deep = bytes_of(array("(K\6K\1K\1K\1t", "abcdef") + ".");
  EXPECT_NO_THROW(Pickle(deep, "p"));
  const Bytes newest =
      bytes_of("\x80\5}" + python3("m") + python3("numpy._core.numeric") + python3("_frombuffer") +
               "\x93(\x96" + le(3, 8) + "abc" + python3("numpy") + python3("dtype") + "\x93" + python3("u1") +
               "\x89\x88\x87RK\3\x85" + python3("F") + "tRs.");
  const Pickle later(newest, "p");
  EXPECT_EQ(later.at("m").text, "abc");
  EXPECT_TRUE(later.at("m").is_fortran);
  const Bytes encoded = bytes_of("}(U\1kc_codecs\nencode\nX\3\0\0\0a\xc3\xbfX\6\0\0\0latin1\x86Ru."s);
  EXPECT_EQ(Pickle(encoded, "p").at("k").text, "a\xff");
}

TEST(PickleTest, NothingElseIsObeyed) {
  fails("cos\nsystem\n(S'true'\ntR.", "it asks for 'os.system', and nothing is ever run here");
  fails("\x80\4" + python3("builtins") + python3("eval") + "\x93.", "it asks for 'builtins.eval'");
  fails("cnumpy\nload\n.", "it asks for 'numpy.load'");
  fails("(S'true'\nios\nsystem\n.", "the opcode INST (0x69) is not for plain data");
  fails("cnumpy\nndarray\n)\x81.", "the opcode NEWOBJ (0x81)");
  fails("Pfile\n.", "the opcode PERSID");
  fails("\x80\5\x97.", "the opcode NEXT_BUFFER");
  fails("\xff.", "the opcode of no name (0xff)");
  fails("cnumpy\nndarray\n)R.", "a coding that is not read here");
  for (const std::string type : {"O8", "f4", "u16", "u3", "i"})
    fails("cnumpy\ndtype\n(S'" + type + "'\ntR.",
          ("an array of '" + type + "', and whole numbers are wanted").c_str());
  fails("cnumpy.core.multiarray\n_reconstruct\n(cnumpy\ndtype\ntR.", "numpy._reconstruct or a coding");
  fails("c_codecs\nencode\n(S'a'\nS'utf8'\ntR.", "numpy.encode or a coding that is not read here");
  for (const char* arguments : {")", "(K\1t"})
    fails("cnumpy\ndtype\n"s + arguments + "R.", "an array or a text that numpy does not write so");
  fails("K\1(K\1tb.", "the state of an object that is not an array");
  fails(array("K\2\x85", "abcd", "u2", ">") + ".", "an array that is not little-endian");
}

TEST(PickleTest, WhatLiesIsRefused) {
  fails("", "the pickle ends too early");
  fails("B\xff\xff\xff\xffx.", "the pickle ends too early");
  fails("\x8e\xff\xff\xff\xff\xff\xff\xff\xff.", "the pickle ends too early");
  fails("I12", "the pickle ends too early");
  fails("\x80\6.", "protocol 6");
  fails(".", "a value is missing on the stack");
  fails("K\1(\x85.", "a value is missing on the stack");
  fails("t.", "a mark is missing on the stack");
  fails("(K\1d.", "a key has no value");
  fails("}(K\1u.", "a key has no value");
  fails("K\1K\2a.", "a value of another kind is wanted");
  fails("h\7.", "nothing was stored under 7");
  fails("Ix\n.", "'x' is not a whole number");
  fails("\x8a\t123456789.", "a whole number of more than 64 bits");
  for (const char* text : {"", "'", "'a\"", "aba"}) fails("S"s + text + "\n.", "a text without quotes");
  for (const char* text : {"\\q", "\\x1", "\\x1g", "\\"})
    fails("S'"s + text + "'\n.", "an escape or a character that is not read here");
  for (const std::string text : {"\xc3", "\xe2\x82\xac"})
    fails("c_codecs\nencode\n(U" + le(text.size(), 1) + text + "U\6latin1tR.",
          "an escape or a character that is not read here");
  fails("V\\u0100\n.", "an escape or a character that is not read here");
  for (const char* dims : {"K\2K\2\x86", "K\4K\2\x86", "J\xff\xff\xff\xffK\6\x86", ")", "(K\6K\1K\1K\1K\1t"})
    fails(array(dims, "abcdef") + ".", "an array whose shape is not that of its bytes");
  fails(array("K\0\x85"s, "abcdef") + ".", "an array whose shape is not that of its bytes");
  fails(array("K\2\x85", "abcdef") + ".", "an array whose shape is not that of its bytes");
  fails(array("K\1\x85", "abc", "u2") + ".", "an array whose shape is not that of its bytes");
  std::string again =
      "X" + le(1000, 4) + std::string(1000, 'a') + "q\1c_codecs\nencode\nq\2X\6\0\0\0latin1q\3"s;
  for (int i = 0; i < 3; ++i) again += "h\2h\1h\3\x86R";
  fails(again + ".", "decoded again and again");
  fails(std::string(Pickle::kMostOpcodes, 'N') + ".", "more than 1000000 opcodes");
  const Bytes list = bytes_of("].");
  expect_error<DataError>([&] { Pickle(list, "p").at("data"); }, {"has nothing under the key 'data'"});
}

/// CIFAR-10's files for Python beside its binary ones.
class PickledCifarTest : public test::DirectoryTest {
 protected:
  static constexpr int kFeatures = 3072;

  PickledCifarTest() {
    for (int i = 1; i <= 5; ++i) write_both("data_batch_" + std::to_string(i), 2, 2 * i - 2);
    write_both("test_batch", 3, 5);
    std::string names;
    for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}) names += python2(name);
    write_names("(" + names + "l");
  }
  void write_names(const std::string& list) const {
    test::write_file(pickled("batches.meta"), bytes_of("\x80\2}" + python2("label_names") + list + "s."));
  }
  static std::string numbered_names(int count) {
    std::string names;
    for (int i = 0; i < count; ++i) names += python2(std::to_string(i));
    return names;
  }
  void write_both(const std::string& name, int count, int first) const {
    std::string records, pixels, labels;
    for (int i = 0; i < count; ++i) {
      std::string image;
      for (int p = 0; p < kFeatures; ++p) image.push_back(static_cast<char>(p * 7 + first + i));
      const std::string label = le(static_cast<std::uint64_t>(first + i) % 10, 1);
      records += label + image;
      pixels += image;
      labels += "K" + label;
    }
    write_text("bin/" + name + ".bin", records);
    test::write_file(pickled(name), bytes_of(batch(count, labels, pixels)));
  }
  static std::string batch(int count, const std::string& labels, const std::string& pixels) {
    const std::string dims = "K" + le(static_cast<std::uint64_t>(count), 1) + "M" + le(kFeatures, 2) + "\x86";
    return "\x80\2}(" + python2("batch_label") + python2("b") + python2("labels") + "(" + labels + "l" +
           python2("data") + array(dims, pixels) + "u.";
  }
  fs::path pickled(const std::string& name) const { return path("py/cifar-10-batches-py/" + name); }
  TrainTestData load(const char* root) const {
    return load_dataset({.set = "cifar10", .root = path(root).string()});
  }
};

TEST_F(PickledCifarTest, ItsFingerprintsAreThoseOfTheBinaryFiles) {
  test::write_file(pickled("data_batch_4.gz"), test::gzip(bytes_of(test::text_in(pickled("data_batch_4")))));
  fs::remove(pickled("data_batch_4"));
  const TrainTestData binary = load("bin"), python = load("py");
  EXPECT_EQ(python.directory, path("py/cifar-10-batches-py").string());
  EXPECT_EQ(python.train.size(), 10);
  EXPECT_EQ(fingerprint_of(python.train), fingerprint_of(binary.train));
  EXPECT_EQ(fingerprint_of(python.test), fingerprint_of(binary.test));
  EXPECT_EQ(python.class_names.at(9), "j");
  EXPECT_EQ(binary.class_names.at(9), "truck");
  fs::copy_file(pickled("batches.meta"), path("bin/batches.meta"));
  EXPECT_EQ(load("bin").class_names.at(9), "truck") << "those are beside pickles";
  write_names("(" + numbered_names(256) + "l");
  EXPECT_EQ(load("py").class_names.size(), 256U);
  fs::remove(pickled("batches.meta"));
  EXPECT_EQ(load("py").class_names, binary.class_names);
}

TEST_F(PickledCifarTest, NamesThatAreNoneAreRefused) {
  const auto fails_with = [&](const std::string& names, const char* part) {
    write_names(names);
    expect_error<DataError>([&] { load("py"); }, {"batches.meta: ", part});
  };
  fails_with("]", "0 names of classes, and there may be 1 to 256");
  fails_with("(" + numbered_names(257) + "l", "257 names of classes");
  fails_with("(" + python2("") + "l", "the class name '' is empty");
}

/// Two samples of three pixels, with CIFAR-100's labels.
TEST(PickledCifarFormTest, FineLabelsAndFortransOrderAreRead) {
  const auto parse = [](const std::string& data) {
    const Bytes file = bytes_of("}(" + python2("fine_labels") + "(K\7K\x63l" + python2("data") + data + "u.");
    return parse_pickled_cifar(file, "p", {.label_bytes = 2, .features = 3, .classes = 100});
  };
  const CifarRecords found = parse(array("K\2K\3\x86", "abcdef", "u1", "|", "\x88"));
  EXPECT_EQ(found.labels, (std::vector<std::int32_t>{7, 99}));
  EXPECT_EQ(found.images, bytes_of("acebdf"));
  EXPECT_EQ(parse(array("K\2K\3\x86", "abcdef")).images, bytes_of("abcdef"));
  const std::string others[] = {array("K\2K\3\x86", "abcdefghijkl", "u2"),
                                array("K\2K\3\x86", "abcdef", "i1"), array("K\2K\2\x86", "abcd"),
                                array("K\2K\3K\1\x87", "abcdef"), "K\1"};
  for (const std::string& other : others)
    expect_error<DataError>([&] { parse(other); },
                            {"p: holds no array of uint8 with 3 columns under 'data'"});
}

TEST_F(PickledCifarTest, OtherArraysAndLabelsAreRefused) {
  const auto fails_with = [&](const std::string& file, const char* part) {
    test::write_file(pickled("data_batch_3"), bytes_of(file));
    expect_error<DataError>([&] { load("py"); }, {"data_batch_3: ", part});
  };
  const std::string one(kFeatures, 'x');
  fails_with(batch(1, "K\x0a", one), "label 10 of image 0 is not in 0..9");
  fails_with(batch(1, "J\xff\xff\xff\xff", one), "label -1 of image 0");
  fails_with(batch(1, "K\1K\1", one), "2 labels for 1 image");
  fails_with(batch(1, "N", one), "no list of whole numbers under 'labels'");
  fails_with("}" + python2("data") + array("K\1\x85", "x") + "s.",
             "no array of uint8 with 3072 columns under 'data'");
  fails_with("cposix\nsystem\n.", "it asks for 'posix.system'");
}

TEST(TorchvisionTest, ItsFoldersAreFoundBelowItsRoot) {
  const test::TemporaryDirectory directory;
  test::write_image_set(directory.path() / "FashionMNIST" / "raw");
  const auto root = [&](const char* set) {
    return fs::path(resolve_data_root(set, directory.path().string())).lexically_relative(directory.path());
  };
  EXPECT_EQ(root("fashion-mnist"), "FashionMNIST/raw");
  const auto message = message_of<MissingDataError>([&] { root("mnist"); });
  EXPECT_TRUE(contains(message, {"looked in", "/mnist (no such directory)"}));
  EXPECT_EQ(message.find("MNIST/raw"), message.npos) << "a folder of its place goes unnamed";
}

}  // namespace
}  // namespace lockstep
