// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "fat_binary.hpp"

#include "elf_file.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <stdexcept>

namespace lockstep::machine_code {
namespace {

constexpr std::uint32_t kMagic = 0xBA55ED50;
constexpr std::uint64_t kZstd = 0x8000, kLz4 = 0x2000;  ///< flags

struct GroupHeader {
  std::uint32_t magic;
  std::uint16_t version, header_size;
  std::uint64_t size;  ///< of the images that follow
};

struct ImageHeader {
  std::uint16_t kind, version;
  std::uint32_t header_size;
  std::uint64_t size;  ///< of what follows, padded
  std::uint32_t compressed_size, options_header;
  std::uint16_t minor, major;
  std::uint32_t capability;
  std::uint64_t name;
  std::uint64_t flags;
  std::uint64_t unused;
  std::uint64_t uncompressed_size;
  std::uint32_t options, options_size;  ///< where they are, from here on
};

/// From the shared library, which every Debian has: dpkg needs it.
std::string unpack_zstd(std::string_view packed, std::size_t size) {
  using Decompress = std::size_t (*)(void*, std::size_t, const void*, std::size_t);
  void* const library = dlopen("libzstd.so.1", RTLD_NOW);
  void* const symbol = library != nullptr ? dlsym(library, "ZSTD_decompress") : nullptr;
  if (symbol == nullptr) throw Unreadable("libzstd.so.1, which unpacks PTX, is not installed");
  std::string unpacked(size, '\0');
  const std::size_t made =
      reinterpret_cast<Decompress>(symbol)(unpacked.data(), size, packed.data(), packed.size());
  if (made != size) throw std::runtime_error("a packed image is damaged");
  return unpacked;
}

std::string contents(const ImageHeader& header, std::string_view rest) {
  if ((header.flags & kZstd) != 0)
    return unpack_zstd(part_of(rest, 0, header.compressed_size), header.uncompressed_size);
  if ((header.flags & kLz4) != 0)
    throw Unreadable("this nvcc packs PTX with LZ4, which this test does not unpack");
  return std::string(part_of(rest, 0, header.size));
}

std::string text_at(std::string_view bytes, std::size_t place, std::size_t size) {
  const std::string_view text = part_of(bytes, place, size);
  return std::string(text.substr(0, text.find('\0')));
}

Image image_at(std::string_view bytes, const ImageHeader& header) {
  Image image = {static_cast<ImageKind>(header.kind), static_cast<int>(header.capability), "",
                 contents(header, bytes.substr(header.header_size))};
  if (header.options_header != 0 && header.options_size > 0)
    image.options = text_at(bytes, header.options, header.options_size);
  if (image.kind == ImageKind::kPtx) image.bytes.resize(std::min(image.bytes.find('\0'), image.bytes.size()));
  return image;
}

void add_group(std::string_view images, std::vector<Image>& to) {
  while (images.size() >= sizeof(ImageHeader)) {
    const auto header = read_at<ImageHeader>(images, 0);
    const std::string_view bytes = part_of(images, 0, header.header_size + header.size);
    to.push_back(image_at(bytes, header));
    images.remove_prefix(bytes.size());
  }
}

}  // namespace

std::vector<Image> images_of(std::string_view program) {
  const ElfFile elf(program);
  const auto section = std::find_if(elf.sections.begin(), elf.sections.end(),
                                    [](const Section& s) { return s.name == ".nv_fatbin"; });
  if (section == elf.sections.end()) throw std::runtime_error("a program without kernels for GPUs");
  std::vector<Image> images;
  std::string_view rest = section->bytes;
  while (rest.size() >= sizeof(GroupHeader)) {
    const auto group = read_at<GroupHeader>(rest, 0);
    if (group.magic != kMagic) throw std::runtime_error("the section .nv_fatbin is not as known");
    add_group(part_of(rest, group.header_size, group.size), images);
    rest.remove_prefix(group.header_size + group.size);
    while (rest.size() >= 8 && read_at<std::uint64_t>(rest, 0) == 0) rest.remove_prefix(8);  // Padding.
  }
  return images;
}

}  // namespace lockstep::machine_code
