// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A network, from its name or its YAML (docs/models.md has all kinds of layers).
#pragma once

#include <lockstep/layer.hpp>
#include <lockstep/shape.hpp>
#include <lockstep/version.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

LOCKSTEP_BEGIN_NAMESPACE

/// A range of the weights.
struct Tensor {
  std::string name;                  ///< as in a PyTorch state_dict: "conv1.weight"
  std::vector<int> shape;            ///< in PyTorch's order
  std::size_t offset = 0, size = 0;  ///< in numbers
};

/// Layers, shapes, and the order of the weights; no weights. Immutable, and shared: a copy costs a pointer.
class Network {
 public:
  /// @param source   net, lenet, conv3, conv4, linear, mlp, resnet8, resnet18, resnet20, resnet50, mobilenet_v2; or a path
  ///                 to a YAML file
  /// @param input    Dataset::shape()
  /// @param classes  Dataset::classes(), the outputs of the last layer
  /// @param own      kinds of layers that Lockstep does not have
  /// @throws ConfigError, ShapeError  naming file, line, layer, and what does not fit
  /// @throws MissingDataError         the file is not there
  static Network load(const std::string& source, const ImageShape& input, int classes,
                      const std::vector<LayerKind>& own = {});
  /// As load(), from YAML in memory.
  static Network parse(const std::string& yaml, const ImageShape& input, int classes,
                       const std::vector<LayerKind>& own = {});

  const std::string& name() const;
  const ImageShape& input() const;
  int classes() const;
  std::vector<Tensor> tensors() const;  ///< in the order of the weights
  std::string summary() const;          ///< a table: layer, output, parameters
  const std::string& yaml() const;      ///< parse() of it gives the same network

  struct Inside;  ///< Lockstep's own
  explicit Network(std::shared_ptr<const Inside> inside);
  const Inside& inside() const { return *inside_; }

 private:
  std::shared_ptr<const Inside> inside_;
};

LOCKSTEP_END_NAMESPACE
