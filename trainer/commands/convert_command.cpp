// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep convert FOLDER DIR; of tables see table_commands.cpp
#include "common/error.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "data/dataset.hpp"
#include "data/pictures/conversion.hpp"
#include "data/sets/class_names.hpp"
#include "data/sets/duplicates.hpp"
#include "data/sets/hold_out.hpp"
#include "data/sets/set_loading.hpp"
#include "data/sets/shards.hpp"
#include "data/tables/npz_set.hpp"
#include "data/tables/table.hpp"
#include "data/tables/table_conversion.hpp"
#include "trainer/commands/command_line.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

/// "10%" of each class, or so many. Nothing: neither.
std::optional<HoldOut> read_share_of_class(const std::string& text) {
  if (!text.ends_with('%')) {
    const std::int64_t samples = parse_int64(text).value_or(0);
    const bool fits = samples >= 1 && samples <= std::int64_t{1} << 31;
    return fits ? std::optional(HoldOut{.samples = samples}) : std::nullopt;
  }
  const auto percent = parse_double(std::string_view(text).substr(0, text.size() - 1));
  return percent && *percent > 0 && *percent < 100 ? std::optional(HoldOut{.share = *percent / 100})
                                                   : std::nullopt;
}

/// [class] samples of a half.
std::vector<std::int64_t> samples_of_classes(const std::vector<LabelledPicture>& half, std::size_t classes) {
  std::vector<std::int64_t> counts(classes);
  for (const LabelledPicture& picture : half) ++counts[picture.label];
  return counts;
}

nlohmann::ordered_json conversion_json(const ConversionOptions& options, const Conversion& done,
                                       const Duplicates& duplicates) {
  nlohmann::ordered_json damaged = nlohmann::ordered_json::array();
  for (const DamagedPicture& picture : done.damaged) damaged.push_back(picture.path.string());
  return {{"format", 1},
          {"directory", options.to},
          {"classes", done.pictures.class_names},
          {"train_samples", done.pictures.train.size()},
          {"test_samples", done.pictures.test.size()},
          {"validation_samples", done.pictures.validation.size()},
          {"width", done.shape.width},
          {"height", done.shape.height},
          {"channels", done.shape.channels},
          {"left_out", done.pictures.left_out},
          {"left_out_kinds", done.pictures.left_out_kinds},
          {"damaged", damaged},
          {"reshaped", done.reshaped},
          {"made_grey", done.made_grey},
          {"had_16_bits", done.had_16_bits},
          {"duplicates", duplicates_json(duplicates)}};
}

void show_progress(ProgressBar& bar, std::size_t done, std::size_t all) {
  if (done == 1) return bar.restart();  // also where all are read once more
  if (!bar.is_due()) return;
  const double each = std::max(bar.seconds(), 1e-9) / static_cast<double>(done - 1);
  bar.draw(
      {{fmt::format("{}/{}", with_thousands(static_cast<std::int64_t>(done)), counted(all, "picture")), 3},
       {fmt::format("{} a second", with_thousands(static_cast<std::int64_t>(1 / each))), 1},
       {fmt::format("ETA {}", format_duration(each * static_cast<double>(all - done))), 2}},
      static_cast<double>(done) / static_cast<double>(all));
}

void say_what_was_left_out(const Conversion& done) {
  for (const std::string& remark : remarks_on(done.pictures)) print_error(remark);
  for (const DamagedPicture& picture : done.damaged) print_error(picture.reason);
  if (!done.damaged.empty())
    print_error(
        fmt::format("left out {} that cannot be read, named above", counted(done.damaged.size(), "picture")));
}

void say_what_was_changed(const ConversionOptions& options, const Conversion& done) {
  if (done.reshaped > 0) {
    const char* how = options.fit == PictureFit::kSqueeze
                          ? "squeezed: --fit crop or --fit pad keeps their proportions"
                      : options.fit == PictureFit::kCrop ? "cropped: their middle is kept"
                                                         : "padded with black";
    print("{} of other proportions than {} x {} {} {}\n", counted(done.reshaped, "picture"), done.shape.width,
          done.shape.height, done.reshaped == 1 ? "was" : "were", how);
  }
  if (done.made_grey > 0)
    print("{} became grey: --colour keeps it\n", counted(done.made_grey, "colour picture"));
  if (done.had_16_bits > 0)
    print("{} of 16 bits a channel: rounded to 8\n", counted(done.had_16_bits, "picture"));
}

int convert(ConversionOptions options, bool json) {
  ProgressBar bar(ProgressBar::Style::kPlain);
  if (!json) options.on_progress = [&](std::size_t done, std::size_t all) { show_progress(bar, done, all); };
  const Conversion done = [&] {
    try {
      return convert_pictures(Env::posix(), options);
    } catch (const DamagedPicturesError& error) {
      if (error.pictures().size() > 1)
        for (const DamagedPicture& picture : error.pictures()) print_error(picture.reason);
      throw;
    }
  }();
  wipe_bar();
  say_what_was_left_out(done);
  const SortedPictures& pictures = done.pictures;
  const Duplicates duplicates = say_duplicates_in("shards", options.to, !pictures.validation.empty());
  if (json) return print_json(conversion_json(options, done, duplicates));
  say_what_was_changed(options, done);
  print("{}: {} ({}), {} to train on, {}, {}\n", options.to, counted(pictures.class_names.size(), "class"),
        first_names(pictures.class_names), counted(pictures.train.size(), "image"),
        judges_text(std::ssize(pictures.test), std::ssize(pictures.validation)),
        channels_rows_columns(done.shape));
  const std::size_t classes = pictures.class_names.size();
  say_samples_of_classes(pictures.class_names, samples_of_classes(pictures.train, classes),
                         samples_of_classes(pictures.test, classes),
                         samples_of_classes(pictures.validation, classes));
  say_how_to_train("shards", options.to, !pictures.validation.empty());
  return 0;
}

/// Classes and halves are known after a first reading.
void require_readable_twice(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::is_other(status))
    throw UsageError(
        fmt::format("{}: is a pipe or a device, and is to be read twice; write it into a file, such as "
                    "table.csv, and convert that",
                    path));
}

/// The first option that was given and is none of these; "": there is none.
std::string given_besides(const CLI::App& command, const std::vector<std::string>& allowed) {
  for (const CLI::Option* option : command.get_options())
    if (!option->get_positional() && option->count() > 0 &&
        std::ranges::find(allowed, option->get_name()) == allowed.end())
      return option->get_name();
  return "";
}

/// Refuses options that are for pictures alone.
int convert_rows(const ConversionOptions& options, TableConversionOptions table, const CLI::App& command,
                 bool json) {
  for (const char* option : {"--size", "--fit", "--colour", "--grey", "--threads"})
    if (command.count(option) > 0)
      throw UsageError(
          fmt::format("{}: is a table, and {} is for pictures; leave it out", options.from, option));
  table.table.from = options.from;
  table.to = options.to;
  table.split = options.split;
  table.replace = options.replace;
  table.skip_damaged = options.skip_damaged;
  if (!is_npz_set(options.from)) return convert_table_and_say(table, json);
  if (const std::string option = given_besides(command, {"--force", "--json"}); !option.empty())
    throw UsageError(
        fmt::format("{}: is a set with halves of its own, which is written as it is; leave {} out",
                    options.from, option));
  return convert_npz_set_and_say(table, json);
}

/// A set that is there in another format.
int write_set_in_shards(const ConversionOptions& options, const DatasetOptions& set,
                        const CLI::App& command) {
  if (!given_besides(command, {"--force"}).empty())
    throw UsageError(
        fmt::format("{}: is a data set, which is written as it is; of the options only --force is for that",
                    options.from));
  const ShardIndex index = write_in_shards(Env::posix(), set, options.to, {.replace = options.replace});
  print("{}: {}, {} to train on, {}\n", options.to, counted(index.classes, "class"),
        counted(index.train.samples, "image"), judges_text(index.test.samples, index.validation.samples));
  say_duplicates_in("shards", options.to, index.validation.samples > 0);
  say_how_to_train("shards", options.to, index.validation.samples > 0);
  return 0;
}

/// --test-share, --test-count, --test, --validation and --seed. Writes into `choice`, which must outlive the parsing.
void add_split_options(CLI::App& command, SplitChoice& choice) {
  const auto choose_tests = [&choice](HoldOut tests) {
    choice.test = tests;
    choice.is_test_given = true;
  };
  const auto is_share =
      parsed_by(read_share_of_class, "is neither a share such as 10% nor a number such as 50");
  const auto is_part = [](const std::string& text) {
    const auto number = parse_double(text);
    return number && *number > 0 && *number < 1;
  };
  auto* share = command
                    .add_option_function<double>(
                        "--test-share", [=](double part) { choose_tests({.share = part}); },
                        "Share of each class for testing")
                    ->check(parsed_by(is_part, "is not between 0 and 1"))
                    ->default_str("0.2");
  auto* count = command
                    .add_option_function<std::int64_t>(
                        "--test-count", [=](std::int64_t samples) { choose_tests({.samples = samples}); },
                        "Number of pictures of each class instead")
                    ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31))
                    ->excludes(share);
  command
      .add_option_function<std::string>(
          "--test", [=](const std::string& text) { choose_tests(*read_share_of_class(text)); },
          "Either of these in short: 10%, or 50 of each class. All of them keep at least one of each class "
          "to test with, and one to train on")
      ->excludes(share)
      ->excludes(count)
      ->check(is_share);
  command
      .add_option_function<std::string>(
          "--validation",
          [&choice](const std::string& text) { choice.validation = *read_share_of_class(text); },
          "Part of each class, 10% or 50, becomes a validation half of its own, for data.validation: files; "
          "default: none")
      ->check(is_share);
  command.add_option("--seed,--split-seed", choice.seed, "Seed of the choice of test and validation samples")
      ->check(parsed_by(parse_uint64, "is not a whole number from 0"))
      ->capture_default_str();
}

}  // namespace

void add_convert_command(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("convert", "Make a data set of your own from folders of pictures, or a table");
  auto options = std::make_shared<ConversionOptions>();
  auto table = std::make_shared<TableConversionOptions>();
  auto size = std::make_shared<std::string>();
  auto colour = std::make_shared<bool>(false);
  command
      ->add_option("folder", options->from,
                   "Holds a folder for each class, or train/, test/ and perhaps val/ that do; or a set, "
                   "which is written as it is; or a table: a file called .csv, .tsv, .txt or .data, perhaps "
                   "with .gz, or .npy or .npz; or a .npz with halves, as Keras and MedMNIST have them")
      ->required();
  command->add_option("directory", options->to, "Folder for the files of the new set")->required();
  auto* size_option =
      command
          ->add_option("--size", *size,
                       "Scale all images to WIDTHxHEIGHT, or to a square; default: they are of one size")
          ->check(parsed_by(parse_picture_size, "is not a size such as 20 or 32x24, up to 4096"));
  auto fit = std::make_shared<std::optional<PictureFit>>();
  add_fit_option(*command, *fit, "squeeze")->needs(size_option);
  auto* colour_flag = command->add_flag("--colour,--color", *colour, "Three channels: red, green, blue");
  command->add_flag("--grey,--gray")->description("One channel, the default")->excludes(colour_flag);
  add_split_options(*command, options->split);
  command->add_flag("--skip-damaged", options->skip_damaged,
                    "Go on without pictures or rows that cannot be read, and name them");
  options->threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 64U));
  command->add_option("--threads", options->threads, "That read pictures; default: one for each core")
      ->check(CLI::Range(1, 1024));
  command->add_option(
      "--label", table->table.label,
      "The labels: a column of text, by name or by number from 1 (default: the one called label, target, "
      "class, y or species), an array of .npz (default: y, labels or label), or the file of .npy");
  add_table_options(*command, table->table);
  add_recipe_options(*command, table->table);
  command->add_flag("--force", options->replace, "Replace the set that is there");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, kJsonHelp);
  command->footer(
      "PNG, JPEG, WEBP, BMP, PGM and PPM. The folders' names become the names of the classes, in "
      "alphabetical order; their pictures may lie in folders in them. A job trains on the set as the last "
      "line says, and predict makes pictures like its images. Pictures that cannot be read are all named. A "
      "call that was interrupted leaves the old set or none: give it again. Of a table each row is a sample, "
      "its columns are numbers, or words with --one-hot, and labels are names or whole numbers. Samples that "
      "are in two halves, or under two labels, are counted and named.\n"
      "Examples:\n"
      "  lockstep convert photos my-set --size 64 --fit crop --colour\n"
      "  lockstep convert photos my-set --size 32x24 --test-share 0.1 --seed 7 --force\n"
      "  lockstep convert cifar10 my-shards\n"
      "  lockstep convert iris.csv my-set --label species --test 20%\n"
      "  lockstep convert titanic.csv my-set --label Survived --drop Name --one-hot Sex --missing median");
  on_choice(*command, action, [=] {
    options->size = size->empty() ? std::nullopt : parse_picture_size(*size);
    options->fit = fit->value_or(PictureFit::kSqueeze);
    options->colour = *colour ? PictureColour::kRgb : PictureColour::kGrey;
    require_readable_twice(options->from);
    if (is_called_a_table(options->from) && !std::filesystem::is_directory(options->from))
      return convert_rows(*options, *table, *command, *json);
    refuse_table_options(*command, options->from);
    if (const auto set = find_whole_set(options->from)) return write_set_in_shards(*options, *set, *command);
    return convert(*options, *json);
  });
}

}  // namespace lockstep
