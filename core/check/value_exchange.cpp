#include "core/check/value_exchange.h"

#include <algorithm>

namespace lockstep {
namespace {

using field::Number;
using Symbols = std::span<const ValueSymbol* const>;

/// A number for a combination that stands for nothing sensible.
ValueSymbol garbage(Symbols symbols) {
  field::Hash hash(0x6d697865ULL);
  for (const ValueSymbol* symbol : symbols) {
    hash.add(symbol->number)
        .add(static_cast<std::uint64_t>(symbol->begin))
        .add(static_cast<std::uint64_t>(symbol->index));
  }
  return {hash.number(), 0, 0, 1};
}

bool all_present(Symbols symbols) {
  return std::none_of(
      symbols.begin(), symbols.end(), [](const ValueSymbol* symbol) { return symbol == nullptr; });
}

ValueSymbol sum_of(Symbols symbols) {
  ValueSymbol sum;
  for (const ValueSymbol* symbol : symbols) {
    if (symbol->number == 0) {
      continue;
    }
    if (sum.number != 0 && (sum.begin != symbol->begin || !sum.same_slice(*symbol))) {
      return garbage(symbols);
    }
    const Number total = field::add(sum.number, symbol->number);
    sum = *symbol;
    sum.number = total;
  }
  return sum.number == 0 ? ValueSymbol{} : sum;
}

/// Maxima of all slices are the maximum of the whole.
ValueSymbol max_of(Symbols symbols, const MergeFlags& merge_flags) {
  const ValueSymbol& first = *symbols[0];
  const bool same = std::all_of(symbols.begin(), symbols.end(), [&](const ValueSymbol* symbol) {
    return symbol->number == first.number && symbol->begin == first.begin && symbol->of == first.of;
  });
  if (!same) {
    ValueSymbol merged = first;
    for (std::size_t i = 1; i < symbols.size(); ++i) {
      merged.number = merge_flags(merged.number, symbols[i]->number);
    }
    return merged;
  }
  const bool all_equal =
      std::all_of(symbols.begin(), symbols.end(), [&](const ValueSymbol* symbol) {
        return symbol->index == first.index;
      });
  if (all_equal) {
    return first;
  }
  std::uint64_t seen = 0;
  for (const ValueSymbol* symbol : symbols) {
    seen |= std::uint64_t{1} << static_cast<unsigned>(symbol->index % 64);
  }
  const bool complete =
      first.of <= 64 && seen == (~std::uint64_t{0} >> (64U - static_cast<unsigned>(first.of)));
  return complete ? ValueSymbol{first.number, first.begin, 0, 1} : garbage(symbols);
}

void reduce(const Operation& op,
            std::span<const ValueSlab> inputs,
            const MergeFlags& merge_flags,
            ValueSlab& result) {
  std::vector<const ValueSlab*> slabs;
  slabs.reserve(inputs.size());
  for (const ValueSlab& input : inputs) {
    slabs.push_back(&input);
  }
  if (op.reduction != Reduction::kMax) {
    sum_slabs(slabs, result);
    if (op.reduction == Reduction::kAverage) {
      scale_slab(result, field::fraction(1, static_cast<std::int64_t>(inputs.size())));
    }
    return;
  }
  result.clear();
  zip(std::span<const ValueSlab* const>(slabs),
      [&](std::int64_t offset, std::int64_t elements, Symbols symbols) {
        if (all_present(symbols)) {
          append(result, {offset, elements, max_of(symbols, merge_flags)});
        }
      });
}

void gather(std::span<const ValueSlab> inputs, std::int64_t elements, ValueSlab& result) {
  result.clear();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    append_at(result, inputs[i], static_cast<std::int64_t>(i) * elements);
  }
}

/// Member i's part of `whole`, in equal parts.
void deal(const ValueSlab& whole, std::int64_t elements, ExchangeResult& result) {
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    cut(whole, static_cast<std::int64_t>(i) * elements, elements, result.outputs[i]);
    result.receives[i] = 1;
  }
}

void give_all(const ValueSlab& slab, ExchangeResult& result) {
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    result.outputs[i] = slab;
    result.receives[i] = 1;
  }
}

/// Each member's message is one equal part per member.
void all_to_all(std::span<const ValueSlab> inputs, std::int64_t elements, ExchangeResult& result) {
  const auto count = static_cast<std::int64_t>(inputs.size());
  const std::int64_t each = elements / count;
  ValueSlab part;
  for (std::int64_t to = 0; to < count; ++to) {
    ValueSlab& output = result.outputs[static_cast<std::size_t>(to)];
    for (std::int64_t from = 0; from < count; ++from) {
      cut(inputs[static_cast<std::size_t>(from)], to * each, each, part);
      append_at(output, part, from * each);
    }
    result.receives[static_cast<std::size_t>(to)] = 1;
  }
}

}  // namespace

void sum_slabs(std::span<const ValueSlab* const> slabs, ValueSlab& sum) {
  sum.clear();
  zip(slabs, [&](std::int64_t offset, std::int64_t elements, Symbols symbols) {
    if (all_present(symbols)) {
      append(sum, {offset, elements, sum_of(symbols)});
    }
  });
}

void scale_slab(ValueSlab& slab, field::Number factor) {
  if (factor == 1) {
    return;
  }
  for (ValuePiece& piece : slab) {
    piece.symbol.number = field::multiply(piece.symbol.number, factor);
  }
}

void exchange(const Operation& op,
              std::span<const ValueSlab> inputs,
              const MergeFlags& merge_flags,
              ExchangeResult& result) {
  result.outputs.resize(inputs.size());
  for (ValueSlab& output : result.outputs) {
    output.clear();
  }
  result.receives.assign(inputs.size(), 0);
  const auto root = static_cast<std::size_t>(std::max<std::int16_t>(op.root, 0));
  const bool has_root = root < inputs.size();
  ValueSlab whole;
  switch (op.collective) {
    case Collective::kAllReduce:
      reduce(op, inputs, merge_flags, whole);
      give_all(whole, result);
      break;
    case Collective::kReduceScatter:
      reduce(op, inputs, merge_flags, whole);
      deal(whole, op.elements, result);
      break;
    case Collective::kAllGather:
      gather(inputs, op.elements, whole);
      give_all(whole, result);
      break;
    case Collective::kBroadcast:
      if (has_root) {
        give_all(inputs[root], result);
      }
      break;
    case Collective::kReduce:
      if (has_root) {
        reduce(op, inputs, merge_flags, result.outputs[root]);
        result.receives[root] = 1;
      }
      break;
    case Collective::kGather:
      if (has_root) {
        gather(inputs, op.elements, result.outputs[root]);
        result.receives[root] = 1;
      }
      break;
    case Collective::kScatter:
      if (has_root) {
        deal(inputs[root], op.elements, result);
      }
      break;
    case Collective::kAllToAll:
      all_to_all(inputs, op.elements, result);
      break;
    case Collective::kBarrier: {
      // Everybody who comes counts one: after it each member knows how many have come.
      Number arrivals = 0;
      for (const ValueSlab& input : inputs) {
        const Number before = input.empty() ? 0 : input.front().symbol.number;
        arrivals = field::add(arrivals, field::add(before, 1));
      }
      whole.push_back({0, op.elements, {arrivals, 0, 0, 1}});
      give_all(whole, result);
      break;
    }
  }
}

}  // namespace lockstep
