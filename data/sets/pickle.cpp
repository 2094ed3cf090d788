// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A machine with a stack, as Python's, that knows the opcodes of plain data and five names.
#include "data/sets/pickle.hpp"

#include "common/env.hpp"
#include "common/printable.hpp"
#include "data/byte_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

namespace lockstep {
namespace {

using Kind = PickledValue::Kind;
using Items = std::vector<PickledValue*>;

constexpr const char* kSavePlainData =
    "nothing is ever run here; save numbers, texts, lists and arrays alone";

/// Opcodes of pickled objects, for messages.
constexpr std::pair<unsigned char, const char*> kRefused[] = {
    {'i', "INST"},      {'o', "OBJ"},        {0x81, "NEWOBJ"},      {0x92, "NEWOBJ_EX"}, {'P', "PERSID"},
    {'Q', "BINPERSID"}, {0x82, "EXT1"},      {0x83, "EXT2"},        {0x84, "EXT4"},      {'F', "FLOAT"},
    {'G', "BINFLOAT"},  {0x8F, "EMPTY_SET"}, {0x97, "NEXT_BUFFER"},
};

// Names select what is done here; nothing is looked up.
constexpr const char *kReconstruct = "_reconstruct", *kFromBuffer = "_frombuffer", *kArray = "ndarray",
                     *kElementType = "dtype", *kEncode = "encode";
constexpr std::pair<std::string_view, const char*> kNames[] = {
    {"numpy.core.multiarray", kReconstruct},
    {"numpy._core.multiarray", kReconstruct},
    {"numpy.core.numeric", kFromBuffer},
    {"numpy._core.numeric", kFromBuffer},
    {"numpy", kArray},
    {"numpy", kElementType},
    {"_codecs", kEncode},
};

}  // namespace

/// Reads one pickle into the values of another object.
class Pickle::Reader {
 public:
  Reader(Pickle& pickle, std::span<const std::uint8_t> file)
      : pickle_(pickle), source_(file, pickle.name_), file_(as_text(file)), left_to_decode_(file.size()) {}

  const PickledValue& read() {
    for (std::size_t count = 0; count < kMostOpcodes; ++count) {
      opcode_at_ = at_;
      const auto opcode = static_cast<unsigned char>(take(1).front());
      if (opcode == '.') return *pop();
      if (do_number(opcode) || do_text(opcode) || do_container(opcode) || do_memo(opcode) ||
          do_object(opcode))
        continue;
      const auto refused = std::ranges::find(kRefused, opcode, [](const auto& known) { return known.first; });
      fail(fmt::format("the opcode {} (0x{:02x}) is not for plain data, and {}",
                       refused == std::end(kRefused) ? "of no name" : refused->second, opcode,
                       kSavePlainData));
    }
    fail(fmt::format("more than {} opcodes", kMostOpcodes));
  }

 private:
  [[noreturn]] void fail(const std::string& cause) const { fail_at(source_, opcode_at_, cause); }

  // The bytes after an opcode.

  std::string_view take(std::uint64_t bytes) {
    if (bytes > file_.size() - at_) fail("the pickle ends too early");
    return file_.substr(std::exchange(at_, at_ + bytes), bytes);
  }
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, take(bytes).data(), bytes);
    return bits;
  }
  std::string_view line() {
    const auto end = file_.find('\n', at_);
    const std::string_view text = take(std::min(end, file_.size()) - at_);
    take(1);
    return text;
  }
  std::int64_t number_on_line() {
    std::string_view digits = line();
    if (digits.ends_with('L')) digits.remove_suffix(1);
    const auto value = parse_whole<std::int64_t>(digits);
    if (!value) fail(fmt::format("{} is not a whole number", quoted_text(digits)));
    return *value;
  }

  // The stack. Nothing below the last mark is taken.

  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  void push(PickledValue value) {
    pickle_.values_.push_back(std::move(value));
    stack_.push_back(&pickle_.values_.back());
  }
  bool push_number(std::int64_t number) {
    push({.kind = Kind::kNumber, .number = number});
    return true;
  }
  bool push_text(std::string_view text) {
    push({.kind = Kind::kText, .text = text});
    return true;
  }
  bool push_items(Kind kind, Items items) {
    if (kind == Kind::kDictionary && items.size() % 2 != 0) fail("a key has no value");
    push({.kind = kind, .items = std::move(items)});
    return true;
  }
  Items pop_some(std::size_t count) {
    if (stack_.size() - floor() < count) fail("a value is missing on the stack");
    Items items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return items;
  }
  Items pop_to_mark() {
    if (marks_.empty()) fail("a mark is missing on the stack");
    Items items = pop_some(stack_.size() - floor());
    marks_.pop_back();
    return items;
  }
  PickledValue* pop() { return pop_some(1).front(); }
  PickledValue* pop(Kind kind) {
    PickledValue* value = pop();
    if (value->kind != kind) fail("a value of another kind is wanted");
    return value;
  }
  bool append(Kind kind, const Items& items) {
    if (kind == Kind::kDictionary && items.size() % 2 != 0) fail("a key has no value");
    stack_.push_back(pop(kind));
    Items& all = stack_.back()->items;
    all.insert(all.end(), items.begin(), items.end());
    return true;
  }

  // The opcodes by kinds, with the names that pickletools has. @returns false: it is none of these

  bool do_number(unsigned char opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        if (const auto version = number(1); version > 5) fail(fmt::format("protocol {}", version));
        return true;
      case 0x95:  // FRAME
        take(8);
        return true;
      case 'N':  // NONE
        push({});
        return true;
      case 0x88:  // NEWTRUE
      case 0x89:  // NEWFALSE
        return push_number(opcode == 0x88 ? 1 : 0);
      case 'K':  // BININT1
      case 'M':  // BININT2
        return push_number(static_cast<std::int64_t>(number(opcode == 'K' ? 1 : 2)));
      case 'J':  // BININT
        return push_number(signed_number(number(4), 4));
      case 0x8A: {  // LONG1
        const std::size_t bytes = number(1);
        if (bytes > 8) fail("a whole number of more than 64 bits");
        return push_number(signed_number(number(bytes), bytes));
      }
      case 'I':  // INT
      case 'L':  // LONG
        return push_number(number_on_line());
      default:
        return false;
    }
  }

  bool do_text(unsigned char opcode) {
    switch (opcode) {
      case 'U':   // SHORT_BINSTRING
      case 'C':   // SHORT_BINBYTES
      case 0x8C:  // SHORT_BINUNICODE
        return push_text(take(number(1)));
      case 'T':  // BINSTRING
      case 'B':  // BINBYTES
      case 'X':  // BINUNICODE
        return push_text(take(number(4)));
      case 0x8D:  // BINUNICODE8
      case 0x8E:  // BINBYTES8
      case 0x96:  // BYTEARRAY8
        return push_text(take(number(8)));
      case 'S': {  // STRING
        const std::string_view text = line();
        if (text.size() < 2 || text.front() != text.back() || (text.front() != '\'' && text.front() != '"'))
          fail("a text without quotes");
        return push_text(keep(bytes_of_repr(text.substr(1, text.size() - 2))));
      }
      case 'V':  // UNICODE
        return push_text(keep(utf8_of_raw_unicode(line())));
      default:
        return false;
    }
  }

  bool do_container(unsigned char opcode) {
    switch (opcode) {
      case '(':  // MARK
        marks_.push_back(stack_.size());
        return true;
      case ']':  // EMPTY_LIST
      case ')':  // EMPTY_TUPLE
        return push_items(Kind::kList, {});
      case 'l':  // LIST
      case 't':  // TUPLE
        return push_items(Kind::kList, pop_to_mark());
      case 0x85:  // TUPLE1, TUPLE2, TUPLE3
      case 0x86:
      case 0x87:
        return push_items(Kind::kList, pop_some(opcode - 0x84U));
      case '}':  // EMPTY_DICT
        return push_items(Kind::kDictionary, {});
      case 'd':  // DICT
        return push_items(Kind::kDictionary, pop_to_mark());
      case 'a':  // APPEND
        return append(Kind::kList, pop_some(1));
      case 'e':  // APPENDS
        return append(Kind::kList, pop_to_mark());
      case 's':  // SETITEM
        return append(Kind::kDictionary, pop_some(2));
      case 'u':  // SETITEMS
        return append(Kind::kDictionary, pop_to_mark());
      default:
        return false;
    }
  }

  /// PUT, BINPUT, LONG_BINPUT, MEMOIZE; GET, BINGET, LONG_BINGET
  bool do_memo(unsigned char opcode) {
    constexpr std::string_view kOpcodes = "pqr\x94ghj";
    const auto which = kOpcodes.find(static_cast<char>(opcode));
    if (which == kOpcodes.npos) return false;
    std::uint64_t place = memo_.size();
    if (which % 4 == 0) place = static_cast<std::uint64_t>(number_on_line());
    if (which % 4 == 1 || which % 4 == 2) place = number(which % 4 == 1 ? 1 : 4);
    if (which < 4) {
      stack_.push_back(pop());
      memo_[place] = stack_.back();
    } else {
      const auto found = memo_.find(place);
      if (found == memo_.end()) fail(fmt::format("nothing was stored under {}", place));
      stack_.push_back(found->second);
    }
    return true;
  }

  bool do_object(unsigned char opcode) {
    switch (opcode) {
      case 'c': {  // GLOBAL
        const std::string_view module = line();
        return push_name(module, line());
      }
      case 0x93: {  // STACK_GLOBAL
        const std::string_view name = pop(Kind::kText)->text;
        return push_name(pop(Kind::kText)->text, name);
      }
      case 'R': {  // REDUCE
        const PickledValue* arguments = pop(Kind::kList);
        push(made_by(pop(Kind::kName)->text, arguments->items));
        return true;
      }
      case 'b': {  // BUILD
        const PickledValue* state = pop(Kind::kList);
        PickledValue* built = pop();
        build(*built, state->items);
        stack_.push_back(built);
        return true;
      }
      default:
        return false;
    }
  }

  bool push_name(std::string_view module, std::string_view name) {
    for (const auto& [its_module, its_name] : kNames)
      if (its_module == module && its_name == name) {
        push({.kind = Kind::kName, .text = its_name});
        return true;
      }
    fail(fmt::format("it asks for {}, and {}", quoted_text(fmt::format("{}.{}", module, name)),
                     kSavePlainData));
  }

  const PickledValue& checked(const Items& items, std::size_t i, Kind kind) const {
    if (i >= items.size() || items[i]->kind != kind) fail("an array or a text that numpy does not write so");
    return *items[i];
  }

  PickledValue made_by(std::string_view name, const Items& arguments) {
    if (name == kReconstruct && checked(arguments, 0, Kind::kName).text == kArray)
      return {.kind = Kind::kArray, .item = 1};
    if (name == kElementType) return element_type(checked(arguments, 0, Kind::kText).text);
    if (name == kEncode && checked(arguments, 1, Kind::kText).text == "latin1") {
      const std::string_view bytes = keep(latin1_of_utf8(checked(arguments, 0, Kind::kText).text));
      if (bytes.size() > left_to_decode_) fail("one text is decoded again and again");
      left_to_decode_ -= bytes.size();
      return {.kind = Kind::kText, .text = bytes};
    }
    if (name == kFromBuffer)
      return array_of(checked(arguments, 0, Kind::kText).text, checked(arguments, 1, Kind::kElementType),
                      checked(arguments, 2, Kind::kList).items,
                      checked(arguments, 3, Kind::kText).text == "F");
    fail(fmt::format("numpy.{} or a coding that is not read here", name));
  }

  PickledValue element_type(std::string_view name) const {
    const bool is_whole = name.size() == 2 && (name[0] == 'u' || name[0] == 'i');
    if (!is_whole || std::string_view("1248").find(name[1]) == name.npos)
      fail(fmt::format("an array of {}, and whole numbers are wanted: array.astype(\"uint8\")",
                       quoted_text(name)));
    return {.kind = Kind::kElementType,
            .item = static_cast<std::size_t>(name[1] - '0'),
            .is_signed = name[0] == 'i'};
  }

  /// @param state  for an element type (version, order of bytes, ...); for an array (1, shape, element type, true if
  ///               its order is Fortran's, bytes)
  void build(PickledValue& built, const Items& state) const {
    if (built.kind == Kind::kElementType) {
      if (const auto order = checked(state, 1, Kind::kText).text; order != "|" && order != "<")
        fail("an array that is not little-endian: array.astype(\"uint8\")");
      return;
    }
    if (built.kind != Kind::kArray) fail("the state of an object that is not an array");
    built = array_of(checked(state, 4, Kind::kText).text, checked(state, 2, Kind::kElementType),
                     checked(state, 1, Kind::kList).items, checked(state, 3, Kind::kNumber).number != 0);
  }

  PickledValue array_of(std::string_view bytes, const PickledValue& type, const Items& shape,
                        bool is_fortran) const {
    constexpr std::size_t kMostDims = 4;
    PickledValue array{.kind = Kind::kArray,
                       .text = bytes,
                       .item = type.item,
                       .is_signed = type.is_signed,
                       .is_fortran = is_fortran};
    std::uint64_t left = bytes.size() / type.item;
    bool fits = bytes.size() % type.item == 0 && !shape.empty() && shape.size() <= kMostDims;
    for (std::size_t i = 0; fits && i < shape.size(); ++i) {
      const std::int64_t side = checked(shape, i, Kind::kNumber).number;
      fits = side >= 1 && left % static_cast<std::uint64_t>(side) == 0;
      if (fits) left /= static_cast<std::uint64_t>(side);
      array.dims.push_back(side);
    }
    if (!fits || left != 1) fail("an array whose shape is not that of its bytes");
    return array;
  }

  /// A text that is not in the file as it is.
  std::string_view keep(std::optional<std::string> text) {
    if (!text) fail("a text with an escape or a character that is not read here");
    return pickle_.texts_.emplace_back(*std::move(text));
  }

  Pickle& pickle_;
  MemorySource source_;
  std::string_view file_;
  std::size_t at_ = 0, opcode_at_ = 0;
  std::size_t left_to_decode_;  ///< bytes: no more than the file has, however often a text is asked for
  Items stack_;
  std::vector<std::size_t> marks_;  ///< places on the stack
  std::unordered_map<std::uint64_t, PickledValue*> memo_;
};

Pickle::Pickle(std::span<const std::uint8_t> file, std::string name) : name_(std::move(name)) {
  value_ = &Reader(*this, file).read();
}

}  // namespace lockstep
