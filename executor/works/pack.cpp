// Pack, unpack and cast: copies between tensors, their flat buffers and their storage types.
//
// With a layout the flat buffer holds the slices of all coordinates side by side and a tensor is
// found by the parameter that its buffer belongs to; without one the tensors lie one after another.
#include <algorithm>
#include <cstring>

#include "executor/work_call.h"
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/elementwise.h"

namespace lockstep::exec {
namespace {

namespace cpu = kernels::cpu;

template <typename T>
void convert(const T* from, double factor, const Operand& to, std::int64_t first, std::int64_t n) {
  const cpu::Elementwise<T>& kernels = cpu::best<cpu::Elementwise<T>>();
  switch (to.dtype) {
    case DType::kFp64:
      return kernels.to_double(from, factor, to.as<double>() + first, n);
    case DType::kFp32:
      return kernels.to_float(from, factor, to.as<float>() + first, n);
    case DType::kBf16:
      return kernels.to_bf16(from, static_cast<T>(factor), to.as<cpu::Bf16>() + first, n);
    case DType::kFp16:
      return kernels.to_fp16(from, static_cast<T>(factor), to.as<cpu::Fp16>() + first, n);
    default:
      throw InternalError("executor", "cast to an integer type");
  }
}

/// `n` elements of `from` at `from_first` to `to` at `to_first`, times `factor`.
void copy(const Operand& from,
          std::int64_t from_first,
          const Operand& to,
          std::int64_t to_first,
          std::int64_t n,
          double factor) {
  if (from.dtype == to.dtype && factor == 1) {
    const std::int64_t size = size_of(from.dtype);
    std::memmove(to.as<std::byte>() + to_first * size,
                 from.as<std::byte>() + from_first * size,
                 static_cast<std::size_t>(n * size));
    return;
  }
  with_real(from.dtype, [&]<typename T>(T*) {
    const T* source = from.as<T>() + from_first;
    if (from.dtype == to.dtype) {
      cpu::best<cpu::Elementwise<T>>().scale(
          source, static_cast<T>(factor), to.as<T>() + to_first, n);
    } else {
      convert(source, factor, to, to_first, n);
    }
  });
}

const Operand* of_parameter(std::span<const Operand> tensors, std::int32_t parameter) {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const Operand& each) {
    return each.parameter == parameter;
  });
  return found == tensors.end() ? nullptr : &*found;
}

/// visit(tensor, piece, offset in the flat buffer) for all pieces of the tensors at hand.
template <typename Visit>
void for_each_slice(const Layout& layout, std::span<const Operand> tensors, Visit&& visit) {
  for (std::int32_t coordinate = 0; coordinate < layout.coordinates; ++coordinate) {
    const std::int64_t base = coordinate * layout.elements_per_coordinate;
    for (const LayoutEntry& entry : layout.entries) {
      if (const Operand* tensor = of_parameter(tensors, entry.parameter)) {
        for_each_piece(entry, coordinate, [&](const LayoutPiece& piece) {
          visit(*tensor, piece, base + piece.offset);
        });
      }
    }
  }
}

void clear(const Operand& flat, std::int64_t first, std::int64_t end) {
  if (end > first) {
    const std::int64_t size = size_of(flat.dtype);
    std::memset(
        flat.as<std::byte>() + first * size, 0, static_cast<std::size_t>((end - first) * size));
  }
}

/// Padding, wherever the layout has it, is zero.
void clear_padding(const Layout& layout, const Operand& flat) {
  for (std::int32_t coordinate = 0; coordinate < layout.coordinates; ++coordinate) {
    const std::int64_t base = coordinate * layout.elements_per_coordinate;
    std::int64_t reached = 0;
    for_each_piece(layout, coordinate, [&](const LayoutPiece& piece) {
      clear(flat, base + reached, base + piece.offset);
      reached = piece.offset + piece.elements;
    });
    clear(flat, base + reached, base + layout.elements_per_coordinate);
  }
}

void pack(const WorkCall& call) {
  const Operand& flat = call.out[0];
  const double factor = call.factor_or_one();
  if (call.layout == nullptr) {
    std::int64_t offset = 0;
    for (const Operand& tensor : call.in) {
      copy(tensor, 0, flat, offset, tensor.elements, factor);
      offset += tensor.elements;
    }
    return;
  }
  clear_padding(*call.layout, flat);
  for_each_slice(*call.layout,
                 call.in,
                 [&](const Operand& tensor, const LayoutPiece& piece, std::int64_t offset) {
                   copy(tensor, piece.first, flat, offset, piece.elements, factor);
                 });
}

void unpack(const WorkCall& call) {
  const Operand& flat = call.in[0];
  const double factor = call.factor_or_one();
  if (call.layout == nullptr) {
    std::int64_t offset = 0;
    for (const Operand& tensor : call.out) {
      copy(flat, offset, tensor, 0, tensor.elements, factor);
      offset += tensor.elements;
    }
    return;
  }
  for_each_slice(*call.layout,
                 call.out,
                 [&](const Operand& tensor, const LayoutPiece& piece, std::int64_t offset) {
                   copy(flat, offset, tensor, piece.first, piece.elements, factor);
                 });
}

}  // namespace

void run_pack(const WorkCall& call) {
  switch (call.op.work) {
    case Work::kPack:
      return pack(call);
    case Work::kUnpack:
      return unpack(call);
    default:
      return copy(call.in[0], 0, call.out[0], 0, call.out[0].elements, call.factor_or_one());
  }
}

}  // namespace lockstep::exec
