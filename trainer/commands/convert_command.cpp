// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep convert FOLDER DIR
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/output.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "data/dataset.hpp"
#include "data/pictures/conversion.hpp"
#include "data/sets/catalogue.hpp"
#include "data/sets/shards.hpp"
#include "trainer/commands/command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <optional>
#include <string>

namespace lockstep {
namespace {

constexpr int kMostNamesShown = 10;

/// "20" or "32x24", width first.
std::optional<PictureSize> parse_size(const std::string& text) {
  constexpr std::int64_t kLargest = 4096;
  const auto side = [&](std::string_view digits) -> int {
    const auto number = parse_int64(digits);
    return number && *number >= 1 && *number <= kLargest ? static_cast<int>(*number) : 0;
  };
  const std::string_view view = text;
  const auto x = view.find('x');
  const PictureSize size{side(view.substr(0, x)), side(x == view.npos ? view : view.substr(x + 1))};
  if (size.width == 0 || size.height == 0) return std::nullopt;
  return size;
}

std::string names_of(const std::vector<std::string>& names) {
  std::string text = fmt::format(
      "{}", fmt::join(names.begin(),
                      names.begin() + std::min<std::ptrdiff_t>(kMostNamesShown, std::ssize(names)), ", "));
  return std::ssize(names) > kMostNamesShown ? text + ", ..." : text;
}

nlohmann::ordered_json conversion_json(const ConversionOptions& options, const Conversion& done) {
  return {{"format", 1},
          {"directory", options.to},
          {"classes", done.pictures.class_names},
          {"train_samples", done.pictures.train.size()},
          {"test_samples", done.pictures.test.size()},
          {"width", done.shape.width},
          {"height", done.shape.height},
          {"channels", done.shape.channels},
          {"left_out", done.pictures.left_out}};
}

int convert(const ConversionOptions& options, bool json) {
  const Conversion done = convert_pictures(Env::posix(), options);
  const SortedPictures& pictures = done.pictures;
  if (pictures.left_out > 0)
    print_error(fmt::format("left out {} that {} (first: {})", counted(pictures.left_out, "file"),
                            pictures.left_out == 1 ? "is no picture" : "are no pictures",
                            printable_line(pictures.first_left_out.string())));
  if (json) {
    print("{}\n", json_text_in_ascii(conversion_json(options, done)));
    return 0;
  }
  print("{}: {} ({}), {} to train on, {} to test with, {} x {}, {}\n", options.to,
        counted(pictures.class_names.size(), "class"), names_of(pictures.class_names),
        counted(pictures.train.size(), "image"), with_thousands(std::ssize(pictures.test)), done.shape.width,
        done.shape.height, done.shape.channels == 1 ? "grey" : "colour");
  print("train on it with   data: {{set: {}, root: {}}}\n", own_set().name, format_yaml_text(options.to));
  return 0;
}

/// A set that is there in another format.
int convert_set(const std::string& from, const std::string& to, bool replace) {
  const auto set = find_whole_set(from);
  if (!set)
    throw UsageError(fmt::format(
        "{}: neither a data set nor a directory that holds one; name what --shards is to write", from));
  const ShardIndex index = write_in_shards(Env::posix(), *set, to, {.replace = replace});
  print("{}: {}, {} to train on, {} to test with\n", to, counted(index.classes, "class"),
        counted(index.train.samples, "image"), with_thousands(index.test.samples));
  print("train on it with   data: {{set: shards, root: {}}}\n", format_yaml_text(to));
  return 0;
}

}  // namespace

void add_convert_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("convert", "Make a data set of your own from folders of pictures");
  auto options = std::make_shared<ConversionOptions>();
  auto size = std::make_shared<std::string>();
  auto colour = std::make_shared<bool>(false), grey = std::make_shared<bool>(false);
  command->add_option("folder", options->from, "Holds a folder for each class, or train/ and test/ that do")
      ->required();
  command->add_option("directory", options->to, "Where the files of the new set go")->required();
  command
      ->add_option("--size", *size,
                   "Scale all images to WIDTHxHEIGHT, or to a square; default: they are of one size")
      ->check([](const std::string& text) {
        return parse_size(text) ? ""
                                : fmt::format("'{}' is not a size such as 20 or 32x24, up to 4096", text);
      });
  auto* colour_flag = command->add_flag("--colour,--color", *colour, "Three channels: red, green, blue");
  command->add_flag("--grey,--gray", *grey, "One channel, the default")->excludes(colour_flag);
  auto* share = command->add_option("--test-share", options->test.share, "Of each class, taken to test with")
                    ->check([](const std::string& text) {
                      const auto number = parse_double(text);
                      return number && *number > 0 && *number < 1
                                 ? ""
                                 : fmt::format("'{}' is not between 0 and 1", text);
                    })
                    ->capture_default_str();
  auto* count =
      command->add_option("--test-count", options->test.count, "So many pictures of each class instead")
          ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31))
          ->excludes(share);
  command->add_option("--seed", options->test.seed, "Of the choice of test images")
      ->check([](const std::string& text) {
        return parse_uint64(text) ? "" : fmt::format("'{}' is not a whole number from 0", text);
      })
      ->capture_default_str();
  auto shards = std::make_shared<bool>(false);
  command->add_flag("--shards", *shards, "FOLDER is a data set, or a directory of one: write it in shards");
  command->add_flag("--force", options->replace, "Replace the set that is there");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "One JSON object in place of lines");
  command->footer(
      "PNG, JPEG, PGM and PPM. The folders' names become the names of the classes, in alphabetical order. A "
      "job\n"
      "trains on the set as the last line says, and predict makes pictures like its images.\n"
      "Examples:\n"
      "  lockstep convert photos my-set --size 20 --colour\n"
      "  lockstep convert photos my-set --size 32x24 --test-share 0.1 --seed 7 --force\n"
      "  lockstep convert cifar10 my-shards --shards");
  command->callback([=, &action] {
    options->size = size->empty() ? std::nullopt : parse_size(*size);
    options->colour = *colour && !*grey ? PictureColour::kRgb : PictureColour::kGrey;
    options->test.is_given = share->count() + count->count() > 0;
    action = [=] {
      return *shards ? convert_set(options->from, options->to, options->replace) : convert(*options, *json);
    };
  });
}

}  // namespace lockstep
